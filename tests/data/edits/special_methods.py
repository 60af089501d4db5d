# outcome: applied
# check: (layer(2), layer[3], len(layer), str(layer)) == (20, 13, 7, 'new')
# undo: (layer(2), layer[3], len(layer), str(layer)) == (4, 3, 1, 'old')
# ---- before
class Layer:
    def __call__(self, x):
        return x * 2

    def __getitem__(self, i):
        return i

    def __len__(self):
        return 1

    def __str__(self):
        return 'old'


layer = Layer()
# ---- after
class Layer:
    def __call__(self, x):
        return x * 10

    def __getitem__(self, i):
        return i + 10

    def __len__(self):
        return 7

    def __str__(self):
        return 'new'


layer = Layer()
