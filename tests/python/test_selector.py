"""The selector: whole keys, a bound, a device each, and near shapes that run one tile code. What it answers never changes a bit."""
from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from core_kit import OP, Counters, Recorder, run_python
from core_programs import run, same_bits
from random_programs import random_program

import dvm_core as dvm
from dvm_core import _core, warm

SEGMENTS = 8192  # the selector keeps at most
BASE = np.random.default_rng(0).standard_normal((64, 3000), dtype=np.float32)


def chain(r: Recorder, x: int, y: int) -> int:
    return r.sub(r.sigmoid(r.add(r.mul(x, y), -1, imms=(0.5,))), y)


def norm(r: Recorder, x: int, y: int) -> int:
    centred = r.sub(x, r.mean(x, attrs=(1, 1)))
    size = r.add(r.mean(r.mul(centred, centred), attrs=(1, 1)), -1, imms=(1e-6,))
    return r.add(r.mul(centred, r.rsqrt(size)), y)


def scores(r: Recorder, x: int, y: int) -> int:
    s = r.matmul(x, y, attrs=(0, 1))
    e = r.exp(r.sub(s, r.max(s, attrs=(1, 1))))
    return r.matmul(r.div(e, r.sum(e, attrs=(1, 1))), y, attrs=(0, 0))


def columns(r: Recorder, x: int, y: int) -> int:
    return r.add(r.sum(r.mul(x, y), attrs=(0, 1)), -1, imms=(1.0,))


def called(body: Callable[..., int], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    r = Recorder(body.__name__)
    out = body(r, r.input(x), r.input(y))
    r.graph.flush(keep=[out])
    return r.array(out).copy()


def of(rows: int, cols: int) -> tuple[np.ndarray, np.ndarray]:
    return BASE[:rows, :cols].copy(), BASE[:rows, 3000 - cols:].copy()


@pytest.mark.parametrize("body", [chain, norm])
def test_a_near_shape_runs_the_tile_code_of_its_cluster(body):
    called(body, *of(32, 1024))
    count = Counters()
    got = called(body, *of(33, 1025))
    assert (count.selector_misses, count.selector_clusters, count.selector_hits) == (1, 1, 0)
    called(body, *of(33, 1025))
    assert (count.selector_misses, count.selector_clusters, count.selector_hits) == (1, 1, 1)
    _core.set_tile_elements(512)  # other tiles, another key
    assert same_bits(got, called(body, *of(33, 1025)))


def test_the_words_of_a_cluster_are_one():
    words = set()
    for rows, cols in ((32, 1024), (33, 1025), (31, 1030), (20, 999)):
        r = Recorder("words")
        out = norm(r, *(r.input(a) for a in of(rows, cols)))
        words.add(r.graph.flush(keep=[out]).program.tile_words(0))
    assert len(words) == 1


@pytest.mark.parametrize("body", [chain, norm, scores, columns])
def test_bits_do_not_depend_on_clusters(body):
    rng = random.Random(body.__name__)
    shapes = [(rng.randint(1, 64), rng.choice((1, 2, 63, 64, 65, 500, 1024, 1025, 2500))) for _ in range(60)] + [(0, 8), (8, 0), (1, 1)]
    if body in (norm, scores):
        shapes = [s for s in shapes if all(s)]
    joined = Counters()
    with_clusters = [called(body, *of(*shape)) for shape in shapes]
    assert joined.selector_clusters > 0
    for shape, got in zip(shapes, with_clusters, strict=True):
        _core.set_clusters(False)
        _core.set_tile_elements(7)
        assert same_bits(got, called(body, *of(*shape))), shape
        _core.set_clusters(True)
        _core.set_tile_elements(0)


def test_strides_and_single_rows_make_tile_code_of_their_own():
    x, y = of(40, 40)
    called(chain, x, y)
    count = Counters()
    turned = called(chain, x.T, y)
    one = called(chain, x[:1], y)
    assert count.selector_misses == 2
    _core.set_tile_elements(9)
    assert same_bits(turned, called(chain, x.T, y)) and same_bits(one, called(chain, x[:1], y))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(0, 300, 3))
