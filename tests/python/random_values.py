"""What random programs are made from: shapes, inputs under any strides, and values to pick from."""
from __future__ import annotations

import random

import numpy as np
from core_programs import BFLOAT16, Program, code, is_float
from halves import bits_of, rounded

GIVEN = ("RANDOM", "CAST", "FULL", "IOTA", "ONE_HOT", "ARGMAX", "ARGMIN", "ARGSORT", "TOPK")


class Values:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.np = np.random.default_rng(seed)
        self.program = Program()
        self.types: list[tuple[tuple[int, ...], np.dtype]] = []
        extents = [1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 100]
        if self.rng.random() < 0.15:
            extents.append(0)
        if self.rng.random() < 0.2:
            extents.append(700)
        self.extents = extents
        self.main = self.rng.choice(("float32",) * 5 + ("float16", BFLOAT16) * 2)
        self.base = self.shape(self.rng.choice((0, 1, 2, 2, 2, 3, 3, 4, 5)))
        if self.rng.random() < 0.15:  # rows longer than a tile, many rows, and products wider than one
            self.base = self.rng.choice(((40000,), (1, 35001), (1300, 30), (2, 300, 70), (9, 1100), (600, 64)))

    def shape(self, rank: int) -> tuple[int, ...]:
        shape = [self.rng.choice(self.extents) for _ in range(rank)]
        while np.prod(shape, dtype=np.int64) > 40000:
            shape[shape.index(max(shape))] = self.rng.choice((1, 2, 3))
        return tuple(shape)

    # ---- inputs ---------------------------------------------------------------------------------------------------------------------

    def array(self, shape, dtype) -> np.ndarray:
        if dtype == np.bool_:
            return np.asarray(self.np.integers(0, 2, shape)).astype(np.bool_)
        if not is_float(dtype):
            return np.asarray(self.np.integers(-6, 7, shape)).astype(dtype)
        numbers = np.asarray(self.np.standard_normal(shape) * 1.5)
        return np.asarray(bits_of(rounded(numbers, "bfloat16"), "bfloat16")) if dtype == BFLOAT16 else numbers.astype(dtype)

    def strided(self, shape, dtype) -> np.ndarray:
        """The same kind of array under strides: transposed, every second element, reversed, or broadcast."""
        way = self.rng.choice(("plain", "plain", "transposed", "stepped", "reversed", "broadcast"))
        if way == "transposed" and len(shape) > 1:
            order = list(range(len(shape)))
            self.rng.shuffle(order)
            return self.array([shape[i] for i in order], dtype).transpose(np.argsort(order))
        if way == "stepped" and shape:
            return self.array((*shape[:-1], shape[-1] * 2 + 1), dtype)[..., 1::2]
        if way == "reversed" and shape:
            return self.array(shape, dtype)[..., ::-1]
        if way == "broadcast" and shape:
            axis = self.rng.randrange(len(shape))
            return np.broadcast_to(self.array([1 if i == axis else n for i, n in enumerate(shape)], dtype), shape)
        return self.array(shape, dtype)

    def narrowed(self) -> tuple[int, ...]:
        """A shape that broadcasts to the base shape."""
        shape = tuple(1 if self.rng.random() < 0.4 else n for n in self.base)
        return shape[self.rng.randrange(len(shape) + 1):] if self.rng.random() < 0.3 else shape

    def inputs(self) -> None:
        for i in range(self.rng.randint(2, 4)):
            dtype = np.dtype(self.rng.choice((self.main,) * 6 + ("float32", "float64", "int32", "int64", "int8", "uint8", "bool"))
                             if i else self.main)
            shape = self.base if i == 0 or self.rng.random() < 0.5 else self.narrowed()
            self.program.input(self.strided(shape, dtype))
            self.types.append((shape, dtype))

    # ---- values -----------------------------------------------------------------------------------------------------------------------

    def pick(self, test) -> int | None:
        """A value that passes, later ones more often."""
        found = [v for v, (shape, dtype) in enumerate(self.types) if test(shape, dtype)]
        if not found:
            return None
        return found[-1 - min(int(self.rng.expovariate(0.5)), len(found) - 1)]

    def add(self, op, *operands, shape, dtype, attrs=(), imms=(), own=False) -> None:
        given = code(dtype) if op in GIVEN else 0
        self.program.op(op, *operands, attrs=attrs, shape=tuple(shape) if own else None, dtype=given, imms=imms)
        self.types.append((tuple(shape), np.dtype(dtype)))

    def partner(self, v: int) -> int | None:
        shape, dtype = self.types[v]

        def fits(other, kind):
            try:
                return kind == dtype and np.prod(np.broadcast_shapes(shape, other), dtype=np.int64) <= 60000
            except ValueError:
                return False
        return self.pick(fits)
