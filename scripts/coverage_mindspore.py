"""Calls of what MindSpore publishes (`ops`, `mint`, methods of Tensor), with sample operands, through `@dvm.jit` and without."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
from coverage_calls import Verdict, judge
from mindspore import Tensor, mint, ops

import dvm_core as dvm

TOLERANCE = 1e-3  # MindSpore's own tanh and erf are off by 1e-4
_random = np.random.default_rng(0)


def _floats(*shape: int) -> np.ndarray:
    return _random.uniform(0.15, 0.85, shape).astype(np.float32)


_X, _Y, _Z = _floats(3, 4), _floats(3, 4), _floats(3, 4)
_INDEX, _ROWS = np.array([[1, 0, 3, 2], [0, 2, 1, 3], [3, 1, 0, 2]], np.int64), np.array([2, 0], np.int64)  # none twice
_WHOLE, _FLAGS = np.array([[5, 2, 7, 1], [3, 6, 4, 8], [1, 9, 2, 6]], np.int32), _INDEX > 0
_IMAGE, _FILTER, _CUBE, _SQUARE = _floats(2, 3, 6, 6), _floats(4, 3, 3, 3), _floats(2, 3, 4), _floats(4, 4)

# Gradients that are not compared, and why.
UNLIKE = {"Tensor.choose": "MindSpore hands a gradient on through integers, where there is none"}
# Tried in turn until MindSpore takes one: a call is chosen by what MindSpore runs, not by what we do.
OPERANDS: list[tuple[Any, ...]] = [
    (_X,), (_X, _Y), (_X, 1), (_X, _INDEX), (_X, 1, _INDEX), (_X, 1, _ROWS), (_X, _ROWS, 1), (_X, 0.5), (_X, 2, 1), (_X, (4, 3)),
    (_X, (1, 0)), (_X, _Y, _Z), (_FLAGS, _X, _Y), (_X, _FLAGS, 0.5), (_X, _FLAGS), (_X, 1, _INDEX, _Y), (_X, 0.2, 0.6),
    (_X, _floats(4, 5)), (_CUBE, _floats(2, 4, 5)), (_CUBE,), (_CUBE, 2), (_CUBE, 0, 2), (_IMAGE,), (_IMAGE, 2), (_IMAGE, 2, 2),
    (_IMAGE, _FILTER), (_IMAGE, (1, 1, 1, 1)), (_X, _floats(5, 4)), (_X, _floats(5, 4), _floats(5)), ([_X, _Y],), ([_X, _Y], 1),
    (_WHOLE,), (_WHOLE, _WHOLE), (_WHOLE, 2), (_FLAGS,), (_FLAGS, ~_FLAGS), (_X[0],), (_X[0], _Y[0]), (_X[0], _floats(5)), (_SQUARE,),
    (_SQUARE, _SQUARE), (_SQUARE, _X[0]), (_X, np.array([1, 3, 0], np.int64)), (_X, _X, _floats(4, 4)), (_IMAGE, (6, 6)),
    (_IMAGE, None, 2), (_X, (4,)), (_X, ms.float32), (_X, ms.int32), (3,), ((3, 4),), ((3, 4), 2.0), (1, 7, 2), (_X, 3, 0),
    (_X, 1, 0, 2), (_CUBE, 0, 1), (_X, [1, 2]), (_X, [1, 3], 1), (_X, (0, 1), (2, 2)), (_X, (0, 1), (2, 3), (1, 1)),
]
_SILENT = ("print", "dump", "recv", "send", "reduce_scatter", "all_", "barrier", "broadcast_", "hook", "set_", "_ms_", "asnumpy",
           "register", "save", "init", "get_", "vm_", "reset", "empty", "pin_memory", "storage", "move_to", "flush", "seed", "rand",
           "normal", "uniform", "dropout", "bernoulli", "poisson", "multinomial", "gamma", "laplace", "shuffle", "exponential", "vmap",
           "custom", "stub", "gumbel", "rrelu")


def published() -> dict[str, Callable[..., Any]]:
    """Functions by name; communication, random numbers and what is no op of tensors are left out by name."""
    found: dict[str, Callable[..., Any]] = {}
    for prefix, home, names in (("ops", ops, ops.__all__), ("mint", mint, mint.__all__), ("Tensor", Tensor, dir(Tensor))):
        for name in names:
            function = getattr(home, name, None)
            if name.startswith("_") or any(part in name.lower() for part in _SILENT) or not callable(function) \
                    or inspect.isclass(function) or isinstance(function, ops.Primitive) or inspect.ismodule(function):
                continue
            found[f"{prefix}.{name}"] = function
    return found


def _given(operand: Any) -> Any:
    if isinstance(operand, np.ndarray):
        return Tensor(operand.copy())
    return [_given(item) for item in operand] if isinstance(operand, list) else operand


def _leaves(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, (tuple, list)):
        for item in tree:
            yield from _leaves(item)


def _arrays(tree: Any) -> list[np.ndarray]:
    return [np.array(leaf.asnumpy()) for leaf in _leaves(tree)]


def _gradients(function: Callable[..., Any], operands: tuple[Any, ...]) -> list[np.ndarray]:
    """Gradients of a weighted sum of the float results in the float operands."""
    wanted = [i for i, o in enumerate(operands) if isinstance(o, np.ndarray) and o.dtype == np.float32]

    def weighted(*tensors: Tensor) -> Any:
        given = list(rest)
        for position, tensor in zip(wanted, tensors, strict=True):
            given[position] = tensor
        total = None
        for leaf in _leaves(function(*given)):
            if leaf.dtype == ms.float32:
                weights = Tensor(np.linspace(0.5, 1.5, max(1, int(np.prod(leaf.shape))), dtype=np.float32).reshape(leaf.shape))
                part = (leaf * weights).sum()
                total = part if total is None else total + part
        if total is None:
            raise TypeError("no float result")
        return total
    rest = [_given(o) for o in operands]
    return _arrays(ms.grad(weighted, tuple(range(len(wanted))))(*[Tensor(operands[i].copy()) for i in wanted])) if wanted else []


def _shown(operand: Any) -> str:
    if isinstance(operand, np.ndarray):
        return f"{operand.dtype.name}[{', '.join(map(str, operand.shape))}]"
    return f"[{', '.join(map(_shown, operand))}]" if isinstance(operand, list) else str(operand)


def verdict(name: str) -> Verdict | None:
    """None where MindSpore takes none of the sample operands on this machine, or gives no tensor."""
    function = published()[name]
    for operands in OPERANDS:
        try:
            plain, again = (_arrays(function(*map(_given, operands))) for _ in range(2))
        except Exception:
            continue
        if plain and all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(plain, again, strict=True)):
            break
    else:
        return None
    found = Verdict(name, ", ".join(map(_shown, operands)))
    captured = dvm.jit(lambda *args: function(*args))
    found.forward, found.note = judge(lambda: _arrays(captured(*map(_given, operands))), plain, TOLERANCE)
    try:
        gradients = _gradients(function, operands)
    except Exception:
        gradients = []
    if name in UNLIKE:
        found.note = UNLIKE[name]
    elif gradients:
        found.backward, note = judge(lambda: _gradients(dvm.jit(lambda *args: function(*args)), operands), gradients, TOLERANCE)
        found.note = found.note or note
    return found
