"""A program of functions with and without effects, run with and without --advise: what it prints must be the same."""
import hashlib

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

import dvm_core as dvm

ms.set_seed(3)
weight = Parameter(Tensor(np.ones(8, np.float32)), name="weight")
seen = []


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Dense(8, 8, weight_init="ones"), nn.Dense(8, 2, weight_init="ones")

    @dvm.jit
    def construct(self, x):
        return self.last(ops.relu(self.first(x)))


class Counter:
    calls = 0


counter, net, norm = Counter(), Net(), nn.BatchNorm1d(8)
norm.set_train()


@dvm.jit
def pure(x):
    for _ in range(3):
        x = ops.tanh(x * 1.5) + x
    return x


@dvm.jit(mode="graph")
def graphed(x):
    return ops.softmax(x * 2.0, -1) + 1.0


@dvm.jit
def told(x):
    print("told", end=" ")
    return x * 2.0


@dvm.jit
def counted(x):
    counter.calls += 1
    return x * 2.0


@dvm.jit
def listed(x):
    seen.append(1)
    return x * 3.0


@dvm.jit
def noisy(x):
    return ops.dropout(x, 0.5)


@dvm.jit
def written(x):
    ops.assign_add(weight, x[0])
    return x * 1.0


@dvm.jit
def averaged(x):
    return norm(x)


@dvm.jit
def trained(x):
    return (net.last(x) ** 2).mean()


gradient = ms.value_and_grad(trained, None, net.trainable_params())
functions = (pure, net, graphed, told, counted, listed, noisy, written, averaged)
digests = {getattr(f, "__name__", "net"): hashlib.sha256() for f in functions}
for n in range(60):
    x = Tensor(np.random.default_rng(n).standard_normal((4 + n % 3, 8), dtype=np.float32))
    for f, digest in zip(functions, digests.values(), strict=True):
        digest.update(f(x).asnumpy().tobytes())
    loss, gradients = gradient(x)
    digests["pure"].update(b"".join(g.asnumpy().tobytes() for g in (loss, *gradients)))
print()
print(counter.calls, len(seen), norm.moving_mean.asnumpy().tobytes().hex(), weight.asnumpy().tobytes().hex())
for name, digest in list(digests.items())[:7]:
    print(name, digest.hexdigest())
