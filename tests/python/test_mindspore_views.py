"""Views of MindSpore tensors, of which ops get copies, read by captured functions as arguments and from elsewhere."""
from __future__ import annotations

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

import mindspore._c_expression as c_expression  # noqa: E402
from mindspore import Parameter, Tensor, mint, nn, ops  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core.frontends import mindspore_compat as compat  # noqa: E402

A = np.arange(6, dtype=np.float32).reshape(2, 3) - 2

# By the primitive of MindSpore's that makes it.
VIEWS = {
    "BroadcastToView": lambda p: p.broadcast_to((4, 2, 3)),
    "ChunkView": lambda p: mint.chunk(p, 2)[1],
    "DiagonalView": lambda p: p.diagonal(),
    "ExpandDimsView": lambda p: p.unsqueeze(0),
    "NarrowView": lambda p: mint.narrow(p, 1, 1, 2),
    "SelectExtView": lambda p: p[0],
    "SliceExtView": lambda p: p[:, 1:],
    "SplitTensorView": lambda p: mint.split(p, 1)[1],
    "SplitWithSizeView": lambda p: mint.split(p, [1, 2], 1)[1],
    "TransposeExtView": lambda p: p.swapaxes(0, 1),
    "TransposeView": lambda p: p.T,
    "UnstackExtView": lambda p: mint.unbind(p)[1],
    "View": lambda p: p.view(6),
    "ViewAs": lambda p: p.view_as(Tensor(A.ravel())),
    "ViewDtype": lambda p: p.view(ms.int32).view(ms.float32),
    "reshape": lambda p: p.reshape(3, 2),
    "flatten": lambda p: mint.flatten(p),
    "squeeze": lambda p: p.reshape(1, 2, 3).squeeze(0),
    "permute": lambda p: p.permute(1, 0),
    "movedim": lambda p: p.movedim(0, 1),
    "expand_as": lambda p: p.expand_as(Tensor(np.zeros((2, 2, 3), np.float32))),
    "a view of a view": lambda p: p.reshape(3, 2).T[1:].reshape(-1),
    "no view": lambda p: p * 1,
}
OF_COMPLEX = {"RealView", "ImagView"}  # parts of complex tensors, which have strides that fall between items
# MindSpore itself has no gradient of a view in another dtype, and on a CPU none of unbind where some parts get none.
DIFFERENTIABLE = [name for name in VIEWS if name not in ("ViewDtype", "UnstackExtView")]


def cubes(x):
    return (x * x * x).sum()


def same(found: Tensor, expected: Tensor) -> None:
    np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-6)


def test_every_view_of_this_mindspore_is_among_the_cases() -> None:
    made = {name.removesuffix("Prim_") for name in dir(c_expression) if "View" in name and name.endswith("Prim_")}
    assert made == {name for name in VIEWS if name in made} | OF_COMPLEX


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_told_from_a_tensor_of_its_own(name: str) -> None:
    base = Tensor(A)
    assert not compat.is_view(base) and not compat.is_view(Parameter(base, name="p")) and not compat.is_view(base + 1)
    assert compat.is_view(VIEWS[name](base)) == (name != "no view")


@pytest.mark.parametrize("mode", ["stream", "graph"])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_the_gradient_of_a_view_arrives(name: str, mode: str) -> None:
    view, a = VIEWS[name], Tensor(A)
    captured = dvm.jit(mode=mode)(cubes)
    listed = dvm.jit(mode=mode)(lambda items: cubes(items[0]["x"]))

    def elsewhere(x):
        return dvm.jit(mode=mode)(lambda zero: cubes(x) + zero)(Tensor(0.0, ms.float32))

    def gradient(function, change):
        return ms.value_and_grad(lambda t: function(view(change(t))))(a)

    for change in (lambda t: t * 2, lambda t: t):
        for function in (captured, lambda x: listed([{"x": x}]), elsewhere) * 2:
            found, expected = gradient(function, change), gradient(cubes, change)
            assert np.abs(expected[1].asnumpy()).max() > 0
            same(found[0], expected[0])
            same(found[1], expected[1])


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_the_gradient_for_a_view_arrives(name: str) -> None:
    view = VIEWS[name](Tensor(A))
    same(ms.grad(dvm.jit(cubes))(view), ms.grad(cubes)(view))


@pytest.mark.parametrize("name", VIEWS)
def test_graph_mode_reads_a_view_anew(name: str) -> None:
    # As an argument, and from elsewhere after its base has changed.
    view, base = VIEWS[name], Parameter(Tensor(A), name="base")
    captured = dvm.jit(mode="graph")(cubes)
    for shift in range(3):
        same(captured(view(Tensor(A) + shift)), cubes(view(Tensor(A) + shift)))
    held = view(base)
    function = dvm.jit(mode="graph")(lambda zero: cubes(held) + zero)
    for _ in range(3):
        same(function(Tensor(0.0, ms.float32)), cubes(held))
        ops.assign_add(base, Tensor(np.ones_like(A)))


def test_a_view_in_an_attribute_that_appears_later_is_found() -> None:
    class Net(nn.Cell):
        def construct(self, x):
            return cubes(x * self.scale if hasattr(self, "scale") else x)

    net = Net()
    captured = dvm.jit(lambda x: net(x))

    def loss(t):
        net.scale = (t * 2).reshape(3, 2).T
        return captured(Tensor(A + 1))

    def plain(t):
        net.scale = (t * 2).reshape(3, 2).T
        return net(Tensor(A + 1))

    captured(Tensor(A))
    for _ in range(2):
        same(ms.grad(loss)(Tensor(A)), ms.grad(plain)(Tensor(A)))


@pytest.mark.parametrize("mode", ["stream", "graph"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_detached_tensor_shares_memory_but_no_gradient(mode: str, order: int) -> None:
    captured = dvm.jit(mode=mode)(lambda a, b: (a * b).sum())
    for _ in range(2):
        found = ms.grad(lambda x: captured(*(x * x, ops.stop_gradient(x * x))[::order]))(Tensor(A))
        np.testing.assert_allclose(found.asnumpy(), 2 * A**3, rtol=1e-6)

        def alias(x):
            y = x * x
            return captured(*(y, ops.stop_gradient(y))[::order])

        np.testing.assert_allclose(ms.grad(alias)(Tensor(A)).asnumpy(), 2 * A**3, rtol=1e-6)


def test_views_that_cannot_be_told_apart_are_refused() -> None:
    def loss(t):
        y = t * 2
        wanted, detached = y.reshape(6), ops.stop_gradient(y).reshape(6)
        return dvm.jit(lambda one: (wanted * detached).sum() + one)(Tensor(1.0, ms.float32))

    with pytest.raises(dvm.UnsupportedError, match=r"test_mindspore_views.py:\d+: (wanted|detached) is a view .*pass them as arguments"):
        ms.grad(loss)(Tensor(A))


@pytest.mark.parametrize("mode", ["stream", "graph"])
@pytest.mark.parametrize("name", [name for name in VIEWS if name != "no view"])
def test_writing_into_an_argument_that_is_a_view_is_refused(name: str, mode: str) -> None:
    def put(x):
        x[0] = 9.0
        return x * 1

    base = Tensor(A)
    with pytest.raises(dvm.UnsupportedError, match="writes into a view of another tensor"):
        dvm.jit(mode=mode)(put)(VIEWS[name](base))
    assert (base.asnumpy() == A).all()
