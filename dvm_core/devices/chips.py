"""What an Ascend chip's vector and cube cores have instructions for, as DVM publishes it: by op and dtype, for both architectures.

An entry says how the op is computed: "native", the dtype it goes through ("float32": there, computed, and back), "halves" (two int32), or
"" where the chip has nothing. The cpu computes all of them, and those in `extra` besides.
"""

from __future__ import annotations

from typing import NamedTuple

ARCHS = {"AscendC220": 0, "AscendC310": 1}  # index of a way
DTYPES = ("bool", "float16", "bfloat16", "float32", "int32", "int64")  # DVM's; a chip has no others

Ways = dict[str, tuple[str, str]]


class Group(NamedTuple):
    """Ops that take the same dtypes."""

    ops: str
    ways: Ways
    extra: tuple[str, ...]  # on the cpu besides


_NATIVE = ("native", "native")
_WIDE = ("float32", "float32")
_BF16 = ("float32", "native")  # of c310's cores
_BOOL = ("float16", "native")
_EXTRA = ("float64", "int8", "uint8")

_FLOAT: Ways = {"float32": _NATIVE, "float16": _NATIVE, "bfloat16": _WIDE}
_ANY: Ways = {**dict.fromkeys(DTYPES, _NATIVE), "bool": _BOOL}

TABLE = (
    Group("Sqrt Log Exp Div", _FLOAT, ("float64",)),
    Group("Round Floor Ceil Trunc Power", {"float32": _NATIVE, "float16": _WIDE, "bfloat16": _WIDE}, ("float64",)),
    Group("IsFinite", {"float32": _NATIVE, "float16": _NATIVE, "bfloat16": _BF16}, ("float64",)),
    Group("Abs", {**_FLOAT, "int32": _NATIVE}, _EXTRA),
    Group("Mul Maximum Minimum", {"float32": _NATIVE, "float16": _NATIVE, "bfloat16": _BF16, "int32": _NATIVE}, _EXTRA),
    Group(
        "Add Sub",
        {"float32": _NATIVE, "float16": _NATIVE, "bfloat16": _BF16, "int32": _NATIVE, "int64": ("halves", "native")},
        _EXTRA,
    ),
    Group("Equal NotEqual Greater GreaterEqual Less LessEqual Select", {**_ANY, "bfloat16": _BF16, "int64": ("halves", "native")}, _EXTRA),
    Group("LogicalAnd LogicalOr", {"bool": _BOOL, "float32": _NATIVE, "float16": _NATIVE}, _EXTRA),
    Group("LogicalNot", {"bool": _BOOL}, ()),
    Group("sum", {"float32": _NATIVE}, ("float64",)),
    Group("max min", {"float32": _NATIVE, "float16": _NATIVE}, ("float64",)),
    Group("ElementAny", {"float32": _NATIVE}, ()),
    Group("MatMul GroupedMatMul", {"float16": _NATIVE, "bfloat16": _NATIVE}, ("float32", "float64")),
    Group("OneHot", {"int32": _NATIVE}, ()),
    Group("GatherLoad", dict.fromkeys(DTYPES, ("", "native")), _EXTRA),
)
BY_OP = {op: group for group in TABLE for op in group.ops.split()}


# The same ops as tensor instructions; moves, views and what makes elements of any dtype are in _FREE.
_OPCODES = {
    "SQRT": "Sqrt", "LOG": "Log", "EXP": "Exp", "DIV": "Div", "ROUND": "Round", "FLOOR": "Floor", "CEIL": "Ceil", "TRUNC": "Trunc",
    "POW": "Power", "IS_FINITE": "IsFinite", "ABS": "Abs", "MUL": "Mul", "MAXIMUM": "Maximum", "MINIMUM": "Minimum", "ADD": "Add",
    "SUB": "Sub", "EQUAL": "Equal", "NOT_EQUAL": "NotEqual", "GREATER": "Greater", "GREATER_EQUAL": "GreaterEqual", "LESS": "Less",
    "LESS_EQUAL": "LessEqual", "SELECT": "Select", "LOGICAL_AND": "LogicalAnd", "LOGICAL_OR": "LogicalOr", "LOGICAL_NOT": "LogicalNot",
    "SUM": "sum", "MAX": "max", "MIN": "min", "MATMUL": "MatMul", "ONE_HOT": "OneHot", "GATHER": "GatherLoad",
    "GATHER_ELEMENTS": "GatherLoad",
}  # fmt: skip
# Rewritten by DVM when the graph is built, into ops that are there: -x is x * -1, 1 / x a division
_REWRITTEN = {"NEG": "Mul", "RECIPROCAL": "Div", "RSQRT": "Div", "MEAN": "sum"}
_FREE = ("COPY", "CAST", "RESHAPE", "TRANSPOSE", "SLICE", "BROADCAST", "CONCAT", "FULL", "PAD")


def has_instruction(arch: str, opcode: str, dtype: str) -> bool:
    """Whether DVM computes a tensor instruction (`dvm dis`) on operands of that dtype on a chip."""
    op = _OPCODES.get(opcode) or _REWRITTEN.get(opcode)
    return has(arch, op, dtype) if op else opcode in _FREE and dtype in DTYPES


def has(arch: str, op: str, dtype: str) -> bool:
    """Whether a chip computes the op in that dtype. Ops that are not in the table move or make elements of any dtype it has."""
    if dtype not in DTYPES:
        return False
    group = BY_OP.get(op)
    return group is None or bool(group.ways.get(dtype, ("", ""))[ARCHS[arch]])


def dtypes(arch: str, op: str) -> list[str]:
    """The dtypes a chip computes the op in."""
    return [dtype for dtype in (BY_OP[op].ways if op in BY_OP else DTYPES) if has(arch, op, dtype)]


def archs(op: str, dtype: str) -> list[str]:
    """The architectures that compute the op in that dtype."""
    return [arch for arch in ARCHS if has(arch, op, dtype)]
