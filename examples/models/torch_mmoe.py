"""Two tasks that share experts, mixed by a gate for each task (MMoE); the batch changes its size at every step.

    dvm run torch_mmoe.py
"""
import torch
from data import tasks
from torch import nn
from torch.nn import functional as F
from torch_loop import run


class MMoE(nn.Module):
    def __init__(self, experts=3):
        super().__init__()
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 8)) for _ in range(experts)])
        self.gates = nn.ModuleList([nn.Linear(12, experts) for _ in range(2)])
        self.towers = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)) for _ in range(2)])

    def forward(self, x):
        found = torch.stack([expert(x) for expert in self.experts], 1)
        mixed = [(gate(x).softmax(-1).unsqueeze(-1) * found).sum(1) for gate in self.gates]
        return [tower(m).squeeze(-1) for tower, m in zip(self.towers, mixed, strict=True)]


def setup(compiled):
    model = MMoE()

    @compiled
    def loss_fn(x, value, label):
        first, second = model(x)
        return F.mse_loss(first, value) + F.binary_cross_entropy_with_logits(second, label)

    return model, loss_fn, tasks()


if __name__ == "__main__":
    run(__doc__, setup)
