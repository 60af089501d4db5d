"""A loop whose loss MindSpore compiles for the virtual machine: python mindspore_compiled.py STEPS SECONDS"""
import sys
import time

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

import dvm_core

dvm_core.register_mindspore_backend()
ms.set_seed(1)
net = nn.Dense(4, 3)


@ms.jit(backend="dvm")
def loss_of(x, labels):
    h = net(x)
    scores = ops.tanh(h) * 2.0
    return ops.cross_entropy(scores, labels)


def train(steps, pause):
    gradient = ms.value_and_grad(loss_of, None, net.trainable_params())
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    x, labels = Tensor(np.random.RandomState(0).randn(5, 4), ms.float32), Tensor([0, 1, 2, 0, 1], ms.int32)
    for step in range(steps):
        loss, gradients = gradient(x, labels)
        optimizer(gradients)
        print(f"step {step} loss {float(loss.asnumpy()):.6f}", flush=True)
        time.sleep(pause)


if __name__ == "__main__":
    train(int(sys.argv[1]), float(sys.argv[2]))
