"""The digits model once more, forward and backward by hand in float64 NumPy: a reference that shares no code with what it checks."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
EPSILON = 1e-7  # MindSpore's nn.LayerNorm
K, M = math.sqrt(2 / math.pi), 0.044715


class Reference:
    """Loss and gradients for weights named as MindSpore names them."""

    def __init__(self, weights: Arrays, heads: int) -> None:
        self.w = {name: value.astype(np.float64) for name, value in weights.items()}
        self.heads = heads
        self.depth = len({name.split(".")[1] for name in weights if name.startswith("blocks.")})
        self.gradients: Arrays = {}

    def dense(self, name: str, x: np.ndarray) -> np.ndarray:
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def dense_back(self, name: str, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        rows, out = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
        self.gradients[f"{name}.weight"] = out.T @ rows
        self.gradients[f"{name}.bias"] = out.sum(0)
        return g @ self.w[f"{name}.weight"]

    def norm(self, name: str, x: np.ndarray) -> tuple[np.ndarray, tuple]:
        deviation = np.sqrt(x.var(-1, keepdims=True) + EPSILON)
        normal = (x - x.mean(-1, keepdims=True)) / deviation
        return normal * self.w[f"{name}.gamma"] + self.w[f"{name}.beta"], (normal, deviation)

    def norm_back(self, name: str, kept: tuple, g: np.ndarray) -> np.ndarray:
        normal, deviation = kept
        axes = tuple(range(g.ndim - 1))
        self.gradients[f"{name}.gamma"] = (g * normal).sum(axes)
        self.gradients[f"{name}.beta"] = g.sum(axes)
        h = g * self.w[f"{name}.gamma"]
        return (h - h.mean(-1, keepdims=True) - normal * (h * normal).mean(-1, keepdims=True)) / deviation

    def split(self, x: np.ndarray) -> np.ndarray:
        batch, rows, width = x.shape
        return x.reshape(batch, rows, self.heads, width // self.heads).transpose(0, 2, 1, 3)

    def merge(self, x: np.ndarray) -> np.ndarray:
        batch, heads, rows, size = x.shape
        return x.transpose(0, 2, 1, 3).reshape(batch, rows, heads * size)

    def attention(self, name: str, x: np.ndarray) -> tuple[np.ndarray, tuple]:
        q, k, v = (self.split(self.dense(f"{name}.{part}", x)) for part in ("query", "key", "value"))
        scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = self.merge(weights @ v)
        return self.dense(f"{name}.out", mixed), (x, q, k, v, weights, mixed)

    def attention_back(self, name: str, kept: tuple, g: np.ndarray) -> np.ndarray:
        x, q, k, v, weights, mixed = kept
        g_mixed = self.split(self.dense_back(f"{name}.out", mixed, g))
        g_weights = g_mixed @ v.swapaxes(-1, -2)
        g_scores = weights * (g_weights - (g_weights * weights).sum(-1, keepdims=True)) / math.sqrt(q.shape[-1])
        parts = {"query": g_scores @ k, "key": g_scores.swapaxes(-1, -2) @ q, "value": weights.swapaxes(-1, -2) @ g_mixed}
        return sum(self.dense_back(f"{name}.{part}", x, self.merge(value)) for part, value in parts.items())

    def run(self, images: np.ndarray, labels: np.ndarray) -> tuple[float, Arrays]:
        """(loss, gradients by weight name)"""
        images = images.astype(np.float64)
        x = self.dense("embed", images) + self.w["positions"]
        kept: list[Any] = []
        for i in range(self.depth):
            b = f"blocks.{i}"
            normal, norm1 = self.norm(f"{b}.attention_norm", x)
            mixed, attended = self.attention(f"{b}.attention", normal)
            x = x + mixed
            h, norm2 = self.norm(f"{b}.mlp_norm", x)
            up = self.dense(f"{b}.up", h)
            t = np.tanh(K * (up + M * up ** 3))
            active = 0.5 * up * (1 + t)
            x = x + self.dense(f"{b}.down", active)
            kept.append((norm1, attended, norm2, h, up, t, active))
        x, last = self.norm("norm", x)
        pooled = x.mean(1)
        logits = self.dense("classify", pooled)
        shifted = logits - logits.max(1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        rows = np.arange(len(labels))
        loss = -logs[rows, labels].mean()

        g = np.exp(logs)
        g[rows, labels] -= 1
        g = self.dense_back("classify", pooled, g / len(labels))
        g = self.norm_back("norm", last, np.repeat(g[:, None] / x.shape[1], x.shape[1], 1))
        for i in reversed(range(self.depth)):
            b = f"blocks.{i}"
            norm1, attended, norm2, h, up, t, active = kept[i]
            down = self.dense_back(f"{b}.down", active, g)
            slope = 0.5 * (1 + t) + 0.5 * up * (1 - t * t) * K * (1 + 3 * M * up * up)
            g = g + self.norm_back(f"{b}.mlp_norm", norm2, self.dense_back(f"{b}.up", h, down * slope))
            g = g + self.norm_back(f"{b}.attention_norm", norm1, self.attention_back(f"{b}.attention", attended, g))
        self.gradients["positions"] = g.sum(0)
        self.dense_back("embed", images, g)
        return float(loss), self.gradients
