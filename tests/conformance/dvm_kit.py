"""Arrays for the conformance cases, with the numbers that a kernel sees in float64, and groups of dtypes."""

import numpy as np

from dvm_core.dtypes import of
from dvm_core.tester import Tester, given

HALVES = ("float16", "bfloat16")
FLOATS = ("float32", "float16")
BF16 = ("bfloat16",)


def wide(array, dtype):
    """What an array of a dtype stands for: float64 for floats, int64 for integers."""
    stored = given(array, dtype)
    if of(dtype).name == "bfloat16":
        stored = Tester.convert_from_bf16(stored)
    return stored.astype({"f": np.float64, "i": np.int64, "b": np.bool_}[of(dtype).kind])


def make(shape, dtype="float32", low=-2.0, high=2.0, seed=0):
    """Evenly distributed numbers: (array for a load, the same in float64 or int64)."""
    rng = np.random.default_rng([seed, *np.atleast_1d(np.asarray(shape, np.int64)).tolist()])
    kind = of(dtype).kind
    if kind == "f":
        values = rng.random(shape, np.float32) * np.float32(high - low) + np.float32(low)
    elif kind == "b":
        values = rng.integers(0, 2, shape).astype(np.bool_)
    else:
        values = rng.integers(int(low), int(high), shape, endpoint=True).astype(dtype)
    stored = given(np.asarray(values), dtype)
    return stored, wide(stored, dtype)


def one(ker_type, body, expected, *arrays, dtypes=("float32",), eps=None):
    """Loads the arrays, checks that what `body` makes of them is as expected, and gives the tester back."""
    t = Tester(ker_type)
    kinds = [*dtypes, *[dtypes[-1]] * (len(arrays) - len(dtypes))]
    made = body(t, *(t.load(array, kind) for array, kind in zip(arrays, kinds, strict=True)))
    if not isinstance(made, (list, tuple)):
        made, expected = [made], [expected]
    for item, wanted in zip(made, expected, strict=True):
        t.store_expect(item, wanted, eps)
    t.run_check()
    return t
