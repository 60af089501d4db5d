"""A Transformer encoder on digits, an image's rows as words; the batch changes its size at every step.

    dvm run torch_encoder.py
"""
import torch
from data import digits
from torch import nn
from torch.nn import functional as F
from torch_loop import run


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Linear(8, 16)
        self.places = nn.Parameter(torch.randn(8, 16) * 0.1)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, activation="gelu", batch_first=True)
        self.classes = nn.Linear(16, 10)

    def forward(self, images):
        return self.classes(self.layer(self.rows(images) + self.places).mean(1))


def setup(compiled):
    model = Classifier()

    @compiled
    def loss_fn(images, labels):
        return F.cross_entropy(model(images), labels)

    return model, loss_fn, digits()


if __name__ == "__main__":
    run(__doc__, setup)
