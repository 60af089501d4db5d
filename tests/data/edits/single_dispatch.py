# outcome: applied
# check: show(1) == 'whole 1' and show('a') == 'text a'
# undo: show(1) == 'int 1' and show('a') == 'any a'
# ---- before
import functools


@functools.singledispatch
def show(x):
    return f'any {x}'


@show.register
def _(x: int):
    return f'int {x}'
# ---- after
import functools


@functools.singledispatch
def show(x):
    return f'text {x}'


@show.register
def _(x: int):
    return f'whole {x}'
