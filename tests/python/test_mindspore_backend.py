"""ms.jit(backend="dvm"): graphs that MindSpore compiles give what its own back end gives, know their lines, and say what they cannot."""
from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")
from mindspore import Tensor, nn, ops  # noqa: E402

import dvm_core  # noqa: E402
from dvm_core import _core  # noqa: E402
from dvm_core.errors import UnsupportedError  # noqa: E402
from dvm_core.frontends import mindspore_backend, observed  # noqa: E402

if not hasattr(getattr(ms, "graph", None), "register_custom_backend"):
    pytest.skip("this MindSpore takes no back ends", allow_module_level=True)
if shutil.which("g++") is None:
    pytest.skip("no C++ compiler", allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def registered():
    dvm_core.register_mindspore_backend()
    dvm_core.register_mindspore_backend()  # once more is nothing


def random(*shape, seed=0):
    return Tensor(np.random.RandomState(seed).randn(*shape).astype(np.float32))


def assert_same(found, wanted):
    if isinstance(wanted, (tuple, list)):
        assert type(found) is type(wanted) and len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            assert_same(a, b)
    elif isinstance(wanted, Tensor):
        assert isinstance(found, Tensor) and found.shape == wanted.shape and found.dtype == wanted.dtype
        np.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), 1e-4, 1e-5)
    else:
        assert found == wanted


# Functions of their own lines: MindSpore reads their text.
def chooses(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


def loops(x):
    n = 0
    while x.sum() < 100:
        x = x * x + 1
        n = n + 1
    return x, n


def loops_often(x):
    n = Tensor(0, ms.int32)
    while n < 1100:  # more than Python can call inside one another
        n = n + 1
        x = x + 1
    return x, n


def gives_parts(x):
    return x, (x + 1, x.shape, 3), x[1:3, ::2] * 2, x[..., None, 1]


def assigns(x):
    x[1] = 3.0
    return x * 2


def hands_through(x):
    return x


def is_constant(x):
    return Tensor([1.0, 2.0])


def unrolls(x):
    total = x
    for factor in range(3):
        total = total + x * factor
    return total.astype(ms.float16)


def calls_another(x):
    return ops.softmax(chooses(x), -1) @ x.T


FUNCTIONS = [chooses, loops, loops_often, gives_parts, assigns, hands_through, is_constant, unrolls, calls_another]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_gives_what_mindspores_own_gives(function):
    own, ours = ms.jit(function), ms.jit(function, backend="dvm")
    for seed in (0, 1, 1):  # the last is a replay where there is one
        x = random(5, 4, seed=seed)
        assert_same(ours(x), own(x))


def network():
    ms.set_seed(3)
    return nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(64, 16),
                             nn.GELU(), nn.LayerNorm((16,)), nn.Dense(16, 3)).set_train()


def losses_of(steps, compiled):
    images, labels = random(6, 1, 8, 8), Tensor(np.array([0, 1, 2, 0, 1, 2], np.int32))
    net = network()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)

    def loss_of(a, b):
        return ops.cross_entropy(net(a), b)

    gradient = ops.value_and_grad(loss_of, None, optimizer.parameters)

    def compiled_step(a, b):
        loss, gradients = gradient(a, b)
        optimizer(gradients)
        return loss

    step = ms.jit(compiled_step, backend="dvm") if compiled else compiled_step
    return [float(step(images, labels).asnumpy()) for _ in range(steps)]


def test_a_whole_training_step_is_compiled():
    own, ours = losses_of(20, False), losses_of(20, True)
    np.testing.assert_allclose(ours, own, 1e-3)
    assert ours[-1] < ours[0] / 2 and not observed.of("compiled_step").fallbacks


