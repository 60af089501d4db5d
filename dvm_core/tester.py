"""`dvm.tester.Tester`: a kernel with the arrays it reads and the results that are expected of it, in one object.

t = Tester("split")
x = t.load(np.ones((3, 4), np.float32))
t.store_expect(t.add(x, 1.0), np.full((3, 4), 2))
t.run_check()
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np

# By its own name, also where this module is served as `dvm.tester`: there must be one class of each kernel object.
from dvm_core.devices import ranks
from dvm_core.dtypes import bfloat16, float32, of
from dvm_core.frontends.builder import Kernel, NDObject
from dvm_core.frontends.builder_kinds import PASSES

# Relative and absolute tolerance at once; every other dtype must agree exactly.
TOLERANCE = {"float32": 1e-5, "float16": 1e-3}


class Tester(Kernel):
    """A kernel builder whose loads may be arrays and whose stores may say what they must give.

    use_pass_opt: codegen with every pass instead of none. run_mode: as `Kernel`'s run_type. comm: a communicator scope it runs in.
    """

    __test__ = False  # no test case of pytest's

    def __init__(self, ker_type: str | int = "", use_pass_opt: bool = False, run_mode: str = "dev", comm: Any = None) -> None:
        super().__init__(ker_type, run_mode, name="tester")
        self.comm = comm
        self._passes: tuple[str, ...] = tuple(name for name in PASSES if name != "PrintPeakLive") if use_pass_opt else ()

    def reset(self) -> None:
        super().reset()
        self._expected: list[tuple[NDObject, Any, float]] = []

    def load(self, source: Any, dtype: Any = None) -> NDObject:
        """An input: an array, bound at once (as dtype, if one is given), or a shape, to be bound with `input`."""
        if not isinstance(source, np.ndarray):
            return super().load(source, float32 if dtype is None else dtype)
        array = given(source, dtype)
        node = super().load(array.shape, source.dtype if dtype is None else dtype)
        self.input(node, array)
        return node

    def part(self, node: NDObject, array: np.ndarray, offset: int = 0) -> NDObject:
        """Binds an array to what view_load, slice_load, gather_load ... gave, and gives it back."""
        source = node.operands[0] if node.operands else node
        self.input(node, given(array, source.dtype_), offset)
        return node

    def store_expect(self, x: NDObject, expected: Any, eps: float | None = None, dtype: Any = None) -> NDObject:
        """An output that must be as `expected`: an array, or a function without arguments that gives one when it is checked."""
        return self.expect(self.store(x, dtype), expected, eps)

    def view_store_expect(self, x: NDObject, stride: Sequence[int], expected: Any, eps: float | None = None) -> NDObject:
        """A strided output; the array it is written into begins as zeros of the expected array's shape."""
        store = self.view_store(x, stride)
        self.set_output(store, np.zeros(np.shape(expected), store.dtype_.numpy))
        return self.expect(store, expected, eps)

    def expect(self, store: NDObject, expected: Any, eps: float | None = None) -> NDObject:
        """The same for an output there is already."""
        self._expected.append((store, expected, TOLERANCE.get(store.dtype_.name, 0.0) if eps is None else eps))
        return store

    def set_passes(self, *names: str) -> None:
        """Passes of the next codegen."""
        self._passes = names

    def run_check(self, verbose: bool = False) -> None:
        """Codegen, run and `check`; verbose prints graph and tile code."""
        self.codegen(self._passes or None)
        self.run()
        if verbose:
            print(self.dump(), self.das(), sep="", end="")
        self.check()

    def check(self) -> None:
        """Raises AssertionError with graph and tile code for the first output that is not as expected."""
        for number, (store, expected, eps) in enumerate(self._expected):
            found = self.result(store)
            wanted = np.asarray(expected() if callable(expected) else expected)
            assert found.shape == wanted.shape, f"output {number} is {list(found.shape)}, expected {list(wanted.shape)}\n{self.dump()}"
            near = np.array_equal(found, wanted) or np.allclose(found, wanted, rtol=eps, atol=eps, equal_nan=True)
            if not near:
                raise AssertionError(self._difference(number, store, found, wanted, eps))

    def result(self, store: NDObject) -> np.ndarray:
        """An output as numbers NumPy knows: bfloat16 as float32."""
        found = self.output(store)
        return self.convert_from_bf16(found) if store.dtype_ is bfloat16 else found

    def _difference(self, number: int, store: NDObject, found: np.ndarray, wanted: np.ndarray, eps: float) -> str:
        with np.errstate(all="ignore"):
            wide, true = found.astype(np.float64), wanted.astype(np.float64)
            wrong = ~np.isclose(wide, true, rtol=eps, atol=eps, equal_nan=True)
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        return (
            f"output {number} ({store.dtype_}{list(found.shape)}): {int(wrong.sum())} of {wrong.size} elements differ by more than {eps}; "
            f"at {list(at)} {found[at]!r} instead of {wanted[at]!r}\n{self.dump()}{self.das()}"
        )


def given(array: np.ndarray, dtype: Any = None) -> np.ndarray:
    """An array as a load of that dtype takes it: bfloat16 as uint16."""
    wanted = of(array.dtype if dtype is None else dtype)
    if wanted is bfloat16:
        return array if array.dtype == np.uint16 else Kernel.convert_to_bf16(array)
    return array.astype(wanted.numpy, copy=False)


def fast_random_normal(shape: Sequence[int] | int, dtype: Any = float32, mean: float = 0.0, std: float = 1.0, seed: int = 0) -> np.ndarray:
    """Normally distributed numbers, the same for the same seed."""
    values = np.random.default_rng(seed).standard_normal(shape, np.float32) * np.float32(std) + np.float32(mean)
    return values.astype(np.float32 if of(dtype) is bfloat16 else of(dtype).numpy)


def bf16_random_normal(shape: Sequence[int] | int, mean: float = 0.0, std: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The numbers in bfloat16 (uint16), and exactly these in float32."""
    bits = Kernel.convert_to_bf16(fast_random_normal(shape, float32, mean, std, seed))
    return bits, Kernel.convert_from_bf16(bits)


class CommScope:
    """`with CommScope(size) as comm:` runs its block on every rank; `comm.rank` says which. An exception on one is an error of all."""

    def __init__(self, size: int = 2) -> None:
        self.size = size
        self.rank = 0

    def __enter__(self) -> CommScope:
        self.rank = ranks.fork(self.size)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if self.rank and error is not None:
            traceback.print_exception(error)
        ranks.join(int(error is not None))


HcclScope = CommScope
