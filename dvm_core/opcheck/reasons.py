"""Why an op differs from float64 NumPy and by how much at most, and where a framework has another rule. The rest is not explained."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """An op and dtype may differ by that many ulps, because of `text`."""

    ulps: float
    text: str


_ROUNDED = Reason(0.5, "rounded once")
_HALF = Reason(0.51, "a half: computed in float32, rounded once more")
_DOUBLE = "float64: NumPy's own result is rounded too"
_SERIES = "a polynomial in the op's own dtype"
_SUM = "summed in a fixed order of its own; ulps of the sum of magnitudes"

# (ops, ulps in float32, in float64, in halves, why)
_TABLE: tuple[tuple[str, float, float, float, str], ...] = (
    ("EXP LOG TANH ERF SIGMOID SIN COS TAN ATAN LOG1P EXPM1 POW", 4, 8, 0.51, _SERIES),
    ("RSQRT", 1.5, 2, 0.51, "two roundings: of the root and of 1 / it"),
    ("SUM MEAN MATMUL CUMSUM SCATTER_ADD SCATTER_ADD_ELEMENTS CONV2D CONV2D_WEIGHT AVG_POOL2D AVG_POOL2D_GRAD MAX_POOL2D_GRAD",
     16, 16, 8, _SUM),
    ("PROD", 64, 64, 1, "each factor rounds"),
)  # fmt: skip
_BY_OP = {op: row for row in _TABLE for op in row[0].split()}

# framework, ops, dtypes ("": all), why
_PEERS: tuple[tuple[str, str, str, str], ...] = (
    ("mindspore", "EXP LOG TANH SIGMOID LOG1P EXPM1", "", "coarse approximations; its log1p and expm1 round 1 + x or e ** x first"),
    ("mindspore", "MAXIMUM MINIMUM", "", "of a NaN and a number it takes the number"),
    ("mindspore", "DIV", "", "a number over -0 is +inf"),
    ("mindspore", "POW", "int32 int64", "0 to a negative power is the least integer"),
    ("mindspore", "SIGN", "", "the sign of NaN is 0"),
    ("torch", "SIGN", "", "the sign of NaN is 0"),
)
# SIMD level, ops, why its bits may be others.
_LEVELS: tuple[tuple[str, str, str], ...] = (
    ("baseline", "MATMUL CONV2D CONV2D_WEIGHT", "without FMA (baseline) product and sum of a float32 product round apart"),
)


def reason(op: str, dtype: str) -> Reason:
    """What is known of an op whose result has this dtype."""
    row = _BY_OP.get(op)
    half = dtype in ("float16", "bfloat16")
    if row is None:
        return _HALF if half else _ROUNDED if dtype == "float32" else Reason(1.0, _DOUBLE)
    return Reason(row[3] if half else row[2] if dtype == "float64" else row[1], row[4])


def level_reason(level: str, op: str) -> str | None:
    """Why a SIMD level gives other bits, None if it must not."""
    return next((why for name, ops, why in _LEVELS if name == level and op in ops.split()), None)


def peer_reason(framework: str, op: str, dtype: str) -> str | None:
    """Why a framework's result is another, None if that is not known."""
    for name, ops, dtypes, why in _PEERS:
        if name == framework and op in ops.split() and (not dtypes or dtype in dtypes.split()):
            return f"{framework}: {why}"
    return None
