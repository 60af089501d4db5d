"""What methods and functions of tensors make of shapes and dtypes: tables by name, in NumPy's, PyTorch's, MindSpore's and our spelling."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .tensor_type import DTYPES, FLOATS, NOTHING, UNKNOWN, Dim, Mismatch, TensorType, broadcast, matmul, promoted, size


@dataclass(frozen=True)
class Arguments:
    """Of a call on tensors: the first is the receiver of a method. Each is a TensorType, a number, a text, a tuple of such, or None
    where the source alone does not tell."""

    values: tuple[Any, ...]
    named: dict[str, Any]

    @property
    def tensor(self) -> TensorType:
        return self.values[0] if self.values and isinstance(self.values[0], TensorType) else UNKNOWN

    def get(self, place: int, *names: str, default: Any = None) -> Any:
        for name in names:
            if name in self.named:
                return self.named[name]
        return self.values[place] if place < len(self.values) else default

    def given(self, place: int, *names: str) -> bool:
        return place < len(self.values) or any(name in self.named for name in names)

    def integers(self, place: int, *names: str) -> tuple[Any, ...] | None:
        """Several numbers, given one by one or as a tuple; None if unknown."""
        first = self.get(place, *names)
        if isinstance(first, tuple):
            return first
        rest = self.values[place:] if len(self.values) > place else (first,)
        if rest == (None,):  # a number, or a tuple
            return None
        return rest if all(isinstance(v, (int, str)) or v is None for v in rest) and self.given(place, *names) else None


Rule = Callable[[Arguments], TensorType]


def _same(a: Arguments) -> TensorType:
    return a.tensor


def floating(a: Arguments) -> TensorType:
    return a.tensor if a.tensor.dtype in FLOATS or a.tensor.dtype is None else replace(a.tensor, dtype="f32")


def _asked(a: Arguments) -> TensorType:
    return replace(a.tensor, dtype="bool")


def binary(left: Any, right: Any) -> TensorType:
    """An elementwise operation; a Python number takes the tensor's dtype, unless a float meets integers. Raises Mismatch."""
    if isinstance(left, TensorType) and isinstance(right, TensorType):
        return TensorType(promoted(left.dtype, right.dtype), broadcast(left, right))
    tensor, other = (left, right) if isinstance(left, TensorType) else (right, left)
    if not isinstance(tensor, TensorType):
        return UNKNOWN
    if isinstance(other, float) and tensor.dtype is not None and tensor.dtype not in FLOATS:
        return replace(tensor, dtype="f32")
    return tensor if isinstance(other, (int, float)) else TensorType()


def _binary(a: Arguments) -> TensorType:
    return binary(a.get(0), a.get(1, "other"))


def _compared(a: Arguments) -> TensorType:
    return replace(_binary(a), dtype="bool")


def _where(a: Arguments) -> TensorType:
    chosen = binary(a.get(1), a.get(2))
    return TensorType(chosen.dtype, broadcast(a.tensor, chosen))


def _axes(a: Arguments, place: int, rank: int) -> tuple[int, ...] | None:
    given = a.get(place, "axis", "dim")
    axes = given if isinstance(given, tuple) else (given,)
    if not all(isinstance(axis, int) for axis in axes):
        return None
    for axis in axes:
        if not -rank <= axis < rank:
            raise Mismatch(f"axis {axis} of {a.tensor}, which has {rank} dimensions")
    return tuple(axis % rank for axis in axes)


def _reduced(a: Arguments, dtype: str | None) -> TensorType:
    dims = a.tensor.dims
    if dims is None:
        return TensorType(dtype)
    keep = a.get(2, "keepdims", "keepdim", "keep_dims", default=False)
    if not isinstance(keep, bool):
        return TensorType(dtype)
    if a.get(1, "axis", "dim", default=NOTHING) is NOTHING:
        return TensorType(dtype, (1,) * len(dims) if keep else ())
    axes = _axes(a, 1, len(dims))
    if axes is None:
        return TensorType(dtype)
    return TensorType(dtype, tuple(1 if i in axes else d for i, d in enumerate(dims) if keep or i not in axes))


def _reduce(a: Arguments) -> TensorType:
    return _reduced(a, a.tensor.dtype)


def _mean(a: Arguments) -> TensorType:
    return _reduced(a, floating(a).dtype)


def _index(a: Arguments) -> TensorType:
    return _reduced(a, "i64")


