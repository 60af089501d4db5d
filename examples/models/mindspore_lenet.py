"""LeNet, made smaller, on digits; the batch changes its size at every step.

    dvm run mindspore_lenet.py
"""
from data import digits
from mindspore import nn, ops
from mindspore_loop import run


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(1, 6, 3, has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 16, 3, pad_mode="valid", has_bias=True), nn.ReLU(), nn.AvgPool2d(2, 2), nn.Flatten())
        self.classes = nn.SequentialCell(nn.Dense(16, 24), nn.ReLU(), nn.Dense(24, 10))

    def construct(self, x):
        return self.classes(self.features(x))


def setup(captured):
    model = LeNet()

    @captured
    def loss_fn(images, labels):
        return ops.cross_entropy(model(images.expand_dims(1)), labels)

    return model, loss_fn, digits()


if __name__ == "__main__":
    run(__doc__, setup)
