"""What lives on a simulated device: results that stay there, addresses the host cannot read, room, snapshots and switches."""
import ctypes
import gc
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from core_kit import Recorder, arange, stop_handler
from core_programs import same_bits

import dvm_core as dvm
from dvm_core import _core, devices
from dvm_core.msbc.layout import CODES

NPU = "npu-sim:910b"


@pytest.fixture(autouse=True)
def clean():
    gc.collect()
    yield
    _core.clear_faults()
    _core.clear_hooks()
    _core.set_copy_timeout(5000)
    _core.set_capture_timeout(100, 10_000)
    _core.set_device_memory(0)
    _core.set_link()
    dvm.set_device("cpu")
    _core.synchronize_copies()
    _core.poll_events(1 << 20)


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


class Counted:
    """Copies made inside."""

    def __enter__(self):
        self.before = _core.device_copies()
        return self

    def __exit__(self, *error):
        now = _core.device_copies()
        spent = {key: now[key] - self.before[key] for key in now}
        self.copies_in, self.copies_out, self.bytes_out = spent["copies_in"], spent["copies_out"], spent["bytes_out"]
        self.inputs, self.results = spent["resident_inputs"], spent["resident_results"]


@dvm.jit
def step(w, x):
    h = (x @ w).tanh()
    return w - 0.01 * (x.transpose(1, 0) @ (h - h.mean(axis=0, keepdims=True)))


def weights(seed=3):
    return np.random.default_rng(seed).standard_normal((20, 30), dtype=np.float32)


# ---- results stay --------------------------------------------------------------------------------------------------------------------

def test_results_stay_on_the_device_until_the_host_asks():
    x, w = weights(1).T.copy(), weights()
    want = step(step(dvm.tensor(w), dvm.tensor(x)), dvm.tensor(x)).numpy()
    dvm.set_device(NPU)
    with Counted() as first:
        once = step(dvm.tensor(w), dvm.tensor(x))
    assert (first.copies_in, first.copies_out, first.results) == (2, 0, 1)
    with Counted() as second:
        twice = step(once, dvm.tensor(x))
    assert (second.copies_in, second.copies_out, second.inputs) == (1, 0, 1)
    with Counted() as read:
        got = twice.numpy()
        assert twice.numpy() is got
    assert (read.copies_out, read.bytes_out) == (1, got.nbytes)
    assert same_bits(got, want)
    with Counted() as third:
        step(twice, dvm.tensor(x))  # read by the host, and still on the device
    assert (third.copies_in, third.inputs) == (1, 1)


def test_views_of_a_resident_result_are_of_its_bytes():
    dvm.set_device(NPU)
    x = arange(40, 50)
    doubled = dvm.tensor(x) * 2
    doubled.numpy()
    with Counted() as counted:
        turned = doubled.transpose(1, 0)[3:9]
        total = (turned + 1).sum(axis=0)
        np.testing.assert_array_equal(total.numpy(), (x.T[3:9] * 2 + 1).sum(axis=0))
    assert counted.copies_in == 0


def test_memory_the_host_may_write_is_copied_for_every_launch():
    dvm.set_device(NPU)
    x = arange(8, 4)
    a = dvm.tensor(x)
    for k in range(3):
        x[:] = k
        np.testing.assert_array_equal((a + 1).numpy(), np.full((8, 4), k + 1))


def test_results_for_the_callers_memory_are_there_when_the_launch_ends():
    dvm.set_device(NPU)
    r = Recorder()
    result = r.add(r.input(arange(5)), -1, imms=(1.0,))
    out = np.zeros(5, np.float32)
    r.graph.flush([], [(result, out.ctypes.data)])
    np.testing.assert_array_equal(out, np.arange(5) + 1)


def test_a_value_kept_between_flushes_stays_there():
    dvm.set_device(NPU)
    r = Recorder()
    kept = r.mul(r.input(arange(6, 7)), -1, imms=(3.0,))
    r.graph.flush([kept])
    with Counted() as counted:
        last = r.add(kept, kept)
        r.graph.flush([last])
    assert (counted.copies_in, counted.copies_out) == (0, 0)
    np.testing.assert_array_equal(r.array(last), arange(6, 7) * 6)


# ---- addresses -----------------------------------------------------------------------------------------------------------------------

