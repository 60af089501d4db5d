"""torch.compile(backend="dvm"): strides of results (which as_strided and users read), halves with whole numbers, gradients at NaN."""
import pytest
from torch_kit import fresh, torch  # noqa: F401 - the fixture among them

from dvm_core.frontends import observed

LAST = torch.channels_last


def same(function, *args, dynamic=False):
    """Ours twice, recorded and replayed, for these arguments."""
    compiled = torch.compile(function, backend="dvm", dynamic=dynamic)
    for _ in range(2):
        expected, found = function(*args), compiled(*args)
        for ours, theirs in zip(*((r if isinstance(r, tuple) else (r,)) for r in (found, expected)), strict=True):
            assert ours.stride() == theirs.stride() and torch.allclose(ours, theirs, atol=1e-6)
    return compiled


@pytest.mark.parametrize("dynamic", [False, True])
def test_as_strided_of_a_transposed_result_reads_torchs_elements(dynamic):
    def work(a):
        b = a.t() * 2
        return b.as_strided((3,), (1,)), b.transpose(0, 1).as_strided((2,), (2,), 1), b + 1

    compiled = same(work, torch.arange(12.0).reshape(3, 4), dynamic=dynamic)
    if dynamic:
        for n in (5, 7):
            a = torch.rand(n, n + 2)
            for ours, theirs in zip(compiled(a), work(a), strict=True):
                assert torch.equal(ours, theirs) and ours.stride() == theirs.stride()


def test_as_strided_of_a_view_with_gaps_looks_into_the_whole():
    def work(a):
        b = (a * 2)[:, 1::2]
        return b.as_strided((3,), (2,)), b.as_strided((3,), (2,), 2), (a + 1)[0].expand(3, 4).as_strided((2,), (3,))

    same(work, torch.arange(12.0).reshape(3, 4))


def test_channels_last_stays_and_is_ours():
    weight = torch.rand(6, 4, 3, 3)

    def work(a):
        b = torch.nn.functional.conv2d(a, weight)
        return torch.relu(b), b.as_strided((5,), (1,)), a.exp().to(memory_format=torch.contiguous_format)

    images = torch.rand(2, 4, 5, 6)
    before = observed.of("torch forward").fallbacks.copy()
    same(work, images.to(memory_format=LAST))
    same(lambda a: (a * 2).to(memory_format=LAST), images)
    assert set(observed.of("torch forward").fallbacks - before) == {"aten.as_strided.default"}


def test_gradients_of_transposed_results_are_torchs():
    def work(a, b):
        return (torch.sin(a.t()) * b).cumprod(0)

    a, b = torch.rand(3, 4), torch.rand(4, 3)
    compiled = torch.compile(work, backend="dvm")
    for _ in range(2):
        found = []
        for call in (compiled, work):
            inputs = [v.clone().requires_grad_() for v in (a, b)]
            result = call(*inputs)
            (result * torch.arange(12.0).reshape(4, 3)).sum().backward()
            found.append((result.detach(), *(v.grad for v in inputs)))
        for ours, theirs in zip(*found, strict=True):
            assert torch.allclose(ours, theirs, atol=1e-5) and ours.stride() == theirs.stride()


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_whole_numbers_that_halves_are_computed_with_are_rounded_to_halves(half):
    def work(h, n):
        return h * n, n - h, h > n, h + n[0], h / n[2], h * n[2]

    h, n = torch.tensor([60000.0, 1.5, 3.0]).to(half), torch.tensor([60001, 70000, 3003])
    for ours, theirs in zip(torch.compile(work, backend="dvm")(h, n), work(h, n), strict=True):
        assert ours.dtype == theirs.dtype and torch.equal(ours, theirs)


def test_hardtanh_hands_the_gradient_on_where_its_operand_is_nan():
    found = []
    for call in (torch.compile(torch.nn.functional.hardtanh, backend="dvm"), torch.nn.functional.hardtanh):
        a = torch.tensor([float("nan"), -2.0, -1.0, 0.5, 1.0, 3.0], requires_grad=True)
        call(a).sum().backward()
        found.append(a.grad.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("dynamic", [False, True])
def test_parts_of_what_a_graph_computes_are_ours(dynamic):
    def work(a):
        first, second = (a * 2).chunk(2, 1)
        parts = torch.sin(a).split([1, 3], -1)
        return first.sin() * second, parts[1] + 1, sum(row * n for n, row in enumerate(torch.cos(a).unbind())), (a + 1).split(2, 1)[0] * 2

    before = observed.of("torch forward").fallbacks.copy()
    same(work, torch.arange(12.0).reshape(3, 4), dynamic=dynamic)
    assert observed.of("torch forward").fallbacks == before


WHOLE = {torch.int64: [0, 1, -3, 2**24 + 1, -2**62, 2**31], torch.int32: [0, 1, -3, 2**24 + 1, -2**31, 2**31 - 1],
         torch.bool: [True, False, True, True, False, False]}
MEETINGS = {"times": lambda a: a * 2.5, "plus": lambda a: 0.1 + a, "over": lambda a: a / 3, "over a float": lambda a: a / 0.3,
            "over a tensor": lambda a: a / (a * 1 + 0.5), "compared": lambda a: a > 0.5,
            "equal": lambda a: a == 1.0, "above": lambda a: 2.0 ** 24 < a}


@pytest.mark.parametrize("default", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_whole_numbers_meet_floats_in_the_default_dtype(dtype, default):
    a = torch.tensor(WHOLE[dtype], dtype=dtype)
    torch.set_default_dtype(default)
    before = {name: observed.of(name).fallbacks.copy() for name in ("torch forward", "torch graph")}
    try:
        for name, work in MEETINGS.items():
            compiled = torch.compile(work, backend="dvm")
            for _ in range(2):
                found, expected = compiled(a), work(a)
                assert found.dtype == expected.dtype and torch.equal(found, expected), name
            torch._dynamo.reset()
        kept = torch.compile(lambda x: (x.clone(), x * 1), backend="dvm")
        assert all(torch.equal(ours, a) for ours in kept(a))
    finally:
        torch.set_default_dtype(torch.float32)
    told = [op for name, seen in before.items() for op in observed.of(name).fallbacks - seen]
    assert not [op for op in told if op.startswith(("aten.mul", "aten.div", "aten.add", "aten.clone"))], told
