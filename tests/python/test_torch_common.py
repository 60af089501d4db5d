"""What training scripts use beside layers: remainders and floors, weighted losses, losses of images, grouped heads, padded tables, padded
images. All of it ours, forward and backward; gradients against float64."""
from __future__ import annotations

import pytest
from torch_kit import fresh, torch  # noqa: F401 - the fixture among them

from dvm_core import coverage
from dvm_core.frontends import observed

F = torch.nn.functional


@pytest.fixture(autouse=True)
def seeded(fresh):  # noqa: F811 - the fixture
    torch.manual_seed(0)


def ours(function, *args):
    """The results of a compiled call of which nothing fell back, recorded and replayed, and its gradients."""
    before = {which: observed.of(f"torch {which}").fallbacks.copy() for which in ("forward", "backward")}
    compiled = torch.compile(function, backend="dvm", dynamic=False)
    first, found = (results(compiled, args) for _ in range(2))
    assert all(torch.equal(a, b) or (a != a).any() for a, b in zip(first, found, strict=True))
    assert {which: observed.of(f"torch {which}").fallbacks - was for which, was in before.items()} == {"forward": {}, "backward": {}}
    return found


def results(function, args):
    inputs = [a.clone().requires_grad_(a.is_floating_point()) for a in args]
    made = function(*inputs)
    made = made if isinstance(made, tuple) else (made,)
    wanted = [r for r in made if r.requires_grad]
    if wanted:
        sum((r * torch.linspace(0.5, 1.5, r.numel(), dtype=r.dtype).reshape(r.shape)).sum() for r in wanted).backward()
    return [*(r.detach() for r in made), *(a.grad for a in inputs if a.grad is not None)]


def close_to_float64(function, *args):
    expected = results(function, [a.double() if a.is_floating_point() else a for a in args])
    for found, wanted in zip(ours(function, *args), expected, strict=True):
        torch.testing.assert_close(found.to(wanted.dtype), wanted, rtol=1e-5, atol=1e-5)


def test_remainders_and_rounded_quotients_are_pytorchs_to_the_bit():
    special = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.1, -0.3, 2.5, -7.0, 3e4, 3e-4, float("inf"), float("-inf"), float("nan")])
    a, b = (v.reshape(-1).contiguous() for v in torch.meshgrid(special, special, indexing="ij"))
    n = torch.tensor([-2**62, -7, -6, -1, 0, 1, 5, 6, 7, 2**62 + 1])

    def work(a, b, n):
        return (torch.div(a, b, rounding_mode="floor"), a // 0.3, torch.remainder(a, b), a % -0.3, torch.fmod(a, b), torch.fmin(a, b),
                torch.fmax(a, b), n // 3, n // -3, torch.div(n, 3, rounding_mode="trunc"), torch.div(n, -3, rounding_mode="trunc"), n % 3,
                n.clamp(-6, 5), n.clamp(min=1), (a > b) * (a < 2))

    made = ours(lambda *args: work(*(a.detach() for a in args)), a, b, n)
    for at, (found, wanted) in enumerate(zip(made, work(a, b, n), strict=True)):
        same = (found == wanted) & (torch.signbit(found) == torch.signbit(wanted)) | (found != found) & (wanted != wanted)
        assert found.dtype == wanted.dtype and same.all(), at


def test_gradients_of_remainders_products_and_powers():
    x, y, w = torch.rand(4, 6) + 0.5, torch.rand(4, 6) - 2, torch.rand(6, 6)
    close_to_float64(lambda x, y, w: (torch.remainder(x, y), torch.fmod(y, x), torch.fmin(x, y + 2), 2.0 ** x, torch.logaddexp(x, y),
                                      torch.addmm(x, y, w, beta=0.5, alpha=2.0), torch.nan_to_num(x * 2)), x, y, w)


def test_losses_with_weights_and_of_images():
    rows, weight, images = torch.randn(5, 4), torch.rand(4) + 0.1, torch.randn(2, 4, 3, 5)
    target, picture = torch.tensor([0, 3, -100, 1, 3]), torch.randint(0, 4, (2, 3, 5))
    picture[0, 1, 1] = -100
    close_to_float64(lambda rows, weight, images: tuple(
        F.cross_entropy(a, t, weight=w, reduction=how) for a, t in ((rows, target), (images, picture)) for w in (None, weight.detach())
        for how in ("mean", "sum", "none")), rows, weight, images)
    close_to_float64(lambda a, b: F.cosine_embedding_loss(a, b, torch.tensor([1.0, -1, 1, 1, -1])), rows, torch.randn(5, 4))


def test_heads_that_share_keys_a_padded_table_and_padded_images():
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    table, image = torch.randn(6, 3), torch.randn(1, 2, 4, 5)
    index = torch.tensor([[0, 2, 5], [2, 1, 2]])
    close_to_float64(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True), q, k, v)
    close_to_float64(lambda table: F.embedding(index, table, padding_idx=2), table)
    close_to_float64(lambda a: (F.pad(a, (1, 2, 1, 0), mode="reflect"), F.interpolate(a, scale_factor=2, mode="bilinear")), image)


def test_the_report_on_coverage_times_what_pytorch_runs_recorded_and_replayed(monkeypatch):
    monkeypatch.setattr(observed, "_functions", {})
    monkeypatch.setattr(observed, "timed", True)
    compiled = torch.compile(lambda a: (a * 2).cumprod(1), backend="dvm")
    for _ in range(3):
        compiled(torch.rand(2, 3))
    seen = observed.of("torch forward")
    assert seen.fallbacks == {"aten.cumprod.default": 3} and seen.seconds["aten.cumprod.default"] > 0
    row = next(line.split() for line in coverage.report().splitlines() if line.startswith("aten.cumprod.default"))
    assert row[1:3] == ["PyTorch", "3"] and any(place.startswith(__file__) for place in row[4:])