def test_the_gradient_of_a_compiled_function_runs_here_too():
    net = network()

    def compiled_loss(a, b):
        return ops.cross_entropy(net(a), b)

    images, labels = random(6, 1, 8, 8), Tensor(np.array([0, 1, 2, 0, 1, 2], np.int32))
    first = _core.step()
    ours = ms.value_and_grad(ms.jit(compiled_loss, backend="dvm"), None, net.trainable_params())
    found = [ours(images, labels) for _ in range(3)][-1]
    assert _core.step() == first + 3  # a gradient is no step of its own
    net_again = network()

    def plain_loss(a, b):
        return ops.cross_entropy(net_again(a), b)

    wanted = ms.value_and_grad(plain_loss, None, net_again.trainable_params())(images, labels)
    np.testing.assert_allclose(found[0].asnumpy(), wanted[0].asnumpy(), 1e-5)
    for a, b in zip(found[1], wanted[1], strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), 1e-3, 1e-6)
    for name in ("compiled_loss", "compiled_loss (backward)"):
        seen = observed.of(name)
        assert not seen.fallbacks and seen.traces and not seen.untraceable


@pytest.mark.parametrize(("layer", "shape"), [
    (lambda: nn.LSTM(4, 6, batch_first=True), (2, 5, 4)),  # MindSpore's gradient reads what its forward alone leaves
    (lambda: nn.GroupNorm(2, 4), (2, 4, 3, 3)), (lambda: nn.MaxPool2d(3, 2, pad_mode="same"), (2, 3, 7, 7)),
    (lambda: nn.Conv2d(4, 4, 3, group=2, stride=2, pad_mode="pad", padding=1), (2, 4, 5, 5))])
def test_gradients_of_layers_are_mindspores(layer, shape):
    ms.set_seed(5)
    cell = layer()

    def of_a_layer(x):
        result = cell(x)
        return ((result[0] if isinstance(result, tuple) else result) ** 3).sum()

    x = random(*shape)
    assert_same(ms.value_and_grad(ms.jit(of_a_layer, backend="dvm"))(x), ms.value_and_grad(of_a_layer)(x))


def test_the_gradient_of_dropout_has_the_mask_of_its_forward():
    cell = nn.Dropout(p=0.5).set_train()

    def dropped(x):
        kept = cell(x)
        return kept.sum(), kept

    (_, kept), gradient = ms.value_and_grad(ms.jit(dropped, backend="dvm"), has_aux=True)(random(20, 20))
    np.testing.assert_array_equal(gradient.asnumpy(), np.where(kept.asnumpy() == 0, 0, 2))


def test_rows_that_are_looked_up_several_times_sum_their_gradients():
    table = nn.Embedding(7, 4)

    def looked_up(index):
        return (table(index) ** 2).sum()

    index = Tensor(np.array([[1, 1], [5, 0]], np.int32))
    found, wanted = (ms.value_and_grad(function, None, table.trainable_params())(index)[1][0]
                     for function in (ms.jit(looked_up, backend="dvm"), looked_up))
    assert_same(found, wanted)
    assert not observed.of("looked_up (backward)").fallbacks


def test_instructions_know_the_lines_of_forward_and_backward():
    def lined_loss(a):
        h = ops.tanh(a * 2)
        return (h * a).sum()

    ms.value_and_grad(ms.jit(lined_loss, backend="dvm"))(random(3, 4))
    first = lined_loss.__code__.co_firstlineno
    programs = {program.name: program for program in dvm_core.programs()}
    for name, backward in (("lined_loss", False), ("lined_loss (backward)", True)):
        places = {_core.place_info(instruction.place) for instruction in programs[name].instructions}
        assert {(file, function, back) for file, *_, function, back in places} == {(__file__, "lined_loss", backward)}
        assert {first + 1, first + 2} <= {line for _, line, *_ in places} <= {first, first + 1, first + 2}  # a sum of gradients has no line
    assert {_core.place_info(i.place)[3] for i in programs["lined_loss"].instructions if i.name == "TANH"} == {13}


def test_shapes_that_change_are_one_graph_forward_and_backward():
    def changing(a):
        return (ops.softmax(a * 2, -1) * a).sum()

    plain, ours = ms.value_and_grad(changing), ms.value_and_grad(ms.jit(changing, backend="dvm", dynamic=1))
    for rows in (3, 4, 5, 9, 2):
        x = random(rows, 4, seed=rows)
        assert_same(ours(x), plain(x))


def test_what_is_python_is_refused_at_its_line():
    def lists(x):
        found = []
        for factor in range(2):
            found.append(x * factor)
        return found, {"a": x}

    with pytest.raises(UnsupportedError, match=r'makes a Python object .*use @dvm.jit\(mode="graph"\)') as refused:
        ms.jit(lists, backend="dvm")(random(2))
    assert refused.value.file == __file__ and refused.value.line > lists.__code__.co_firstlineno


