"""What MindSpore does behind a capture's back: indexing, writes in place, early reads, exceptions, nesting, ms.jit."""
from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from gradient_reference import differences, weights  # noqa: E402
from mindspore import Parameter, Tensor, nn, ops  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core import _core  # noqa: E402
from dvm_core.frontends import capture  # noqa: E402
from dvm_core.frontends import mindspore_compat as compat  # noqa: E402

A = np.random.default_rng(2).uniform(-2, 2, (4, 5, 6)).astype(np.float32)
ROWS = np.array([3, 0, 3], np.int32)
rows = Tensor(ROWS)


def value_and_gradient(function: Callable[[Any], Any], array: np.ndarray = A) -> tuple[np.ndarray, np.ndarray]:
    """Result of a captured function, and the gradient of its weighted sum."""
    captured = dvm.jit(function)

    def weighted(x: Tensor) -> Any:
        result = captured(x)
        return (result * Tensor(weights(result.shape))).sum(), result

    (_, result), gradient = ms.value_and_grad(weighted, 0, None, has_aux=True)(Tensor(array))
    return result.asnumpy(), gradient.asnumpy()


def check(function: Callable[[Any], Any], reference: Callable[[np.ndarray], np.ndarray], array: np.ndarray = A) -> None:
    result, gradient = value_and_gradient(function, array)
    np.testing.assert_allclose(result, reference(array), rtol=5e-6)
    (exact,) = differences(reference, [array])
    np.testing.assert_allclose(gradient, exact, rtol=1e-4, atol=1e-4)


# ---- indexing ------------------------------------------------------------------------------------------------------------------------

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


# ---- writing in place ----------------------------------------------------------------------------------------------------------------

def _set(index: Any, value: Any) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        h = x * 2
        h[index] = value(x) if callable(value) else value
        return h * h
    return function


def _set_numpy(index: Any, value: Any) -> Callable[[np.ndarray], np.ndarray]:
    def function(x: np.ndarray) -> np.ndarray:
        h = x * 2
        h[index] = value(x) if callable(value) else value
        return h * h
    return function


@pytest.mark.parametrize("index", [0, (slice(None), 1), (slice(1, 3), slice(None, None, 2)), (..., -1), slice(None)], ids=str)
@pytest.mark.parametrize("value", [3.0, lambda x: x[0, 0, 0]], ids=["number", "tensor"])
def test_assignment_to_elements_is_right_and_differentiable(index: Any, value: Any) -> None:
    check(_set(index, value), _set_numpy(index, value))


def test_assignment_through_a_mask() -> None:
    def function(x: Any) -> Any:
        h = x * 1.0
        h[x > 0] = -1.0
        return h * x

    check(function, lambda x: np.where(x > 0, -1.0, x) * x)


def test_plus_equals_makes_a_new_tensor() -> None:
    def function(x: Any) -> Any:
        h = x * 2
        h += x
        h -= 1
        h *= x
        return h

    check(function, lambda x: (3 * x - 1) * x)


def test_copy_into_a_tensor() -> None:
    def function(x: Any) -> Any:
        h = x * 0
        h.copy_(x * x)
        return h + 1

    check(function, lambda x: x * x + 1)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "write into a view": lambda x: _do(x[0], lambda v: v.__setitem__(0, 1.0)),
    "write below a view": lambda x: _view_then_write(x * 2),
    "tensor that wants a gradient": lambda x: x.__setitem__(0, 1.0),
    "unknown op in place": lambda x: (x * 2).normal_(0, 1),
    "gradient inside": lambda x: ms.grad(lambda y: (y * y).sum())(x),
}


def _do(value: Any, action: Callable[[Any], Any]) -> Any:
    action(value)
    return value


def _view_then_write(h: Any) -> Any:
    view = h.reshape(-1)
    h[0] = 1.0
    return view


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_right_is_refused_with_the_line(name: str) -> None:
    with pytest.raises(dvm.UnsupportedError, match=r"test_mindspore_traps.py:\d+: .*captured function"):
        ms.value_and_grad(dvm.jit(lambda x: REFUSED[name](x)), 0)(Tensor(A))
    assert capture.active() is None and compat.mode_depth() == 0


# ---- reading early -------------------------------------------------------------------------------------------------------------------

READS: dict[str, Callable[[Any], Any]] = {
    "bool": lambda t: bool(t > 0),
    "float": float,
    "int": lambda t: int(t.astype(ms.int32)),
    "item": lambda t: t.item(),
    "asnumpy": lambda t: t.asnumpy(),
    "str": str,
    "repr": repr,
    "tolist": lambda t: t.tolist(),
    "numpy function": lambda t: np.abs(t.asnumpy()),
    "index": lambda t: [1, 2, 3][(t * 0).astype(ms.int32)],
}


