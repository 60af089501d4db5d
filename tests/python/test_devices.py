"""The simulated NPUs: the same bytecode, the same bits, under an NPU's rules."""
import numpy as np
import pytest
from core_kit import Recorder, arange, softmax, stop_handler
from core_programs import run, same_bits
from random_programs import random_program

import dvm_core as dvm
from dvm_core import _core, devices

SIMULATED = ("npu-sim:910b", "npu-sim:950")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(autouse=True)
def back_on_the_cpu():
    yield
    dvm.set_device("cpu")
    _core.set_copy_timeout(5000)


def areas_of(launches):
    return [(launch.program.id, area.index) for launch in launches for area in launch.program.areas if area.kind != "move"]


# ---- which there are -----------------------------------------------------------------------------------------------------------------

def test_a_device_says_what_it_is():
    assert (dvm.device(), dvm.Device.arch()) == ("cpu", "CPU")
    dvm.set_device("npu-sim:910b")
    assert (dvm.device(), dvm.Device.arch(), dvm.Device.core_num(), dvm.Device.soc_name()) == ("npu-sim:910b", "AscendC220", 48, "910b")
    dvm.set_device("npu-sim:950")
    assert (dvm.Device.arch(), devices.profiles()[dvm.device()]["ub_bytes"]) == ("AscendC310", 256 * 1024)


@pytest.mark.parametrize("name, text", [("cuda:0", "a GPU, which this version does not run on"),
                                        ("npu-sim", "there is no device 'npu-sim'; available: 'cpu', 'npu-sim:910b'"), (3, "no device 3")])
def test_another_device_is_refused_and_the_one_in_use_stays(name, text):
    dvm.set_device("npu-sim:950")
    with pytest.raises(dvm.DeviceError, match=text):
        dvm.set_device(name)
    assert dvm.device() == "npu-sim:950"


# ---- bits ----------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", range(200))
def test_a_program_gives_the_same_bits_and_its_code_has_no_race(seed):
    program = random_program(seed)
    keep = [len(program.inputs) + len(program.steps) - 1]
    recorded, _ = run(program, keep)
    want = recorded.array(keep[0])
    for device in SIMULATED:
        dvm.set_device(device)
        recorded, launches = run(program, keep)
        assert same_bits(recorded.array(keep[0]), want), f"seed {seed} on {device}"
        for where in areas_of(launches):
            assert _core.races(*where) == [], f"seed {seed} on {device}: {_core.program(where[0]).tile_text(where[1])}"
            used = _core.ub_map(*where)
            assert used["peak"] <= used["limit"]


def test_hooks_see_the_same_on_a_device():
    x = np.random.default_rng(0).standard_normal((64, 300), dtype=np.float32)
    _, launch = softmax(x)
    _core.set_hook(launch.program.id, 2, _core.HOOK_STATS, 7)
    found = []
    for device in ("cpu", *SIMULATED):
        dvm.set_device(device)
        softmax(x)
        found += [event["stats"] for event in _core.poll_events()]
    _core.clear_hooks()
    assert len(found) == 3
    merged = ("mean", "std", "abs_mean")  # tile by tile, and the tiles are others
    for stats in found[1:]:
        assert {k: v for k, v in stats.items() if k not in merged} == {k: v for k, v in found[0].items() if k not in merged}
        np.testing.assert_allclose([stats[k] for k in merged], [found[0][k] for k in merged], rtol=1e-12)


def test_a_stopped_launch_has_its_values_on_the_host():
    x = arange(8, 40)
    want, launch = softmax(x)
    dvm.set_device("npu-sim:910b")
    seen = []

    def look(stopped, instruction, reason, hooks):
        inputs = stopped.program.input_count
        seen.append(stopped.array(inputs + 1).copy())
        stopped.run_until(instruction + 1)
        seen.append(stopped.array(inputs + 2).copy())

    _core.set_hook(launch.program.id, 2, _core.HOOK_STOP, 1)
    with stop_handler(look):
        got, _ = softmax(x)
    assert same_bits(got, want)
    np.testing.assert_array_equal(seen[0], x - x.max(1, keepdims=True))
    np.testing.assert_allclose(seen[1], np.exp(seen[0]), rtol=1e-6)


