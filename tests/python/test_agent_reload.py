"""Hot reload over the wire with real captured functions: swapped at a call boundary, tried by that call, taken back if it fails."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import importlib.util
import sys
import threading
import time

import dvm_wire
import numpy as np
import pytest
from agent_harness import adapter  # noqa: F401 - a fixture

import dvm_core as dvm
from dvm_core import agent

MODEL = """import dvm_core as dvm

BIAS = 1.5


def helper(h):
    return h + BIAS


@dvm.jit
def forward(x):
    h = x * 2.0
    s = helper(h)
    y = s - 0.5
    return y


def schedule(step):
    return 0.1


@dvm.jit
def measure(x):
    return guarded(x).max()


def guarded(x):
    return x
"""


class Training:
    """Calls the model's captured function again and again on a thread, and keeps every result."""

    def __init__(self, path, name):
        self.path = path
        path.write_text(MODEL)
        spec = importlib.util.spec_from_file_location(name, path)
        self.module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.results, self.error, self.stop = [], None, threading.Event()
        self.measures, self.measured = threading.Event(), []  # whether each step has another captured call, and what that gave
        agent._session.book.remember(str(path))
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        x = dvm.tensor(np.ones((2, 3), np.float32))
        try:
            while not self.stop.is_set():
                result = self.module.forward(x).numpy()
                self.results.append((result.shape, float(result.flat[0])))
                if self.measures.is_set():
                    self.measured.append(float(self.module.measure(x).numpy()))
                time.sleep(0.002)
        except BaseException as error:
            self.error = error

    def save(self, old, new):
        text = self.path.read_text()
        assert old in text
        self.path.write_text(text.replace(old, new))
        return str(self.path)

    def settled(self):
        """The value of calls made from now on."""
        count = len(self.results)
        while len(self.results) < count + 3:
            assert self.error is None and self.thread.is_alive()
            time.sleep(0.002)
        return self.results[-1][1]


@pytest.fixture
def training(adapter, tmp_path, request):
    made = Training(tmp_path / "model.py", f"reload_{request.node.name}")
    made.settled()
    yield made
    made.stop.set()
    made.thread.join(10)
    del sys.modules[made.module.__name__]
    assert made.error is None


def test_a_constant_in_a_captured_function(adapter, training):
    answer = adapter.request("reload", path=training.save("x * 2.0", "x * 3.0"))
    assert (answer["outcome"], answer["instructionsPatched"], answer["instructionsTotal"]) == ("applied", 1, 3)
    assert answer["changes"] == [{"function": "forward", "what": "constant", "old": "2.0", "new": "3.0", "line": 12}]
    assert answer["step"] > 3 and answer["ms"] > answer["heldMs"] > 0
    assert training.settled() == 4
    values = [value for _, value in training.results]
    assert values == sorted(values) and set(values) == {3.0, 4.0}  # one change, no mixture, no call lost
    assert values.index(4.0) >= 3


def test_a_module_constant_and_a_helper(adapter, training):
    answer = adapter.request("reload", path=training.save("BIAS = 1.5", "BIAS = 2.5"))
    assert (answer["outcome"], answer["instructionsPatched"]) == ("applied", 1)
    assert training.settled() == 4
    answer = adapter.request("reload", path=training.save("return h + BIAS", "return h * BIAS + 1.0"))
    assert answer["outcome"] == "applied" and answer["instructionsTotal"] == 4
    assert training.settled() == 5.5


def test_an_error_in_recording_is_refused_with_its_line(adapter, training):
    path = training.save("s = helper(h)", "s = helper(h) + dvm.tensor([1.0, 2.0])")
    answer = adapter.request("reload", path=path)
    assert answer["outcome"] == "refused"
    assert answer["reasons"][0].count("model.py:13") == 1 and "was made with the old code" in answer["reasons"][0]
    assert training.settled() == 3
    assert set(training.results) == {((2, 3), 3.0)}


