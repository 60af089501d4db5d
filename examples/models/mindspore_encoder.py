"""A Transformer encoder on digits, an image's rows as words; the batch changes its size at every step.

    dvm run mindspore_encoder.py
"""
import numpy as np
from data import digits
from mindspore import Parameter, Tensor, nn, ops
from mindspore_loop import run


class Classifier(nn.Cell):
    def __init__(self):
        super().__init__()
        self.rows = nn.Dense(8, 16)
        self.places = Parameter(Tensor(np.random.standard_normal((8, 16)).astype(np.float32) * 0.1), name="places")
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, activation="gelu", batch_first=True)
        self.classes = nn.Dense(16, 10)

    def construct(self, images):
        return self.classes(self.layer(self.rows(images) + self.places).mean(1))


def setup(captured):
    model = Classifier()

    @captured
    def loss_fn(images, labels):
        return ops.cross_entropy(model(images), labels)

    return model, loss_fn, digits()


if __name__ == "__main__":
    run(__doc__, setup)
