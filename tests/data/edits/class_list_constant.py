# outcome: applied
# keep: held = Layer.sizes
# check: Layer.sizes == [1, 3] and held is Layer.sizes
# undo: Layer.sizes == [1, 2] and held is Layer.sizes
# ---- before
class Layer:
    sizes = [1, 2]
# ---- after
class Layer:
    sizes = [1, 3]
