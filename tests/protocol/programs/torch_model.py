"""A model of two blocks compiled by this backend: stops, names and reloads inside it are what tests look at."""
import sys
import time

import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x) * 2.0
        return torch.tanh(h)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Block(), Block()

    def forward(self, x):
        return self.second(self.first(x)).sum()


def train(steps, pause):
    torch.manual_seed(0)
    model = Model()
    call = torch.compile(model, backend="dvm", dynamic=False)
    x = torch.ones(3, 4)
    for number in range(1, steps + 1):
        model.zero_grad()
        loss = call(x)
        loss.backward()
        print(f"step {number} loss {loss.item():.6f}", flush=True)
        time.sleep(pause)


train(int(sys.argv[1]), float(sys.argv[2]))
