"""grouped_matmul: one product for each group of rows, columns or inner elements; the groups' extents are numbers of a tensor.

The list is read when the kernel runs; each group is a slice, a product and a part of the result. Slice bounds are patched from launch to
launch, so other extents are no new program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from ..dtypes import int32, int64
from ..errors import ArgumentError, DtypeError, ShapeError
from .builder_objects import NDObject, fail
from .builder_rules import Rules, taken, tensor_of

if TYPE_CHECKING:
    from .builder_lower import Lowering

ROWS, COLUMNS, INNER = range(3)  # group types


class Grouped(Rules):
    """Mixed into Kernel."""

    def grouped_matmul(
        self,
        lhs: NDObject,
        rhs: NDObject,
        trans_a: bool = False,
        trans_b: bool = False,
        bias: NDObject | None = None,
        group_list: NDObject | None = None,
        group_type: int = 0,
        group_list_type: int = 0,
    ) -> NDObject:
        """Products by group. group_type 0: rows of lhs [M, K], each group with its matrix of rhs [G, K, N]; 1: columns of rhs [K, N], each
        with its matrix of lhs [G, M, K]; 2: the inner axis of [M, K] and [K, N], giving [G, M, N].

        group_list: int32 or int64, the groups' ends (group_list_type 0) or their extents (1). Rows or columns of no group are zeros. bias:
        [N], or one row for each group.
        """
        place = _core.user_place()
        operands = [lhs, rhs, *([bias] if bias is not None else [])]
        dtype = self._same_dtype("GroupedMatMul", operands, place)
        taken(lhs, "MatMul", place)
        if tensor_of(group_list, "GroupedMatMul", place).dtype_ not in (int32, int64):
            raise fail(DtypeError, f"group_list takes int32 or int64, got {group_list!r}", place, op="GroupedMatMul")
        if group_type not in (ROWS, COLUMNS, INNER) or group_list_type not in (0, 1):
            text = (
                f"group_type is 0 (M), 1 (N) or 2 (K), group_list_type 0 (ends) or 1 (extents), got {group_type!r} and {group_list_type!r}"
            )
            raise fail(ArgumentError, text, place, op="GroupedMatMul")
        return self._node(
            "GroupedMatMul",
            [*operands, group_list],
            dtype,
            place,
            trans_a=bool(trans_a),
            trans_b=bool(trans_b),
            group_type=group_type,
            group_list_type=group_list_type,
        )


def lower(run: Lowering, node: NDObject) -> int:
    """Records slices, products, bias and the joining of the parts."""
    (lhs, rhs, *rest), groups = node.operands[:-1], node.operands[-1]
    a, b = run.value(lhs), run.value(rhs)
    kind, ta, tb = node.attrs["group_type"], int(node.attrs["trans_a"]), int(node.attrs["trans_b"])
    left, right = run.shape(lhs), run.shape(rhs)
    ranks = {ROWS: (2, 3), COLUMNS: (3, 2), INNER: (2, 2)}[kind]
    if (len(left), len(right)) != ranks:
        raise fail(ShapeError, f"group_type {kind} takes ranks {ranks[0]} and {ranks[1]}", node.place, lhs, rhs, op=node.op)
    # (operand, axis) that the groups divide
    axis_a = {ROWS: 1 if ta else 0, COLUMNS: -1, INNER: 0 if ta else 1}[kind]
    axis_b = {ROWS: -1, COLUMNS: 0 if tb else 1, INNER: 1 if tb else 0}[kind]
    extent = right[axis_b] if kind == COLUMNS else left[axis_a]
    bounds = _bounds(run, node, groups, extent)
    whole = (left if kind == COLUMNS else right)[0]
    if kind != INNER and whole != len(bounds):
        raise fail(ShapeError, f"{len(bounds)} groups, and {whole} matrices for them", node.place, lhs, rhs, op=node.op)
    bias, bias_rank = (run.value(rest[0]), len(run.shape(rest[0]))) if rest else (-1, 0)
    parts = []
    for number, (start, end) in enumerate(bounds):
        x = _matrix(run, node, a, number) if axis_a < 0 else _cut(run, node, a, axis_a, start, end)
        y = _matrix(run, node, b, number) if axis_b < 0 else _cut(run, node, b, axis_b, start, end)
        part = run.op(node, "MATMUL", (x, y), (ta, tb), last=False)
        if rest:
            part = run.op(node, "ADD", (part, _bias(run, node, bias, bias_rank, number, kind, start, end)), last=False)
        parts.append(part)
    if kind == INNER:
        shape = run.graph.shape(parts[0])
        parts = [run.op(node, "RESHAPE", (part,), shape=(1, *shape), last=False) for part in parts]
        return run.op(node, "CONCAT", tuple(parts), (0,))
    missing = extent - bounds[-1][1]  # there may be more than the groups take
    m, n = run.graph.shape(parts[0])
    rest_shape = (missing, n) if kind == ROWS else (m, missing)
    parts.append(run.op(node, "FULL", (), shape=rest_shape, imms=(0.0,), last=False))
    return run.op(node, "CONCAT", tuple(parts), (0 if kind == ROWS else 1,))


def _bounds(run: Lowering, node: NDObject, groups: NDObject, extent: int) -> list[tuple[int, int]]:
    numbers = run.read(groups).astype(np.int64)
    ends = np.cumsum(numbers) if node.attrs["group_list_type"] else numbers
    starts = np.concatenate([[0], ends[:-1]]) if numbers.ndim == 1 and numbers.size else ends
    if numbers.ndim != 1 or not numbers.size or (ends < starts).any() or ends[-1] > extent:
        shown = numbers.tolist() if numbers.size <= 16 else f"{numbers.ravel()[:16].tolist()}..."
        raise fail(ShapeError, f"group_list {shown} does not divide an extent of {extent}", node.place, groups, op=node.op)
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def _cut(run: Lowering, node: NDObject, value: int, axis: int, start: int, end: int) -> int:
    shape = list(run.graph.shape(value))
    attrs = [0, 1] * len(shape)
    attrs[2 * axis], shape[axis] = start, end - start
    return run.op(node, "SLICE", (value,), tuple(attrs), tuple(shape), last=False)


def _matrix(run: Lowering, node: NDObject, value: int, number: int) -> int:
    one = _cut(run, node, value, 0, number, number + 1)
    return run.op(node, "RESHAPE", (one,), shape=tuple(run.graph.shape(value))[1:], last=False)


def _bias(run: Lowering, node: NDObject, bias: int, rank: int, number: int, kind: int, start: int, end: int) -> int:
    value = _cut(run, node, bias, 0, number, number + 1) if rank == 2 else bias
    return _cut(run, node, value, rank - 1, start, end) if kind == COLUMNS else value
