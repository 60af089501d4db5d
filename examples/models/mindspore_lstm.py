"""An LSTM over ragged sequences; the loop over time is Python's.

    dvm run mindspore_lstm.py
"""
from data import ragged
from mindspore import nn, ops
from mindspore_loop import run


class Tagger(nn.Cell):
    def __init__(self):
        super().__init__()
        self.cell, self.classes = nn.LSTMCell(6, 12), nn.Dense(12, 3)

    def construct(self, x, lengths):
        h = c = ops.zeros((x.shape[0], 12), x.dtype)
        for time in range(x.shape[1]):
            new_h, new_c = self.cell(x[:, time], (h, c))
            goes_on = (lengths > time).expand_dims(1)
            h, c = ops.where(goes_on, new_h, h), ops.where(goes_on, new_c, c)
        return self.classes(h)


def setup(captured):
    model = Tagger()

    @captured
    def loss_fn(x, lengths, labels):
        return ops.cross_entropy(model(x, lengths), labels)

    return model, loss_fn, ragged()


if __name__ == "__main__":
    run(__doc__, setup)
