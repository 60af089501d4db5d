"""After a gradient that failed, MindSpore and captured functions go on as if it had not been asked for."""
from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import Parameter, Tensor, nn, ops  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core.frontends import mindspore_compat as compat  # noqa: E402

X = np.arange(3, dtype=np.float32)


def fails(x):
    raise ValueError("no loss")


class Failing(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter(Tensor(X), name="weight")

    def construct(self, x):
        raise ValueError("no loss")


class BadBackward(nn.Cell):
    def construct(self, x):
        return x.sum()

    def bprop(self, x, out, dout):
        raise ValueError("no gradient")


def with_set_grad(x):
    net = Failing()
    net.set_grad()
    net(x)


def train_step(x):
    net = Failing()
    nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))(x)


ASKED = {
    "grad": ms.grad(fails),
    "value_and_grad": ms.value_and_grad(fails),
    "captured": ms.value_and_grad(dvm.jit(fails)),
    "captured in graph mode": ms.value_and_grad(dvm.jit(mode="graph")(fails)),
    "a cell": ms.grad(Failing()),
    "set_grad": with_set_grad,
    "a step of training": train_step,
    "vjp": lambda x: ms.vjp(fails, x),
    "the backward": ms.grad(BadBackward()),
    "grad_position": ms.grad(lambda x: x.sum(), grad_position=3),
}


@pytest.mark.parametrize("asked", ASKED)
def test_a_failed_gradient_leaves_nothing_behind(asked: str) -> None:
    # A captured call comes first, as it does for users: from then on this package is in the way.
    dvm.jit(lambda x: x + 1)(Tensor(X))
    with pytest.raises((ValueError, RuntimeError)):
        ASKED[asked](Tensor(X))
    assert not compat.grad_enabled()
    weight = Parameter(Tensor(X), name="w")

    @dvm.jit
    def changes(x):
        y = x * weight
        y[0] = 9.0
        ops.assign_add(weight, x)
        return y

    assert changes(Tensor(X)).asnumpy().tolist() == [9, 1, 4] and weight.asnumpy().tolist() == [0, 2, 4]
    value, gradient = ms.value_and_grad(dvm.jit(lambda x: (x * x).sum()))(Tensor(X))
    assert float(value) == 5 and gradient.asnumpy().tolist() == [0, 2, 4]
    assert not compat.grad_enabled()


def test_a_failed_gradient_inside_another_leaves_the_outer_one_as_mindspore_does() -> None:
    dvm.jit(lambda x: x + 1)(Tensor(X))
    inside = []

    def outer(x):
        with pytest.raises(ValueError):
            ms.grad(fails)(x)
        inside.append(compat.grad_enabled())
        raise ValueError("outer")

    with pytest.raises(ValueError, match="outer"):
        ms.grad(outer)(Tensor(X))
    assert inside == [True] and not compat.grad_enabled()


EARLY = """
import numpy as np, mindspore as ms
from mindspore import ops, Tensor, Parameter
import dvm_core as dvm
x = Tensor(np.ones(3, np.float32))
weight = Parameter(Tensor(np.ones(3, np.float32)), name="w")

def fails(x):
    raise ValueError("no loss")

try:
    ms.grad(%s)(x)
except ValueError:
    pass

@dvm.jit
def changes(x):
    ops.assign_add(weight, x)
    return x * weight

assert changes(x).asnumpy().tolist() == [2, 2, 2]
assert ms.grad(dvm.jit(lambda x: (x * x).sum()))(x).asnumpy().tolist() == [2, 2, 2]
print("went on")
"""


@pytest.mark.parametrize("first", ["fails", "dvm.jit(fails)"])
def test_a_gradient_that_fails_before_anything_was_captured_leaves_nothing_behind(first: str) -> None:
    done = subprocess.run([sys.executable, "-c", EARLY % first], capture_output=True, text=True, timeout=300)
    assert done.stdout.endswith("went on\n"), done.stderr
