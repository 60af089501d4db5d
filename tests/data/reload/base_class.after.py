class Base:
    pass


class Layer(Base):
    pass