def _any(a: Arguments) -> TensorType:
    return _reduced(a, "bool")


def _reshape(a: Arguments) -> TensorType:
    wanted = a.integers(1, "shape", "newshape")
    if wanted is None:
        return a.tensor.reshaped(None)
    have = size(a.tensor.dims) if a.tensor.dims is not None else None
    if not all(d is None or isinstance(d, int) for d in wanted) or list(wanted).count(-1) > 1:  # view(dtype), symbols
        return a.tensor.reshaped(None)
    known = [d for d in wanted if d != -1]
    count = size(tuple(known)) if all(isinstance(d, int) for d in known) else None
    if have is not None and count is not None:
        fits = have == count if -1 not in wanted else count != 0 and have % count == 0
        if not fits:
            raise Mismatch(f"{a.tensor} has {have} elements; it cannot become {_listed(wanted)}")
    left: Dim = have // count if have is not None and count else None
    return a.tensor.reshaped(tuple(left if d == -1 else d for d in wanted))


def _listed(dims: Sequence[Any]) -> str:
    return f"[{','.join('?' if dim is None else str(dim) for dim in dims)}]"


def _permuted(a: Arguments) -> TensorType:
    dims, order = a.tensor.dims, a.integers(1, "axes", "dims", "perm")
    if dims is None or order is None or not all(isinstance(axis, int) for axis in order):
        return a.tensor.reshaped(None)
    rank = len(dims)
    if any(not -rank <= axis < rank for axis in order) or sorted(axis % rank for axis in order) != list(range(rank)):
        raise Mismatch(f"{a.tensor} has {rank} dimensions; it cannot be turned by {_listed(order)}")
    return a.tensor.reshaped(tuple(dims[axis] for axis in order))


def _turned(a: Arguments) -> TensorType:
    """NumPy's transpose takes an order, PyTorch's two axes: where they differ nothing is known."""
    dims = a.tensor.dims
    if dims is None:
        return a.tensor
    if len(a.values) == 1 and not a.named:
        return a.tensor.reshaped(dims[::-1])
    if len(a.values) == 3 and all(isinstance(axis, int) for axis in a.values[1:]):
        return a.tensor.reshaped(None) if len(dims) == 2 and a.values[1:] != (1, 0) else _swapped(a)
    return _permuted(a)


def _swapped(a: Arguments) -> TensorType:
    dims, first, second = a.tensor.dims, a.get(1), a.get(2)
    if dims is None or a.named or not isinstance(first, int) or not isinstance(second, int):
        return a.tensor.reshaped(None)
    for axis in (first, second):
        if not -len(dims) <= axis < len(dims):
            raise Mismatch(f"axis {axis} of {a.tensor}, which has {len(dims)} dimensions")
    turned = list(dims)
    turned[first], turned[second] = turned[second], turned[first]
    return a.tensor.reshaped(tuple(turned))


def _unsqueezed(a: Arguments) -> TensorType:
    dims, axis = a.tensor.dims, a.get(1, "axis", "dim")
    if dims is None or not isinstance(axis, int):
        return a.tensor.reshaped(None)
    if not -len(dims) - 1 <= axis <= len(dims):
        raise Mismatch(f"axis {axis} of {a.tensor}, which has {len(dims)} dimensions")
    at = axis if axis >= 0 else len(dims) + 1 + axis
    return a.tensor.reshaped((*dims[:at], 1, *dims[at:]))


def _flattened(a: Arguments) -> TensorType:
    dims, start = a.tensor.dims, a.get(1, "start_dim", default=0)
    if dims is None or not isinstance(start, int) or not 0 <= start < len(dims) or a.given(2, "end_dim"):
        return a.tensor.reshaped(None)
    return a.tensor.reshaped((*dims[:start], size(dims[start:])))


def _running(a: Arguments) -> TensorType:
    return a.tensor if a.given(1, "axis", "dim") else a.tensor.reshaped(None)  # NumPy's without an axis is flat


def _extreme(a: Arguments) -> TensorType:
    return UNKNOWN if a.given(1, "dim") else _reduce(a)  # along an axis PyTorch's also gives where it is