def test_another_output_shape_is_refused(adapter, training):
    answer = adapter.request("reload", path=training.save("return y", "return y.sum(0)"))
    assert answer["outcome"] == "refused" and "forward would return float32[3] instead of float32[2,3]" in answer["reasons"][0]
    assert training.settled() == 3 and set(training.results) == {((2, 3), 3.0)}


@pytest.mark.parametrize(("new", "why"), [
    ("guarded(x).max() + missing", "model.py:24: NameError: name 'missing' is not defined"),
    ("guarded(x).max(1)", "measure would return float32[2] instead of float32[] for the same inputs")])
def test_what_fails_in_a_call_behind_the_trial_is_taken_back_too(adapter, training, new, why):
    training.measures.set()
    while not training.measured:
        training.settled()
    answer = adapter.request("reload", path=training.save("guarded(x).max()", new))
    if answer["outcome"] == "applied":  # it was said before that call
        answer = adapter.event("reload")
    assert answer["outcome"] == "refused" and why in answer["reasons"][0] and "was made with the old code" in answer["reasons"][0]
    training.settled()
    assert set(training.measured) == {1.0} and training.error is None
    again = adapter.request("reload", path=training.save(new, "guarded(x).max() * 2.0"))
    training.settled()
    assert again["outcome"] == "applied" and training.settled() and set(training.measured) == {1.0, 2.0}


def test_an_exception_of_the_programs_own_behind_an_edit_reaches_the_program(adapter, training):
    def stops(x):
        raise StopIteration("early")

    training.measures.set()
    while not training.measured:
        training.settled()
    training.measures.clear()
    training.settled()
    assert adapter.request("reload", path=training.save("x * 2.0", "x * 3.0"))["outcome"] == "applied"
    training.module.guarded = stops
    training.measures.set()  # its first call behind the swap
    training.thread.join(10)
    assert repr(training.error) == "StopIteration('early')" and training.results[-1][1] == 4.0
    adapter.none("reload", 0.2)
    training.error = None


def test_a_function_that_no_captured_call_reaches(adapter, training):
    answer = adapter.request("reload", path=training.save("return 0.1", "return 0.01"))
    assert (answer["outcome"], answer["instructionsPatched"]) == ("applied", 0)
    assert training.module.schedule(0) == 0.01


def test_a_comment_moves_lines_and_breakpoints_follow(adapter, training):
    path = training.save("BIAS = 1.5", "# a comment\n# of two lines\nBIAS = 1.5")
    assert adapter.request("reload", path=path)["outcome"] == "unchanged"
    training.settled()
    places = {entry["line"] for program in dvm.programs() for entry in program.line_map() if entry["file"] == path}
    assert {12, 14} <= places
    bound = adapter.request("breakpoints", lines=[{"id": 1, "path": path, "line": 14, "mode": "backward"}])["results"][0]
    assert bound["verified"]


def test_undo(adapter, training):
    adapter.request("reload", path=training.save("x * 2.0", "x * 3.0"))
    assert training.settled() == 4
    answer = adapter.request("undoReload")
    assert (answer["outcome"], answer["instructionsPatched"]) == ("applied", 1)
    assert answer["changes"][0]["old"] == "3.0"
    assert training.settled() == 3
    assert adapter.request("status")["reload"]["outcome"] == "applied"
    assert adapter.request("undoReload")["outcome"] == "unchanged"


