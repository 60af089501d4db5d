class Base:
    pass


class Layer:
    pass
