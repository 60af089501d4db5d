"""What a tensor's page asks for: shrunken planes, kept snapshots, differences. The reference is plain NumPy on the whole."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import base64
import itertools
import types

import numpy as np
import pytest
from agent_harness import Refused, adapter  # noqa: F401 - the fixture among them

import dvm_core as dvm
from dvm_core import _core
from dvm_core.agent import kept, look, planes
from dvm_core.agent.commands import CommandError
from dvm_core.agent.values import code_named

F32 = code_named("float32")


def cells(told):
    kind = "<f8" if told["f64"] else "<f4"
    return np.frombuffer(base64.b64decode(told["data"]), kind).reshape(told["height"], told["width"])


def plane(array, code=F32, **asked):
    return planes.plane(planes.Window.read(asked, array.shape), [array], code)


def random(*shape):
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("axes", [*itertools.permutations(range(3), 2)])
def test_a_plane_is_any_two_axes_with_the_others_at_an_index(axes):
    array = random(3, 4, 5)
    (other,) = {0, 1, 2} - set(axes)
    told = plane(array, axes=list(axes), indices=[2, 2, 2])
    expected = np.moveaxis(array, (*axes, other), (0, 1, 2))[:, :, 2]
    np.testing.assert_array_equal(cells(told), expected)
    assert told["cell"] == [1, 1] and "bad" not in told


@pytest.mark.parametrize("shape, expected", [((), (1, 1)), ((7,), (1, 7)), ((2, 3), (2, 3)), ((0, 3), (0, 3)), ((4, 0), (4, 0))])
def test_few_axes_and_no_elements(shape, expected):
    array = random(*shape)
    np.testing.assert_array_equal(cells(plane(array)), array.reshape(expected))


@pytest.mark.parametrize("shape, most", [((100, 60), (10, 10)), ((101, 61), (10, 7)), ((5, 1000), (8, 8)), ((64, 64), (64, 64))])
def test_a_cell_is_the_strongest_of_its_elements(shape, most):
    array = random(*shape)
    told = plane(array, most=list(most))
    rows, columns = told["cell"]
    found = cells(told)
    assert found.shape == (-(-shape[0] // rows), -(-shape[1] // columns)) and found.shape[0] <= most[0] and found.shape[1] <= most[1]
    for i, j in np.ndindex(found.shape):
        part = array[i * rows:(i + 1) * rows, j * columns:(j + 1) * columns]
        assert found[i, j] == part.flat[np.abs(part).argmax()]


def test_what_is_not_finite_is_never_lost_in_a_cell_and_has_its_index():
    array = random(2, 90, 90)
    array[1, 41, 77], array[1, 80, 3] = np.nan, -np.inf
    told = plane(array, indices=[1], most=[9, 9])
    assert told["bad"] == {"count": 2, "first": [1, 41, 77]}
    assert np.isnan(cells(told)[4, 7]) and cells(told)[8, 0] == -np.inf
    assert np.isfinite(cells(plane(array, indices=[0], most=[9, 9]))).all()


@pytest.mark.parametrize("scale", [1.0, 1e-44, 3e38, 0.0])
def test_shades_are_cells_to_a_part_of_the_strongest(scale):
    array = (random(40, 30) / 4 * np.float32(scale)).astype(np.float32)
    exact = cells(plane(array))
    if scale:
        array[3, 4], array[5, 6], array[7, 8] = np.nan, np.inf, -np.inf
    told = planes.plane(planes.Window.read({}, array.shape), [array], F32, shades=True)
    bytes_ = np.frombuffer(base64.b64decode(told["data"]), np.uint8).reshape(array.shape)
    if scale:
        assert (bytes_[3, 4], bytes_[5, 6], bytes_[7, 8]) == (253, 254, 255)
    finite = np.isfinite(array)
    top = told["top"]
    assert top == np.abs(array[finite]).max()
    about = (bytes_[finite].astype(float) - planes.SHADES) / planes.SHADES * top
    assert np.abs(about - exact[finite]).max() <= 0.501 / planes.SHADES * top


def test_of_a_huge_window_only_some_elements_are_looked_at_and_the_answer_says_so():
    array = np.broadcast_to(np.arange(1 << 16, dtype=np.float32), (1 << 16, 1 << 16))  # 16 GiB if it were there
    told = plane(array, most=[64, 64])
    assert told["skip"][0] * told["skip"][1] >= (1 << 32) // planes.MOST_LOOKED_AT
    np.testing.assert_array_equal(cells(told)[5] // told["cell"][1], np.arange(64))


def test_a_window_is_fitted_into_a_shape_that_has_changed():
    told = plane(random(4, 6), axes=[2, 3], indices=[9, 9, 9, 9], rows=[3, 90], columns=[50, 60])
    assert (told["axes"], told["rows"], told["columns"]) == ([0, 1], [3, 4], [5, 6])


def test_texts_are_exact_and_bounded():
    array = np.array([[0.1, np.nan], [-np.inf, 3e38]], np.float32)
    window = planes.Window.read({}, array.shape)
    assert planes.texts(window, array, F32) == ["0.1", "NaN", "-Inf", "3e+38"]
    large = random(200, 200)
    with pytest.raises(CommandError, match="40,000 elements as text are too many"):
        planes.texts(planes.Window.read({}, large.shape), large, F32)
    assert planes.texts(window, np.full((2, 2), 2 ** 62 + 1), code_named("int64"))[0] == str(2 ** 62 + 1)


@pytest.mark.parametrize("name, asked", [("rows", [1]), ("most", [0, 4]), ("most", [4096, 4096]), ("axes", ["a", 1]), ("indices", [None]),
                                         ("indices", ["x"]), ("indices", [1.5]), ("indices", [0, True])])
def test_a_window_that_cannot_be_meant_is_refused(name, asked):
    with pytest.raises(CommandError, match=f'"{name}" is'):
        plane(random(4, 4), **{name: asked})


@pytest.mark.parametrize("contiguous", [True, False])
def test_a_difference_counts_and_finds_as_numpy_does_on_the_whole(contiguous, monkeypatch):
    monkeypatch.setattr(look, "_AT_ONCE", 16)
    a, b = random(9, 11), random(9, 11)
    b[2:5] = a[2:5]
    b[7, 3] = a[7, 3] + 50
    if not contiguous:
        b = np.asfortranarray(b)
    told = look.difference([(a, F32), (b, F32)], 0.5, 0.25)
    size = np.abs(a.astype(np.float64) - b)
    assert told["differ"] == np.count_nonzero(size) and told["over"] == np.count_nonzero(size > 0.5 + 0.25 * np.abs(b))
    assert told["mean"] == pytest.approx(size.mean()) and told["elements"] == 99
    assert told["largest"]["index"] == [7, 3] and told["largest"]["value"] == size.max()
    assert float(told["largest"]["a"]) == pytest.approx(float(a[7, 3]))


def test_a_difference_knows_nan_and_infinity():
    a = np.array([np.nan, np.nan, 1, np.inf, np.inf, -np.inf, 2], np.float32)
    b = np.array([np.nan, 1, np.nan, np.inf, 4, np.inf, 2], np.float32)
    told = look.difference([(a, F32), (b, F32)], 1e9, 0.5)
    assert told["nan"] == {"a": 1, "b": 1, "both": 1} and told["differ"] == 4 and told["over"] == 4
    assert told["first"] == [1] and told["largest"]["value"] == np.inf and told["largest"]["index"] == [4]
    shown = cells(planes.plane(planes.Window.read({}, a.shape), [a, b], F32, difference=True))[0]
    np.testing.assert_array_equal(shown, [0, np.nan, np.nan, 0, np.inf, -np.inf, 0])


def event(step, array):
    return {"dtype": F32, "shape": list(array.shape), "data": array.tobytes(), "step": step, "program": 1, "instruction": 2}


def test_the_oldest_snapshots_go_first_and_every_watch_keeps_its_newest(monkeypatch):
    monkeypatch.setattr(kept, "MOST_BYTES", 10 * 64)
    shelves = kept.Kept()
    for watch in (1, 2):
        shelves.keep(watch, 8)
    for step in range(20):
        shelves.add(1, "h", event(step, np.full(16, step, np.float32)), None)
    assert [s["step"] for s in shelves.all(1)] == list(range(12, 20))
    shelves.add(2, "big", event(20, np.zeros(160, np.float32)), None)
    assert [s["step"] for s in shelves.all(1)] == [19] and [s["step"] for s in shelves.all(2)] == [20]
    newest = shelves.get(1, None)
    np.testing.assert_array_equal(newest.tensor.array(), np.full(16, 19, np.float32))
    assert shelves.get(1, newest.number) is newest
    with pytest.raises(CommandError, match="not kept any more"):
        shelves.get(1, newest.number - 1)
    shelves.forget(1)
    with pytest.raises(CommandError, match="keeps no snapshots"):
        shelves.get(1, None)


def test_events_about_a_watch_that_come_too_fast_are_joined(monkeypatch):
    clock = types.SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr(kept, "time", clock)
    shelves, now = kept.Kept(), 100.0
    shelves.keep(1, 4)
    assert shelves.due(1, {"step": 1}) and not shelves.due(1, {"step": 2}) and not shelves.due(1, {"step": 3})
    assert shelves.waiting() == []
    now = 100.02
    assert shelves.waiting() == [{"step": 3}] and shelves.waiting() == []


@pytest.fixture
def function():
    @dvm.jit
    def forward(x, k):
        h = x * k
        return h + 1

    return lambda x, k: forward(dvm.tensor(x), k).numpy()


def after_snapshot(adapter, watch, number):
    """What is shown of it once that snapshot is there."""
    while (told := adapter.event("snapshot")) and told["snapshot"] < number:
        assert "data" not in told
    return adapter.request("view", watch=watch)


def test_a_watch_keeps_snapshots_in_the_program_and_shows_parts_of_them(adapter, function):
    x = random(6, 10)
    adapter.request("configure", snapshotTimeoutMs=60_000)  # a copy that is late on a busy machine is still one
    watch = adapter.request("watch", expression="h", what="values", keep=3)["watchId"]
    with pytest.raises(Refused, match="no snapshot of it has been taken yet"):
        adapter.request("view", watch=watch)
    for factor in range(1, 6):
        function(x, float(factor))
        _core.synchronize_copies()
    told = after_snapshot(adapter, watch, 5)
    numbers = [s["snapshot"] for s in told["kept"]]
    assert len(numbers) == 3 and told["snapshot"] == numbers[-1] and told["kept"][0]["device"] == "cpu"
    np.testing.assert_array_equal(cells(told["plane"]), x * np.float32(5))
    assert told["place"]["line"] and told["summary"].startswith("f32[6,10]")
    earlier = adapter.request("view", watch=watch, snapshot=numbers[0], rows=[2, 4], columns=[1, 3], texts=True)
    np.testing.assert_array_equal(cells(earlier["plane"]), (x * np.float32(3))[2:4, 1:3])
    assert [np.float32(text) for text in earlier["texts"]] == [*(x * np.float32(3))[2:4, 1:3].flat]
    stats = adapter.request("viewStats", watch=watch, snapshot=numbers[0])["stats"]
    np.testing.assert_allclose(stats["mean"], (x * 3).mean(), rtol=1e-5)
    whole = adapter.request("evaluateMemory", watch=watch, snapshot=numbers[1], count=240)
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(whole["data"]), np.float32).reshape(6, 10), x * np.float32(4))

    sides = {"a": {"watch": watch, "snapshot": numbers[2]}, "b": {"watch": watch, "snapshot": numbers[0]}}
    compared = adapter.request("compare", **sides, tolerance=0.5)
    size = np.abs(x * np.float32(5) - x * np.float32(3))
    assert compared["over"] == np.count_nonzero(size > 0.5) and compared["largest"]["value"] == pytest.approx(size.max())
    sent = {"data": base64.b64encode((x * np.float32(5)).tobytes()).decode(), "dtype": "float32", "shape": [6, 10]}
    assert adapter.request("compare", a=sides["a"], b=sent)["differ"] == 0
    for other, words in (({**sent, "shape": [60]}, "the shapes differ"), ({**sent, "shape": [7, 10]}, "the bytes sent are no"),
                         ({**sent, "dtype": "complex64"}, "no tensor that can be compared"), ({"watch": 99}, "keeps no snapshots")):
        with pytest.raises(Refused, match=words):
            adapter.request("compare", a=sides["a"], b=other)
    with pytest.raises(Refused, match="tolerance is -1"):
        adapter.request("compare", **sides, tolerance=-1)
    adapter.request("unwatch", watchId=watch)
    with pytest.raises(Refused, match="keeps no snapshots"):
        adapter.request("view", watch=watch)


def test_statistics_are_never_kept(adapter):
    with pytest.raises(Refused, match="keep is 3 of stats"):
        adapter.request("watch", expression="h", what="stats", keep=3)
    with pytest.raises(Refused, match="keep is 65 of values"):
        adapter.request("watch", expression="h", what="values", keep=65)
