"""Gradients of compiled models through our own autograd function: the bits of AOTAutograd's, and whatever users do with autograd."""

import copy

import pytest
from torch_kit import fresh, torch  # noqa: F401 - the fixture among them

from dvm_core.frontends import torch_autograd

checkpoint = torch.utils.checkpoint.checkpoint


@pytest.fixture(autouse=True)
def seeded(fresh):  # noqa: F811 - the fixture
    torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.norm, self.two = torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 3)

    def forward(self, x):
        h = torch.relu(self.norm(self.one(x)))
        return self.two(h), h


def net():
    torch.manual_seed(4)
    return Net(), torch.randn(5, 6, requires_grad=True)


def compiled(f, dynamic=False):
    return torch.compile(f, backend="dvm", dynamic=dynamic)


def ours(tensor):
    """Whether autograd reaches it through our function; AOTAutograd's has another name."""
    name = tensor.grad_fn.name()
    assert name in ("CompiledBackward", "CompiledFunctionBackward")
    return name == "CompiledBackward"


def gradients(model, x):
    return [x.grad, *(p.grad for p in model.parameters())]


def close(a, b):
    for one, other in zip(a, b, strict=True):
        assert (one is None) == (other is None)
        assert one is None or torch.allclose(one, other, atol=1e-5, rtol=1e-4)


def test_bits_are_those_of_aotautograds_function(monkeypatch):
    found = {}
    for way in (True, False):
        if not way:
            monkeypatch.setattr(torch_autograd, "_plain", lambda spec: False)
        torch._dynamo.reset()
        model, x = net()
        call = compiled(model, dynamic=True)
        found[way] = []
        takes = [lambda y, h: y.square().sum(), lambda y, h: h.sum(), lambda y, h: (y.sum() + h.sin().sum()) * 2]
        for n, take in zip((5, 3, 5), takes, strict=True):  # recorded, of another size, replayed
            y, h = call(x[:n])
            assert ours(y) == way
            take(y, h).backward()
            found[way] += [y, h, *[g.clone() for g in gradients(model, x)]]
        found[way] += model.buffers()
    for one, other in zip(found[True], found[False], strict=True):
        assert torch.equal(one, other)


def test_gradients_of_inputs_and_statistics_are_eager_modes():
    model, x = net()
    twin, z = copy.deepcopy(model), x.detach().clone().requires_grad_()
    call = compiled(model)
    for _ in range(3):
        y, h = call(x)
        assert ours(y)
        (y.sum() + h.square().sum()).backward()
        y, h = twin(z)
        (y.sum() + h.square().sum()).backward()
    close([*gradients(model, x), *model.buffers()], [*gradients(twin, z), *twin.buffers()])


def test_a_kept_graph_runs_again_and_a_freed_one_says_so():
    model, x = net()
    call = compiled(lambda x: model(x)[0].square().sum())
    call(x).backward()  # the first backward need not be one that keeps
    once = [g.clone() for g in gradients(model, x)]
    model.zero_grad()
    x.grad = None
    loss = call(x)
    assert ours(loss)
    loss.backward(retain_graph=True)
    loss.backward()
    close(gradients(model, x), [2 * g for g in once])
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_a_gradient_of_a_gradient_is_refused_when_it_is_asked_for():
    model, x = net()
    loss = compiled(lambda x: model(x)[0].square().sum())(x)
    assert ours(loss)
    grad, = torch.autograd.grad(loss, x, create_graph=True)
    close([grad], torch.autograd.grad(model(x)[0].square().sum(), x))
    assert grad.requires_grad
    with pytest.raises(RuntimeError, match="double backward"):
        grad.sum().backward()


def test_modes_and_what_requires_gradients_may_change_between_calls():
    model, x = net()
    model.eval()
    call = compiled(model)
    expected = model(x)[0].detach()
    assert ours(call(x)[0])
    with torch.no_grad():
        assert not call(x)[0].requires_grad
    with torch.inference_mode():
        assert call(x)[0].is_inference()
    model.one.requires_grad_(False)
    y, _ = call(x)
    y.sum().backward()
    assert model.one.weight.grad is None and model.two.weight.grad is not None and x.grad is not None
    y, _ = call(x.detach())
    y.sum().backward()
    model.requires_grad_(False)
    y, _ = call(x.detach())
    assert not y.requires_grad
    close([y], [expected])


def test_gradients_that_are_not_asked_for_stay_away():
    model, x = net()
    y, _ = compiled(model)(x)
    assert ours(y)
    weight, = torch.autograd.grad(y.sum(), model.two.weight, retain_graph=True)
    assert weight.shape == (3, 8) and model.two.weight.grad is None and x.grad is None
    y.sum().backward(inputs=[model.one.bias])
    assert model.one.bias.grad is not None and model.two.bias.grad is None


