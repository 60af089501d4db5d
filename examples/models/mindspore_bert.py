"""A small BERT that learns masked words of a made language; batches and lengths change at every step.

    dvm run mindspore_bert.py
"""
import mindspore as ms
from data import VOCABULARY, masked
from mindspore import Parameter, nn, ops
from mindspore_loop import run

WIDTH, HEADS = 16, 2


class Layer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Dense(WIDTH, 3 * WIDTH), nn.Dense(WIDTH, WIDTH)
        self.up, self.down = nn.Dense(WIDTH, 2 * WIDTH), nn.Dense(2 * WIDTH, WIDTH)
        self.norm, self.last_norm = nn.LayerNorm((WIDTH,)), nn.LayerNorm((WIDTH,))

    def construct(self, x, hidden):
        count, time, _ = x.shape
        q, k, v = ops.unbind(self.qkv(x).reshape(count, time, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4))
        scores = ops.matmul(q, k.swapaxes(-1, -2)) * (WIDTH // HEADS) ** -0.5 + hidden
        mixed = ops.matmul(ops.softmax(scores, -1), v).swapaxes(1, 2).reshape(count, time, WIDTH)
        x = self.norm(x + self.out(mixed))
        return self.last_norm(x + self.down(ops.gelu(self.up(x))))


class Bert(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(16, WIDTH)
        self.norm, self.layers = nn.LayerNorm((WIDTH,)), nn.CellList([Layer()])
        self.bias = Parameter(ops.zeros((VOCABULARY,), ms.float32), name="bias")

    def construct(self, words, present):
        x = self.norm(self.words(words) + self.places(ops.arange(words.shape[1])))
        hidden = (present - 1).expand_dims(1).expand_dims(1) * 1e4
        for layer in self.layers:
            x = layer(x, hidden)
        return ops.matmul(x, self.words.embedding_table.T) + self.bias


def setup(captured):
    model = Bert()

    @captured
    def loss_fn(words, targets, asked, present):
        logits = model(words, present)
        each = ops.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1), reduction="none")
        return (each * asked.reshape(-1)).sum() / asked.sum()

    return model, loss_fn, masked()


if __name__ == "__main__":
    run(__doc__, setup)
