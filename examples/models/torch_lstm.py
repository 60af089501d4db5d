"""An LSTM over ragged sequences. A step of it is compiled, the loop over time is Python's: no length needs another program.

    dvm run torch_lstm.py
"""
import torch
from data import ragged
from torch import nn
from torch.nn import functional as F
from torch_loop import run


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.classes = nn.LSTMCell(6, 12), nn.Linear(12, 3)


def setup(compiled):
    model = Tagger()

    @compiled
    def step(x, h, c, goes_on):
        new_h, new_c = model.cell(x, (h, c))
        return torch.where(goes_on, new_h, h), torch.where(goes_on, new_c, c)

    @compiled
    def loss_of(h, labels):
        return F.cross_entropy(model.classes(h), labels)

    def loss_fn(x, lengths, labels):
        h = c = x.new_zeros(len(x), 12)
        for time in range(x.shape[1]):
            h, c = step(x[:, time], h, c.clone(), (lengths > time)[:, None])
        return loss_of(h, labels)

    return model, loss_fn, ragged()


if __name__ == "__main__":
    run(__doc__, setup)
