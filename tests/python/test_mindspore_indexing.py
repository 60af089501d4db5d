"""Indexing of captured MindSpore tensors: NumPy's results and gradients, errors with axis and extent."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import Tensor, ops  # noqa: E402
from mindspore_capture_kit import ROWS, A, check, rows  # noqa: E402

import dvm_core as dvm  # noqa: E402

INDEX: dict[str, tuple[Any, Any]] = {  # name: (index for a tensor, the same for NumPy)
    "integer": (1, 1),
    "negative integer": (-1, -1),
    "integers": ((1, 2, 3), (1, 2, 3)),
    "slice": (slice(1, 3), slice(1, 3)),
    "inner slice": ((slice(None), slice(1, None)), (slice(None), slice(1, None))),
    "steps": ((slice(None, None, 2), slice(4, 0, -2)), (slice(None, None, 2), slice(4, 0, -2))),
    "empty slice": ((slice(2, 2),), (slice(2, 2),)),
    "ellipsis": ((..., 0), (..., 0)),
    "new axis": ((slice(None), None, 1), (slice(None), None, 1)),
    "tensor": (rows, ROWS),
    "list": ([0, 2], [0, 2]),
    "inner tensor": ((slice(None), rows), (slice(None), ROWS)),
    "two tensors": ((rows, Tensor(np.array([0, -1, 4]))), (ROWS, np.array([0, -1, 4]))),
    "tensors that broadcast": ((rows, Tensor(np.array([[1], [2]]))), (ROWS, np.array([[1], [2]]))),
    "tensors apart": ((rows, slice(1, 3), Tensor(np.array([5, 0, 1]))), (ROWS, slice(1, 3), np.array([5, 0, 1]))),
    "integer and tensor": ((0, rows), (0, ROWS)),
    "mask": (Tensor(A > 0.5), A > 0.5),
    "mask of rows": (Tensor(A[:, 0, 0] > -1), A[:, 0, 0] > -1),
}


@pytest.mark.parametrize("name", INDEX)
def test_indexing_has_the_right_gradient(name: str) -> None:
    index, same = INDEX[name]
    check(lambda x: x[index] * 2, lambda x: x[same] * 2)


def test_iterating_and_unpacking_a_tensor() -> None:
    def function(x: Any) -> Any:
        first, *rest = x
        return first + 2 * rest[-1]

    check(function, lambda x: x[0] + 2 * x[-1])


def test_index_out_of_range_names_axis_and_extent() -> None:
    with pytest.raises(IndexError, match="index 4 is out of range for axis 0 with extent 4"):
        dvm.jit(lambda x: x[4])(Tensor(A))
    with pytest.raises(dvm.Error, match="(?i)index"):
        dvm.jit(lambda x: x[Tensor(np.array([1, 9]))])(Tensor(A))


def test_indexing_outside_a_capture_is_mindspores() -> None:
    x = Tensor(A)
    np.testing.assert_array_equal(x[1].asnumpy(), A[1])
    x[0] = 7
    assert (x.asnumpy()[0] == 7).all()


OUTSIDE: dict[str, Callable[[Any], Any]] = {  # each index fits the tensor, but not its own axis
    "labels": lambda x: ops.cross_entropy(x, Tensor([5, 1, 0], ms.int32)),
    "list": lambda x: x[[0, 1], [4, 1]],
    "computed": lambda x: x[Tensor([0, 1]), (x[:2, 0] * 0 + 4).astype(ms.int64)],
    "negative": lambda x: x[[2, 1], [-5, 1]],
    "gather elements": lambda x: ops.gather_elements(x, 1, (x[:, :1] * 0 + 4).astype(ms.int64)),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_index_that_fits_only_the_flattened_tensor_is_an_error(name: str) -> None:
    with pytest.raises(dvm.Error, match=r"test_mindspore_indexing.py:\d+"):
        dvm.jit(OUTSIDE[name])(Tensor(np.zeros((3, 4), np.float32)))
