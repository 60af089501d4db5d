"""Convolutions, pools, norms, attention, indices and halves are ours in PyTorch's graphs, with its values and gradients."""
import pytest
from torch_kit import fresh, torch  # noqa: F401 - the fixture among them

from dvm_core.frontends import observed

F = torch.nn.functional
PLAIN = {"aten.rand.default", "aten.native_dropout.default"}  # PyTorch's by design


def fallbacks():
    return {which: dict(observed.of(f"torch {which}").fallbacks) for which in ("forward", "backward")}


def same(work, *operands, ours=True, tolerance=2e-4):
    """A function of tensors gives, compiled, the values and gradients it gives in double precision (of halves: in their own)."""
    torch.manual_seed(0)
    mine = [t.clone().requires_grad_(t.is_floating_point()) for t in operands]
    exact = [t.double() if t.dtype == torch.float32 else t.clone() for t in operands]
    exact = [t.requires_grad_(t.is_floating_point()) for t in exact]
    before = fallbacks()
    result = torch.compile(work, backend="dvm", dynamic=False)(*mine)
    expected = work(*exact)
    assert result.dtype == work(*operands).dtype and result.shape == expected.shape
    torch.testing.assert_close(result.double(), expected.double(), rtol=tolerance, atol=tolerance)
    weights = torch.linspace(0.5, 1.5, result.numel()).reshape(result.shape)
    found, wanted = ([t for t in values if t.requires_grad] for values in (mine, exact))
    grads = torch.autograd.grad((result.float() * weights).sum(), found)
    references = torch.autograd.grad((expected.double() * weights).sum(), wanted)
    for g, reference in zip(grads, references, strict=True):
        torch.testing.assert_close(g.double(), reference.double(), rtol=tolerance, atol=tolerance)
    more = {name for which, was in before.items() for name, n in fallbacks()[which].items() if n > was.get(name, 0)} - PLAIN
    assert not ours or not more, more


def rand(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape) + sum(shape)))


CONVOLUTIONS = {
    "plain": (lambda a, w, b: F.conv2d(a, w, b), (2, 3, 7, 6), (4, 3, 3, 2)),
    "stride, padding and dilation": (lambda a, w, b: F.conv2d(a, w, b, (2, 1), (1, 2), (1, 2)), (2, 3, 9, 8), (4, 3, 3, 3)),
    "groups": (lambda a, w, b: F.conv2d(a, w, b, groups=2, padding=1), (2, 4, 5, 5), (6, 2, 3, 3)),
    "one dimension": (lambda a, w, b: F.conv1d(a, w, b, stride=2, padding=1), (2, 3, 9), (4, 3, 3)),
    "transposed": (lambda a, w, b: F.conv_transpose2d(a, w, b, stride=2, padding=1, output_padding=1), (2, 4, 5, 4), (4, 4, 3, 3)),
    "transposed groups": (lambda a, w, b: F.conv_transpose1d(a, w, b, stride=2, groups=2), (2, 4, 5), (4, 2, 3)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name):
    work, image, weight = CONVOLUTIONS[name]
    same(work, rand(*image), rand(*weight), rand(4 if "groups" != name else 6))


POOLS = {
    "max": lambda a: F.max_pool2d(a, 2), "max, overlapping": lambda a: F.max_pool2d(a, 3, 2, 1), "average": lambda a: F.avg_pool2d(a, 2),
    "average without padding": lambda a: F.avg_pool2d(a, 3, 2, 1, count_include_pad=False),
    "max with a ceiling": lambda a: F.max_pool2d(a, 2, 3, ceil_mode=True), "adaptive average": lambda a: F.adaptive_avg_pool2d(a, (3, 1)),
    "adaptive max": lambda a: F.adaptive_max_pool2d(a, 2), "of one plane": lambda a: F.max_pool2d(a[0], 2) + F.avg_pool2d(a[0], 2),
    "of one dimension": lambda a: F.max_pool1d(a[0], 2) + F.avg_pool1d(a[0], 2), "global": lambda a: F.adaptive_avg_pool2d(a, 1),
}


@pytest.mark.parametrize("name", POOLS)
def test_pools(name):
    same(POOLS[name], rand(2, 3, 6, 8))


def test_of_several_nan_in_a_window_the_last_is_the_largest():
    a, before = rand(2, 3, 6, 8), fallbacks()
    a[torch.rand(a.shape) < 0.4] = torch.nan
    a[0, 0] = -torch.inf  # of equal ones the first is

    def work(a):
        return F.max_pool2d(a, 3, 2, 1, return_indices=True)

    found = {}
    for name, call in (("ours", torch.compile(work, backend="dvm")), ("eager", work)):
        x = a.clone().requires_grad_()
        values, places = call(x)
        values.backward(torch.arange(values.numel(), dtype=values.dtype).view_as(values))
        found[name] = values, places, x.grad
    for ours, theirs in zip(found["ours"], found["eager"], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)
    assert fallbacks() == before


@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 5), (2, 3, 4, 5)])
def test_batch_norm_trains_and_evaluates_with_running_statistics(shape):
    def made():
        torch.manual_seed(1)
        norm = {2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d}[len(shape)](3)
        torch.nn.init.normal_(norm.weight)
        return norm

    ours, theirs = made(), made().double()
    compiled = torch.compile(lambda x: ours(x), backend="dvm")
    before = fallbacks()
    for number in range(3):
        ours.train(number < 2)
        theirs.train(number < 2)
        x = rand(*shape) * 3 + 1
        a, b = x.clone().requires_grad_(), x.double().requires_grad_()
        mine, exact = compiled(a), theirs(b)
        torch.testing.assert_close(mine.double(), exact, rtol=1e-4, atol=1e-4)
        mine.square().sum().backward()
        exact.square().sum().backward()
        torch.testing.assert_close(a.grad.double(), b.grad, rtol=1e-3, atol=1e-3)
    for name, value in ours.state_dict().items():
        torch.testing.assert_close(value.double(), theirs.state_dict()[name].double(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.weight.grad.double(), theirs.weight.grad, rtol=1e-3, atol=1e-3)
    assert fallbacks() == before


def test_group_and_instance_norms():
    same(lambda a, w, b: F.group_norm(a, 2, w, b), rand(2, 4, 3, 3), rand(4), rand(4), tolerance=1e-3)
    same(lambda a: F.instance_norm(a), rand(2, 3, 4, 5), tolerance=1e-3)


ATTENTION = {
    "plain": lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
    "causal": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "scaled": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3),
    "mask of truths": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, torch.ones(q.shape[-2], k.shape[-2]).tril(-1).bool()),
    "mask of numbers": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, torch.arange(6.0).to(q.dtype).expand(5, 6) * 0.1),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name):
    q, k, v = rand(2, 3, 5, 4), rand(2, 3, 6, 4), rand(2, 3, 6, 4) * 2
    same(ATTENTION[name], q, k, v)