def addresses_of_new(make):
    before = {address for address, _, _ in _core.device_addresses()}
    made = make()
    return made, [address for address, _, _ in _core.device_addresses() if address not in before]


def test_the_host_cannot_get_hold_of_a_devices_address():
    dvm.set_device(NPU)
    w = dvm.tensor(weights())
    result, (address,) = addresses_of_new(lambda: step(w, dvm.tensor(weights(1).T.copy())))
    assert _core.is_device_address(address) and not _core.is_device_address(w.numpy().ctypes.data)
    assert not _core.is_device_address(result.numpy().ctypes.data)
    graph = _core.Graph("host")
    with pytest.raises(_core.Error, match="input: this is an address on a device, which the host cannot read or write"):
        graph.input(address, (20, 30), 1)
    with pytest.raises(_core.Error, match=r"flush\(outputs\): this is an address on a device"):
        value = graph.op(CODES["NEG"], (graph.input(w.numpy().ctypes.data, (20, 30), 1),))
        graph.flush(outputs=[(value, address)])
    foreign = np.frombuffer((ctypes.c_float * 4).from_address(address), np.float32)
    with pytest.raises((_core.Error, dvm.Error), match="an address on a device, which the host cannot read"):
        _core.array_from_numpy(foreign, 1)


def test_memory_is_given_back_and_addresses_are_not_given_out_again_at_once():
    dvm.set_device(NPU)
    x = dvm.tensor(arange(100, 100))
    used, seen = _core.device_memory(NPU)["used"], set()
    for _ in range(50):
        made, (address,) = addresses_of_new(lambda: dvm.jit(lambda a: a + 1)(x))
        seen.add(address)
        assert used + 40_000 <= _core.device_memory(NPU)["used"] <= used + 120_000
        del made
    assert len(seen) == 50
    assert _core.device_memory(NPU)["used"] == used <= _core.device_memory(NPU)["peak"] < _core.device_memory(NPU)["limit"]


def test_a_device_without_room_says_how_much_is_in_use():
    dvm.set_device(NPU)
    kept = dvm.jit(lambda a: a + 1)(dvm.tensor(arange(100, 100)))
    used = _core.device_memory(NPU)["used"]
    _core.set_device_memory(used + 50_000)
    with pytest.raises(dvm.Error, match=rf"has no room for 40000 bytes more: \d+ of {used + 50_000} are in use"):
        dvm.jit(lambda a: a * 2)(dvm.tensor(arange(100, 100))).numpy()
    np.testing.assert_array_equal(kept.numpy(), arange(100, 100) + 1)
    assert _core.device_memory(NPU)["used"] == used


def test_a_copy_back_that_fails_leaves_the_value_on_the_device():
    dvm.set_device(NPU)
    result = dvm.jit(lambda a: a + 1)(dvm.tensor(arange(10)))
    _core.plant_fault("fail", of="out")
    with pytest.raises(dvm.DeviceError, match=r"a copy of 40 bytes from npu-sim:910b failed"):
        result.numpy()
    np.testing.assert_array_equal(result.numpy(), np.arange(10) + 1)


def test_a_copy_that_fails_in_a_launch_is_an_error_of_the_device():
    dvm.set_device(NPU)
    double, x = dvm.jit(lambda a: a * 2), dvm.tensor(arange(10))
    _core.plant_fault("fail", of="in")
    with pytest.raises(dvm.DeviceError, match=r"a copy of 40 bytes to npu-sim:910b failed"):
        double(x)
    np.testing.assert_array_equal(double(x).numpy(), np.arange(10) * 2)
    _core.set_device_memory(10)
    with pytest.raises(dvm.OutOfMemoryError):
        double(dvm.tensor(arange(1000)))


def test_what_lives_on_a_device_is_exported_as_a_copy():
    dvm.set_device(NPU)
    result = dvm.jit(lambda a: a + 1)(dvm.tensor(arange(4)))
    other = np.from_dlpack(result)
    with pytest.raises(BufferError, match="exported as a copy"):
        result.__dlpack__(max_version=(1, 0), copy=False)
    if other.flags.writeable:
        other[:] = 9
    assert result.tolist() == (result + 0).tolist() == [1, 2, 3, 4] and not np.shares_memory(other, result.numpy())


# ---- stops and checks ----------------------------------------------------------------------------------------------------------------

