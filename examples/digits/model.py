"""A small Transformer encoder for scikit-learn's handwritten digits: an 8x8 image is a sequence of its 8 rows."""
import math

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, initializer

ROWS, COLUMNS, CLASSES = 8, 8, 10


class SelfAttention(nn.Cell):
    """Multi-head self-attention, written out in tensor ops."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Dense(width, width)
        self.key = nn.Dense(width, width)
        self.value = nn.Dense(width, width)
        self.out = nn.Dense(width, width)

    def split_heads(self, x: Tensor) -> Tensor:
        batch, rows, width = x.shape
        x = x.reshape(batch, rows, self.heads, width // self.heads)
        return x.transpose(0, 2, 1, 3)

    def construct(self, x: Tensor) -> Tensor:
        batch, rows, width = x.shape
        q = self.split_heads(self.query(x))
        k = self.split_heads(self.key(x))
        v = self.split_heads(self.value(x))
        scores = q @ k.swapaxes(-1, -2)
        scores = scores / math.sqrt(width // self.heads)
        weights = ops.softmax(scores, axis=-1)
        mixed = weights @ v
        mixed = mixed.transpose(0, 2, 1, 3).reshape(batch, rows, width)
        return self.out(mixed)


class Block(nn.Cell):
    """Attention and a two-layer perceptron, each behind a LayerNorm and around a residual connection."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm((width,))
        self.attention = SelfAttention(width, heads)
        self.mlp_norm = nn.LayerNorm((width,))
        self.up = nn.Dense(width, hidden)
        self.down = nn.Dense(hidden, width)

    def construct(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        h = self.up(self.mlp_norm(x))
        h = ops.gelu(h, approximate="tanh")
        h = self.down(h)
        return x + h


class DigitTransformer(nn.Cell):
    """[batch, 8, 8] images in 0..1 to [batch, 10] logits."""

    def __init__(self, width: int = 64, heads: int = 4, hidden: int = 256, depth: int = 2) -> None:
        super().__init__()
        self.embed = nn.Dense(COLUMNS, width)
        self.positions = Parameter(initializer(Normal(0.02), (ROWS, width), ms.float32), name="positions")
        self.blocks = nn.CellList([Block(width, heads, hidden) for _ in range(depth)])
        self.norm = nn.LayerNorm((width,))
        self.classify = nn.Dense(width, CLASSES)

    def construct(self, images: Tensor) -> Tensor:
        x = self.embed(images) + self.positions
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        pooled = x.mean(axis=1)
        logits = self.classify(pooled)
        return logits