def test_autocast_is_left_to_aotautograd():
    model, x = net()
    with torch.autocast("cpu", torch.bfloat16):
        y, _ = compiled(model)(x)
        expected, _ = model(x)
    assert not ours(y) and y.dtype == torch.bfloat16
    assert torch.allclose(y.float(), expected.float(), atol=3e-2)
    y.float().sum().backward()
    assert model.one.weight.grad.dtype == torch.float32


def test_hooks_run():
    model, x = net()
    calls = []
    model.one.weight.register_hook(lambda grad: calls.append("tensor") or grad * 2)
    model.one.weight.register_post_accumulate_grad_hook(lambda p: calls.append("accumulated"))
    y, _ = compiled(model)(x)
    y.register_hook(lambda grad: calls.append("output") or grad * 3)
    y.grad_fn.register_hook(lambda *_: calls.append("node"))
    y.sum().backward()
    assert calls == ["output", "node", "tensor", "accumulated"]
    plain, z = net()
    (plain(z)[0].sum() * 3).backward()
    close([model.one.weight.grad / 2, model.two.weight.grad], [plain.one.weight.grad, plain.two.weight.grad])


def test_hooks_of_saved_tensors_see_all_of_them():
    model, x = net()
    call = compiled(lambda x: model(x)[0].sum())
    call(x).backward()
    packed, unpacked = [], []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: unpacked.append(t) or t):
        loss = call(x)
    assert not ours(loss)
    loss.backward()
    assert len(packed) == len(unpacked) >= 4


def test_a_changed_argument_is_noticed():
    model, x = net()
    data = x.detach().clone()
    loss = compiled(lambda x: model(x)[0].sum())(data)
    assert ours(loss)
    data.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    y, h = compiled(model)(x)
    h.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("inside", [False, True])
def test_checkpoints(inside):
    model, x = net()
    model.eval()
    y, h = model(x)
    y.sum().backward()
    expected = [g.clone() for g in gradients(model, x)]
    model.zero_grad()
    x.grad = None
    call = compiled(lambda x: checkpoint(model, x, use_reentrant=False)) if inside else compiled(model)
    y, _ = call(x) if inside else checkpoint(call, x, use_reentrant=False)
    y.sum().backward()
    close(gradients(model, x), expected)


def test_transforms_go_as_with_aotautograd():
    weight = torch.randn(6, requires_grad=True)
    x = torch.randn(4, 6)
    call = compiled(lambda x: (torch.sin(x) * weight).sum())
    assert ours(call(x[0]))
    expected = torch.func.grad(lambda x: (torch.sin(x) * weight).sum())(x[0])
    close([compiled(torch.func.grad(lambda x: (torch.sin(x) * weight).sum()))(x[0])], [expected])


def test_results_that_are_views_changed_in_place_and_what_is_no_result():
    def work(x):
        h = x * 2
        return h.view(-1)[1:], h, x.t(), x.shape[0]

    x = torch.randn(3, 2, requires_grad=True)
    view, h, turned, rows = compiled(work)(x)
    assert rows == 3 and view._base is not None and turned.data_ptr() == x.data_ptr()
    (view.sum() + h.sum() + turned.sum()).backward()
    assert torch.equal(x.grad, torch.tensor([[3.0, 5.0], [5.0, 5.0], [5.0, 5.0]]))
    viewed, = compiled(lambda x: [torch.relu(x * 2).view(-1)])(x)
    viewed.mul_(2).sum().backward()  # a view of nothing that the user has: as any tensor


def test_what_a_call_keeps_is_free_after_its_backward():
    model, x = net()
    call = compiled(lambda x: model(x)[0].square().sum())
    for _ in range(3):
        loss = call(x)
        loss.backward()
    assert loss.grad_fn.own is None
    kept = call(x)
    assert any(isinstance(value, torch.Tensor) for value in kept.grad_fn.own)


def test_data_parallel(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.distributed, "_DEFAULT_FIRST_BUCKET_BYTES", 64)  # several graphs
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    model, x = net()
    model.eval()
    twin, z = copy.deepcopy(model), x.detach().clone().requires_grad_()
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        parallel = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1e-4)
        for call in (torch.compile(parallel, backend="dvm"), torch.nn.parallel.DistributedDataParallel(compiled(model))):
            model.zero_grad()
            x.grad = None
            y, h = call(x)
            (y.square().sum() + h.square().sum()).backward()
            twin.zero_grad()
            z.grad = None
            y, h = twin(z)
            (y.square().sum() + h.square().sum()).backward()
            close(gradients(model, x), gradients(twin, z))
    finally:
        torch.distributed.destroy_process_group()
