"""Shapes patched in place: the right four bytes, all or nothing, and fast."""

import time

import numpy as np
import pytest
from msbc_samples import chain, every_kind

from dvm_core import msbc
from dvm_core.msbc import MsbcError


@pytest.mark.parametrize("sections", [True, False])
def test_a_shape_is_patched_and_nothing_else(sections):
    data = msbc.dump(chain(5), sections=sections)
    buf = bytearray(data)
    assert msbc.patch_shapes(buf, {1: (32, 128), 3: [7, 9]}) == 4
    assert [item.shape for item in msbc.load(buf).instructions] == [(32, 64), (32, 128), (32, 64), (7, 9), (32, 64)]
    msbc.patch_shapes(buf, {1: (32, 64), 3: (32, 64)})
    assert buf == data


def test_arrays_write_single_dimensions():
    buf = bytearray(msbc.dump(chain(4)))
    view = memoryview(buf)
    assert msbc.patch_shapes(view, (np.array([0, 3, 3]), np.array([1, 0, 1]), np.array([5, 6, 2**32 - 1]))) == 3
    offsets = msbc.load(msbc.dump(chain(4))).offsets
    assert buf[offsets[0] + 8 : offsets[0] + 12] == b"\0\0\0\5" and buf[offsets[3] + 8 : offsets[3] + 12] == b"\xff\xff\xff\xff"


@pytest.mark.parametrize(
    "patch, rule",
    [
        ({12: (1, 1)}, "instruction 12 of 12"),
        ({-1: (1, 1)}, "instruction -1"),
        ({0: (1, 1, 1)}, "rank 3"),
        ({0: (1, 1 << 32)}, "32 unsigned bits"),
        ({0: (1, 1 << 70)}, "whole numbers"),
        ({0: (1, 1.5)}, "whole numbers"),
        (([0], [2], [1]), "no dimension 2"),
        (([0], [-1], [1]), "no dimension -1"),
        (([99], [0], [1]), "99"),
        (([0], [0], [-1]), "unsigned"),
        (([0, 1], [0], [1]), "equally long"),
        (([0], [0], [1.5]), "integers"),
    ],
)
def test_a_patch_that_does_not_fit_changes_nothing(patch, rule):
    data = msbc.dump(every_kind())
    buf = bytearray(data)
    with pytest.raises(MsbcError, match=rule):
        msbc.patch_shapes(buf, patch)
    assert buf == data


def test_bytes_cannot_be_patched():
    with pytest.raises(TypeError, match="bytearray"):
        msbc.patch_shapes(msbc.dump(chain(1)), {0: (1, 1)})


def test_an_index_that_lies_writes_nothing_outside_the_stream():
    data = msbc.dump(chain(3))
    at = data.index(b"\0\0\0\x03\0\0\0\x20", 0x20) + 4
    for value in (0, 8, len(data) - 2, 2**32 - 1):
        buf = bytearray(data)
        buf[at : at + 4] = value.to_bytes(4, "big")
        before = bytes(buf)
        for patch in (([0], [0], [1]), {0: (1, 1)}):
            with pytest.raises(MsbcError):
                msbc.patch_shapes(buf, patch)
        assert buf == before


@pytest.mark.parametrize("form", ["arrays", "mapping"])
def test_one_percent_of_100000_instructions_is_patched_in_well_under_a_millisecond(form):
    count = 100_000
    buf = bytearray(msbc.dump(chain(count)))
    chosen = np.random.default_rng(1).choice(count, count // 100, replace=False)
    patch = (chosen, np.ones(chosen.size, np.int64), np.full(chosen.size, 128))
    if form == "mapping":
        patch = {instruction: (32, 128) for instruction in chosen.tolist()}
    best = 1.0
    for _ in range(15):
        start = time.perf_counter()
        msbc.patch_shapes(buf, patch)
        best = min(best, time.perf_counter() - start)
    shapes = msbc.load(buf)._checked.stream.dims.values.reshape(-1, 2)
    assert (shapes[chosen, 1] == 128).all() and (shapes[:, 1] == 128).sum() == chosen.size and (shapes[:, 0] == 32).all()
    assert best < 0.8e-3, f"{best * 1e3:.3f} ms"
