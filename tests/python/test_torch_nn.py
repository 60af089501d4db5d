"""Ops of layers and losses and their gradients are ours, and PyTorch's numbers in double precision."""
import numpy as np
import pytest
from torch_kit import fresh, torch  # noqa: F401 - the fixture among them

from dvm_core.frontends import observed
from dvm_core.frontends import torch as front

F = torch.nn.functional


def table(index_shape, rows=3):
    index = torch.from_numpy(np.random.default_rng(3).integers(0, rows, index_shape))
    return lambda w: F.embedding(index[: w.shape[0]], w)


def classes(reduction):
    def work(a):
        target = torch.arange(a.shape[0]) % a.shape[1]
        target[0] = -100
        return F.cross_entropy(a, target, reduction=reduction)
    return work


CASES = {
    "pow": lambda a: (a * a + 0.5) ** 1.7 + a**2 + a**3 + (a * a + 1) ** -0.5, "pow of two": lambda a: (a.abs() + 0.5) ** (a * 0.3),
    "abs": lambda a: a.abs() * 2, "rsqrt": lambda a: torch.rsqrt(a * a + 1), "erf": torch.erf, "floor": lambda a: torch.floor(a) * a,
    "amax": lambda a: a.amax(1) * 2 + a.amin(1), "gelu": F.gelu, "gelu by tanh": lambda a: F.gelu(a, approximate="tanh"),
    "layer norm": lambda a: F.layer_norm(a, a.shape[1:], a[0] * 0.5, a[-1]), "layer norm of all": lambda a: F.layer_norm(a, a.shape),
    "layer norm without bias": lambda a: F.layer_norm(a, a.shape[1:], a[0]), "embedding": table((3, 4)),
    "cross entropy": classes("mean"), "cross entropy, sum": classes("sum"), "cross entropy of rows": classes("none"),
    "cat": lambda a: torch.cat([a * 2, torch.exp(a)], 1) * a[:, :1], "split": lambda a: a.exp().split(1, 1)[0] * a,
    "select": lambda a: a.exp()[1] * a[:, -2:-1] + torch.exp(a).select(1, -1).sum(),
    "mixed floats": lambda a: a * torch.ones((), dtype=torch.float64) + 1, "counts": lambda a: a / ((a > 0).sum(1, keepdim=True) + 1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_torchs_in_double_precision(name, dtype):
    work = CASES[name]
    a = torch.randn(tuple(np.random.default_rng(len(name)).integers(4, 20, 2)), dtype=dtype)
    mine, exact = a.clone().requires_grad_(), a.double().requires_grad_()
    ours, theirs = torch.compile(work, backend="dvm", dynamic=False)(mine), work(exact)
    assert ours.dtype == work(a).dtype
    tolerance = {"rtol": 2e-4, "atol": 2e-5} if dtype == torch.float32 else {"rtol": 1e-6, "atol": 1e-8}
    assert torch.allclose(ours.double(), theirs, **tolerance)
    (ours,), (theirs,) = (torch.autograd.grad(r.square().sum(), v) for r, v in ((ours, mine), (theirs, exact)))
    assert torch.allclose(ours.double(), theirs, **tolerance)


def test_a_transformers_step_leaves_nothing_to_torch_but_attention():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.out = torch.nn.Embedding(20, 16), torch.nn.Linear(16, 20)
            self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, activation="gelu")

        def forward(self, x, y):
            return F.cross_entropy(self.out(self.layer(self.embed(x))).flatten(0, 1), y.flatten())

    counts = [observed.of(f"torch {which}").fallbacks for which in ("forward", "backward")]
    before = [dict(count) for count in counts]
    model = Model()
    x = torch.randint(0, 20, (3, 5))
    torch.compile(model, backend="dvm")(x, x).backward()
    more = {name for count, was in zip(counts, before, strict=True) for name in count if count[name] > was.get(name, 0)}
    assert all("attention" in name for name in more), more


def test_numbers_that_are_none_and_classes_out_of_range():
    a = torch.tensor([float("nan"), -2.0, 0.0, float("inf")])
    assert torch.equal(torch.compile(torch.sign, backend="dvm")(a), torch.sign(a))
    x = torch.randn(3, 4)
    assert torch.compile(F.cross_entropy, backend="dvm")(x, torch.full((3,), -100)).isnan()  # a mean of no rows
    with pytest.raises(Exception, match="(?i)out of|range|index"):
        torch.compile(F.embedding, backend="dvm")(torch.tensor([5]), x)


def compiled(work, *arguments):
    return torch.compile(work, backend="dvm", dynamic=False)(*arguments)


@pytest.mark.parametrize(("targets", "factor"), [([-100, -100, -100], 1.0), ([1, -100, 2], float("inf"))])
def test_rows_that_are_ignored_and_other_classes_have_a_gradient_of_zero(targets, factor):
    target, a = torch.tensor(targets), torch.randn(3, 4)
    mine, theirs = a.clone().requires_grad_(), a.clone().requires_grad_()
    (compiled(F.nll_loss, mine, target) * factor).backward()
    (F.nll_loss(theirs, target) * factor).backward()
    assert torch.equal(mine.grad, theirs.grad)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_negative_rows_of_a_table_are_out_of_range(dtype):
    with pytest.raises(Exception, match="out of range"):
        compiled(F.embedding, torch.tensor([1, -1], dtype=dtype), torch.randn(3, 4))


def test_negative_classes_are_out_of_range_unless_ignored():
    a = torch.randn(3, 4)
    with pytest.raises(Exception, match="out of range"):
        compiled(F.nll_loss, a, torch.tensor([0, -1, 2]))
    for ignored in (-100, -1, 2):
        target = torch.tensor([0, ignored, 2])
        mine, theirs = a.clone().requires_grad_(), a.clone().requires_grad_()
        loss = torch.compile(F.nll_loss, backend="dvm")
        ours, exact = (f(v, target, ignore_index=ignored) for f, v in ((loss, mine), (F.nll_loss, theirs)))
        ours.backward()
        exact.backward()
        assert torch.allclose(ours, exact) and torch.allclose(mine.grad, theirs.grad)


def test_a_copy_that_names_no_dtype_is_ours():
    count = observed.of("torch forward").fallbacks["aten._to_copy.default"]
    a = torch.randn(3, 4)
    graph = torch.fx.experimental.proxy_tensor.make_fx(lambda a: [torch.ops.aten._to_copy.default(a) * 2])(a)
    (result,) = front.Executable(graph, [], False)([a])
    assert torch.equal(result, a * 2) and observed.of("torch forward").fallbacks["aten._to_copy.default"] == count
