"""A small Llama (RMSNorm, rotary places, grouped queries, SwiGLU) that learns the next word; texts grow at every step.

    dvm run torch_llama.py
"""
import torch
from data import VOCABULARY, growing
from torch import nn
from torch.nn import functional as F
from torch_loop import run

WIDTH, HEADS, GROUPS = 16, 4, 2
HEAD = WIDTH // HEADS


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.weight


def rotary(x):
    """Pairs of columns turned by an angle that grows with the place."""
    angles = torch.arange(x.shape[-2]).float()[:, None] * 100.0 ** -(torch.arange(HEAD // 2) * 2.0 / HEAD)
    first, second = x.chunk(2, -1)
    sin, cos = angles.sin(), angles.cos()
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, 2 * GROUPS * HEAD, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = nn.Linear(WIDTH, 32, bias=False), nn.Linear(WIDTH, 32, bias=False)
        self.down = nn.Linear(32, WIDTH, bias=False)
        self.norm, self.last_norm = RMSNorm(), RMSNorm()

    def attend(self, x):
        count, time, _ = x.shape
        q = rotary(self.q(x).view(count, time, HEADS, HEAD).transpose(1, 2))
        k, v = self.kv(x).view(count, time, 2 * GROUPS, HEAD).transpose(1, 2).chunk(2, 1)
        k, v = rotary(k).repeat_interleave(HEADS // GROUPS, 1), v.repeat_interleave(HEADS // GROUPS, 1)
        scores = (q @ k.transpose(-1, -2)) * HEAD ** -0.5
        past = torch.arange(time)[:, None] >= torch.arange(time)
        mixed = scores.masked_fill(~past, -1e9).softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(count, time, WIDTH))

    def forward(self, x):
        x = x + self.attend(self.norm(x))
        h = self.last_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layers = nn.Embedding(VOCABULARY, WIDTH), nn.ModuleList([Layer()])
        self.norm, self.out = RMSNorm(), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, words):
        x = self.words(words)
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x))


def setup(compiled):
    model = Llama()

    @compiled
    def loss_fn(words, following):
        return F.cross_entropy(model(words).flatten(0, 1), following.flatten())

    return model, loss_fn, growing()


if __name__ == "__main__":
    run(__doc__, setup)
