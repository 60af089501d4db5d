"""What this package takes for granted about MindSpore's internals: a new version that differs fails here first, by name."""
from __future__ import annotations

import sys

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

import mindspore._c_expression as c_expression  # noqa: E402
from mindspore import Parameter, Tensor, nn, ops  # noqa: E402
from mindspore.ops import operations  # noqa: E402
from mindspore.ops.auto_generate import gen_ops_prim  # noqa: E402
from mindspore.ops.operations import _grad_ops as gradients  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core import _core  # noqa: E402
from dvm_core.frontends import fallback, mindspore_hooks  # noqa: E402
from dvm_core.frontends import mindspore_compat as compat  # noqa: E402
from dvm_core.frontends.lowering import LOWER  # noqa: E402

A = np.arange(6, dtype=np.float32).reshape(2, 3)


class Recorder(compat.DispatchMode):
    """Lets every op run and writes down what arrived."""

    def __ms_dispatch__(self, func, args, kwargs=None):
        self.seen = (func.name, args)
        self.result = func(*args)
        return self.result


def test_every_lowered_name_is_an_op_of_this_mindspore() -> None:
    def exists(name: str) -> bool:
        return hasattr(c_expression, f"{name}Prim_") or any(hasattr(module, name) for module in (gen_ops_prim, operations, gradients, ops))

    assert [name for name in (*LOWER, *fallback._IN_PLACE) if not exists(name)] == []


def test_ops_arrive_before_their_kernel_with_defaults_filled_in() -> None:
    with Recorder() as mode:
        Tensor(A) + Tensor(A)
        assert mode.seen[0] == "AddExt" and mode.seen[1][2] == 1
        ops.BiasAdd()(Tensor(A), Tensor(A[0]))
        name, (primitive, legacy_name, args) = mode.seen
        assert name == legacy_name == "BiasAdd" and compat.is_primitive(primitive) and args.__class__ is tuple


def test_memory_is_shared_and_addresses_identify_it() -> None:
    array = _core.empty((2, 3), 1)
    before = sys.getrefcount(array)
    tensor = compat.from_numpy(array)
    assert sys.getrefcount(array) == before + 1  # how liveness is seen
    assert tensor.data_ptr() == array.ctypes.data
    array[:] = 5
    assert (tensor.asnumpy() == 5).all()
    del tensor
    assert sys.getrefcount(array) == before


def test_replacing_data_moves_the_tensor_object() -> None:
    for tensor in (Tensor(A), Parameter(Tensor(A), name="p")):
        other = compat.from_numpy(_core.empty((2, 3), 1))
        compat.replace_data(tensor, other)
        assert tensor.data_ptr() == other.data_ptr()


def test_gradient_flags() -> None:
    weight = Parameter(Tensor(A), name="w")
    seen = []

    def function(x):
        seen.append((compat.grad_enabled(), compat.needs_grad(weight), compat.needs_grad(x)))
        return (x * weight).sum()

    function(Tensor(A))
    ms.value_and_grad(function, None, [weight])(Tensor(A))
    assert seen[0] == (False, True, False) and seen[1][:2] == (True, True)


def test_ops_run_again_outside_a_dispatch_are_differentiable() -> None:
    with Recorder() as mode:
        ops.log1p(Tensor(A))
        name, _ = mode.seen
    (gradient,) = compat.vjp(lambda x: compat.call_again(name, (x,)), (Tensor(A),), Tensor(np.ones_like(A)))
    np.testing.assert_allclose(gradient.asnumpy(), 1 / (1 + A), rtol=1e-5)


def test_dtype_numbers() -> None:
    with Recorder() as mode:
        for dtype, code in compat.DTYPE_OF.items():
            if dtype not in (ms.float32, ms.bfloat16):
                Tensor(A).astype(dtype)
                assert compat.TYPE_ID[mode.seen[1][1]] == code


def test_a_failing_op_leaves_modes_that_are_taken_off() -> None:
    depth = compat.mode_depth()
    Recorder().__enter__()
    assert compat.mode_depth() == depth + 1
    compat.leave_modes(depth)
    assert compat.mode_depth() == depth


def test_missing_internal_is_named_with_the_versions(capsys: pytest.CaptureFixture[str]) -> None:
    def missing() -> None:
        raise AttributeError("no attribute '_gone'")

    with pytest.raises(dvm.UnsupportedError, match=rf"MindSpore {ms.__version__} has no thing .*_gone.*tested with MindSpore 2.9 and 2.10"):
        compat._required("thing", missing)
    for _ in range(2):
        assert compat._optional("nice thing", missing) is None
    assert capsys.readouterr().err.count("has no nice thing") == 1


def test_hooks_do_nothing_outside_a_capture() -> None:
    assert mindspore_hooks.current() is None
    x = Tensor(A)
    assert str(x[1]) == str(Tensor(A[1])) and float(x[0, 1]) == 1.0 and nn.ReLU()(x).shape == (2, 3)


def test_choice_by_types_says_nothing_of_deprecation(monkeypatch):
    from mindspore.common import dtype

    told = []
    monkeypatch.setattr(dtype.logger, "warning", lambda *text: told.append(text))
    chosen = ops.MultitypeFuncGraph("chosen")
    chosen.register("Number", "Tensor")(lambda number, tensor: number)
    assert chosen(2.0, Tensor(A)) == 2.0 and not told
    assert ms.pytype_to_dtype(float) == ms.float64 and len(told) == 1
