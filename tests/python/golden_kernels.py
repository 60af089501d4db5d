"""Kernels whose graph and tile code are kept as text for each device, with the arrays they are compiled for."""
import numpy as np

import dvm_core as dvm


@dvm.kernel
def add(k, x, y):
    return k.store(k.add(k.load(x, "float32"), k.load(y, "float32")))


@dvm.kernel
def cast_chain(k, x):
    a = k.load(x, "float32")
    half = k.cast(a, "float16")
    return k.store(k.cast(k.cast(k.cast(half, "int32"), "float32"), "bool")), k.store(k.cast(half, "bfloat16"))


@dvm.kernel
def softmax(k, x):
    a = k.load(x, "float32")
    weight = k.exp(k.sub(a, k.max(a, [-1], True)))
    return k.store(k.div(weight, k.sum(weight, [-1], True)))


@dvm.kernel
def layer_norm(k, x, gamma, beta):
    a = k.load(x, "float32")
    part = 1 / 320
    mean = k.mul(k.sum(a, [-1], True), part)
    centered = k.sub(a, mean)
    variance = k.mul(k.sum(k.mul(centered, centered), [-1], True), part)
    scaled = k.div(centered, k.sqrt(k.add(variance, 1e-5)))
    return k.store(k.add(k.mul(scaled, k.load(gamma, "float32")), k.load(beta, "float32")))


@dvm.kernel
def batch_norm(k, x, part):
    a, share = k.load(x, "float32"), k.scalar(part)
    mean = k.mul(k.sum(a, [0], True), share)
    centered = k.sub(a, mean)
    variance = k.mul(k.sum(k.mul(centered, centered), [0], True), share)
    return k.store(k.div(centered, k.sqrt(k.add(variance, 1e-5))))


@dvm.kernel
def attention(k, q, key, value):
    scores = k.cast(k.mul(k.matmul(k.load(q, "float16"), k.load(key, "float16"), False, True), 0.125), "float32")
    weight = k.exp(k.sub(scores, k.max(scores, [-1], True)))
    share = k.cast(k.div(weight, k.sum(weight, [-1], True)), "float16")
    return k.store(k.matmul(share, k.load(value, "float16")))


@dvm.kernel
def matmul_epilogue(k, x, w, bias):
    y = k.matmul(k.load(x, "float16"), k.load(w, "float16"), bias=k.load(bias, "float16"))
    return k.store(k.maximum(y, 0.0))


@dvm.kernel
def reduce(k, x):
    a = k.load(x, "float32")
    return k.store(k.sum(a, [1])), k.store(k.max(a, [0])), k.store(k.sum(a))


@dvm.kernel
def long_rows(k, x):
    a = k.load(x, "float32")
    return k.store(k.sub(a, k.max(a, [-1], True)))


@dvm.kernel
def select_broadcast(k, x, y):
    a, b = k.load(x, "float32"), k.load(y, "float32")
    return k.store(k.select(k.greater(a, b), a, k.broadcast(b, [60, 200])))


@dvm.kernel
def transposed(k, x):
    return k.store(k.exp(k.permute(k.load(x, "float32"), [1, 0])))


@dvm.kernel
def gather(k, table, index):
    return k.store(k.mul(k.gather_load(table, k.load(index, "int32"), "float32", 0, 1), 2.0))


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


half = np.float16
CASES = {
    "add": (add, zeros(3000, 64), zeros(3000, 64)),
    "cast_chain": (cast_chain, zeros(100, 90)),
    "softmax": (softmax, zeros(512, 200)),
    "layer_norm": (layer_norm, zeros(400, 320), zeros(320), zeros(320)),
    "batch_norm": (batch_norm, zeros(600, 96), 1 / 600),
    "attention": (attention, zeros(4, 96, 64, dtype=half), zeros(4, 96, 64, dtype=half), zeros(4, 96, 64, dtype=half)),
    "matmul_epilogue": (matmul_epilogue, zeros(96, 128, dtype=half), zeros(128, 160, dtype=half), zeros(160, dtype=half)),
    "reduce": (reduce, zeros(250, 130)),
    "long_rows": (long_rows, zeros(4, 20000)),
    "select_broadcast": (select_broadcast, zeros(60, 1), zeros(200)),
    "transposed": (transposed, zeros(70, 90)),
    "gather": (gather, zeros(500, 64), zeros(40, dtype=np.int32)),
}
