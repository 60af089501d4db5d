"""What compiled graphs have besides ops on tensors: tuples, numbers, shapes, branches, the order of things."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from mindspore import Tensor

from .. import capture as captures
from .. import mindspore_compat as compat


class Partial(NamedTuple):
    """A function with its first arguments."""

    function: Any
    arguments: tuple[Any, ...]


def _capture() -> Any:
    return captures.active()


def _load(program: Any, parameter: Any) -> Any:
    """What a parameter is at this moment: it may be changed afterwards."""
    if not program.changes:
        return parameter
    capture = _capture()
    return capture.tensor(capture.copy(capture.value(parameter)))


def _switch(program: Any, condition: Any, yes: Any, no: Any) -> Any:
    return yes if condition else no


def _shapes(program: Any, *operands: Any) -> Any:
    """Shapes that follow from those of tensors, and from numbers."""
    attributes = _capture().primitive.attrs
    shapes = attributes["only_depend_shape"]
    given = [list(x.shape) if shape and isinstance(x, Tensor) else _whole_numbers(x) for x, shape in zip(operands, shapes, strict=True)]
    found = [tuple(shape) for shape in attributes["functor"](given)]
    return found[0] if len(found) == 1 else tuple(found)


def _whole_numbers(value: Any) -> list[int]:
    value = value.asnumpy().tolist() if isinstance(value, Tensor) else value
    return [int(number) for number in (value if isinstance(value, (tuple, list)) else [value])]


def _scalar(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda program, *operands: function(*operands)


def _tensor_of(program: Any, value: Any, dtype: Any = None) -> Tensor:
    return Tensor(np.array(value), dtype=_DTYPES[compat.TYPE_ID[dtype]] if isinstance(dtype, int) else dtype)


_DTYPES = {code: dtype for dtype, code in compat.DTYPE_OF.items()}


_SCALARS: dict[str, Callable[..., Any]] = {
    "ScalarAdd": operator.add, "ScalarSub": operator.sub, "ScalarMul": operator.mul, "ScalarDiv": operator.truediv,
    "ScalarFloorDiv": operator.floordiv, "ScalarMod": operator.mod, "ScalarPow": operator.pow, "ScalarUsub": operator.neg,
    "ScalarUadd": operator.pos, "ScalarEq": operator.eq, "scalar_eq": operator.eq, "scalar_ne": operator.ne, "ScalarNe": operator.ne,
    "ScalarLt": operator.lt, "scalar_lt": operator.lt, "ScalarLe": operator.le, "scalar_le": operator.le, "ScalarGt": operator.gt,
    "scalar_gt": operator.gt, "ScalarGe": operator.ge, "scalar_ge": operator.ge, "bool_not": operator.not_, "BoolNot": operator.not_,
    "ScalarBool": bool, "ScalarMax": max, "ScalarMin": min, "bool_and": lambda a, b: a and b, "bool_or": lambda a, b: a or b,
}
PLAIN: dict[str, Callable[..., Any]] = {
    "Return": lambda program, value: value,
    "Depend": lambda program, value, *before: value,
    "Load": _load,
    "StopGradient": lambda program, value: value,
    "TensorMove": lambda program, value: value,
    "MakeTuple": lambda program, *items: items,
    "RealMakeTuple": lambda program, *items: items,
    "make_list": lambda program, *items: list(items),
    "MakeList": lambda program, *items: list(items),
    "TupleGetItem": lambda program, items, at: items[at],
    "RealTupleGetItem": lambda program, items, at: items[at],
    "ListGetItem": lambda program, items, at: items[at],
    "sequence_len": lambda program, items: len(items),
    "Switch": _switch,
    "switch": _switch,
    "SwitchLayer": lambda program, at, functions: functions[int(at)],
    "switch_layer": lambda program, at, functions: functions[int(at)],
    "Partial": lambda program, function, *arguments: Partial(function, arguments),
    "Shape": lambda program, tensor: tuple(tensor.shape),
    "ShapeCalc": _shapes,
    "Rank": lambda program, tensor: len(tensor.shape),
    "TupleToTensor": _tensor_of,
    "ScalarToTensor": _tensor_of,
    "ListToTensor": _tensor_of,
    "TensorToScalar": lambda program, tensor: tensor.item(),
    "TensorToTuple": lambda program, tensor: tuple(tensor.tolist()),
    **{name: _scalar(function) for name, function in _SCALARS.items()},
}