def test_random_programs_give_the_bits_of_code_of_their_own(seed):
    program = random_program(seed)
    everything = range(len(program.inputs), len(program.inputs) + len(program.steps))
    rng = random.Random(seed)
    keep = sorted({rng.choice(everything) for _ in range(3)} | {everything[-1]})
    runs = []
    for clusters, tile in ((True, 0), (True, 100), (True, 7), (True, 101), (False, 99)):  # other tiles, as near shapes have
        _core.set_clusters(clusters)
        _core.set_tile_elements(tile)
        runs.append(run(program, keep)[0])
    assert all(same_bits(runs[-1].array(v), other.array(v)) for v in keep for other in runs)


COLLISIONS = """
import hashlib, sys
sys.path.insert(0, "tests/python")
import numpy as np
from test_selector import called, chain, norm, of
from dvm_core import _core
digest = hashlib.sha256()
for again in range(2):
    for body in (chain, norm):
        for rows in range(1, 30):
            for cols in (1, 5, 64, 65):
                digest.update(called(body, *of(rows, cols)).tobytes())
told = _core.stats()
print(digest.hexdigest(), told["programs"], told["selector_hits"], told["selector_misses"], told["selector_segments"])
"""


def test_keys_are_compared_whole():
    root = Path(__file__).parents[2]

    def told(bits: str) -> str:
        environment = {**os.environ, "DVM_HASH_BITS": bits}
        command = [sys.executable, "-c", COLLISIONS]
        return subprocess.run(command, cwd=root, env=environment, text=True, capture_output=True, check=True).stdout
    alike = told("0")  # every key collides with every other
    assert alike == told("1") == told("64")
    assert alike.split()[1:] == ["2", "232", "232", "232"]


def a_hundred_thousand_shapes() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def some(first: int) -> None:
        for n in range(first, first + 20_000):
            r = Recorder("flat")
            r.graph.flush(keep=[r.neg(r.input(line[:n]))])
    line = np.zeros(100_001, np.float32)[:, None][:, :0]  # [n, 0]: no work, a shape each
    count = Counters()
    some(1)
    held, bytes_then = resident(), _core.stats()["selector_bytes"]
    for first in range(20_001, 100_001, 20_000):
        some(first)
    assert count.selector_misses == 100_000 and count.selector_clusters > 99_900
    assert _core.stats()["selector_segments"] <= SEGMENTS
    assert count.selector_evictions >= 100_000 - SEGMENTS
    assert resident() - held < 8 << 20
    assert _core.stats()["selector_bytes"] < 2 * bytes_then


def test_a_hundred_thousand_shapes_leave_memory_flat():
    run_python("from test_selector import a_hundred_thousand_shapes; a_hundred_thousand_shapes()")  # whose memory is nobody else's


def test_code_is_of_one_device():
    shape = of(12, 70)
    on_cpu = called(norm, *shape)
    count = Counters()
    dvm.set_device("npu-sim:910b")
    assert same_bits(on_cpu, called(norm, *shape))
    assert (count.selector_hits, count.selector_misses, count.selector_clusters) == (0, 1, 0)
    called(norm, *shape)
    dvm.set_device("cpu")
    called(norm, *shape)
    assert (count.selector_hits, count.selector_misses) == (2, 1)


def again(body: Callable[..., int], times: dict[tuple[int, int], int]) -> None:
    for shape, count in times.items():
        for _ in range(count):
            called(body, *of(*shape))