def test_at_a_stop_values_are_read_off_the_device():
    def program():
        r = Recorder()
        a = r.mul(r.input(arange(30, 4)), -1, imms=(2.0,))
        b = r.add(a, -1, imms=(1.0,))
        launch = r.graph.flush([b])
        return r.array(b), launch

    dvm.set_device(NPU)
    want, launch = program()
    _core.set_hook(launch.program.id, 1, _core.HOOK_STOP, 1)
    seen = []
    with stop_handler(lambda stopped, *_: seen.append(stopped.array(stopped.program.input_count).copy())):
        got, _ = program()
    np.testing.assert_array_equal(seen[0], arange(30, 4) * 2)
    assert same_bits(got, want)


def test_statistics_are_taken_where_a_value_was_made():
    dvm.set_device(NPU)
    r = Recorder()
    turned = r.transpose(r.input(arange(6, 5)), attrs=(1, 0))
    launch = r.graph.flush([turned])
    _core.set_hook(launch.program.id, 0, _core.HOOK_STATS, 4)
    with Counted() as counted:
        r = Recorder()
        r.graph.flush([r.transpose(r.input(arange(6, 5)), attrs=(1, 0))])
    (event,) = _core.poll_events()
    assert counted.copies_out == 0 and (event["stats"]["max"], event["stats"]["count"]) == (29, 30)


# ---- switching -----------------------------------------------------------------------------------------------------------------------

def test_what_lives_goes_along():
    other = "npu-sim:950"
    used = [_core.device_memory(name)["used"] for name in (NPU, other)]
    x = dvm.tensor(weights(1).T.copy())
    want = step(step(step(dvm.tensor(weights()), x), x), x).numpy()
    w = step(dvm.tensor(weights()), x)
    assert _core.set_device(NPU)["bytes"] >= w.size * 4
    with Counted() as counted:
        w = step(w, x)
    assert (counted.copies_in, counted.inputs) == (1, 1)  # x is the program's memory, w went along
    assert _core.set_device(other)["buffers"] >= 1
    with Counted() as counted:
        w = step(w, x)
    assert (counted.copies_in, counted.inputs) == (1, 1)
    kept = w
    dvm.set_device("cpu")
    assert [_core.device_memory(name)["used"] for name in (NPU, other)] == used  # what other tests left there
    assert same_bits(kept.numpy(), want) and same_bits((w * 1).numpy(), want)
    with Counted() as counted:
        step(w, x).numpy()
    assert (counted.copies_in, counted.copies_out) == (0, 0)


def test_a_graph_that_is_being_recorded_goes_on_on_the_other_device():
    r = Recorder()
    dvm.set_device(NPU)
    kept = r.mul(r.input(arange(6, 7)), -1, imms=(3.0,))
    r.graph.flush([kept])
    pending = r.add(kept, kept)
    dvm.set_device("cpu")
    r.graph.flush([pending])
    np.testing.assert_array_equal(r.array(pending), arange(6, 7) * 6)
    np.testing.assert_array_equal(r.array(kept), arange(6, 7) * 3)


def test_the_memory_of_arrays_that_graph_mode_writes_over_is_theirs():
    update = dvm.jit(lambda p, g: p - 0.5 * g, mode="graph", donate=(0,))

    def train(devices_):
        p, g = dvm.tensor(weights()) * 1, dvm.tensor(weights(2))
        for device in devices_:
            dvm.set_device(device)
            for _ in range(3):
                p = update(p, g)
        dvm.set_device("cpu")
        return p.numpy()

    assert same_bits(train(["cpu", NPU, "cpu", "npu-sim:950", NPU, "cpu"]), train(["cpu"] * 6))


@pytest.mark.parametrize("way, kind", [(way, kind) for way in (("cpu", NPU), (NPU, "cpu"), (NPU, "npu-sim:950"))
                                       for kind in ("memory", "fail", "lose") if (way[1], kind) != ("cpu", "memory")])
