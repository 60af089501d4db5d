"""A small BERT that learns masked words of a made language; batches and lengths change at every step.

    dvm run torch_bert.py
"""
import torch
from data import VOCABULARY, masked
from torch import nn
from torch.nn import functional as F
from torch_loop import run

WIDTH, HEADS = 16, 2


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.norm, self.last_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x, hidden):
        count, time, _ = x.shape
        q, k, v = self.qkv(x).view(count, time, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-1, -2)) * (WIDTH // HEADS) ** -0.5 + hidden
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(count, time, WIDTH)
        x = self.norm(x + self.out(mixed))
        return self.last_norm(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(16, WIDTH)
        self.norm, self.layers = nn.LayerNorm(WIDTH), nn.ModuleList([Layer()])
        self.bias = nn.Parameter(torch.zeros(VOCABULARY))

    def forward(self, words, present):
        x = self.norm(self.words(words) + self.places(torch.arange(words.shape[1])))
        hidden = (present - 1)[:, None, None] * 1e4
        for layer in self.layers:
            x = layer(x, hidden)
        return x @ self.words.weight.T + self.bias


def setup(compiled):
    model = Bert()

    @compiled
    def loss_fn(words, targets, asked, present):
        each = F.cross_entropy(model(words, present).flatten(0, 1), targets.flatten(), reduction="none")
        return (each * asked.flatten()).sum() / asked.sum()

    return model, loss_fn, masked()


if __name__ == "__main__":
    run(__doc__, setup)
