"""Whole networks whose input changes its size from call to call: ResNet-50 forward, an LSTM over ragged sequences.

    python benchmarks/networks.py [--quick]
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import command
import numpy as np
from timing import Row, Sweep, interleave

import dvm_core as dvm

Call = Callable[[np.ndarray], Any]
IMAGES = [(1, 224), (2, 192), (8, 64), (4, 128), (1, 96), (8, 112), (2, 160), (1, 64), (3, 144), (1, 200), (4, 96), (6, 80)]
LENGTHS = [(8, 5), (16, 33), (4, 64), (32, 17), (8, 100), (1, 48), (16, 9), (2, 80), (24, 24), (12, 57)]
INPUTS, HIDDEN = 64, 128


# ---- ResNet-50 --------------------------------------------------------------------------------------------------------------------------

Unit = tuple[Any, Any, Any, Any, Any]  # weight; scale, shift, mean and variance of the norm behind it


def _units() -> tuple[list[tuple[np.ndarray, ...]], np.ndarray]:
    """Random weights in the order of the forward pass, and those of the classes."""
    random = np.random.default_rng(0)
    units: list[tuple[np.ndarray, ...]] = []

    def unit(inputs: int, outputs: int, taps: int) -> None:
        weight = random.standard_normal((outputs, inputs, taps, taps), np.float32) * np.float32((2 / (inputs * taps * taps)) ** 0.5)
        norm = [random.uniform(0.5, 1.0, outputs), *random.normal(0, 0.1, (2, outputs)), random.uniform(0.8, 1.2, outputs)]
        units.append((weight, *(v.astype(np.float32) for v in norm)))

    unit(3, 64, 7)
    inputs = 64
    for width, blocks in zip((64, 128, 256, 512), (3, 4, 6, 3), strict=True):
        for block in range(blocks):
            unit(inputs, width, 1)
            unit(width, width, 3)
            unit(width, 4 * width, 1)
            if block == 0:
                unit(inputs, 4 * width, 1)
            inputs = 4 * width
    return units, random.standard_normal((2048, 1000), np.float32) * np.float32(0.02)


def _resnet(x: Any, units: Iterable[Unit], conv: Callable[..., Any], relu: Callable[[Any], Any], pool: Callable[[Any], Any]) -> Any:
    """Up to the last features. conv(x, unit, stride, padding): convolution and norm."""
    unit = iter(units)
    x = pool(relu(conv(x, next(unit), 2, 3)))
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            h = relu(conv(x, next(unit), 1, 0))
            h = relu(conv(h, next(unit), stride, 1))
            h = conv(h, next(unit), 1, 0)
            x = relu(h + (conv(x, next(unit), stride, 0) if block == 0 else x))
    return x


def _dvm_resnet() -> Call:
    units, classes = _units()
    own = [tuple(dvm.tensor(a) for a in unit) for unit in units]
    out = dvm.tensor(classes)

    def conv(x: Any, unit: Unit, stride: int, padding: int) -> Any:
        weight, scale, shift, mean, variance = unit
        factor = scale * (variance + 1e-5).rsqrt()
        return x.conv2d(weight, stride=stride, padding=padding) * factor.reshape(-1, 1, 1) + (shift - mean * factor).reshape(-1, 1, 1)

    @dvm.jit(mode="graph")
    def forward(x: Any) -> Any:
        x = _resnet(x, own, conv, lambda x: x.relu(), lambda x: x.max_pool2d(3, 2, 1))
        return x.mean((2, 3)) @ out
    return lambda image: forward(dvm.tensor(image)).numpy()


def _torch_resnet(compiled: bool) -> Call:
    import torch

    functional = torch.nn.functional
    torch.set_grad_enabled(False)
    units, classes = _units()
    own = [tuple(map(torch.from_numpy, unit)) for unit in units]
    out = torch.from_numpy(classes)

    def conv(x: Any, unit: Unit, stride: int, padding: int) -> Any:
        weight, scale, shift, mean, variance = unit
        return functional.batch_norm(functional.conv2d(x, weight, stride=stride, padding=padding), mean, variance, scale, shift)

    def forward(x: Any) -> Any:
        return _resnet(x, own, conv, torch.relu, lambda x: functional.max_pool2d(x, 3, 2, 1)).mean((2, 3)) @ out
    run = torch.compile(forward, dynamic=True) if compiled else forward
    return lambda image: run(torch.from_numpy(image)).numpy()


def _mindspore_resnet() -> Call:
    import mindspore
    from mindspore import ops

    units, classes = _units()
    own = [tuple(map(mindspore.Tensor, unit)) for unit in units]
    out = mindspore.Tensor(classes)
    pool = mindspore.nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)

    def conv(x: Any, unit: Unit, stride: int, padding: int) -> Any:
        weight, scale, shift, mean, variance = unit
        x = ops.conv2d(x, weight, stride=stride, pad_mode="pad", padding=padding)
        return ops.batch_norm(x, mean, variance, scale, shift)

    def forward(image: np.ndarray) -> Any:
        return (_resnet(mindspore.Tensor(image), own, conv, ops.relu, pool).mean((2, 3)) @ out).asnumpy()
    return forward


# ---- an LSTM ----------------------------------------------------------------------------------------------------------------------------

def _lstm_weights() -> list[np.ndarray]:
    """Of the inputs, of the state, bias; gates i, f, g, o."""
    random = np.random.default_rng(1)
    return [random.uniform(-0.09, 0.09, shape).astype(np.float32) for shape in ((4 * HIDDEN, INPUTS), (4 * HIDDEN, HIDDEN), (4 * HIDDEN,))]


def _dvm_lstm() -> Call:
    own = [dvm.constant(a) for a in _lstm_weights()]  # packed once

    @dvm.jit(mode="graph")
    def forward(x: Any) -> Any:
        of_input, of_state, bias = own
        steps, batch, _ = x.shape
        drive = x.reshape(-1, INPUTS).matmul(of_input, transpose_b=True) + bias
        h = c = None
        for t in range(steps):
            at = drive[t * batch:(t + 1) * batch]
            if h is not None:
                at = h.matmul(of_state, transpose_b=True) + at
            i, f, g, o = (at[:, k * HIDDEN:(k + 1) * HIDDEN] for k in range(4))
            c = i.sigmoid() * g.tanh() if c is None else f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h
    return lambda x: forward(dvm.tensor(x)).numpy()


def _torch_lstm(compiled: bool) -> Call:
    import torch

    torch.set_grad_enabled(False)
    layer = torch.nn.LSTM(INPUTS, HIDDEN)
    of_input, of_state, bias = map(torch.from_numpy, _lstm_weights())
    layer.load_state_dict({"weight_ih_l0": of_input, "weight_hh_l0": of_state, "bias_ih_l0": bias, "bias_hh_l0": torch.zeros_like(bias)})
    run = torch.compile(layer, dynamic=True) if compiled else layer
    return lambda x: run(torch.from_numpy(x))[1][0][0].numpy()


def _mindspore_lstm() -> Call:
    import mindspore
    from mindspore import ops

    layer = mindspore.nn.LSTM(INPUTS, HIDDEN)
    *own, bias = _lstm_weights()
    for parameter, value in zip(layer.get_parameters(), (*own, bias, np.zeros_like(bias)), strict=True):
        parameter.set_data(mindspore.Tensor(value))

    def forward(x: np.ndarray) -> Any:
        start = ops.zeros((1, x.shape[1], HIDDEN))
        return layer(mindspore.Tensor(x), (start, start))[1][0][0].asnumpy()
    return forward


# ---- rows -------------------------------------------------------------------------------------------------------------------------------

def _measure(name: str, makers: dict[str, Callable[[], Call]], inputs: dict[str, np.ndarray], seconds: float, tolerance: float) -> Sweep:
    """Every shape is new to a contender once: that round is not timed, but its results are compared."""
    found = {peer: make() for peer, make in makers.items() if peer == "dvm" or importlib.util.find_spec(peer.partition(".")[0])}
    cells = []
    for label, x in inputs.items():
        exact = found["dvm"](x)
        for peer, call in found.items():
            near = tolerance * float(np.abs(exact).max())
            np.testing.assert_allclose(call(x), exact, rtol=tolerance, atol=near, err_msg=f"{peer}, {label}")
        calls = {peer: functools.partial(call, x) for peer, call in found.items()}
        cells.append(Row(label, interleave(calls, seconds, warm=1, rounds=5)))
    return Sweep(name, cells, aim=">= 1.0 x the best")


RESNETS: dict[str, Callable[[], Call]] = {"dvm": _dvm_resnet, "torch": lambda: _torch_resnet(False), "mindspore": _mindspore_resnet}
LSTMS: dict[str, Callable[[], Call]] = {"dvm": _dvm_lstm, "torch": lambda: _torch_lstm(False), "mindspore": _mindspore_lstm}


def sweeps(quick: bool) -> Iterator[Sweep]:
    """quick: few shapes, and without torch.compile, which takes minutes for a ResNet."""
    random = np.random.default_rng(2)
    images = {f"{n}x{size}": random.standard_normal((n, 3, size, size), np.float32) for n, size in (IMAGES[:2] if quick else IMAGES)}
    rows = {f"{n}x{time}": random.standard_normal((time, n, INPUTS), np.float32) for n, time in (LENGTHS[:3] if quick else LENGTHS)}
    resnet, lstm = dict(RESNETS), dict(LSTMS)
    if not quick:
        resnet["torch.compile"] = lambda: _torch_resnet(True)
        lstm["torch.compile"] = lambda: _torch_lstm(True)
    yield _measure("ResNet-50 forward, batch x side", resnet, images, 0.5 if quick else 3.0, 1e-3)
    yield _measure("LSTM 64 to 128 over ragged lengths, batch x time", lstm, rows, 0.2 if quick else 1.0, 1e-4)


if __name__ == "__main__":
    sys.exit(command.rows(__doc__, sweeps))
