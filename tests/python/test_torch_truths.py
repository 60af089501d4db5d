"""Truths in compiled PyTorch models: as indices, read (PyTorch's ops) and written (ours); comparisons of halves, bit for bit; and what of
three dimensions PyTorch runs."""

import operator

import pytest
from torch_kit import fresh, torch  # noqa: F401 - the fixture among them

from dvm_core.frontends import notices, observed

F = torch.nn.functional


@pytest.fixture(autouse=True)
def seeded(fresh):  # noqa: F811 - the fixture
    torch.manual_seed(0)


def fell_back(function, *args, tolerance=1e-5):
    """What PyTorch ran of a function and its gradients, which are found to be eager mode's, recorded and replayed."""
    before = {which: observed.of(f"torch {which}").fallbacks.copy() for which in ("forward", "backward")}
    compiled = torch.compile(function, backend="dvm", dynamic=False)
    for _ in range(2):
        found = []
        for call in (compiled, function):
            inputs = [a.clone().requires_grad_(a.is_floating_point()) for a in args]
            result = call(*inputs)
            (result.square().sum() if result.requires_grad else torch.zeros((), requires_grad=True)).backward()
            found.append([result, *(a.grad for a in inputs)])
        for ours, theirs in zip(*found, strict=True):
            assert (ours is None) == (theirs is None)
            torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
    return {name for which, was in before.items() for name in observed.of(f"torch {which}").fallbacks - was}


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("work, ops", [
    (lambda x, m: (x * 2)[m].exp(), {"aten.index.Tensor", "aten.index_put.default"}),
    (lambda x, m: torch.masked_select(x * 2, m) + 1, {"aten.masked_select.default", "aten.masked_scatter.default"}),
    (lambda x, m: (x + 1)[m[:, 0]].sum(1), {"aten.index.Tensor", "aten.index_put.default"}),
    (lambda x, m: x[m & ~m] * 2, {"aten.index.Tensor", "aten.index_put.default", "aten.mul.Tensor"}),  # nothing is true
], ids=["elements", "select", "rows", "none"])
def test_what_truths_pick_is_torchs_inside_a_graph_or_between_two(work, ops, captured):
    x, m = torch.randn(4, 6), torch.arange(24).reshape(4, 6) % 3 == 0
    m[1, 0] = True
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=captured):
        found = fell_back(work, x, m)
    assert found <= ops and bool(found) >= captured


def test_what_is_written_where_truths_are_is_ours():
    def number(x, m, v):
        y = x * 2
        y[m] = 3.0
        return y.sin()

    def row(x, m, v):
        y = x * 2
        y[m[:, 0]] = v.detach()
        return y

    def added(x, m, v):
        return (x * 2).index_put((m[:, 1],), v.detach(), accumulate=True)

    x, v = torch.randn(4, 6), torch.randn(6)
    m = torch.arange(24).reshape(4, 6) % 5 < 2
    x[0, 0] = torch.nan
    m[0, 0] = True  # a NaN that is written over leaves nothing
    for work in (number, row, added):
        assert fell_back(work, x if work is number else x.nan_to_num(), m, v) == set()

    def others(x, m):
        y = x * 2
        y[m] = x[m] + 1  # as many as there are truths
        return y

    before = observed.of("torch forward").fallbacks.copy()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(others, backend="dvm")
        for truths in (m, ~m):
            torch.testing.assert_close(compiled(x, truths), others(x, truths), rtol=0, atol=0, equal_nan=True)
    assert "aten.index_put.default" in observed.of("torch forward").fallbacks - before


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_comparisons_of_every_half_with_whole_numbers_and_others_are_torchs(dtype):
    every = torch.arange(-2**15, 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    numbers = [2049, -65519, 65520, 2**31, 0.1, float("nan")]
    whole = torch.tensor([[n] for n in (-65519, 257, 65520, 2**31, -2**53 - 1)])
    compare = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)

    def work(h, n, one):
        return [r for op in compare for r in (*(op(h, number) for number in numbers), op(h, n), op(n, h), op(h, one))]

    compiled, before = torch.compile(work, backend="dvm", dynamic=False), observed.of("torch forward").fallbacks.copy()
    for one in (torch.tensor(2049), torch.tensor(-65519)):
        for ours, theirs in zip(compiled(every, whole, one), work(every, whole, one), strict=True):
            assert torch.equal(ours, theirs)
    assert observed.of("torch forward").fallbacks == before


@pytest.mark.parametrize("work, ops", [
    (lambda x, w: F.conv3d(x * 2, w, padding=1).relu(), {"aten.convolution.default", "aten.convolution_backward.default"}),
    (lambda x, w: F.max_pool3d(x * 2, 2) + 1, {"aten.max_pool3d_with_indices.default", "aten.max_pool3d_with_indices_backward.default"}),
    (lambda x, w: F.avg_pool3d(x * 2, 2) + 1, {"aten.avg_pool3d.default", "aten.avg_pool3d_backward.default"}),
])
def test_three_dimensions_are_torchs_and_told_of_once(work, ops, monkeypatch):
    told = []
    monkeypatch.setattr(notices, "_told", set())
    notices.add_sink(told.append)
    try:
        assert fell_back(work, torch.randn(2, 3, 4, 4, 4), torch.randn(4, 3, 3, 3, 3), tolerance=1e-4) == ops
    finally:
        notices.remove_sink(told.append)
    assert sorted(notice["text"].split()[0] for notice in told) == sorted(ops) and all(notice["line"] for notice in told)
