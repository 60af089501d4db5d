"""The digits model captured: gradients, loss curve, changing batches, cells, optimizers."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

import digits_reference as digits  # noqa: E402
from digits_numpy import Reference  # noqa: E402
from mindspore import Tensor, nn  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core import _core  # noqa: E402


def first_batch() -> tuple[Any, Any]:
    return next(digits.batches())


def test_gradients_of_the_whole_model_match_float64() -> None:
    model, loss_fn = digits.setup()
    parameters = model.trainable_params()
    x, y = first_batch()
    loss, gradients = ms.value_and_grad(dvm.jit(loss_fn), None, parameters)(x, y)
    weights = {parameter.name: parameter.asnumpy() for parameter in parameters}
    exact_loss, exact = Reference(weights, heads=4).run(x.asnumpy(), y.asnumpy())
    assert float(loss) == pytest.approx(exact_loss, rel=1e-6)
    assert set(exact) == set(weights)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        wanted = exact[parameter.name]
        scale = np.abs(wanted).max()
        if parameter.name.endswith("key.bias"):
            scale = 1e-2  # exactly zero: softmax does not see a shift of all keys
        assert np.abs(gradient.asnumpy() - wanted).max() <= 1e-4 * scale, parameter.name


def test_loss_curve_follows_mindspores_own_run() -> None:
    theirs = [float(line) for line in digits.LOSSES.read_text().split()]
    ours = digits.losses(100, dvm.jit)
    assert len(theirs) == 100
    assert np.abs(np.array(ours) - theirs).max() <= 1e-3


def test_same_run_gives_the_same_bits() -> None:
    assert digits.losses(5, dvm.jit) == digits.losses(5, dvm.jit)


def test_switching_devices_every_few_steps_changes_no_bit() -> None:
    devices, calls = ("cpu", "npu-sim:910b", "cpu", "npu-sim:950"), iter(range(100))

    def switching(function: Any) -> Any:
        captured = dvm.jit(function)

        def call(*arguments: Any) -> Any:
            dvm.set_device(devices[next(calls) // 3 % 4])
            return captured(*arguments)
        return call

    try:
        switched = digits.losses(12, switching)
    finally:
        dvm.set_device("cpu")
    assert switched == digits.losses(12, dvm.jit)


def test_changing_batches_make_no_new_programs_after_the_first_of_a_structure() -> None:
    model, loss_fn = digits.setup()
    scaled = dvm.jit(lambda x, y: loss_fn(x, y) * 2)  # a structure no other test has
    forward_backward = ms.value_and_grad(scaled, None, model.trainable_params())
    stream = digits.batches()
    sizes = set()
    before = _core.stats()["programs"]
    for number, (x, y) in zip(range(12), stream, strict=False):
        forward_backward(x, y)
        sizes.add(x.shape[0])
        if number == 0:
            after_first = _core.stats()["programs"]
    assert len(sizes) > 3  # 32, 48, 64 and ragged ones
    assert after_first - before == 2  # one forward, one backward
    assert _core.stats()["programs"] == after_first


def test_backward_program_is_marked_and_carries_forward_lines() -> None:
    model, loss_fn = digits.setup(depth=1)
    ms.value_and_grad(dvm.jit(loss_fn), None, model.trainable_params())(*first_batch())
    forward, backward = _core.programs()[-2:]
    assert not forward.backward and backward.backward
    places = [_core.place_info(i.place) for i in backward.instructions]
    assert all(place[6] for place in places)
    assert {place[0].rpartition("/")[2] for place in places} == {"model.py", "digits_reference.py"}
    assert {place[1] for place in places} <= {_core.place_info(i.place)[1] for i in forward.instructions}


def test_evaluation_without_gradients_keeps_no_tape() -> None:
    model, loss_fn = digits.setup(depth=1)
    x, _ = first_batch()
    predict = dvm.jit(lambda images: model(images))
    before = _core.stats()["programs"]
    logits = predict(x)
    assert _core.stats()["programs"] == before + 1
    program = _core.programs()[-1]
    assert program.kept()[program.input_count:] == [program.input_count + len(program.instructions) - 1]  # the logits alone
    np.testing.assert_allclose(logits.asnumpy(), model(x).asnumpy(), atol=2e-4)


@pytest.mark.parametrize("captured", ["construct", "cell"])
def test_trains_under_train_one_step_cell(captured: str) -> None:
    def train(capture: bool) -> list[float]:
        model, loss_fn = digits.setup(width=16, heads=2, hidden=32, depth=1)

        class WithLoss(nn.Cell):
            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def construct(self, x: Tensor, y: Tensor) -> Tensor:
                return loss_fn(x, y)

        if capture and captured == "construct":
            WithLoss.construct = dvm.jit(WithLoss.construct)
        network = WithLoss()
        if capture and captured == "cell":
            network = dvm.jit(network)
        step = nn.TrainOneStepCell(network, nn.Adam(model.trainable_params(), 1e-2))
        step.set_train()
        return [float(step(x, y)) for _, (x, y) in zip(range(4), digits.batches(), strict=False)]

    np.testing.assert_allclose(train(True), train(False), atol=1e-4)


def test_parameters_stay_where_they_are_over_an_optimizer_step() -> None:
    model, loss_fn = digits.setup(depth=1)
    parameters = model.trainable_params()
    forward_backward = ms.value_and_grad(dvm.jit(loss_fn), None, parameters)
    optimizer = nn.Adam(parameters, 1e-3)
    before = [parameter.data_ptr() for parameter in parameters]
    optimizer(forward_backward(*first_batch())[1])
    ms.runtime.synchronize()
    assert [parameter.data_ptr() for parameter in parameters] == before
