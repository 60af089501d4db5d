"""Calls of compiled graphs that are replayed: the bits of recording, whatever the sizes, and no memory held after them."""

import copy
import gc
import random
import sys
import threading
import weakref

import numpy as np
import pytest
from torch_kit import fresh, torch  # noqa: F401 - the fixture among them

from dvm_core import _core
from dvm_core.frontends import observed
from dvm_core.frontends import torch as front


def executable(make, *examples):
    """The graph of aten ops of a function, as the backend has it."""
    graph = torch.fx.experimental.proxy_tensor.make_fx(make)(*examples)
    return front.Executable(graph, [], False)


# Steps of random graphs: most are ours, cumsum, roll and the draws are PyTorch's, and some are views or keep a changed tensor.
STEPS = [
    lambda h, x: torch.relu(h) * 2,
    lambda h, x: torch.tanh(h) + x[:, :1],
    lambda h, x: h @ (x.t() @ x),
    lambda h, x: torch.cumsum(h, 0),
    lambda h, x: h.roll(1, 1),
    lambda h, x: h - h.mean(),
    lambda h, x: torch.softmax(h, 1),
    lambda h, x: h.t()[:, : h.shape[0]].t() + h,
    lambda h, x: h + x.reshape(-1, h.shape[1]),
    lambda h, x: torch.nn.functional.dropout(h, 0.5),
    lambda h, x: h.clone().mul_(3),
    lambda h, x: torch.where(h > 0, h, x),
    lambda h, x: h + torch.rand(1),
    lambda h, x: torch.stack([h, x]).sum(0),
    lambda h, x: h / h.shape[0],
    lambda h, x: x[-1] + h,
    lambda h, x: sum(h.split(2, 1)[:1]).sum() + h,
]


@pytest.mark.parametrize("seed", range(25))
def test_a_replayed_call_gives_the_bits_that_recording_gives(seed):
    picked = random.Random(seed).choices(STEPS, k=6)

    def work(x):
        h = x * 1.5
        kept = []
        for step in picked:
            h = step(h, x)
            kept.append(h)
        return kept

    # one row, and sizes around a tile's; a transposed argument has other strides, and is another kind
    for rows, turned in [(1, False), (2, False), (5, True), (5, False), (33, False)]:

        def argument(rows=rows, turned=turned):
            data = torch.randn(4, rows).t() if turned else torch.randn(rows, 4)
            assert data.shape == (rows, 4)
            return data

        graph = executable(work, argument())
        first, second = argument(), argument()
        torch.manual_seed(seed)
        graph([first])
        assert len(graph.plans) == 1
        expected = executable(work, argument())
        torch.manual_seed(seed + 1)
        theirs = expected([second])
        torch.manual_seed(seed + 1)
        ours = graph([second])
        for a, b in zip(ours, theirs, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.isnan(), b.isnan())
            assert torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))


