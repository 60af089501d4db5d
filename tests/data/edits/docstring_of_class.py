# outcome: unchanged
# check: Layer().forward(2) == 4
# ---- before
class Layer:
    """Old."""

    def forward(self, x):
        return x * 2
# ---- after
class Layer:
    """New."""

    def forward(self, x):
        """Twice."""
        return x * 2