@pytest.mark.parametrize("name", READS)
def test_value_read_inside_is_computed_and_the_gradient_survives(name: str) -> None:
    seen = []

    def function(x: Any) -> Any:
        h = ops.tanh(x)
        seen.append(READS[name](h.sum() * 0 + 3))
        return h * h

    check(function, lambda x: np.tanh(x) ** 2)
    assert "3" in str(seen[0]) or seen[0] is True or name == "index"


def test_data_dependent_branch_takes_the_branch_of_its_data() -> None:
    def function(x: Any) -> Any:
        h = x * 2
        return h * x if h.sum() > 0 else h + 1

    for sign in (1, -1):
        array = np.abs(A) * sign
        check(function, lambda x, sign=sign: 2 * x * x if sign > 0 else 2 * x + 1, array.astype(np.float32))


def test_print_op_reads_computed_values(capfd: pytest.CaptureFixture[str]) -> None:
    def function(x: Any) -> Any:
        h = x.sum() * 0 + 41
        ops.Print()(h)
        return h

    dvm.jit(function)(Tensor(A))
    ms.runtime.synchronize()
    assert "41" in capfd.readouterr().out


# ---- exceptions ----------------------------------------------------------------------------------------------------------------------

def test_exception_leaves_no_mode_behind_and_the_next_call_works() -> None:
    broken = [True]

    def function(x: Any) -> Any:
        h = x * 2
        if broken[0]:
            raise ValueError("on purpose")
        return h

    captured = dvm.jit(function)
    for _ in range(2):
        with pytest.raises(ValueError, match="on purpose"):
            captured(Tensor(A))
        assert capture.active() is None and not capture.captures() and compat.mode_depth() == 0 and compat.enable_grad()
    broken[0] = False
    np.testing.assert_array_equal(captured(Tensor(A)).asnumpy(), A * 2)
    np.testing.assert_array_equal((Tensor(A) * 3).asnumpy(), A * 3)


def test_exception_caught_inside_goes_on() -> None:
    def function(x: Any) -> Any:
        try:
            h = x @ x[:, :, :2]
        except dvm.Error:
            h = x * 2
        return h

    check(function, lambda x: x * 2)


def test_exception_under_value_and_grad_does_not_poison_the_next() -> None:
    def wrong(x: Any) -> Any:
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        ms.value_and_grad(dvm.jit(wrong), 0)(Tensor(A))
    check(lambda x: x * x, lambda x: x * x)


def test_shape_error_names_op_shapes_and_line() -> None:
    with pytest.raises(dvm.ShapeError, match=r"test_mindspore_traps.py:\d+: .*\[4, ?5, ?6\].*\[3\]") as caught:
        dvm.jit(lambda x: x + Tensor(np.ones(3, np.float32)))(Tensor(A))
    assert caught.value.line > 0


def test_values_recorded_before_an_exception_are_there_afterwards() -> None:
    kept = []

    def function(x: Any) -> Any:
        kept.append(x * 2)
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        dvm.jit(function)(Tensor(A))
    np.testing.assert_array_equal(kept[0].asnumpy(), A * 2)


# ---- structure -----------------------------------------------------------------------------------------------------------------------

def test_results_in_any_structure() -> None:
    pair = collections.namedtuple("pair", "left right")
    result = dvm.jit(lambda x: {"a": [x * 2, (x + 1, None)], "b": pair(x, 3)})(Tensor(A))
    np.testing.assert_array_equal(result["a"][0].asnumpy(), A * 2)
    np.testing.assert_array_equal(result["a"][1][0].asnumpy(), A + 1)
    assert result["a"][1][1] is None and result["b"].right == 3
    np.testing.assert_array_equal(result["b"].left.asnumpy(), A)


def test_gradients_of_several_results_and_of_an_input_returned_as_it_is() -> None:
    captured = dvm.jit(lambda x: (x * 3, x, x * 3, x.sum()))

    def total(x: Any) -> Any:
        a, b, c, d = captured(x)
        return (a + 10 * b + 100 * c).sum() + 1000 * d

    gradient = ms.grad(total)(Tensor(A))
    np.testing.assert_allclose(gradient.asnumpy(), np.full(A.shape, 3 + 10 + 300 + 1000, np.float32))


