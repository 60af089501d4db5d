# outcome: refused
# reason: `Layer.more`: the text defines more than one class of that name
# check: layer.value() == 2 and not hasattr(layer, 'more')
# ---- before
import sys

if not sys.version_info:
    class Layer:
        pass
else:
    class Layer:
        def value(self):
            return 2

layer = Layer()
# ---- after
import sys

if not sys.version_info:
    class Layer:
        def more(self):
            return 3
else:
    class Layer:
        def value(self):
            return 2

layer = Layer()