def _joined(a: Arguments) -> TensorType:
    parts, axis = a.get(0), a.get(1, "axis", "dim", default=0)
    if not isinstance(parts, tuple) or not parts or not all(isinstance(p, TensorType) for p in parts) or not isinstance(axis, int):
        return UNKNOWN
    first: TensorType = parts[0]
    dtype = first.dtype if all(p.dtype == first.dtype for p in parts) else None
    if any(p.dims is None or first.dims is None or len(p.dims) != len(first.dims) for p in parts):
        return TensorType(dtype)
    rank = len(first.dims or ())
    if not -rank <= axis < rank:
        raise Mismatch(f"axis {axis} of {first}, which has {rank} dimensions")
    dims = list(first.dims or ())
    lengths = [p.dims[axis] for p in parts]
    dims[axis] = sum(lengths) if all(isinstance(n, int) for n in lengths) else None
    return TensorType(dtype, tuple(dims))


def _cast(a: Arguments) -> TensorType:
    dtype = a.get(1, "dtype")
    return replace(a.tensor, dtype=DTYPES.get(dtype) if isinstance(dtype, str) else None)


def _to(dtype: str) -> Rule:
    return lambda a: replace(a.tensor, dtype=dtype)


def _made(a: Arguments) -> TensorType:
    shape = a.integers(0, "size", "shape")
    dtype = a.named.get("dtype")
    return TensorType(DTYPES.get(dtype) if isinstance(dtype, str) else None, None if shape is None else tuple(
        d if isinstance(d, (int, str)) else None for d in shape if not (isinstance(d, str) and d in DTYPES)))


def _filled(a: Arguments) -> TensorType:
    return _made(Arguments(a.values[:1], a.named))


def _matmul(a: Arguments) -> TensorType:
    other = a.get(1, "other", "mat2", "tensor2")
    return matmul(a.tensor, other) if isinstance(other, TensorType) else UNKNOWN


def _many(rule: Rule, names: str) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


_ANYWHERE: dict[str, Rule] = {
    **_many(_same, "abs neg relu clamp clip contiguous detach clone copy softmax log_softmax dropout layer_norm rms_norm sort round "
                   "floor ceil trunc sign masked_fill zero_ fill_ requires_grad_ zeros_like ones_like empty_like full_like rand_like "
                   "randn_like triu tril roll flip stop_gradient"),
    **_many(floating, "exp log sqrt rsqrt tanh sigmoid erf sin cos tan gelu silu log1p expm1 reciprocal exp2 log2 softplus mish elu selu"),
    **_many(_asked, "isnan isinf isfinite logical_not"),
    **_many(_binary, "add sub subtract mul multiply div divide maximum minimum pow remainder fmod true_divide logaddexp"),
    **_many(_compared, "eq ne lt le gt ge equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor"),
    **_many(_reduce, "sum prod amax amin logsumexp norm nansum"),
    **_many(_extreme, "max min"),
    **_many(_running, "cumsum cumprod"),
    **_many(_mean, "mean std var"),
    **_many(_index, "argmax argmin"),
    **_many(_any, "any all"),
    **_many(_reshape, "reshape view"),
    **_many(_turned, "transpose"),
    **_many(_permuted, "permute"),
    **_many(_swapped, "swapaxes swapdims"),
    **_many(_unsqueezed, "unsqueeze expand_dims"),
    **_many(_cast, "astype to cast type"),
    **_many(_matmul, "matmul mm bmm"),
    "flatten": _flattened,
    "half": _to("f16"), "float": _to("f32"), "double": _to("f64"), "bfloat16": _to("bf16"), "int": _to("i32"), "long": _to("i64"),
    "bool": _to("bool"),
}
METHODS = _ANYWHERE
_PYTHONS = frozenset("sum max min abs any all round pow".split())  # plain names are Python's own
_METHODS_ONLY = frozenset("float int bool type to half double long copy view".split())
QUALIFIED: dict[str, Rule] = {
    **{name: rule for name, rule in _ANYWHERE.items() if name not in _METHODS_ONLY},
    **_many(_made, "zeros ones empty rand randn standard_normal random"),
    "full": _filled, "where": _where, "concat": _joined, "concatenate": _joined, "cat": _joined,
}
FUNCTIONS: dict[str, Rule] = {name: rule for name, rule in QUALIFIED.items() if name not in _PYTHONS}


def applied(rule: Rule, a: Arguments) -> TensorType:
    """The rule's type, in the dtype asked for by name."""
    made = rule(a)
    if "dtype" not in a.named or a.named["dtype"] is NOTHING:
        return made
    wanted = a.named["dtype"]
    return replace(made, dtype=DTYPES.get(wanted) if isinstance(wanted, str) else None)
