# outcome: applied
# check: layer.show(1) == 'whole 1' and layer.show('a') == 'any a'
# undo: layer.show(1) == 'int 1'
# ---- before
import functools


class Layer:
    @functools.singledispatchmethod
    def show(self, x):
        return f'any {x}'

    @show.register
    def _(self, x: int):
        return f'int {x}'


layer = Layer()
# ---- after
import functools


class Layer:
    @functools.singledispatchmethod
    def show(self, x):
        return f'any {x}'

    @show.register
    def _(self, x: int):
        return f'whole {x}'


layer = Layer()
