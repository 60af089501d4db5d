# outcome: applied
# check: layer.forward(2) == 8 and layer.thrice(1) == 3 and Layer.twice.__qualname__ == 'Layer.twice'
# ---- before
class Base:
    def forward(self, x):
        return x


class Layer(Base):
    def forward(self, x):
        return x * 2


layer = Layer()
# ---- after
class Base:
    def forward(self, x):
        return x


class Layer(Base):
    def forward(self, x):
        return self.twice(x)

    def twice(self, x):
        return super().forward(x) * 4

    @staticmethod
    def thrice(x):
        return x * 3


layer = Layer()
