# outcome: applied
# check: layer.value() == 3
# undo: layer.value() == 1
# ---- before
import sys

if sys.version_info:
    class Layer:
        def value(self):
            return 1
else:
    class Layer:
        def value(self):
            return 2

layer = Layer()
# ---- after
import sys

if sys.version_info:
    class Layer:
        def value(self):
            return 3
else:
    class Layer:
        def value(self):
            return 2

layer = Layer()
