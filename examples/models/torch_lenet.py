"""LeNet, made smaller, on digits; the batch changes its size at every step.

    dvm run torch_lenet.py
"""
import torch
from data import digits
from torch import nn
from torch.nn import functional as F
from torch_loop import run


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 6, 3, padding=1), nn.Conv2d(6, 16, 3)
        self.hidden, self.classes = nn.Linear(16, 24), nn.Linear(24, 10)

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.first(x)), 2)
        x = F.avg_pool2d(torch.relu(self.second(x)), 2)
        return self.classes(torch.relu(self.hidden(x.flatten(1))))


def setup(compiled):
    model = LeNet()

    @compiled
    def loss_fn(images, labels):
        return F.cross_entropy(model(images.unsqueeze(1)), labels)

    return model, loss_fn, digits()


if __name__ == "__main__":
    run(__doc__, setup)
