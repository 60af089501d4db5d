class Base:
    def forward(self, x):
        return x


class Layer(Base):
    def forward(self, x):
        return super().forward(x) + 5


layer = Layer()
