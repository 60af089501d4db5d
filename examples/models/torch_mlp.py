"""A perceptron with one hidden layer on digits; the batch changes its size at every step.

    dvm run torch_mlp.py
"""
import torch
from data import digits
from torch.nn import functional as F
from torch_loop import run


def setup(compiled):
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))

    @compiled
    def loss_fn(images, labels):
        return F.cross_entropy(model(images.flatten(1)), labels)

    return model, loss_fn, digits()


if __name__ == "__main__":
    run(__doc__, setup)
