class Base:
    def forward(self, x):
        return x


class Layer(Base):
    def forward(self, x):
        return super().forward(x) + 1


layer = Layer()
