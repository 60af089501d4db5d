"""A perceptron with one hidden layer on digits; the batch changes its size at every step.

    dvm run mindspore_mlp.py
"""
from data import digits
from mindspore import nn, ops
from mindspore_loop import run


def setup(captured):
    model = nn.SequentialCell(nn.Dense(64, 32), nn.ReLU(), nn.Dense(32, 10))

    @captured
    def loss_fn(images, labels):
        return ops.cross_entropy(model(images.reshape(images.shape[0], -1)), labels)

    return model, loss_fn, digits()


if __name__ == "__main__":
    run(__doc__, setup)
