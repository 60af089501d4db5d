"""The table of element types: what integers hold, and what numbers become that they do not hold."""
from __future__ import annotations

import numpy as np
import pytest

from dvm_core.devices import aclnn, rules
from dvm_core.dtypes import BY_CODE, TABLE, bfloat16, int8, int32, int64, uint8
from dvm_core.frontends import emit

NUMBERS = (0, 1, -1, 127, 128, -128, -129, 255, 256, 300, 2**31 - 1, 2**31, -(2**31) - 1, 2**40 + 3)


@pytest.mark.parametrize("dtype", [int8, uint8, int32, int64], ids=str)
def test_integers_wrap_as_numpys(dtype):
    told = np.iinfo(dtype.numpy)
    assert dtype.range == (told.min, told.max)
    for number in NUMBERS:
        want = int(np.array(number, np.int64).astype(dtype.numpy))
        assert dtype.wrapped(number) == want == rules.encoded(number + 0.5 * np.sign(number), dtype)
        assert emit.wrapped(float(number), dtype.code) == (number if dtype is int64 else want)
    assert [rules.encoded(number, dtype) for number in (np.inf, -np.inf, np.nan)] == [told.max, told.min, 0]


def test_floats_and_fractions_stay_as_they_are():
    for dtype in TABLE:
        assert emit.wrapped(0.5, dtype.code) == 0.5 and BY_CODE[dtype.code] is dtype
        assert emit.wrapped(2.0**60, dtype.code) == 2.0**60
        assert emit.wrapped(300.0, dtype.code) == (44.0 if dtype in (int8, uint8) else 300.0)


def test_a_scalar_of_bfloat16_is_rounded_once():
    tie = 1 + 2.0**-8  # between 1 and its neighbour
    for value, bits in ((1.0, 0x3F80), (tie, 0x3F80), (tie + 2.0**-40, 0x3F81), (-np.inf, 0xFF80), (np.nan, 0x7FC0)):
        assert aclnn.scalar_bytes(value, bfloat16) == np.uint16(bits).tobytes()
