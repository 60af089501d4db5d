class Base:
    def forward(self, x):
        return x


class Layer(Base):
    def forward(self, x):
        return x * 2


layer = Layer()
