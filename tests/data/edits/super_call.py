# outcome: applied
# check: layer.forward(1) == 6
# ---- before
class Base:
    def forward(self, x):
        return x


class Layer(Base):
    def forward(self, x):
        return super().forward(x) + 1


layer = Layer()
# ---- after
class Base:
    def forward(self, x):
        return x


class Layer(Base):
    def forward(self, x):
        return super().forward(x) + 5


layer = Layer()
