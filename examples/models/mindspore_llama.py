"""A small Llama (RMSNorm, rotary places, grouped queries, SwiGLU) that learns the next word; texts grow at every step.

    dvm run mindspore_llama.py
"""
import mindspore as ms
from data import VOCABULARY, growing
from mindspore import Parameter, nn, ops
from mindspore_loop import run

WIDTH, HEADS, GROUPS = 16, 4, 2
HEAD = WIDTH // HEADS


class RMSNorm(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(ops.ones((WIDTH,), ms.float32))

    def construct(self, x):
        return x * ops.rsqrt(x.square().mean(-1, keep_dims=True) + 1e-5) * self.weight


def rotary(x):
    """Pairs of columns turned by an angle that grows with the place."""
    speeds = ops.pow(100.0, ops.arange(HEAD // 2).astype(ms.float32) * (-2.0 / HEAD))
    angles = ops.arange(x.shape[-2]).astype(ms.float32).expand_dims(1) * speeds
    first, second = x.chunk(2, -1)
    sin, cos = ops.sin(angles), ops.cos(angles)
    return ops.cat((first * cos - second * sin, second * cos + first * sin), -1)


class Layer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Dense(WIDTH, WIDTH, has_bias=False), nn.Dense(WIDTH, 2 * GROUPS * HEAD, has_bias=False)
        self.out = nn.Dense(WIDTH, WIDTH, has_bias=False)
        self.gate, self.up = nn.Dense(WIDTH, 32, has_bias=False), nn.Dense(WIDTH, 32, has_bias=False)
        self.down = nn.Dense(32, WIDTH, has_bias=False)
        self.norm, self.last_norm = RMSNorm(), RMSNorm()

    def attend(self, x):
        count, time, _ = x.shape
        q = rotary(self.q(x).reshape(count, time, HEADS, HEAD).swapaxes(1, 2))
        k, v = self.kv(x).reshape(count, time, 2 * GROUPS, HEAD).swapaxes(1, 2).chunk(2, 1)
        k, v = (ops.repeat_interleave(part, HEADS // GROUPS, 1) for part in (rotary(k), v))
        scores = ops.matmul(q, k.swapaxes(-1, -2)) * HEAD ** -0.5
        places = ops.arange(time)
        future = places.expand_dims(1) < places
        mixed = ops.matmul(ops.softmax(scores.masked_fill(future, -1e9), -1), v)
        return self.out(mixed.swapaxes(1, 2).reshape(count, time, WIDTH))

    def construct(self, x):
        x = x + self.attend(self.norm(x))
        h = self.last_norm(x)
        return x + self.down(ops.silu(self.gate(h)) * self.up(h))


class Llama(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words, self.layers = nn.Embedding(VOCABULARY, WIDTH), nn.CellList([Layer()])
        self.norm, self.out = RMSNorm(), nn.Dense(WIDTH, VOCABULARY, has_bias=False)

    def construct(self, words):
        x = self.words(words)
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x))


def setup(captured):
    model = Llama()

    @captured
    def loss_fn(words, following):
        return ops.cross_entropy(model(words).reshape(-1, VOCABULARY), following.reshape(-1))

    return model, loss_fn, growing()


if __name__ == "__main__":
    run(__doc__, setup)