def test_strided_and_overlapping_inputs_arrive_as_they_are():
    base = arange(40, 50)
    overlapping = np.lib.stride_tricks.as_strided(base, (30, 20), (200, 8))
    for view in (base[::-1], base.T, base[3:30:2, ::-3], np.broadcast_to(base[4], (9, 50)), overlapping):
        dvm.set_device("npu-sim:950")
        r = Recorder()
        doubled = r.add(r.input(view), r.input(view))
        r.graph.flush([doubled])
        np.testing.assert_array_equal(r.array(doubled), view + view)


def test_a_switch_in_the_middle_of_a_loop_changes_no_bit():
    @dvm.jit
    def step(w, x):
        h = (x @ w).tanh()
        return w - 0.01 * (x.transpose(1, 0) @ (h - h.mean(axis=0, keepdims=True)))

    def train(switching):
        rng = np.random.default_rng(3)
        w = dvm.tensor(rng.standard_normal((20, 30), dtype=np.float32))
        for number in range(30):
            if switching:
                dvm.set_device(("cpu", *SIMULATED)[number // 4 % 3])
            w = step(w, dvm.tensor(rng.standard_normal((rng.integers(1, 50), 20), dtype=np.float32)))
        dvm.set_device("cpu")
        return w.numpy()

    programs = _core.stats()["programs"]
    plain = train(False)
    captured = _core.stats()["programs"]
    assert captured > programs
    assert same_bits(train(True), plain)
    assert _core.stats()["programs"] == captured  # nothing was captured again


# ---- the code ------------------------------------------------------------------------------------------------------------------------

def test_code_copies_tiles_and_orders_the_pipes_by_events():
    dvm.set_device("npu-sim:910b")
    _, launch = softmax(arange(100, 64))
    text = launch.program.tile_text(0)
    assert text.startswith("// target=npu-sim:910b, block_dim=")
    assert "load.fp32." in text and "store.fp32." in text
    assert "{load, simd_load_sync(wait, 7), load_simd_sync(set, 0)}" in text
    assert "simd_store_sync(wait, 0)" in text and "bar(1)" in text
    dvm.set_device("cpu")
    _, launch = softmax(arange(100, 64))
    assert "load.fp32." not in launch.program.tile_text(0) and "sync" not in launch.program.tile_text(0)
    with pytest.raises(_core.Error, match="not compiled for a simulated device"):
        _core.ub_map(launch.program.id, 0)


def test_more_loads_than_events_still_wait_for_each_other():
    dvm.set_device("npu-sim:910b")
    r = Recorder()
    arrays = [arange(64, 64) + i for i in range(20)]
    values = [r.input(a) for a in arrays]
    total = values[0]
    for value in values[1:]:
        total = r.add(total, value)
    launch = r.graph.flush([total])
    np.testing.assert_array_equal(r.array(total), sum(arrays))
    assert _core.races(launch.program.id, 0) == []
    assert launch.program.tile_text(0).count("load_simd_sync(set") <= 7


def test_rows_too_long_for_the_local_memory_are_reduced_in_parts():
    x = np.random.default_rng(1).standard_normal((3, 30000), dtype=np.float32)
    want, _ = softmax(x)
    dvm.set_device("npu-sim:910b")
    got, launch = softmax(x)
    assert same_bits(got, want)
    assert "SumX_join" in "".join(launch.program.tile_text(area.index) for area in launch.program.areas)


def test_a_chain_with_more_live_values_than_fit_is_cut():
    def wide(x):
        r = Recorder()
        a = r.input(x)
        values = [r.mul(a, r.exp(r.mul(a, -1, imms=(0.001 * i,)))) for i in range(24)]
        rows = [r.sub(v, r.max(v, attrs=(1, 1))) for v in values]
        total = rows[0]
        for value in rows[1:]:
            total = r.mul(total, value)
        launch = r.graph.flush([total])
        return r.array(total), launch

    x = np.random.default_rng(2).standard_normal((2, 4000), dtype=np.float32)
    want, launch = wide(x)
    areas = len(launch.program.areas)
    dvm.set_device("npu-sim:910b")
    got, launch = wide(x)
    assert same_bits(got, want)
    assert len(launch.program.areas) > areas
    assert all(_core.ub_map(launch.program.id, area.index)["peak"] <= 192 * 1024 - 512 for area in launch.program.areas)


# ---- planted faults ------------------------------------------------------------------------------------------------------------------

def add_one(x):
    r = Recorder()
    result = r.add(r.mul(r.input(x), -1, imms=(2.0,)), -1, imms=(1.0,))
    launch = r.graph.flush([result])
    return r.array(result), launch


def uses(launch, pipe):
    return [n for n, use in enumerate(_core.ub_map(launch.program.id, 0)["uses"]) if use["pipe"] == pipe]


def test_a_wait_that_is_missing_is_named_and_shows_in_the_numbers():
    dvm.set_device("npu-sim:910b")
    x = arange(20000, 96)  # several tiles on each core
    want, launch = add_one(x)
    load = uses(launch, "load")[0]
    _core.plant_in_code(launch.program.id, 0, load, "deaf")  # the next tile is loaded over one that is still read
    races = _core.races(launch.program.id, 0)
    assert ("write after read", ("simd", "load"), 1) in [(race["kind"], race["pipes"], race["tiles_apart"]) for race in races]
    assert all(load in (race["first"], race["second"]) for race in races)
    wrong, _ = add_one(x)
    assert not np.array_equal(wrong, want)


def test_a_result_that_is_not_all_written_is_named():
    dvm.set_device("npu-sim:950")
    x = arange(300, 96) + 0.5
    _, launch = add_one(x)
    _core.plant_in_code(launch.program.id, 0, uses(launch, "store")[0], "short")
    with pytest.raises(_core.Error, match=r"ADD: bytes 4 to \d+ of its result are never written"):
        add_one(x)


def test_tiles_that_overlap_are_named():
    dvm.set_device("npu-sim:910b")
    x = arange(3000, 90) - 7
    _, launch = add_one(x)
    _core.plant_in_code(launch.program.id, 0, uses(launch, "store")[0], "stuck")
    with pytest.raises(_core.Error, match=r"ADD: bytes 0 to \d+ of its result are written more than once"):
        add_one(x)


@pytest.mark.parametrize("kind, text", [("fail", r"a copy of 4800 bytes to npu-sim:910b failed"), ("stall", "was not done after 30 ms"),
                                        ("lose", "was not done after 30 ms"), ("memory", "npu-sim:910b has no room for 4800 bytes more")])
def test_a_copy_that_goes_wrong_is_an_error_and_the_next_call_is_right(kind, text):
    dvm.set_device("npu-sim:910b")
    x = arange(30, 40)
    want, _ = add_one(x)
    _core.set_copy_timeout(30)
    _core.plant_fault(kind, milliseconds=200)
    before = x.copy()
    with pytest.raises(_core.Error, match=text):
        add_one(x)
    np.testing.assert_array_equal(x, before)
    _core.set_copy_timeout(5000)
    got, _ = add_one(x)
    assert same_bits(got, want)


def test_a_copy_back_that_fails_leaves_results_untouched():
    dvm.set_device("npu-sim:910b")
    r = Recorder()
    result = r.add(r.input(arange(5)), -1, imms=(1.0,))
    out = np.full(5, -3, np.float32)
    _core.plant_fault("fail", after=1)
    with pytest.raises(_core.Error, match="a copy of 20 bytes from npu-sim:910b failed"):
        r.graph.flush([], [(result, out.ctypes.data)])
    assert (out == -3).all()


# ---- what the hardware does ----------------------------------------------------------------------------------------------------------

def to_bool(x):
    r = Recorder()
    result = r.cast(r.input(x), dtype=5)
    launch = r.graph.flush([result])
    return r.array(result), launch


def test_a_faithful_cast_goes_where_the_hardwares_does():
    x = np.array([0.0, 1e-9, -1e-3, 70000.0], np.float32)
    dvm.set_device("npu-sim:910b")
    np.testing.assert_array_equal(to_bool(x)[0], [False, True, True, True])
    dvm.set_device("npu-sim:910b:faithful")
    got, launch = to_bool(x)
    np.testing.assert_array_equal(got, [False, False, True, True])  # 1e-9 is 0 as float16
    text = launch.program.tile_text(0)
    assert "CastFP16.fp32" in text and "CastBOOL.fp16" in text