def test_training_over_changing_batches_has_the_same_bits_with_and_without_replays(monkeypatch):
    def losses(replayed):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(8, 3)
        )
        compiled = torch.compile(model, backend="dvm", dynamic=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        monkeypatch.setattr(front, "_PLANS", 128 if replayed else 0)
        rng, found = np.random.default_rng(1), []
        for n in [4, 7, 4, 2, 7, 4, 0, 9, 2, 4, 7] * 3:
            x = torch.from_numpy(rng.standard_normal((n, 6), dtype=np.float32))
            loss = compiled(x).square().sum() if n else compiled.eval()(x).sum()
            compiled.train()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found + [b.sum().item() for b in model.buffers()]

    assert losses(True) == losses(False)


def test_nothing_of_a_call_is_held_after_it():
    graph = executable(lambda a: [torch.cumsum(torch.exp(a) * 2, 0).t() + 1], torch.ones(3, 3))
    for _ in range(3):  # recorded, then replayed
        argument = torch.randn(3, 3)
        results = graph([argument])
        seen = [weakref.ref(argument), *map(weakref.ref, results)]
        del argument, results
        gc.collect()
        assert [tensor() for tensor in seen] == [None, None]
    assert len(graph.plans) == 1


def test_a_fallback_counts_in_replayed_calls_too():
    graph = executable(lambda a: [torch.cumprod(a * 2, 0)], torch.ones(3, 3))
    counts = observed.of("torch forward").fallbacks
    before = counts["aten.cumprod.default"]
    for _ in range(4):
        graph([torch.randn(3, 3)])
    assert counts["aten.cumprod.default"] == before + 4


def test_one_tensor_as_two_arguments_makes_no_plan_for_two_tensors():
    graph = executable(lambda a, b: [a * 2 + b], torch.ones(3), torch.ones(3))
    same = torch.randn(3)
    assert torch.equal(graph([same, same])[0], same * 3)
    a, b = torch.randn(3), torch.randn(3)
    for _ in range(2):
        assert torch.equal(graph([a, b])[0], a * 2 + b)
    assert torch.equal(graph([same, same])[0], same * 2 + same)


def test_a_call_that_cannot_be_replayed_to_its_end_is_recorded_from_there(monkeypatch):
    # The second program refuses, as with hooks set while PyTorch ran the op before it: the draw is not made twice.
    def work(a):
        h = torch.cumsum(a * 2, 0)
        r = torch.rand(3)
        return [h.t() * r + 1, a.exp()]

    graph = executable(work, torch.ones(3, 3))
    graph([torch.ones(3, 3)])
    (plan,) = [graph.plans.find([torch.ones(3, 3)])]
    launches = [at for at, snapshot in enumerate(plan.snapshots) if snapshot is not None]
    a = torch.randn(3, 3)
    for refused in launches:
        steps = list(plan.steps)
        plan.steps[refused] = (lambda slots: False, [])
        torch.manual_seed(5)
        ours = graph([a])
        plan.steps[:] = steps
        torch.manual_seed(5)
        for got, wanted in zip(ours, graph([a]), strict=True):
            assert torch.equal(got, wanted)


def test_a_debugger_attached_has_every_call_recorded():
    graph = executable(lambda a: [a * 2 + 1], torch.ones(3))
    a = torch.randn(3)
    graph([a])
    assert graph.plans.find([a]) is not None
    _core.set_stop_handler(lambda *_: None)
    try:
        assert graph.plans.find([a]) is None and torch.equal(graph([a])[0], a * 2 + 1)
    finally:
        _core.set_stop_handler(None)
    assert graph.plans.find([a]) is not None


def test_a_twin_of_other_weights_is_not_mixed_up():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)
    compiled = torch.compile(model, backend="dvm")
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.weight.mul_(2)
    x = torch.randn(5, 4)
    for _ in range(3):
        assert torch.allclose(compiled(x), model(x), atol=1e-6)
    model.load_state_dict(other.state_dict())
    model.weight.data = model.weight.data.clone()  # other memory
    assert torch.allclose(compiled(x), other(x), atol=1e-6)


def test_plans_are_found_by_two_threads_at_once():
    plans, first, second = _core.TensorPlans(4), torch.ones(3), torch.ones(5, 2)
    for tensor, plan in ((first, "three"), (second, "five")):
        plans.add(plans.key([tensor]), plan)
    asked = []

    class Slow(torch.Tensor):
        def is_neg(self):  # another thread has its turn while a tensor is asked, as inside PyTorch
            thread = threading.Thread(target=lambda: asked.append(plans.find([second])))
            thread.start()
            thread.join()
            return False

    assert plans.find([first.as_subclass(Slow)]) == "three" and asked == ["five"]


def test_two_threads_call_one_graph_with_two_sizes():
    call = executable(lambda x: [torch.tanh(x) * x.sum()], torch.ones(3, 4))
    inputs = [torch.randn(3, 4), torch.randn(301, 4)]
    expected = [call([x])[0] for x in inputs]
    wrong = []

    def work(x, result):
        wrong.extend(1 for _ in range(300) if not torch.equal(call([x])[0], result))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=pair) for pair in zip(inputs, expected, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong
