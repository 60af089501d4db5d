"""Compiled calls inside whatever PyTorch's modes change, and backward passes that are compiled while they run (compiled autograd)."""
from __future__ import annotations

import contextlib

import pytest
from torch_kit import fresh, torch  # noqa: F401 - the fixture among them

compiled_autograd = torch._dynamo.compiled_autograd


class Passing(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def default_device(name):
    torch.set_default_device(name)
    try:
        yield
    finally:
        torch.set_default_device(None)


def fake():
    return torch._subclasses.fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)


MODES = {"default device": lambda: default_device("meta"), "functions": Passing,
         "no_grad": torch.no_grad, "inference": torch.inference_mode, "fake": fake,
         "autocast": lambda: torch.autocast("cpu", torch.bfloat16)}


@pytest.mark.parametrize("mode", MODES)
def test_a_call_within_a_mode_gives_what_pytorch_gives_and_leaves_nothing_behind(mode):
    weight = torch.linspace(-1, 1, 12).reshape(4, 3).requires_grad_()
    x = torch.linspace(0, 2, 20).reshape(5, 4)

    def work(x):
        h = torch.tanh(x @ weight)
        return h.t().sum(0), h.view(-1)[1:], h.repeat(1, 2), torch.ones(3) + 1

    def same(ours, theirs):
        for one, other in zip(ours, theirs, strict=True):
            assert type(one) is type(other) and one.requires_grad == other.requires_grad and one.is_inference() == other.is_inference()
            torch.testing.assert_close(one, other, atol=2e-2 if mode == "autocast" else 1e-5, rtol=1e-5)
        if ours[0].requires_grad and mode != "fake":
            gradients = [torch.autograd.grad(results[0].float().sum(), weight)[0] for results in (ours, theirs)]
            torch.testing.assert_close(*gradients, atol=2e-2 if mode == "autocast" else 1e-5, rtol=1e-5)

    def plain(results):  # there is nothing to compare in them
        return [torch.zeros(r.shape, dtype=r.dtype, device="cpu") if r.device.type == "meta" else r for r in results]

    compiled = torch.compile(work, backend="dvm")
    for _ in range(2):  # recorded and replayed, before and within
        with MODES[mode]():
            for _ in range(2):
                ours, theirs = compiled(x), work(x)
                assert [(type(r), r.device, r.shape, r.dtype) for r in ours] == [(type(r), r.device, r.shape, r.dtype) for r in theirs]
                if mode != "fake":
                    same(plain(ours), plain(theirs))
        for _ in range(2):
            same(compiled(x), work(x))


@pytest.mark.parametrize("outside", [False, True])
def test_a_backward_that_is_compiled_while_it_runs(outside):
    """outside: whether the forward, which is ours as well, ran before compiled autograd was turned on."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))

    def loss(x):
        return model(x).square().sum()

    forward = torch.compile(loss, backend="dvm") if outside else loss
    for _ in range(2):
        x = torch.randn(5, 4)
        expected = torch.autograd.grad(loss(x), [*model.parameters()])
        model.zero_grad()
        made = forward(x)
        with compiled_autograd._enable(torch.compile(backend="dvm")):
            made.backward()
        for parameter, theirs in zip(model.parameters(), expected, strict=True):
            torch.testing.assert_close(parameter.grad, theirs)


def test_a_step_that_is_compiled_with_its_backward():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)

    def step(x):
        loss = torch.tanh(model(x)).square().sum()
        loss.backward()
        return loss

    x = torch.randn(5, 4)
    expected = step(x).detach(), *(p.grad for p in model.parameters())
    model.zero_grad()
    with torch._dynamo.config.patch(compiled_autograd=True):
        found = torch.compile(step, backend="dvm")(x).detach(), *(p.grad for p in model.parameters())
    torch.testing.assert_close(found, expected)
