"""Copies of every result, and the settings of copies."""
# ruff: noqa: F811 - fixtures are named as what they are imported as

import numpy as np
import pytest
from agent_harness import Refused, adapter  # noqa: F401 - the fixture among them
from agent_watch_kit import W, X, model, run, values_of  # noqa: F401 - the fixture among them

from dvm_core import _core, agent


def snapshots(adapter, count):
    return [adapter.event("snapshot") for _ in range(count)]


def test_capture_all_sends_every_instruction_of_every_nth_launch(adapter, model):
    reference = run(model)
    adapter.request("configure", capture="all", sampleEvery=3)
    np.testing.assert_array_equal(run(model), reference)
    first = snapshots(adapter, 5)
    np.testing.assert_array_equal(run(model, 6), reference)
    later = snapshots(adapter, 10)
    adapter.none("snapshot", 0.2)
    assert all(s["watchId"] is None and not s["backward"] for s in first + later)
    assert [(s["instruction"], s["name"], s["shape"]) for s in first] == [
        (0, "h", [8, 4]), (1, "s", [8, 4]), (2, "%3", []), (3, "%4", []), (4, "y", [8, 4])]
    assert len({s["program"] for s in first + later}) == 1
    (base,) = {s["launch"] for s in first}
    assert [s["launch"] - base for s in later] == [3] * 5 + [6] * 5
    s = X * W + np.float32(1.5)
    for taken in (first, later[:5], later[5:]):
        np.testing.assert_array_equal(values_of(taken[0]), X * W)
        np.testing.assert_array_equal(values_of(taken[1]), s)
        np.testing.assert_array_equal(values_of(taken[2]), s.max())
        np.testing.assert_array_equal(values_of(taken[4]), reference)
    adapter.request("configure", capture="breakpoint")
    run(model, 6)
    adapter.none("snapshot", 0.2)


def test_capture_all_takes_programs_that_come_later_and_ends_with_the_session(adapter, model):
    adapter.request("configure", capture="all", sampleEvery=2, snapshotMaxBytes=16)
    run(model)
    # a value that is too large is told at once, one that is copied when the copy is done
    taken = sorted(snapshots(adapter, 5), key=lambda snapshot: snapshot["instruction"])
    assert [bool(s.get("placeholder")) for s in taken] == [True, True, False, False, True]
    watched = adapter.request("watch", expression="s", path=model.__file__, what="stats", everyN=1)
    adapter.request("configure", capture="all", sampleEvery=2, snapshotMaxBytes=16)  # the same again: the count goes on
    run(model)
    assert adapter.event("snapshot")["watchId"] == watched["watchId"]
    adapter.none("snapshot", 0.2)
    adapter.request("detach")
    adapter.event("eof")
    agent._session.connection.thread.join(10)
    run(model, 2)
    _core.synchronize_copies()
    assert [e for e in _core.poll_events() if e["kind"] == "capture"] == []


@pytest.mark.parametrize("milliseconds, late", [(20, True), (5000, False)])
def test_the_snapshot_timeout_is_honoured(adapter, model, milliseconds, late):
    run(model)
    adapter.request("configure", snapshotTimeoutMs=milliseconds)
    adapter.request("watch", expression="s", path=model.__file__, what="values", everyN=1)
    _core.delay_copies(250)
    run(model)
    snapshot = adapter.event("snapshot")
    assert (snapshot.get("reason"), "data" in snapshot) == (("the copy did not start within 20 ms", False) if late else (None, True))


@pytest.mark.parametrize("setting, text", [
    ({"capture": "some"}, "capture is 'some'; it must be one of breakpoint, watched, all"),
    ({"sampleEvery": 0}, "sampleEvery is 0; it must be from 1"),
    ({"snapshotTimeoutMs": 0}, "snapshotTimeoutMs is 0; it must be from 1 to 60000"),
    ({"snapshotTimeoutMs": 60001}, "snapshotTimeoutMs is 60001"),
    ({"snapshotMaxBytes": "1"}, "snapshotMaxBytes"),
])
def test_settings_that_cannot_be_meant_are_refused(adapter, model, setting, text):
    with pytest.raises(Refused, match=text):
        adapter.request("configure", **{"capture": "all", **setting})
    run(model)
    adapter.none("snapshot", 0.2)