def test_listings_of_what_the_last_reload_changed(adapter, training):
    assert adapter.request("reloadListings")["programs"] == []
    adapter.request("reload", path=training.save("x * 2.0", "x * 3.0"))  # from now on it is known which programs are in use
    answer = adapter.request("reload", path=training.save("return h + BIAS", "return h + BIAS + 1.0"))
    told = adapter.request("reloadListings")
    assert (told["path"], told["step"]) == (answer["path"], answer["step"])
    [program] = told["programs"]
    assert (program["name"], program["backward"], program["listed"]) == ("forward", False, True)
    assert program["instructionsTotal"] == answer["instructionsTotal"] == len(program["now"]) - 1  # and an input
    assert program["now"][:3] == program["before"][:3] and "ADD(%2, 1.0)" in program["now"][3]
    assert len(program["before"]) == 4
    refused = adapter.request("reload", path=training.save("return y", "return y.sum(0)"))
    assert refused["outcome"] == "refused"
    assert adapter.request("reloadListings")["programs"] == told["programs"]
    undone = adapter.request("undoReload")
    assert (undone["outcome"], undone["undone"]) == ("applied", True)
    [back] = adapter.request("reloadListings")["programs"]
    assert (back["before"], back["now"]) == (program["now"], program["before"])


def test_an_old_program_that_comes_back_is_compared_with_the_one_it_replaces(adapter, training):
    adapter.request("reload", path=training.save("y = s - 0.5", "y = s + 0.5"))
    answer = adapter.request("reload", path=training.save("y = s + 0.5", "y = s - 0.5"))
    assert (answer["outcome"], answer["instructionsPatched"], answer["instructionsTotal"]) == ("applied", 1, 3)


def test_text_that_is_not_saved_yet(adapter, training):
    answer = adapter.request("reload", path=str(training.path), text=MODEL.replace("x * 2.0", "x * 5.0"))
    assert answer["outcome"] == "applied" and training.settled() == 6


def test_a_syntax_error_changes_nothing(adapter, training):
    answer = adapter.request("reload", path=training.save("return y", "return (y"))
    assert answer["outcome"] == "refused" and answer["reasons"][0].startswith("model.py:15: ")
    assert training.settled() == 3


def test_a_file_on_disk_is_waited_for_until_it_has_settled(adapter):
    assert agent._session.reloader.host.settle is dvm_wire.settle


def test_many_saves_in_a_row_are_all_answered(adapter, training):
    requests = []
    for n in range(10):
        requests.append(adapter.send("reload", path=str(training.path), text=MODEL.replace("x * 2.0", f"x * {n + 3}.0")))
    answers = [adapter.answer(number) for number in requests]
    assert [answer["outcome"] for answer in answers] == ["applied"] * 10
    assert training.settled() == 13
    steps = [answer["step"] for answer in answers]
    assert steps == sorted(steps)


def test_a_reload_while_the_program_stands_at_a_stop(adapter, training):
    path = str(training.path)
    program = next(p.id for p in reversed(dvm.programs()) if any(e["file"] == path for e in p.line_map()))
    adapter.request("instructionBreakpoints", items=[{"id": 1, "program": program, "instruction": 1}])
    adapter.event("vmstop")
    answer = adapter.request("reload", path=training.save("x * 2.0", "x * 3.0"))
    assert answer["outcome"] == "applied" and answer["pending"]
    assert "that call goes on with the old code" in answer["reasons"][0]
    adapter.request("instructionBreakpoints", items=[])
    adapter.request("go")
    news = adapter.event("reload")
    assert (news["outcome"], news["pending"], news["instructionsPatched"]) == ("applied", False, 1)
    assert training.settled() == 4


def test_a_data_breakpoint_holds_over_a_reload(adapter, training):
    point = {"id": 9, "name": "h", "part": "", "path": str(training.path), "function": "forward"}
    assert adapter.request("dataBreakpoints", items=[point])["results"][0]["verified"]
    assert adapter.event("vmstop")["bp"] == [9]
    assert adapter.request("evaluate", expression="h[0, 0]")["result"] == "2.0"
    assert adapter.request("reload", path=training.save("x * 2.0", "x * 3.0"))["pending"]
    for _ in range(3):  # what was recorded before may yet be launched
        adapter.request("go")
        assert adapter.event("vmstop")["bp"] == [9]
        if (value := adapter.request("evaluate", expression="h[0, 0]")["result"]) != "2.0":
            break
    assert value == "3.0"
    adapter.request("dataBreakpoints", items=[])
    adapter.request("go")
    assert training.settled() == 4

