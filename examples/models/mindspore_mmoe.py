"""Two tasks that share experts, mixed by a gate for each task (MMoE); the batch changes its size at every step.

    dvm run mindspore_mmoe.py
"""
from data import tasks
from mindspore import nn, ops
from mindspore_loop import run


class MMoE(nn.Cell):
    def __init__(self, experts=3):
        super().__init__()
        self.experts = nn.CellList([nn.SequentialCell(nn.Dense(12, 16), nn.ReLU(), nn.Dense(16, 8)) for _ in range(experts)])
        self.gates = nn.CellList([nn.Dense(12, experts) for _ in range(2)])
        self.towers = nn.CellList([nn.SequentialCell(nn.Dense(8, 8), nn.Tanh(), nn.Dense(8, 1)) for _ in range(2)])

    def construct(self, x):
        found = ops.stack([expert(x) for expert in self.experts], 1)
        mixed = [(ops.softmax(gate(x), -1).expand_dims(-1) * found).sum(1) for gate in self.gates]
        return [tower(m).squeeze(-1) for tower, m in zip(self.towers, mixed, strict=True)]


def setup(captured):
    model = MMoE()

    @captured
    def loss_fn(x, value, label):
        first, second = model(x)
        return ops.mse_loss(first, value) + (ops.softplus(second) - second * label).mean()

    return model, loss_fn, tasks()


if __name__ == "__main__":
    run(__doc__, setup)
