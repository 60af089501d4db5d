"""torch.compile(backend="dvm"): found by its entry point, gradients, shapes that change, what torch runs."""
import copy
import importlib
import sys
import weakref

import numpy as np
import pytest
from torch_kit import fresh, torch  # noqa: F401 - the fixture among them

import dvm_core as dvm
from dvm_core import _core
from dvm_core.frontends import observed


class Perceptron(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Linear(16, 32), torch.nn.Linear(32, 4)

    def forward(self, x):
        return self.two(torch.relu(self.one(x)))


def train(model, call, sizes):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rng = np.random.default_rng(1)
    losses = []
    for n in sizes:
        x = torch.from_numpy(rng.standard_normal((n, 16), dtype=np.float32))
        loss = torch.nn.functional.cross_entropy(call(x), (x[:, :4].argmax(1)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_115_steps_of_a_perceptron_over_changing_batches_give_torchs_losses():
    torch.manual_seed(0)
    model = Perceptron()
    twin = copy.deepcopy(model)
    sizes = [8 + n % 23 for n in range(115)]
    before = dvm.stats()["launches"]
    ours = train(model, torch.compile(model, backend="dvm", dynamic=True), sizes)
    assert dvm.stats()["launches"] >= before + 230  # forward and backward of each step
    theirs = train(twin, twin, sizes)
    assert np.abs(np.array(ours) - theirs).max() < 1e-3
    assert ours[-1] < ours[0] / 2
    places = [(_core.place_info(i.place), p.backward) for p in _core.programs() for i in p.instructions if i.place]
    mine = [place for place, _ in places if place[0] == __file__]
    assert any(place[6] for place in mine) and any(not place[6] for place in mine)  # lines of forward and backward


def test_one_compilation_serves_all_sizes():
    compiled = torch.compile(lambda x: torch.tanh(x) * 2, backend="dvm", dynamic=True)
    compiled(torch.ones(5, 3))
    programs = dvm.stats()["programs"]
    for n in range(2, 60):
        x = torch.randn(n, 3)
        assert torch.allclose(compiled(x), torch.tanh(x) * 2, atol=1e-6)
    assert dvm.stats()["programs"] == programs


def test_what_the_table_lacks_is_run_by_torch_and_counted():
    x = torch.randn(6, 6)
    fallbacks = observed.of("torch forward").fallbacks
    before = fallbacks["aten.cumprod.default"]
    got = torch.compile(lambda a: torch.cumprod(a * 2, 0) + 1, backend="dvm")(x)
    assert torch.allclose(got, torch.cumprod(x * 2, 0) + 1)
    assert fallbacks["aten.cumprod.default"] == before + 1


def test_statistics_of_batch_norm_and_dropouts_numbers_are_torchs():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5))
    twin = copy.deepcopy(model)
    compiled = torch.compile(model, backend="dvm")
    x = torch.randn(10, 8)
    results = []
    for call in (compiled, twin):
        torch.manual_seed(3)
        results.append(call(x))
        results[-1].square().sum().backward()
    assert torch.allclose(*results, atol=1e-5)
    for ours, theirs in zip(model.buffers(), twin.buffers(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6)
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.allclose(ours.grad, theirs.grad, atol=1e-4)


def test_gradients_of_fused_attention_are_torchs():
    q, k, v = (torch.randn(2, 2, 7, 8, requires_grad=True) for _ in range(3))
    attend = torch.nn.functional.scaled_dot_product_attention
    compiled = torch.compile(lambda q, k, v: attend(q, k, v, is_causal=True), backend="dvm")
    found = torch.autograd.grad(compiled(q, k, v).square().sum(), (q, k, v))
    for ours, theirs in zip(found, torch.autograd.grad(attend(q, k, v, is_causal=True).square().sum(), (q, k, v)), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_a_change_in_place_through_a_view_and_a_conjugate():
    def change(a):
        a.view(-1)[2:5].mul_(2)
        return a + 1
    x, y = torch.ones(3, 4), torch.ones(3, 4)
    assert torch.equal(torch.compile(change, backend="dvm")(x), change(y)) and torch.equal(x, y)
    z = torch.randn(4, dtype=torch.complex64)
    assert torch.equal(torch.compile(lambda a: a * 2, backend="dvm")(z.conj().imag), z.conj().imag * 2)


def test_an_exception_leaves_nothing_behind():
    def work(a, b):
        return torch.exp(a) @ b
    compiled = torch.compile(work, backend="dvm")
    a = torch.randn(3, 4)
    with pytest.raises(Exception, match=r"(?i)mm|size|shape"):
        compiled(a, torch.randn(5, 2))
    b = torch.randn(4, 2)
    assert torch.allclose(compiled(a, b), work(a, b), atol=1e-5)


def test_the_entry_point_is_ours():
    assert "dvm" in torch._dynamo.list_backends(exclude_tags=())
    torch.compile(lambda a: a + 1, backend="dvm")(torch.ones(2))
    assert "dvm_core.frontends.torch" in sys.modules


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = torch.nn.Embedding(50, 32), torch.nn.Linear(32, 50)
        self.layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.out(self.layer(self.embed(x))).mean(1)


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = torch.nn.LSTMCell(8, 16), torch.nn.Linear(16, 50)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], 16)
        for i in range(4):
            h, c = self.cell(x[:, i], (h, c))
        return self.out(h)


@pytest.mark.parametrize("make, batch", [
    (Encoder, lambda i: torch.randint(0, 50, (4 + i % 3, 5 + i % 7))),
    (Recurrent, lambda i: torch.randn(4 + i % 5, 4, 8)),
], ids=["encoder", "recurrent"])
def test_networks_train_as_with_torch(make, batch):
    torch.manual_seed(0)
    model = make()
    twin = copy.deepcopy(model)
    calls = torch.compile(model, backend="dvm", dynamic=True), twin
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, twin)]
    for i in range(70):  # all sizes thrice and more
        x, losses = batch(i), []
        y = torch.randint(0, 50, x.shape[:1])
        for call, optimizer in zip(calls, optimizers, strict=True):
            loss = torch.nn.functional.cross_entropy(call(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert abs(losses[0] - losses[1]) < 1e-3


@pytest.mark.parametrize("take", [
    lambda a: a[1:, ::2], lambda a: a[-1], lambda a: a[:, -2:, 1], lambda a: a[:, 0:1].squeeze(1), lambda a: a[7:],
    lambda a: a[:, :-1, 2:99],
])
def test_slices_of_values_and_of_inputs(take):
    a = torch.randn(4, 5, 6)
    compiled = torch.compile(lambda a: (take(torch.exp(a)), take(a) * 2), backend="dvm")
    for ours, theirs in zip(compiled(a), (take(torch.exp(a)), take(a) * 2), strict=True):
        assert ours.shape == theirs.shape and torch.allclose(ours, theirs, atol=1e-6)


def test_memory_of_values_that_nobody_reads_any_more_is_free_during_the_call(monkeypatch):
    front = importlib.import_module("dvm_core.frontends.torch")
    made, alive = [], []

    class Watched(front.Run):
        def fallback(self, *args):
            result = super().fallback(*args)
            made.append(weakref.ref(result))
            alive.append(sum(tensor() is not None for tensor in made))
            return result

        def tensors(self, *args):
            found = super().tensors(*args)
            made.extend(map(weakref.ref, found.values()))
            return found

    monkeypatch.setattr(front, "Run", Watched)
    aten, graph = torch.ops.aten, torch.fx.Graph()
    inputs = [graph.placeholder(f"a{i}") for i in range(10)]
    value = graph.call_function(aten.exp.default, (inputs[0],))
    for other in inputs:  # every product is ours, and every cumprod PyTorch's: it reads what was just computed
        product = graph.call_function(aten.mul.Tensor, (value, other))
        value = graph.call_function(aten.cumprod.default, (product, 0))
    graph.output((value,))
    executable = front.Executable(torch.fx.GraphModule(torch.nn.Module(), graph), [], False)
    tensors = [torch.rand(5, 3) + 0.5 for _ in inputs]
    expected = torch.exp(tensors[0])
    for tensor in tensors:
        expected = torch.cumprod(expected * tensor, 0)
    made.extend(map(weakref.ref, tensors))
    arguments = list(tensors)
    tensors = tensor = None
    assert torch.allclose(executable(arguments)[0], expected, rtol=1e-4)
    assert alive == [inputs_left + 2 for inputs_left in range(9, -1, -1)]  # the product and the cumprod of this step, of no other


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name, work", [
    ("aten.silu_backward.default", torch.nn.functional.silu),
    ("aten.where.self", lambda a: torch.where(a > 0.2, a * a, 1.0) + torch.where(a[:, :1] > 0, a, a[0])),
    ("aten.where.self", lambda a: torch.maximum(a * 2, a[::1] + 0.1)),
])
def test_gradients_are_ours_and_torchs_numbers(name, work, dtype):
    a = torch.randn(5, 7, dtype=dtype) * 4
    a[0, 0], a[1, 1], a[2, 2] = 0.0, 90.0, -90.0
    a.requires_grad_()
    counts = [observed.of(f"torch {which}").fallbacks for which in ("forward", "backward")]
    before = [count[name] for count in counts]
    (ours,) = torch.autograd.grad(torch.compile(work, backend="dvm")(a).square().sum(), a)
    (theirs,) = torch.autograd.grad(work(a).square().sum(), a)
    assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5 if dtype == torch.float32 else 1e-12)
    assert [count[name] for count in counts] == before


@pytest.mark.parametrize("dynamic", [False, True])
def test_results_that_are_views_of_one_another_share_their_memory(dynamic):
    def views(x):
        y = x * 2
        return y, y.view(-1), y.t(), [part for part in y.chunk(2)]

    compiled = torch.compile(views, backend="dvm", dynamic=dynamic)
    for n in (4, 4, 6):  # recorded, replayed, another size
        for function in (views, compiled):
            y, flat, turned, parts = function(torch.ones(n, 4))
            y.add_(100)
            assert {t.flatten()[0].item() for t in (y, flat, turned, *parts)} == {102.0}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_parts_of_what_lies_in_memory(dtype):
    def parts(x):
        a, b = x.chunk(2, -1)
        c, d = (x @ x).split([3, 1], -1)
        return a * 2 + b, c * 2, d + 1

    compiled = torch.compile(parts, backend="dvm", dynamic=True)
    for _ in range(3):
        x = torch.randn(4, 4, dtype=dtype)
        for got, want in zip(compiled(x), parts(x), strict=True):
            torch.testing.assert_close(got, want)