def test_a_failure_leaves_nothing_behind():
    def takes(x, index):
        return ops.gather(x, index, 0)

    ours = ms.jit(takes, backend="dvm")
    with pytest.raises(Exception, match="5"):
        ours(random(3, 2), Tensor(np.array([5], np.int32)))
    from dvm_core.frontends import capture

    assert capture.active() is None
    np.testing.assert_array_equal(ours(random(3, 2), Tensor(np.array([2], np.int32))).asnumpy(), random(3, 2).asnumpy()[2:3])


def test_what_is_missing_for_the_plug_in_is_said(tmp_path, monkeypatch):
    home = Path(ms.__file__).parent
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler -O3")
    with pytest.raises(UnsupportedError, match="no C\\+\\+ compiler no-such-compiler here"):
        mindspore_backend.built(home, ms.__version__)
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(UnsupportedError, match="came without the headers"):
        mindspore_backend.built(tmp_path, ms.__version__)
    with pytest.raises(UnsupportedError, match="does not fit MindSpore .*mindspore-failed.log"):
        mindspore_backend.built(home, ms.__version__)
    assert [path.name for path in (tmp_path / "dvm").iterdir()] == ["mindspore-failed.log"]
    assert (tmp_path / "dvm").stat().st_mode & 0o077 == 0


# ---- the ops of gradients, against MindSpore's own kernels ----------------------------------------------------------------------------

A, B, C = random(3, 5), random(3, 5, seed=1), random(3, 5, seed=2)
POSITIVE = Tensor(np.abs(A.asnumpy()) + 0.5)


def _grads():
    from mindspore.ops import auto_generate as generated
    from mindspore.ops.operations import _grad_ops as older

    image, pooled = random(2, 3, 6, 6), random(2, 3, 3, 3, seed=1)
    yield from ((generated.ReluGrad(), (A, B)), (generated.ReLU6Grad(), (A, Tensor(B.asnumpy() * 5))), (generated.SigmoidGrad(), (A, B)),
                (generated.TanhGrad(), (A, B)), (generated.SqrtGrad(), (POSITIVE, B)), (generated.RsqrtGrad(), (POSITIVE, B)),
                (generated.ReciprocalGrad(), (POSITIVE, B)), (generated.GeLUGrad(), (A, B, C)), (generated.SiLUGrad(), (A, B)),
                (generated.EluGrad(), (A, B)), (older.SoftplusGrad(), (A, B)), (generated.BiasAddGrad(), (A,)),
                (generated.BiasAddGrad(), (image,)), (generated.LogSoftmaxGrad(1), (ops.log_softmax(A, 1), B)),
                (generated.LayerNormGrad(1, 1), (A, B, A.var(1, keepdims=True), A.mean(1, keep_dims=True), random(5))),
                (generated.GatherDGradV2(), (A, 1, Tensor(np.array([[0, 2], [1, 1], [4, 3]], np.int32)), random(3, 2))),
                (older.MaxPoolGrad(2, 2, "valid"), (image, nn.MaxPool2d(2, 2)(image), pooled)),
                (generated.AvgPoolGrad(2, 2, "VALID"), (image, nn.AvgPool2d(2, 2)(image), pooled)),
                (older.StridedSliceGrad(), (random(2, 3), (4, 7), (1, 0), (3, 6), (1, 2))),
                (generated.StridedSlice(1, 2, 0, 0, 0), (A, (1, 0), (3, 2), (1, 2))))


@pytest.mark.parametrize("number", range(20))
def test_ops_of_gradients(number):
    primitive, operands = list(_grads())[number]
    name = f"{primitive.name}_{number}"

    def captured(*given):
        return primitive(*given)

    captured.__qualname__ = name
    ours = dvm_core.jit(captured)(*operands)
    assert not observed.of(name).fallbacks
    wanted = primitive(*operands)
    for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (ours, wanted)), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), 1e-4, 2e-4 if primitive.name == "GeLUGrad" else 1e-5)
