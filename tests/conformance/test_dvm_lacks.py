"""What chips have not: a case that meets it is skipped, and any other error is a failure."""

import pytest
from conftest import LACKS, lacks
from dvm_kit import make

import dvm_core as dvm
from dvm_core.tester import Tester

BOTH = ("AscendC220", "AscendC310")


def product(dtype):
    t = Tester(dvm.K_CUBE)
    a, b = (t.load(make((8, 8), dtype)[0], dtype) for _ in range(2))
    t.store(t.matmul(a, b))
    t.run()


def test_what_a_chip_lacks_is_what_is_listed(device):
    if device == "cpu":
        return product("float32")
    with pytest.raises(dvm.Error) as told:
        product("float32")
    error = told.value
    assert LACKS[error.op, error.dtypes[0]] == BOTH and lacks(error, dvm.Device.arch())
    assert not lacks(error, "CPU")
    error.dtypes = ()
    assert not lacks(error, dvm.Device.arch())
    assert not lacks(dvm.DtypeError("another", op="MatMul", dtypes=["float32"]), dvm.Device.arch())
    return product("float16")


def test_a_case_that_meets_it_is_skipped_and_not_passed(device):
    product("float32")
    assert device == "cpu"  # never reached on a chip