def test_shapes_of_an_earlier_run_are_ready_before_they_come(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("""
import numpy as np
import dvm_core as dvm
from dvm_core import _core

@dvm.jit
def step(x, rows):
    y = (x * 2.0 + 1.0).softmax(-1)
    z = dvm.tensor(np.ones((rows, 8), np.float32))
    return (y[1:, :] @ x.reshape(8, -1)).sum(), z.sum(0)

for turn in range(2):
    for rows in (4, 9, 33, 100):
        out = step(dvm.tensor(np.arange(rows * 8, dtype=np.float32).reshape(rows, 8)), rows)
        _core.synchronize_warming()
stats = dvm.stats()
print(*(o.numpy().tobytes().hex() for o in out), stats["selector_warmed"], stats["selector_misses"], sep=",")
""")
    command = [sys.executable, "-m", "dvm_core", "run", "--warm", str(tmp_path / "shapes of last run"), str(script)]
    runs = [subprocess.run(command, text=True, capture_output=True, check=True).stdout.strip().split(",") for _ in range(3)]
    cold, *warm = runs
    assert cold[-2] == "0"
    for later in warm:
        assert later[:-2] == cold[:-2]
        # The very first shape may be compiled by the launch, before the background has come to it.
        assert int(later[-2]) >= 4 and int(later[-1]) <= int(cold[-1]) - 3


def test_the_most_used_shapes_come_first_and_once_is_not_kept(tmp_path):
    def seldom(r: Recorder, x: int, y: int) -> int:  # a program that no other test runs: at most 64 shapes of one are listed
        return r.sub(r.sum(r.mul(x, y), attrs=(0, 1)), -1, imms=(7.0,))

    again(seldom, {(3, 11): 5, (4, 11): 2, (5, 11): 1})
    mine = [(entry[2][:2], entry[5]) for entry in _core.shapes_used(10_000) if entry[0] == "seldom"]
    assert mine == [((3, 11), 5), ((4, 11), 2), ((5, 11), 1)]
    warm.save(tmp_path / "shapes")
    kept = json.loads((tmp_path / "shapes").read_text())["shapes"]
    assert all(entry["launches"] > 1 for entry in kept) and any(entry["geometry"][:2] == [3, 11] for entry in kept)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"version": 2, "shapes": [1]}', '{"version": 1}', '{"version": 1, "shapes": [7]}',
                                  '{"version": 1, "shapes": [{"structure": "-1", "geometry": [], "kept": [], "values": 1}]}',
                                  '{"version": 1, "shapes": [{"structure": "1", "geometry": [1e99], "kept": [], "values": 1}]}',
                                  '{"version": 1, "shapes": [{"structure": "1", "geometry": [1], "kept": [5], "values": 1}]}',
                                  "[" * 100_000])
def test_a_damaged_file_is_no_file(tmp_path, text):
    (tmp_path / "shapes").write_text(text)
    assert warm.load(tmp_path / "shapes") == 0 == warm.load(tmp_path / "none")


def test_a_file_of_something_else_is_left_alone(tmp_path):
    script, other, shapes = tmp_path / "hello.py", tmp_path / "precious.py", tmp_path / "shapes"
    script.write_text("print('ran')")

    def run(file):
        done = subprocess.run([sys.executable, "-m", "dvm_core", "run", "--warm", str(file), str(script)], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout, done.stderr

    for text in ("print('years of work')\n", '{"version": "mine"}', "\0" * 100):
        other.write_text(text)
        code, out, err = run(other)
        assert code == 1 and not out and "is no file of shapes: left alone" in err and other.read_text() == text
        with pytest.raises(OSError, match="is no file of shapes: left alone"):
            warm.save(other)
    assert run(tmp_path)[0] == 1
    again(columns, {(3, 11): 5})
    assert warm.save(shapes)
    kept = shapes.read_bytes()
    assert run(shapes) == (0, "ran\n", "") and shapes.read_bytes() == kept  # a run without launches keeps it
    code, out, err = run(tmp_path / "none")
    assert code == 0 and "no shapes read from" in err and not (tmp_path / "none").exists()


def test_shapes_that_a_program_cannot_have_are_passed_over():
    called(scores, *of(3, 5))
    found = next(e for e in _core.shapes_used(10_000) if e[0] == "scores" and e[2][:2] == (3, 5))
    name, structure, geometry, kept, values, _ = found
    bad = [geometry[:-1], (*geometry, 1), (-3, *geometry[1:]), (1 << 62, *geometry[1:]), (3, 6, *geometry[2:])]
    _core.know_shapes([(structure, g, kept, values) for g in bad] + [(structure, geometry, kept, values + 1)])
    warmed = _core.stats()["selector_warmed"]

    r = Recorder("scores")  # the same program at another place is another one, of the same structure
    place = _core.place("elsewhere.py", 7)
    x, y = (r.input(a) for a in of(3, 5))
    s = r.graph.op(OP["MATMUL"], (x, y), attrs=(0, 1), place=place)
    e = r.exp(r.sub(s, r.max(s, attrs=(1, 1))))
    r.graph.flush(keep=[r.matmul(r.div(e, r.sum(e, attrs=(1, 1))), y, attrs=(0, 0))])
    _core.synchronize_warming()
    assert _core.stats()["selector_warmed"] == warmed
