# outcome: refused
# reason: class `Layer` changed
# check: Layer().forward(1) == 1
# ---- before
class Layer:
    def forward(self, x):
        return x
# ---- after
class Layer:
    __slots__ = ("width",)

    def forward(self, x):
        return x
