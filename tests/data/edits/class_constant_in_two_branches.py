# outcome: refused
# reason: `Layer.width`: the text defines more than one class of that name
# check: layer.size() == 1
# ---- before
import sys

if not sys.version_info:
    class Layer:
        width = 1
else:
    class Layer:
        width = 1

        def size(self):
            return self.width

layer = Layer()
# ---- after
import sys

if not sys.version_info:
    class Layer:
        width = 2
else:
    class Layer:
        width = 1

        def size(self):
            return self.width

layer = Layer()