def test_one_result_twice() -> None:
    def twice(x: Any) -> Any:
        h = x * 3
        return h, h

    captured = dvm.jit(twice)
    gradient = ms.grad(lambda x: (captured(x)[0] + captured(x)[1]).sum())(Tensor(A))
    np.testing.assert_allclose(gradient.asnumpy(), np.full(A.shape, 6, np.float32))


def test_result_that_is_a_parameter() -> None:
    weight = Parameter(Tensor(A), name="weight")
    loss, gradient = ms.value_and_grad(lambda x: (dvm.jit(lambda y: (y * weight, weight))(x)[0]).sum(), None, [weight])(Tensor(A))
    np.testing.assert_allclose(gradient[0].asnumpy() if isinstance(gradient, tuple) else gradient.asnumpy(), A)
    assert float(loss) == pytest.approx(float((A * A).sum()), rel=1e-5)


def test_nested_captured_functions_are_one_program() -> None:
    inner = dvm.jit(lambda x: ops.tanh(x) + 1)
    outer = dvm.jit(lambda x: inner(x) * inner(x))
    before = len(_core.programs())
    outer(Tensor(A))
    assert len(_core.programs()) == before + 1
    check(lambda x: inner(x) * inner(x), lambda x: (np.tanh(x) + 1) ** 2)


def test_captured_functions_one_after_the_other() -> None:
    first, second = dvm.jit(lambda x: ops.tanh(x)), dvm.jit(lambda x: x * x)
    gradient = ms.grad(lambda x: second(first(x) * 2).sum())(Tensor(A))
    t = np.tanh(A.astype(np.float64))
    np.testing.assert_allclose(gradient.asnumpy(), 8 * t * (1 - t * t), rtol=1e-4, atol=1e-5)


def test_ms_jit_function_inside_is_captured_with_a_notice(capsys: pytest.CaptureFixture[str]) -> None:
    @ms.jit
    def square(x: Any) -> Any:
        return x * x

    check(lambda x: square(x) + 1, lambda x: x * x + 1)
    assert "square is a ms.jit function inside the captured function" in capsys.readouterr().err.replace("\n", " ")


def test_tensor_kept_beyond_the_call_is_filled_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    kept = []

    def function(x: Any) -> Any:
        kept.append(ops.exp(x))
        return kept[-1] * 2

    value_and_gradient(function)
    np.testing.assert_allclose(kept[0].asnumpy(), np.exp(A), rtol=1e-5)
    assert "outlives the captured function" in capsys.readouterr().err


def test_gradient_of_a_gradient_is_refused() -> None:
    captured = dvm.jit(lambda x: (x * x * x).sum())
    with pytest.raises(dvm.UnsupportedError, match="gradient of a gradient"):
        ms.grad(lambda x: ms.grad(captured)(x).sum())(Tensor(A))


def test_views_made_outside_are_inputs_of_their_own() -> None:
    whole = Tensor(A)
    part, flat = whole[1:3], whole.reshape(-1)
    result = dvm.jit(lambda: whole.sum() + 10 * part.sum() + 100 * flat.sum())()
    assert float(result) == pytest.approx(float(101 * A.sum() + 10 * A[1:3].sum()), rel=1e-4)


def test_strided_view_made_outside() -> None:
    view = ms.mint.transpose(Tensor(A), 0, 2)
    assert not view.is_contiguous()
    np.testing.assert_array_equal(dvm.jit(lambda: view * 2)().asnumpy(), A.transpose(2, 1, 0) * 2)


def test_argument_still_being_computed_is_waited_for() -> None:
    x = Tensor(np.ones((256, 256), np.float32))
    captured = dvm.jit(lambda h: h + 1)
    for _ in range(3):
        h = x
        for _ in range(20):
            h = h * 1.0 + 0.0
        np.testing.assert_array_equal(captured(h).asnumpy(), 2)


def test_empty_batch() -> None:
    np.testing.assert_array_equal(dvm.jit(lambda x: (x * 2).sum(-1))(Tensor(np.zeros((0, 3), np.float32))).asnumpy(), np.zeros(0))


def test_dropped_intermediates_are_not_kept() -> None:
    def function(x: Any) -> Any:
        for _ in range(5):
            x = x * 1.5 + 1
        return x

    captured = dvm.jit(function)
    captured(Tensor(A))
    program = _core.programs()[-1]
    assert len(program.kept()) == program.input_count + 1


