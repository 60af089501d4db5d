"""Batches for the models of this folder: NumPy arrays whose sizes change from step to step, the same for one seed."""
from collections.abc import Callable, Iterator

import numpy as np

Batches = Iterator[tuple[np.ndarray, ...]]
Policy = Callable[[np.ndarray], np.ndarray]
VOCABULARY = 24
MASK = 1  # words are 4 and above


def digits(seed: int = 5) -> Batches:
    """Images (n, 8, 8) float32 from 0 to 1 and labels (n,) int64 of scikit-learn's digits."""
    from sklearn.datasets import load_digits
    found, random = load_digits(), np.random.default_rng(seed)
    images, labels = (found.images / 16).astype(np.float32), found.target.astype(np.int64)
    while True:
        chosen = random.integers(0, len(images), int(random.integers(12, 33)))
        yield images[chosen], labels[chosen]


def ragged(seed: int = 5) -> Batches:
    """Sequences (n, time, 6) float32 padded with zeros, their lengths (n,) int64, and the class (n,) of each: where its sum is largest."""
    random = np.random.default_rng(seed)
    while True:
        count, longest = int(random.integers(6, 13)), int(random.integers(3, 7))
        lengths = random.integers(2, longest + 1, count)
        lengths[0] = longest
        x = random.standard_normal((count, longest, 6)).astype(np.float32) * (np.arange(longest) < lengths[:, None])[:, :, None]
        yield x.astype(np.float32), lengths, x.sum(1)[:, :3].argmax(1)


def _sentences(random: np.random.Generator, count: int, time: int) -> np.ndarray:
    starts = random.integers(0, VOCABULARY - 4, (count, 1))
    return (starts + np.arange(time) * (1 + starts % 3)) % (VOCABULARY - 4) + 4


def masked(seed: int = 5) -> Batches:
    """Texts (n, time) int64 with some words masked, the words themselves, weights (n, time) float32: 1 where a word is asked for, and
    (n, time) float32 that is 0 at the padding."""
    random = np.random.default_rng(seed)
    while True:
        count, time = int(random.integers(4, 9)), int(random.integers(5, 13))
        words = _sentences(random, count, time)
        lengths = random.integers(4, time + 1, count)
        present = np.arange(time) < lengths[:, None]
        asked = (random.random((count, time)) < 0.25) & present
        asked[:, 1] = True
        yield np.where(asked, MASK, words * present), words, asked.astype(np.float32), present.astype(np.float32)


def tasks(seed: int = 5) -> Batches:
    """Features (n, 12) float32 and two targets (n,) float32 that share what makes them."""
    random = np.random.default_rng(seed)
    hidden = random.standard_normal((12, 4))
    while True:
        x = random.standard_normal((int(random.integers(16, 49)), 12))
        h = np.tanh(x @ hidden)
        yield x.astype(np.float32), (h[:, 0] * h[:, 1]).astype(np.float32), (h.sum(1) > 0).astype(np.float32)


def growing(seed: int = 5) -> Batches:
    """Texts (n, time) int64 and the next words; sequences grow by one word every step, from 4 to 23 and again."""
    random, step = np.random.default_rng(seed), 0
    while True:
        words = _sentences(random, 3 + step % 3, 5 + step % 20)
        yield words[:, :-1], words[:, 1:]
        step += 1


def episodes(policy: Policy, seed: int = 5) -> Batches:
    """A cart on a line that must be kept near the middle, pushed left or right; an episode ends when it is too far away or after 24 steps.

    policy: state (1, 3) float32 -> probabilities (1, 2). Gives states (time, 3), actions (time,) int64 and returns (time,) float32.
    """
    random = np.random.default_rng(seed)
    while True:
        place, speed, wind = random.uniform(-0.5, 0.5, 3)
        states, actions = [], []
        while abs(place) < 1 and len(states) < 24:
            state = np.array([place, speed, wind], np.float32)
            action = int(random.random() < policy(state[None])[0, 1])
            states.append(state)
            actions.append(action)
            speed += (0.2 if action else -0.2) + 0.1 * wind
            place += 0.3 * speed
        left = np.arange(len(states), 0, -1)
        returns = np.array([(1 - 0.9 ** n) / (1 - 0.9) for n in left]) / 10
        yield np.stack(states), np.array(actions), returns.astype(np.float32)
