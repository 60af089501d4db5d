"""Rows about switching devices and about values that stay on one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from timing import Row, interleave

import dvm_core as dvm

NPU = "npu-sim:910b"
MEGABYTES = 32
ARRAYS = 64


def switch(seconds: float) -> Row:
    """One switch, by what it moves: per megabyte of arrays that live, beside copying a megabyte in memory."""
    number = MEGABYTES * (1 << 18) // ARRAYS
    kept = [dvm.tensor(np.full(number, k, np.float32)) * 2 for k in range(ARRAYS)]
    for array in kept:
        array.numpy()
    source = np.ones(MEGABYTES << 20, np.uint8)
    target = np.empty_like(source)

    def there_and_back() -> None:
        dvm.set_device(NPU)
        dvm.set_device("cpu")

    times = interleave({"a switch": there_and_back, "copying": lambda: np.copyto(target, source)}, seconds)
    times = {"a switch": times["a switch"] / 2 / MEGABYTES, "copying": times["copying"] / MEGABYTES}
    return Row(f"a switch of devices, per MB that lives ({MEGABYTES} MB in {ARRAYS} arrays)", times, "a switch")


def resident(seconds: float) -> Row:
    """A captured update of 4 MB on the simulated NPU: of a value that is there, and of one brought and fetched each time."""
    update = dvm.jit(lambda w: w * 0.5 + 1.0)
    dvm.set_device(NPU)
    host = np.ones((1024, 1024), np.float32)
    there = update(dvm.tensor(host))
    times = interleave({"there": lambda: update(there), "brought and fetched": lambda: update(dvm.tensor(host)).numpy()}, seconds)
    dvm.set_device("cpu")
    return Row("update of 4 MB on npu-sim:910b", times, "there")


def rows(seconds: float) -> Iterable[Row]:
    yield switch(seconds)
    yield resident(seconds)
