"""What an instruction must be to be run: operand counts and types, attributes, ranks, dtypes. Dimensions are data and may be patched, so
they are only bounded here; whether they fit each other is checked when the program is recorded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..dtypes import bool_, float32, float64, int32, int64
from . import layout as L
from .stream import Ragged, Stream

UNKNOWN = -1  # rank or dtype of an input nobody described


def _table(values: dict[int, int], default: int = -1) -> np.ndarray:
    out = np.full(256, default, np.int64)
    for code, value in values.items():
        out[code] = value
    return out


_CLASS = _table({code: ord(entry[1]) for code, entry in L.OPS.items()}, 0)
_ARITY = _table({code: entry[2] for code, entry in L.OPS.items()}, -1)
_RULE = _table({code: ("same", "bool", "attr").index(entry[3]) for code, entry in L.OPS.items()})
_ITEM = _table(L.ITEM_SIZE, 0)
_OP = L.CODES
_F32, _F64, _BOOL, _I32, _I64 = (dtype.code for dtype in (float32, float64, bool_, int32, int64))


def _op(*names: str) -> Callable[[Stream], np.ndarray]:
    codes = np.zeros(256, bool)
    codes[[_OP[name] for name in names]] = True
    return lambda stream: codes[stream.opcode]


_LOGICAL = _op("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT")
_ELEMENTS = _op("GATHER_ELEMENTS", "SCATTER_ELEMENTS", "SCATTER_ADD_ELEMENTS")
_INDEXED = _op("GATHER", "SCATTER_ADD", "SCATTER", "GATHER_ELEMENTS", "SCATTER_ELEMENTS", "SCATTER_ADD_ELEMENTS")
_WRITES = _op("SCATTER", "SCATTER_ELEMENTS")  # the third operand is what is written into the first
_AXIS = _op("CONCAT", "IOTA", "GATHER", "SCATTER_ADD", "SCATTER", "GATHER_ELEMENTS", "SCATTER_ELEMENTS", "SCATTER_ADD_ELEMENTS")
_STEPS = _op("SLICE", "UNSLICE")
_ORDER = _op("CUMSUM", "SORT", "ARGSORT", "TOPK")  # an axis, then flags; TOPK has k between them
_EXTREME = _op("ARGMAX", "ARGMIN")
_POSITIONS = _op("ARGMAX", "ARGMIN", "ARGSORT", "TOPK")
_SAME_RANK = _op("TRANSPOSE", "SLICE", "UNSLICE", "CONCAT", "PAD", "CUMSUM", "SORT", "ARGSORT", "TOPK", "SCATTER")
# how many attributes an op has, where it is always the same number
_ATTRIBUTES = _table({**{_OP[name]: 1 for name in ("CONCAT", "IOTA", "ONE_HOT", "GATHER", "SCATTER_ADD", "SCATTER", "GATHER_ELEMENTS",
                                                   "SCATTER_ELEMENTS", "SCATTER_ADD_ELEMENTS")},
                      **{_OP[name]: 2 for name in ("MATMUL", "SORT", "ARGSORT", "ARGMAX", "ARGMIN")},
                      **{_OP[name]: 3 for name in ("CUMSUM", "TOPK")}}, 0)
_MATMUL = _op("MATMUL")

# Instructions with a fixed number of attributes on rank 4: the least and largest value of each.
_STEP, _BEFORE = (1, 1 << 20), (-(1 << 52), 1 << 52)
_POOL = (_STEP, _STEP, _STEP, _STEP, _BEFORE, _BEFORE)
_LIMITS = {
    **dict.fromkeys(("CONV2D", "CONV2D_WEIGHT"), (_STEP, _STEP, _BEFORE, _BEFORE, *(_STEP,) * 5)),
    **dict.fromkeys(("MAX_POOL2D", "MAX_POOL2D_GRAD"), (*_POOL, _STEP, _STEP)),
    **dict.fromkeys(("AVG_POOL2D", "AVG_POOL2D_GRAD"), (*_POOL, _BEFORE, _BEFORE, (0, 1), (0, 1 << 52))),
}
_PLANES = _op(*_LIMITS)
_LIMIT_COUNT = _table({_OP[name]: len(limits) for name, limits in _LIMITS.items()}, 0)
_LEAST, _LARGEST = np.zeros((2, 256, 10), np.int64)
for _name, _of in _LIMITS.items():
    _LEAST[_OP[_name], : len(_of)], _LARGEST[_OP[_name], : len(_of)] = np.transpose(_of)


def _require(ok: np.ndarray, offsets: np.ndarray, rule: str, stream: Stream | None = None) -> None:
    if not ok.all():
        first = int(np.flatnonzero(~ok)[0])
        name = f"instruction {first} ({L.NAMES.get(int(stream.opcode[first]), '?')}): " if stream is not None else ""
        raise L.MsbcError(int(offsets[first]), name + rule)


def check(stream: Stream, input_dtypes: np.ndarray | None, input_ranks: np.ndarray | None) -> np.ndarray:
    """Checks every instruction; returns the operands as local ids (inputs first). Inputs None: the file describes none."""
    _heads(stream)
    operands, inputs = _ids(stream, None if input_dtypes is None else len(input_dtypes))
    described = input_dtypes is not None
    unknown = np.full(inputs, UNKNOWN, np.int64)
    dtype = np.concatenate([input_dtypes if described else unknown, stream.dtype])
    rank = np.concatenate([input_ranks if described else unknown, stream.dims.count])
    values = Ragged(operands, stream.operands.start, stream.operands.count, stream.operands.row)
    _dtypes(stream, values, dtype)
    _ranks_and_attributes(stream, values, rank)
    return operands


def _heads(s: Stream) -> None:
    _require(_CLASS[s.opcode] > 0, s.offset, "unknown opcode", s)
    _require(_ITEM[s.dtype] > 0, s.offset + 4 + 4 * s.dims.count, "unknown dtype", s)
    size = np.ones(s.size)
    np.multiply.at(size, s.dims.row, np.maximum(s.dims.values, 1))  # a zero dimension must not hide the others
    _require(size * _ITEM[s.dtype] <= L.MAX_TENSOR_BYTES, s.offset + 4, f"a result of more than {L.MAX_TENSOR_BYTES} bytes", s)
    cls, arity = _CLASS[s.opcode], _ARITY[s.opcode]
    scalar = (s.operand_type == L.TENSOR_SCALAR) | (s.operand_type == L.SCALAR_TENSOR)
    nullary = cls == ord("N")
    _require(
        np.where(nullary, s.operand_type == L.NO_TENSOR, (s.operand_type == L.TENSOR) | (scalar & (cls == ord("B")))),
        s.offset + 2,
        "operand type does not fit the opcode",
        s,
    )
    wanted = np.where(nullary, 0, arity - scalar)
    _require(np.where(arity < 0, s.operands.count >= 1, s.operands.count == wanted), s.offset + 1, "wrong number of operands", s)
    imms = scalar + 2 * _op("ONE_HOT", "RANDOM")(s) + _op("FULL", "PAD")(s)
    _require(s.imm_kind.count == imms, s.attr_at + 1 + 8 * s.attrs.count, "wrong number of immediates", s)
    _require((s.imm_kind.values == L.IMM_FLOAT) | (s.imm_kind.values == L.IMM_INT), s.attr_at[s.imm_kind.row], "unknown kind of immediate")


def _ids(s: Stream, declared: int | None) -> tuple[np.ndarray, int]:
    _require((s.output_id >= 1) & (s.output_id < L.INPUT), s.offset + 5 + 4 * s.dims.count, "an output id is 1..2^31-1", s)
    ascending = np.ones(s.size, bool)
    ascending[1:] = s.output_id[1:] > s.output_id[:-1]
    _require(ascending, s.offset + 5 + 4 * s.dims.count, "output ids must ascend", s)
    ids, row = s.operands.values, s.operands.row
    at = s.offset[row] + 9 + 4 * s.dims.count[row] + 4 * (np.arange(ids.size) - s.operands.start[row])
    is_input = ids >= L.INPUT
    number = ids - L.INPUT
    # Without a description the inputs are those that are used.
    inputs = declared if declared is not None else int(number.max(initial=-1, where=is_input)) + 1
    limit = declared if declared is not None else L.MAX_INPUTS
    _require(~is_input | (number < limit), at, f"an input number must be below {limit}")
    producer = np.searchsorted(s.output_id, ids)
    known = s.output_id[np.minimum(producer, s.size - 1)] == ids if s.size else np.zeros(ids.size, bool)
    _require(is_input | (known & (producer < row)), at, "an operand is no result of an earlier instruction")
    return np.where(is_input, number, inputs + producer), inputs


def _dtypes(s: Stream, values: Ragged, dtype: np.ndarray) -> None:
    def of(position: int) -> np.ndarray:
        ids = values.at(position, -1)
        return np.where(ids >= 0, dtype[ids] if dtype.size else UNKNOWN, UNKNOWN)

    at = s.offset + 4 + 4 * s.dims.count
    rule, first, second = _RULE[s.opcode], of(0), of(1)
    third = of(2)
    cls = _CLASS[s.opcode]

    def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (a == b) | (a == UNKNOWN) | (b == UNKNOWN)

    boolean = np.full(s.size, _BOOL)
    select = cls == ord("T")
    _require(~select | (same(first, boolean) & same(second, third)), s.offset + 1, "SELECT wants bool, then two of one dtype", s)
    paired = ((cls == ord("B")) | (cls == ord("M")) | _PLANES(s)) & (values.count == 2)
    _require(~paired | same(first, second), s.offset + 1, "operands of different dtypes", s)
    _require(~_LOGICAL(s) | (same(first, boolean) & same(second, boolean)), s.offset + 1, "a logical op wants bool operands", s)
    index = np.where(_INDEXED(s), second, np.where(_op("ONE_HOT")(s), first, UNKNOWN))
    _require((index == UNKNOWN) | (index == _I32) | (index == _I64), s.offset + 1, "an index is int32 or int64", s)
    _require(~_WRITES(s) | same(first, third), s.offset + 1, "what is written has another dtype", s)
    drawn = np.isin(s.dtype, (_F32, _F64, _I32, _I64))
    _require(~_op("RANDOM")(s) | drawn, at, "RANDOM makes float32, float64, int32 or int64", s)
    _require(~_POSITIONS(s) | (s.dtype == _I32) | (s.dtype == _I64), at, "positions are int32 or int64", s)
    concat = _op("CONCAT")(s)[values.row] if values.row.size else np.zeros(0, bool)
    each = dtype[values.values] if values.values.size else values.values
    _require(~concat | same(each, first[values.row]), s.offset[values.row], "CONCAT of different dtypes")
    _require((rule != 0) | same(np.where(select, second, first), s.dtype), at, "the result must have its operand's dtype", s)
    _require((rule != 1) | (s.dtype == _BOOL), at, "the result must be bool", s)


def _ranks_and_attributes(s: Stream, values: Ragged, rank: np.ndarray) -> None:
    cls, out, attrs, at = _CLASS[s.opcode], s.dims.count, s.attrs, s.attr_at
    ranks = Ragged(rank[values.values] if values.values.size else values.values, values.start, values.count, values.row)
    first, second = ranks.at(0, UNKNOWN), ranks.at(1, UNKNOWN)
    largest = np.full(s.size, UNKNOWN, np.int64)
    np.maximum.at(largest, ranks.row, ranks.values)
    complete = np.ones(s.size, bool)  # every operand's rank is known
    complete[ranks.row[ranks.values == UNKNOWN]] = False

    def require(mask: np.ndarray, ok: np.ndarray, rule: str, offset: np.ndarray = at) -> None:
        _require(~mask | ok, offset, rule, s)

    is_cls = {letter: cls == ord(letter) for letter in "UBTRMVDN"}
    perm, steps, axis, one_hot = _op("TRANSPOSE")(s), _STEPS(s), _AXIS(s), _op("ONE_HOT")(s)
    order, extreme, pad, elements, matmul, planes = _ORDER(s), _EXTREME(s), _op("PAD")(s), _ELEMENTS(s), _MATMUL(s), _PLANES(s)
    fixed = _ATTRIBUTES[s.opcode]
    require(is_cls["R"], attrs.count >= 2, "a reduction has attributes keepdims, axes...")
    require(perm | pad, attrs.count == out, "one attribute per axis")
    require(steps, attrs.count == 2 * out, "SLICE has start and step for every axis")
    require(fixed == 1, attrs.count == 1, "one attribute")
    require(fixed > 1, attrs.count == fixed, "another number of attributes")
    require(planes, attrs.count == _LIMIT_COUNT[s.opcode], "a convolution has 9 attributes, a pool 8 or 10")
    require(~(is_cls["R"] | planes | perm | pad | steps | (fixed > 0)), attrs.count == 0, "takes no attributes")

    # ranks
    require(
        (is_cls["U"] | is_cls["B"] | is_cls["T"]) & complete,
        largest == out,
        "the result's rank must be its operands' largest",
        s.offset + 3,
    )
    require(_SAME_RANK(s) & (first != UNKNOWN), first == out, "the result's rank must be its operand's", s.offset + 3)
    require(_op("BROADCAST")(s), first <= out, "BROADCAST cannot lower the rank", s.offset + 3)
    require(one_hot & (first != UNKNOWN), first + 1 == out, "ONE_HOT adds one axis", s.offset + 3)
    require(
        matmul & complete,
        (largest == out) & (ranks.at(0, 9) >= 2) & (ranks.at(1, 9) >= 2),
        "MATMUL wants ranks of at least 2",
        s.offset + 3,
    )
    require(planes, s.operands.count <= 2, "a pool has one operand or two", s.offset + 1)
    require(planes, out == 4, "the result's rank must be 4", s.offset + 3)
    require(planes & complete, (largest == 4) & (ranks.at(1, 4) == 4) & (first == 4), "convolutions and pools take rank 4", s.offset + 3)
    require(_op("GATHER")(s) & complete, first - 1 + second == out, "GATHER's rank is operand - 1 + index", s.offset + 3)
    require(_op("SCATTER_ADD")(s) & complete, first - second + 1 == out, "SCATTER_ADD's rank is operand - index + 1", s.offset + 3)
    require(elements & complete, (largest == out) & (first == out) & (second == out), "index and operands have one rank", s.offset + 3)
    written = ranks.at(2, UNKNOWN) == first - 1 + second
    require(_op("SCATTER")(s) & complete, written, "what SCATTER writes has rank operand - 1 + index", s.offset + 1)
    require(extreme & (first != UNKNOWN), np.where(attrs.first() == 1, first, first - 1) == out, "the result's rank", s.offset + 3)
    same_rank = _op("CONCAT")(s)[ranks.row] if ranks.row.size else np.zeros(0, bool)
    _require(~same_rank | (ranks.values == UNKNOWN) | (ranks.values == out[ranks.row]), s.offset[ranks.row], "CONCAT of different ranks")

    # attribute values
    flags = attrs.first()
    topk, cumsum = _op("TOPK")(s), _op("CUMSUM")(s)
    for number, flagged in enumerate((is_cls["R"] | matmul | extreme, matmul | (order & ~topk), topk | cumsum)):
        flag = attrs.at(number) if number else flags
        require(flagged, (flag == 0) | (flag == 1), "a flag is 0 or 1", at + 1 + 8 * number)
    require(topk, (attrs.at(1) >= 0) & (attrs.at(1) < 1 << 32), "k out of range", at + 9)
    chosen = attrs.at(1)
    require(extreme, (chosen >= 0) & (chosen < np.where(first == UNKNOWN, L.MAX_RANK, first)), "axis out of range", at + 9)
    bound = np.where(_op("GATHER")(s), first, out)
    require(axis | order, (flags >= 0) & ((flags < bound) | (bound == UNKNOWN)), "axis out of range", at + 1)
    require(one_hot, (flags >= 0) & (flags < 1 << 31), "depth out of range", at + 1)
    _axes(s, is_cls["R"], first)
    _permutations(s, perm)
    position = np.arange(attrs.values.size) - attrs.start[attrs.row]
    of_steps = (steps | pad)[attrs.row] if attrs.row.size else np.zeros(0, bool)
    of_pad = pad[attrs.row] if attrs.row.size else of_steps
    of_planes = planes[attrs.row] if attrs.row.size else np.zeros(0, bool)
    code, place = s.opcode[attrs.row], np.minimum(position, 9)
    inside = (attrs.values >= _LEAST[code, place]) & (attrs.values <= _LARGEST[code, place])
    _require(~of_planes | inside, at[attrs.row], "an attribute of a convolution or pool is out of range")
    limit = 1 << 40
    _require(
        ~of_steps | (attrs.values > -limit) & (attrs.values < limit) & ((~of_pad & (position % 2 == 1)) | (attrs.values >= 0)),
        at[attrs.row],
        "a start or step is out of range",
    )


def _axes(s: Stream, reduction: np.ndarray, operand_rank: np.ndarray) -> None:
    # keepdims, then ascending adjacent axes below the operand's rank
    attrs, at = s.attrs, s.attr_at
    count = attrs.count - 1
    last = attrs.at(np.maximum(attrs.count - 1, 0))
    start = attrs.at(1)
    position = np.arange(attrs.values.size) - attrs.start[attrs.row]
    follows = ~reduction[attrs.row] | (position < 1) | (attrs.values == start[attrs.row] + position - 1)
    _require(follows, at[attrs.row], "axes must ascend and be adjacent")
    rank = np.where(operand_rank == UNKNOWN, L.MAX_RANK, operand_rank)
    _require(~reduction | ((start >= 0) & (last < rank)), at + 9, "axis out of range", s)
    result = np.where(attrs.first() == 1, operand_rank, operand_rank - count)
    _require(~reduction | (operand_rank == UNKNOWN) | (s.dims.count == result), s.offset + 3, "the reduction's rank", s)


def _permutations(s: Stream, perm: np.ndarray) -> None:
    rows = perm[s.attrs.row] if s.attrs.row.size else np.zeros(0, bool)
    values, row = s.attrs.values[rows], s.attrs.row[rows]
    inside = (values >= 0) & (values < s.dims.count[row])
    _require(inside, s.attr_at[row], "a permutation names each axis once")
    seen = np.zeros(s.size, np.int64)
    np.bitwise_or.at(seen, row, np.left_shift(1, values))
    _require(~perm | (seen == np.left_shift(1, s.dims.count) - 1), s.attr_at, "a permutation names each axis once", s)