def test_a_move_that_fails_leaves_everything_where_it_was(way, kind):
    begin, to = way
    x = dvm.tensor(weights(1).T.copy())
    want = step(step(step(dvm.tensor(weights()), x), x), x).numpy()
    dvm.set_device(begin)
    first = step(dvm.tensor(weights()), x)
    second = step(first, x)
    used = {name: _core.device_memory(name)["used"] for name in (NPU, "npu-sim:950")}
    where = _core.device_addresses()
    _core.set_copy_timeout(20)
    _core.plant_fault(kind, after=1, of="move")
    text = {"memory": "has no room for", "fail": "failed", "lose": "was not done after 20 ms"}[kind]
    with pytest.raises(dvm.DeviceError, match=f"device '{to}': .*{text}.*Nothing was moved, and '{begin}' stays in use"):
        dvm.set_device(to)
    assert dvm.device() == begin and _core.device_addresses() == where
    until(lambda: {name: _core.device_memory(name)["used"] for name in used} == used)  # copies under way hold what they write
    _core.set_copy_timeout(5000)
    assert same_bits(step(second, x).numpy(), want)  # and training goes on
    dvm.set_device(to)
    assert dvm.device() == to and same_bits(step(second, x).numpy(), want)


def test_a_switch_from_another_thread_waits_for_the_step_and_holds_the_next_one_back():
    inside, go_on, seen = threading.Event(), threading.Event(), []

    @dvm.jit
    def slow(a):
        b = a + 1
        seen.append((b.numpy().sum(), dvm.device()))  # one launch,
        inside.set()
        go_on.wait(10)
        c = b * 2
        seen.append((c.numpy().sum(), dvm.device()))  # and another of the same step
        return c

    worker = threading.Thread(target=lambda: [slow(dvm.tensor(arange(4))) for _ in range(2)])
    worker.start()
    assert inside.wait(10)
    assert devices.switched(NPU, 0.05) is False and dvm.device() == "cpu"
    switch = threading.Thread(target=dvm.set_device, args=(NPU,))
    switch.start()
    go_on.set()
    switch.join(20)
    worker.join(20)
    assert dvm.device() == NPU
    assert [device for _, device in seen[:2]] in (["cpu"] * 2, [NPU] * 2) and [device for _, device in seen[2:]] in (["cpu"] * 2, [NPU] * 2)
    assert [total for total, _ in seen] == [10.0, 20.0] * 2


def test_switches_in_the_middle_of_calls_of_many_threads_change_no_bit():
    x = dvm.tensor(weights(1).T.copy())
    want = dvm.tensor(weights())
    for _ in range(40):
        want = step(want, x)
    want, got, done = want.numpy(), [], threading.Event()

    def train():
        w = dvm.tensor(weights())
        for _ in range(40):
            w = step(w, x)
        got.append(w.numpy())

    workers = [threading.Thread(target=train) for _ in range(3)]
    for worker in workers:
        worker.start()

    def switch():
        number = 0
        while not done.is_set():
            dvm.set_device((NPU, "cpu", "npu-sim:950", "cpu")[number % 4])
            number += 1

    switching = threading.Thread(target=switch)
    switching.start()
    for worker in workers:
        worker.join(120)
    done.set()
    switching.join(60)
    assert len(got) == 3 and all(same_bits(g, want) for g in got)


def test_a_step_may_switch_devices_itself():
    @dvm.jit
    def half_way(a):
        b = a + 1
        b.numpy()
        dvm.set_device(NPU)
        return b * 2

    np.testing.assert_array_equal(half_way(dvm.tensor(arange(4))).numpy(), (np.arange(4) + 1) * 2)
    assert dvm.device() == NPU


def test_touching_a_devices_address_ends_the_process_and_a_fork_has_the_values_of_its_parent(tmp_path):
    script = tmp_path / "touch.py"
    script.write_text("""
import ctypes, os
import dvm_core as dvm
from dvm_core import _core
dvm.set_device("npu-sim:910b")
f = dvm.jit(lambda a: a * 2 + 1)
there = f(dvm.tensor([1.0, 2.0]))
child = os.fork()
if not child:
    os._exit(0 if f(there).numpy().tolist() == [7.0, 11.0] and there.numpy().tolist() == [3.0, 5.0] else 1)
assert os.waitpid(child, 0)[1] == 0 and f(there).numpy().tolist() == [7.0, 11.0]
print("touching", flush=True)
print(ctypes.c_float.from_address(_core.device_addresses()[0][0]).value)
""")
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert (ended.stdout, ended.returncode) == ("touching\n", -signal.SIGSEGV), ended.stderr
