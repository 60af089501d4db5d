"""Random programs: every op class, broadcasting, odd and empty shapes, rank 0 to 6, inputs that are not contiguous."""
from __future__ import annotations

import numpy as np
from core_programs import BFLOAT16, Program, is_float
from random_values import Values

FLOAT_UNARY = ("NEG", "ABS", "EXP", "LOG", "SQRT", "RSQRT", "RECIPROCAL", "TANH", "ERF", "SIGMOID", "SIN", "COS",
               "LOG1P", "EXPM1", "ATAN", "SIGN",
               "FLOOR", "CEIL", "ROUND", "TRUNC", "COPY")
ARITHMETIC = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM")
WHOLE = ("BIT_AND", "BIT_OR", "BIT_XOR", "SHIFT_LEFT", "SHIFT_RIGHT", "FMOD", "REMAINDER")
COMPARE = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")


class Maker(Values):
    def unary(self) -> None:
        v = self.pick(lambda s, d: is_float(d))
        if self.rng.random() < 0.1 and v is not None:
            self.add(self.rng.choice(("IS_NAN", "IS_INF", "IS_FINITE")), v, shape=self.types[v][0], dtype=np.bool_)
        elif v is not None:
            self.add(self.rng.choice(FLOAT_UNARY), v, shape=self.types[v][0], dtype=self.types[v][1])

    def binary(self) -> None:
        v = self.pick(lambda s, d: d != np.bool_)
        if v is None:
            return
        shape, dtype = self.types[v]
        op = self.rng.choice(ARITHMETIC * 3 + COMPARE + WHOLE * (0 if is_float(dtype) else 4))
        out = np.bool_ if op in COMPARE else dtype
        if self.rng.random() < 0.3:
            imm = self.rng.choice((2, -1, 3)) if not is_float(dtype) else self.rng.choice((0.5, 2.0, -1.25, 3, 1e-3))
            operands = (v, -1) if self.rng.random() < 0.6 else (-1, v)
            self.add(op, *operands, shape=shape, dtype=out, imms=(imm,))
            return
        w = self.partner(v)
        if w is not None:
            if self.rng.random() < 0.5:
                v, w = w, v
            self.add(op, v, w, shape=np.broadcast_shapes(shape, self.types[w][0], self.types[v][0]), dtype=out)

    def logic(self) -> None:
        c = self.pick(lambda s, d: d == np.bool_)
        if c is None:
            return
        if self.rng.random() < 0.3:
            self.add("LOGICAL_NOT", c, shape=self.types[c][0], dtype=np.bool_)
            return
        a = self.pick(lambda s, d: s == self.types[c][0])
        b = a if a is None else self.partner(a)
        if a is None or b is None:
            return
        try:
            shape = np.broadcast_shapes(self.types[c][0], self.types[a][0], self.types[b][0])
        except ValueError:
            return
        self.add("SELECT", c, a, b, shape=shape, dtype=self.types[a][1])

    def cast(self) -> None:
        v = self.pick(lambda s, d: True)
        to = np.dtype(self.rng.choice(("float32", "float32", "float64", "float16", BFLOAT16, "int32", "int8", "bool")))
        if is_float(self.types[v][1]) and to.kind == "i":  # only values an integer can hold
            self.add("TANH", v, shape=self.types[v][0], dtype=self.types[v][1])
            v = len(self.types) - 1
            shape, dtype = self.types[v]
            self.add("MUL", v, -1, shape=shape, dtype=dtype, imms=(9.0,))
            v = len(self.types) - 1
            self.add("EQUAL", v, v, shape=shape, dtype=np.bool_)  # NaN has no integer: make it 0
            self.add("FULL", shape=shape, dtype=dtype, imms=(0.0,), own=True)
            self.add("SELECT", v + 1, v, v + 2, shape=shape, dtype=dtype)
            v = len(self.types) - 1
        self.add("CAST", v, shape=self.types[v][0], dtype=to)

    def reduce(self) -> None:
        v = self.pick(lambda s, d: len(s) > 0)
        if v is None:
            return
        shape, dtype = self.types[v]
        first = self.rng.randrange(len(shape))
        last = self.rng.choice((len(shape), self.rng.randint(first + 1, len(shape))))
        op = self.rng.choice(("SUM", "MAX", "MIN", "PROD", *("MEAN",) * is_float(dtype)))
        if op in ("MAX", "MIN") and 0 in shape[first:last]:
            op = "SUM"
        keep = self.rng.random() < 0.6
        out = [1 if first <= i < last else n for i, n in enumerate(shape) if keep or not first <= i < last]
        self.add(op, v, shape=out, dtype=dtype, attrs=(int(keep), *range(first, last)))

    def view(self) -> None:
        v = self.pick(lambda s, d: True)
        shape, dtype = self.types[v]
        way = self.rng.choice(("RESHAPE", "TRANSPOSE", "SLICE", "BROADCAST"))
        if way == "RESHAPE":
            out = [n for n in shape if n != 1] or [1]
            if len(out) > 1 and self.rng.random() < 0.5:
                out[:2] = [out[0] * out[1]]
            if self.rng.random() < 0.5:
                out.insert(self.rng.randrange(len(out) + 1), 1)
            if self.rng.random() < 0.3 and out[-1] % 4 == 0:
                out[-1:] = [out[-1] // 4, 4]
            self.add("RESHAPE", v, shape=out if len(out) < 9 else shape, dtype=dtype, own=True)
        elif way == "TRANSPOSE" and len(shape) > 1:
            order = list(range(len(shape)))
            self.rng.shuffle(order)
            self.add("TRANSPOSE", v, shape=[shape[i] for i in order], dtype=dtype, attrs=order)
        elif way == "SLICE" and shape:
            attrs, out = self.ranges(shape)
            self.add("SLICE", v, shape=out, dtype=dtype, attrs=attrs, own=True)
        elif way == "BROADCAST" and np.prod(shape, dtype=np.int64) < 5000 and len(shape) < 6:
            out = [self.rng.choice((2, 3)) if n == 1 else n for n in shape]
            self.add("BROADCAST", v, shape=[self.rng.choice((1, 2)), *out], dtype=dtype, own=True)

    def ranges(self, shape):
        attrs, out = [], []
        for n in shape:
            step = self.rng.choice((1, 1, 1, 2, -1))
            count = 0 if n == 0 else self.rng.randint(1, n if abs(step) == 1 else (n + 1) // 2)
            span = abs(step) * max(count - 1, 0)
            start = 0 if n == 0 else self.rng.randint(0, n - 1 - span) + (span if step < 0 else 0)
            attrs += [start, step]
            out.append(count)
        return attrs, out

    def matmul(self) -> None:
        v = self.pick(lambda s, d: len(s) >= 2)
        if v is None:
            return
        shape, dtype = self.types[v]
        ta, tb = self.rng.random() < 0.3, self.rng.random() < 0.3
        m, k = (shape[-1], shape[-2]) if ta else (shape[-2], shape[-1])

        def fits(s, d):
            if d != dtype or len(s) < 2 or (s[-1] if tb else s[-2]) != k:
                return False
            try:
                return np.prod(np.broadcast_shapes(s[:-2], shape[:-2]), dtype=np.int64) * m * (s[-2] if tb else s[-1]) <= 800000
            except ValueError:
                return False
        w = self.pick(fits)
        if w is None:  # the Gram matrix always fits
            w, tb = v, not ta
            if np.prod(shape[:-2], dtype=np.int64) * m * m > 800000:
                return
        other = self.types[w][0]
        n = other[-2] if tb else other[-1]
        self.add("MATMUL", v, w, shape=(*np.broadcast_shapes(shape[:-2], other[:-2]), m, n), dtype=dtype, attrs=(int(ta), int(tb)))

    def attention(self) -> None:
        """softmax(q k^T) v over earlier values, with what lies between left out, masked or scaled by chance."""
        q = self.pick(lambda s, d: len(s) >= 2 and d.kind == "f" and np.prod(s, dtype=np.int64) * s[-2] <= 400000 and s[-1] * s[-2] > 0)
        if q is None:
            return
        shape, dtype = self.types[q]
        batch, m, d = shape[:-2], shape[-2], shape[-1]
        k = self.pick(lambda s, t: t == dtype and len(s) == len(shape) and s[:-2] == batch and s[-1] == d and 0 < s[-2] <= 100)
        if k is None:
            return
        n = self.types[k][0][-2]
        v = self.pick(lambda s, t: t == dtype and len(s) >= 2 and s[-2] == n and s[:-2] in (batch, ()) and s[-1] > 0)
        v = k if v is None else v
        scores = (*batch, m, n)
        rows = (*batch, m, 1)

        def add(op, *operands, to=scores, kind=dtype, attrs=(), imms=()):
            self.add(op, *operands, shape=to, dtype=kind, attrs=attrs, imms=imms)
            return len(self.types) - 1
        x = add("MATMUL", q, k, attrs=(0, 1))
        if self.rng.random() < 0.5:
            x = add("MUL", x, -1, imms=(0.25,))
        if self.rng.random() < 0.5:
            self.add("IOTA", shape=(m, 1), dtype=np.int32, attrs=(0,), own=True)
            self.add("IOTA", shape=(1, n), dtype=np.int32, attrs=(1,), own=True)
            seen = add("LESS_EQUAL", len(self.types) - 1, len(self.types) - 2, to=(m, n), kind=np.bool_)
            self.add("FULL", shape=scores, dtype=dtype, imms=(self.rng.choice((-1e9, -np.inf)),), own=True)
            fill = len(self.types) - 1
            self.add("BROADCAST", seen, shape=scores, dtype=np.bool_, own=True)
            x = add("SELECT", len(self.types) - 1, x, fill)
        if self.rng.random() < 0.8:
            axis = len(scores) - 1
            e = add("EXP", add("SUB", x, add("MAX", x, to=rows, attrs=(1, axis))))
            x = add("DIV", e, add("SUM", e, to=rows, attrs=(1, axis)))
        if self.rng.random() < 0.2:
            x = add("MUL", x, x)
        add("MATMUL", x, v, to=(*batch, m, self.types[v][0][-1]), attrs=(0, 0))

    # ---- windows ----------------------------------------------------------------------------------------------------------------------

    def planes(self) -> int | None:
        """A small value of rank 4, one in four a view; of another rank it is reshaped."""
        v = self.pick(lambda s, d: d.kind == "f" and 0 < np.prod(s, dtype=np.int64) <= 6000)
        if v is None:
            return None
        shape, dtype = self.types[v]
        if len(shape) != 4:
            flat = int(np.prod(shape, dtype=np.int64))
            channels = next(n for n in (6, 4, 3, 2, 1) if flat % n == 0)
            rows = next(n for n in (7, 5, 4, 3, 2, 1) if flat // channels % n == 0)
            self.add("RESHAPE", v, shape=(1, channels, rows, flat // channels // rows), dtype=dtype, own=True)
            v = len(self.types) - 1
        if self.rng.random() < 0.25:
            shape = self.types[v][0]
            self.add("TRANSPOSE", v, shape=(shape[1], shape[0], shape[3], shape[2]), dtype=dtype, attrs=(1, 0, 3, 2))
            v = len(self.types) - 1
        return v

    def pairs(self, *choices) -> list[int]:
        return [self.rng.choice(choice) for choice in choices for _ in range(2)]

    def convolution(self) -> None:
        v = self.planes()
        if v is None:
            return
        (n, c, h, w), dtype = self.types[v]
        groups = self.rng.choice([g for g in (1, 1, 2, 3, c) if c % g == 0 and g <= 8] or [1])
        out, taps = groups * self.rng.choice((1, 2, 5)), self.pairs((1, 2, 3))
        stride, before, dilation, gap = self.pairs((1, 1, 2, 3)), self.pairs((0, 1, 2, -1)), self.pairs((1, 1, 2)), self.pairs((1, 1, 2))
        size = [max(0, ((e - 1) * g + 2 * b - d * (t - 1)) // s + 1)
                for e, g, b, d, t, s in zip((h, w), gap, before, dilation, taps, stride, strict=True)]
        if n * out * np.prod(size) * (c // groups) * np.prod(taps) > 400000 or c > 600:
            return
        attrs = (*stride, *before, *dilation, *gap, groups)
        weight = self.planes_like((out, c // groups, *taps), dtype)
        self.add("CONV2D", v, weight, shape=(n, out, *size), dtype=dtype, attrs=attrs, own=True)
        if self.rng.random() < 0.5:
            self.add("CONV2D_WEIGHT", v, len(self.types) - 1, shape=(out, c // groups, *taps), dtype=dtype, attrs=attrs, own=True)

    def planes_like(self, shape, dtype) -> int:
        """A value of this shape that is not the same everywhere."""
        self.add("IOTA", shape=shape, dtype=dtype, attrs=(self.rng.randrange(4),), own=True)
        self.add("SIN", len(self.types) - 1, shape=shape, dtype=dtype)
        if self.rng.random() < 0.4:  # the taps in reverse, as gradients see them
            attrs = [v for n in shape for v in (n - 1, -1)]
            self.add("SLICE", len(self.types) - 1, shape=shape, dtype=dtype, attrs=attrs, own=True)
        return len(self.types) - 1

    def pool(self) -> None:
        v = self.planes()
        if v is None:
            return
        (n, c, h, w), dtype = self.types[v]
        taps, stride, before = self.pairs((1, 2, 3)), self.pairs((1, 2, 4)), self.pairs((0, 1, 2))
        size = [max(0, -(-(e + 2 * b - t) // s) + 1) for e, b, t, s in zip((h, w), before, taps, stride, strict=True)]
        if n * c * np.prod(size) > 30000:
            return
        way = self.rng.choice(("MAX", "AVG"))
        rest = self.pairs((1, 2)) if way == "MAX" else [*before, self.rng.choice((0, 1)), self.rng.choice((0, 0, 5))]
        attrs = (*taps, *stride, *before, *rest)
        self.add(f"{way}_POOL2D", v, shape=(n, c, *size), dtype=dtype, attrs=attrs, own=True)
        if self.rng.random() < 0.5:
            g = len(self.types) - 1
            self.add(f"{way}_POOL2D_GRAD", *((v, g) if way == "MAX" else (g,)), shape=(n, c, h, w), dtype=dtype, attrs=attrs, own=True)

    def move(self) -> None:
        way = self.rng.choice(("GATHER", "SCATTER_ADD", "SCATTER", "CONCAT", "UNSLICE", "PAD", "ONE_HOT", "IOTA", "FULL", "CUMSUM", "SORT",
                               "ARGSORT", "TOPK", "ARGMAX", "ARGMIN", "SCATTER_ELEMENTS", "SCATTER_ADD_ELEMENTS", "RANDOM", "RANDOM"))
        v = self.pick(lambda s, d: len(s) > 0 and d != np.bool_)
        if v is None:
            return
        self.move_as(way, v)

    def move_as(self, way: str, v: int) -> None:
        shape, dtype = self.types[v]
        if way == "CONCAT":
            axis = self.rng.randrange(len(shape))
            w = self.pick(lambda s, d: d == dtype and len(s) == len(shape) and s[:axis] + s[axis + 1:] == shape[:axis] + shape[axis + 1:])
            out = [*shape[:axis], shape[axis] + self.types[w][0][axis], *shape[axis + 1:]]
            self.add("CONCAT", v, w, shape=out, dtype=dtype, attrs=(axis,))
        elif way == "UNSLICE":
            out = [n * 2 + 1 for n in shape] if np.prod(shape, dtype=np.int64) < 2000 else [n + 2 for n in shape]
            if np.prod(out, dtype=np.int64) > 200000:
                return
            attrs = [x for n, big in zip(shape, out, strict=True) for x in ((0, 2) if big == 2 * n + 1 else (1, 1))]
            self.add("UNSLICE", v, shape=out, dtype=dtype, attrs=attrs, own=True)
        elif way == "PAD":
            before = [self.rng.choice((0, 0, 1, 3)) for _ in shape]
            out = [n + b + self.rng.choice((0, 0, 2)) for n, b in zip(shape, before, strict=True)]
            if np.prod(out, dtype=np.int64) < 200000:
                self.add("PAD", v, shape=out, dtype=dtype, attrs=before, imms=(self.rng.choice((0, 2)),), own=True)
        elif way == "CUMSUM":
            attrs = (self.rng.randrange(len(shape)), self.rng.choice((0, 1)), self.rng.choice((0, 1)))
            self.add("CUMSUM", v, shape=shape, dtype=dtype, attrs=attrs)
        elif way in ("SORT", "ARGSORT", "TOPK", "ARGMAX", "ARGMIN") or way.endswith("ELEMENTS"):
            self.ordered(way, v)
        elif way == "RANDOM":
            kind = np.dtype(self.rng.choice(("float32", "float32", "float64", "int32", "int64")))
            self.add(way, shape=shape, dtype=kind, imms=(self.rng.randrange(-99, 99), self.rng.randrange(1 << 40)), own=True)
        elif way in ("IOTA", "FULL"):
            attrs, imms = ((self.rng.randrange(len(shape)),), ()) if way == "IOTA" else ((), (self.rng.choice((0, 1, 2)),))
            self.add(way, shape=shape, dtype=dtype, attrs=attrs, imms=imms, own=True)
        else:
            self.indexed(way, v)

    def ordered(self, way: str, v: int) -> None:
        """Sorts, or moves elements by an order: ARGSORT and TOPK give indices that are in range."""
        shape, dtype = self.types[v]
        axis, down = self.rng.randrange(len(shape)), self.rng.choice((0, 1))
        kind = np.dtype(self.rng.choice(("int32", "int64")))
        extent = shape[axis]
        if way.startswith("ARGM"):
            keep = self.rng.random() < 0.5
            if extent:
                out = [1 if i == axis else n for i, n in enumerate(shape) if keep or i != axis]
                self.add(way, v, shape=out, dtype=kind, attrs=(int(keep), axis))
            return
        if way == "SORT" or way == "ARGSORT":
            self.add(way, v, shape=shape, dtype=dtype if way == "SORT" else kind, attrs=(axis, down))
            return
        k = self.rng.randint(0, extent)
        some = (*shape[:axis], k, *shape[axis + 1:])
        self.add("TOPK", v, shape=some, dtype=kind, attrs=(axis, k, down))
        index = len(self.types) - 1
        self.add("GATHER_ELEMENTS", v, index, shape=some, dtype=dtype, attrs=(axis,))
        if way == "SCATTER_ELEMENTS":
            self.add(way, v, index, len(self.types) - 1, shape=shape, dtype=dtype, attrs=(axis,))
        elif way == "SCATTER_ADD_ELEMENTS":
            self.add(way, len(self.types) - 1, index, shape=shape, dtype=dtype, attrs=(axis,), own=True)

    def indexed(self, way: str, v: int) -> None:
        """The index is made in the program: IOTA modulo the extent, so that all of it is in range."""
        shape, dtype = self.types[v]
        axis = self.rng.randrange(len(shape))
        extent = shape[axis] if way in ("GATHER", "SCATTER") else self.rng.randint(1, 9)
        if extent == 0:
            return
        count = self.rng.randint(1, 12) if way in ("GATHER", "SCATTER") else shape[axis]
        kind = np.dtype(self.rng.choice(("int32", "int64")))
        self.add("IOTA", shape=(count,), dtype=kind, attrs=(0,), own=True)
        i = len(self.types) - 1
        self.add("MUL", i, -1, shape=(count,), dtype=kind, imms=(7,))
        self.add("DIV", i + 1, -1, shape=(count,), dtype=kind, imms=(extent,))
        self.add("MUL", i + 2, -1, shape=(count,), dtype=kind, imms=(extent,))
        self.add("SUB", i + 1, i + 3, shape=(count,), dtype=kind)  # 7 i mod extent
        index = len(self.types) - 1
        if way == "ONE_HOT":
            kind = self.rng.choice((np.float32, np.float16, BFLOAT16))
            self.add(way, index, shape=(count, extent), dtype=kind, attrs=(extent,), imms=(1.0, 0.0))
            return
        if way == "SCATTER":
            self.add("GATHER", v, index, shape=[*shape[:axis], count, *shape[axis + 1:]], dtype=dtype, attrs=(axis,))
            new = len(self.types) - 1
            if is_float(dtype):
                self.add("NEG", new, shape=self.types[new][0], dtype=dtype)
            self.add(way, v, index, len(self.types) - 1, shape=shape, dtype=dtype, attrs=(axis,))
            return
        out = [*shape[:axis], count if way == "GATHER" else extent, *shape[axis + 1:]]
        self.add(way, v, index, shape=out, dtype=dtype, attrs=(axis,), own=way == "SCATTER_ADD")

    def make(self, length: int) -> Program:
        self.inputs()
        ways = {self.unary: 4, self.binary: 6, self.logic: 2, self.cast: 1, self.reduce: 4, self.view: 4, self.matmul: 2, self.move: 4,
                self.attention: 0.7, self.convolution: 1, self.pool: 1}
        while len(self.program.steps) < length:
            self.rng.choices(list(ways), list(ways.values()))[0]()
        return self.program


def random_program(seed: int) -> Program:
    maker = Maker(seed)
    return maker.make(maker.rng.randint(3, 24))