INDICES = {
    "rows": lambda a, i: a[i] * 2, "elements": lambda a, i: a[i, i % 3] + 1, "apart": lambda a, i: a[i[:2], :, i[:2] % 2],
    "from the end": lambda a, i: a[-i - 1, -1], "of the second axis": lambda a, i: a.exp()[:, i % 3],
    "index_select": lambda a, i: a.index_select(1, i % 3).sin(), "take_along": lambda a, i: a.gather(0, i[:, None, None].expand(4, 3, 2)),
    "slices": lambda a, i: a[1:, ::2].exp() + a[:4, :2] * a.select(0, 1)[:2], "flip": lambda a, i: a.flip((0, 2)) * a,
    "padding": lambda a, i: F.pad(a * 2, (1, -1, 2, 0)), "repeat": lambda a, i: a.repeat(2, 1, 3) + 1,
    "put": lambda a, i: torch.zeros_like(a).index_put((i,), a[:4] * 2) + a, "added": lambda a, i: a.index_add(0, i, a[:4].exp()),
    "written": lambda a, i: a.slice_scatter(a[:2].exp(), 0, 1, 3) * a.select_scatter(a[:, 0] * 2, 1, 1),
    "scattered": lambda a, i: a.scatter_add(0, i[:, None, None].expand(4, 3, 2), a[:4] * 3) + a,
    "largest": lambda a, i: a.max(1)[0] + a.min(1)[0] + a.max(), "sorted": lambda a, i: a.sort(0)[0] * a + a.topk(2, 1)[0].sum(),
    "sums": lambda a, i: a.cumsum(0) * a.var(1, keepdim=True) + a.std() + a.norm(dim=2, keepdim=True),
    "functions": lambda a, i: a.tan() + a.atan() + a.sinh() * a.clamp(-1, 1) + F.elu(a) + F.logsigmoid(a),
    "kinks": lambda a, i: F.leaky_relu(a) + F.hardswish(a) * F.hardsigmoid(a) + F.hardtanh(a),
    "truths": lambda a, i: torch.where((a > 0) & ~a.isnan() | (a < -1), a, a * 2) * a.gt(0).any(0),
}


@pytest.mark.parametrize("name", INDICES)
def test_indices_parts_and_functions(name):
    same(INDICES[name], rand(5, 3, 2), torch.tensor([3, 0, 1, 1] if name != "put" else [3, 0, 1, 2]), tolerance=1e-3)


def test_conversions_and_divisions_of_pytorchs_own_formulas():
    def work(a):
        return torch.ops.prims.convert_element_type(a, torch.float64) * 2 + torch.ops.aten.true_divide(a, a.exp())

    before, a = fallbacks(), rand(3, 4)
    torch.testing.assert_close(torch.compile(work, backend="dvm")(a), work(a))
    assert fallbacks() == before


@pytest.mark.parametrize("index", [[5], [-6]])
def test_an_index_that_is_out_of_range_is_an_error(index):
    with pytest.raises(Exception, match="out of (range|bounds)"):
        torch.compile(lambda a, i: a[i, i % 3], backend="dvm")(rand(5, 3), torch.tensor(index))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves(dtype):
    tolerance = 2e-2 if dtype == torch.bfloat16 else 3e-3
    a, w = rand(6, 8).to(dtype), rand(4, 8).to(dtype)
    same(lambda a, w: F.layer_norm(F.gelu(a @ w.T) + 0.1, (4,)), a, w, tolerance=tolerance)
    same(lambda a: torch.where(a > 0.1, a, a * 2).softmax(1) * a.sum(1, keepdim=True), a, tolerance=tolerance)
    same(lambda a: F.conv2d(a.reshape(1, 3, 4, 4), a.reshape(2, 3, 2, 4)).relu().mean(), rand(48).to(dtype), tolerance=tolerance)
    q = rand(1, 2, 4, 4).to(dtype)
    same(lambda q: F.scaled_dot_product_attention(q, q * 0.5, q, is_causal=True), q, tolerance=tolerance)
    same(lambda a: (a.float() * 2).to(dtype) + a.T.reshape(6, 8) + torch.cat([a, a])[:6], a, tolerance=tolerance)
