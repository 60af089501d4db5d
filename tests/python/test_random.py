"""RANDOM: the published generator, whatever tiles, cores, fusing and SIMD levels; dropout draws its mask once."""
from __future__ import annotations

import numpy as np
import pytest
from core_programs import CODE, DTYPE, Program, run, same_bits
from kernel_calls import LEVELS
from philox import philox, uniform, words

import dvm_core as dvm
from dvm_core import _core
from dvm_core.frontends.array_select import random

F32, F64, I32, I64 = (CODE[n] for n in ("float32", "float64", "int32", "int64"))


@pytest.fixture(autouse=True)
def core_settings():
    yield
    _core.set_tile_elements(0)
    _core.set_threads(0)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0), (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    ],
)
def test_the_reference_here_gives_the_published_answers(counter, key, expected) -> None:
    assert philox(np.array([counter]), key)[0].tolist() == list(expected)


def draw(shape, seed: int, offset: int, dtype: int) -> np.ndarray:
    program = Program()
    out = program.op("RANDOM", shape=shape, dtype=dtype, imms=(seed, offset))
    return run(program, [out])[0].array(out)


@pytest.mark.parametrize("shape", [(), (1,), (7, 3), (1000,), (3, 0, 2), (5, 11, 37), (300, 4099)], ids=str)
def test_numbers_are_those_of_the_generator(shape: tuple[int, ...]) -> None:
    seed, offset, n = 0x0123456789ABCDEF, 0x7FFFFFFF00000005, int(np.prod(shape))
    for dtype in (F32, F64, I32, I64):
        assert same_bits(draw(shape, seed, offset, dtype), uniform(shape, seed, offset, DTYPE[dtype]))
    assert same_bits(draw(shape, seed, offset, I32).reshape(-1), words(n, seed, offset).view(np.int32))


def test_every_level_gives_the_same_numbers() -> None:
    for first, n in ((0, 1000), (3, 1), (255, 600), (1 << 34, 300), (1021, 4097)):
        results = []
        for level in LEVELS:
            got = np.zeros(n, np.float32)
            assert _core.selftest_kernel(level, "random", 0, F32, got, 77, 5, first, n)
            results.append(got)
        assert all(same_bits(results[0], other) for other in results[1:])


@pytest.mark.parametrize("shape", [(100, 700), (3, 50000), (2, 17, 300)], ids=str)
def test_numbers_do_not_depend_on_tiles_cores_or_fusing(shape: tuple[int, ...]) -> None:
    """Fused into a chain with a reduction and a product, in tiles of any size, drawn again in another order: the same."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    program = Program()
    v = program.input(x)
    drawn = program.op("RANDOM", shape=shape, dtype=F32, imms=(7, 9))
    kept = program.op("GREATER_EQUAL", drawn, -1, imms=(0.25,))
    zero = program.op("FULL", shape=(), dtype=F32, imms=(0.0,))
    out = program.op("SELECT", kept, v, zero)
    rows = program.op("SUM", out, attrs=(1, len(shape) - 1))
    scaled = program.op("DIV", out, rows)
    columns = program.op("SUM", program.op("TRANSPOSE", out, attrs=tuple(reversed(range(len(shape))))), attrs=(0, 0))
    whole = draw(shape, 7, 9, F32)
    first = None
    for threads in (1, 2):
        _core.set_threads(threads)
        for tile in (0, 64, 1000):
            _core.set_tile_elements(tile)
            recorded, _ = run(program, [out, scaled, columns])
            got = [recorded.array(value) for value in (out, scaled, columns)]
            assert same_bits(got[0], np.where(whole >= np.float32(0.25), x, np.float32(0)))
            first = first or got
            assert all(same_bits(a, b) for a, b in zip(got, first, strict=True))


def test_numbers_are_uniform_and_sequences_differ() -> None:
    u = draw((1_000_000,), 1, 0, F32).astype(np.float64)
    assert 0 <= u.min() and u.max() < 1
    assert abs(u.mean() - 0.5) < 2e-3 and abs(u.var() - 1 / 12) < 1e-3
    counts = np.histogram(u, 256, (0, 1))[0]
    assert ((counts - 1e6 / 256) ** 2 / (1e6 / 256)).sum() < 256 + 6 * np.sqrt(512)  # chi-squared, six deviations
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 5e-3
    others = [draw((1_000_000,), seed, offset, F32).astype(np.float64) for seed, offset in ((2, 0), (1, 1), (1, 1 << 32))]
    assert all(abs(np.corrcoef(u, other)[0, 1]) < 5e-3 for other in others)


def test_another_seed_or_offset_makes_no_new_program() -> None:
    before = _core.stats()["selector_misses"]
    results = {draw((10,), seed, offset, I64).tobytes() for seed in range(3) for offset in range(3)}
    assert len(results) == 9 and _core.stats()["selector_misses"] - before <= 1


@pytest.mark.parametrize(
    ("dtype", "imms", "words_"), [(CODE["bool"], (1, 2), "makes float32"), (F32, (1.5, 2), "takes integers"), (F32, (1,), "2 immediates")]
)
def test_what_cannot_be_drawn_is_refused(dtype: int, imms: tuple, words_: str) -> None:
    program = Program()
    out = program.op("RANDOM", shape=(3,), dtype=dtype, imms=imms)
    with pytest.raises(_core.Error, match=words_):
        run(program, [out])


def test_dropout_of_an_array_keeps_and_scales() -> None:
    x = np.abs(np.random.default_rng(3).standard_normal((200, 300))).astype(np.float32) + 1
    dropped = dvm.tensor(x).dropout(0.3, seed=5, offset=2).numpy()
    kept = random((200, 300), 5, 2).numpy() >= np.float32(0.3)
    np.testing.assert_allclose(dropped, np.where(kept, x / 0.7, 0), rtol=1e-6)
    assert same_bits(dropped, dvm.tensor(x).dropout(0.3, seed=5, offset=2).numpy())
    assert (dropped != dvm.tensor(x).dropout(0.3, seed=5, offset=3).numpy()).any()
    assert same_bits(dvm.tensor(x).dropout(0, seed=1).numpy(), x)
    with pytest.raises(dvm.ArgumentError, match="from 0 to below 1, got 1"):
        dvm.tensor(x).dropout(1, seed=1)


def test_negative_seeds_and_large_ones_are_their_64_bits() -> None:
    assert same_bits(random((9,), -1, -2).numpy(), random((9,), 2**64 - 1, 2**64 - 2).numpy())