class Counter(nn.Cell):
    """A cell that changes its own state."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = Parameter(Tensor(0.0, ms.float32), name="calls", requires_grad=False)

    def construct(self, x: Any) -> Any:
        ops.assign_add(self.calls, Tensor(1.0, ms.float32))
        return x * self.calls


def test_assigning_to_a_parameter_inside() -> None:
    cell = Counter()
    captured = dvm.jit(lambda x: cell(x))
    for n in (1, 2, 3):
        np.testing.assert_allclose(captured(Tensor(A)).asnumpy(), A * n, rtol=1e-6)
        assert float(cell.calls) == n


# ---- what was silently wrong once ------------------------------------------------------------------------------------------------------

def test_assigning_to_elements_of_an_argument_reads_its_old_values() -> None:
    def function(x: Any) -> Any:
        x[0] = 0.0  # the argument's memory is let go here, and read when the program runs
        return x * 2

    for _ in range(5):
        given = Tensor(np.full((300, 400), 3, np.float32)) + 1
        result = dvm.jit(function)(given)
        assert (result.asnumpy()[1:] == 8).all() and (given.asnumpy()[1:] == 4).all()
        assert not result.asnumpy()[0].any() and not given.asnumpy()[0].any()


def test_no_grad_inside_stops_the_gradient() -> None:
    def function(x: Any) -> Any:
        with ms._no_grad():
            y = x * 2
            z = ops.log1p(x)  # MindSpore runs it
        return y * x + z + x[0, 0, 0]

    x = Tensor(np.abs(A))
    np.testing.assert_allclose(ms.grad(dvm.jit(function))(x).asnumpy(), ms.grad(function)(x).asnumpy(), rtol=1e-6)


def test_write_into_a_view_under_no_grad_is_refused() -> None:
    def function(x: Any) -> Any:
        h = x * 2
        with ms._no_grad():
            h[0].copy_(h[1])
        return h

    with pytest.raises(dvm.UnsupportedError, match="view"):
        value_and_gradient(function)


TIES: dict[str, Callable[[Any], Any]] = {
    "maximum": lambda x: ops.maximum(x, 1.0), "minimum": lambda x: ops.minimum(1.0, x), "tensors": lambda x: ops.maximum(x, x * x),
    "clip": lambda x: ops.clip_by_value(x, 0.0, 1.0), "clamp": lambda x: ops.clamp(x, 0.0, 1.0), "hardtanh": lambda x: ops.hardtanh(x),
    "relu": lambda x: ops.relu(x), "relu6": lambda x: ops.relu6(x * 6), "leaky relu": lambda x: ops.leaky_relu(x, 0.1),
    "softplus": lambda x: ops.softplus(x), "logsigmoid": lambda x: ops.logsigmoid(x), "logaddexp": lambda x: ops.logaddexp(x, x * 0),
    "binary cross entropy": lambda x: nn.BCEWithLogitsLoss(reduction="none")(x, Tensor(np.array([1, 0, 1, 1], np.float32))),
}


@pytest.mark.parametrize("name", TIES)
def test_gradients_at_kinks_and_ties_are_mindspores(name: str) -> None:
    function = TIES[name]
    x = Tensor(np.array([0, 0, 1, -2], np.float32))
    np.testing.assert_allclose(ms.grad(dvm.jit(function))(x).asnumpy(), ms.grad(function)(x).asnumpy(), rtol=1e-5)


OUTSIDE: dict[str, Callable[[Any], Any]] = {  # each index fits the tensor, but not its own axis
    "labels": lambda x: ops.cross_entropy(x, Tensor([5, 1, 0], ms.int32)),
    "list": lambda x: x[[0, 1], [4, 1]],
    "computed": lambda x: x[Tensor([0, 1]), (x[:2, 0] * 0 + 4).astype(ms.int64)],
    "negative": lambda x: x[[2, 1], [-5, 1]],
    "gather elements": lambda x: ops.gather_elements(x, 1, (x[:, :1] * 0 + 4).astype(ms.int64)),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_index_that_fits_only_the_flattened_tensor_is_an_error(name: str) -> None:
    with pytest.raises(dvm.Error, match=r"test_mindspore_traps.py:\d+"):
        dvm.jit(OUTSIDE[name])(Tensor(np.zeros((3, 4), np.float32)))


def test_integers_and_numbers_in_logical_ops() -> None:
    function = lambda x: (x & 3, x | 1, x ^ 2, ~x)  # noqa: E731
    x = Tensor(np.arange(-6, 6).reshape(3, 4))
    for ours, theirs in zip(dvm.jit(function)(x), function(x), strict=True):
        assert ours.dtype == theirs.dtype and (ours.asnumpy() == theirs.asnumpy()).all()
