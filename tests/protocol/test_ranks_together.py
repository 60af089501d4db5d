"""Ranks of one job: an edit is taken by all of them before the same step of the training, or by none, though one evaluates as well."""
import os
import sys
import time

import pytest
from harness import PROGRAMS, line_of
from test_ranks import LINE, PROGRAM, WAIT, children, needs_torch

pytest.importorskip("numpy")
pytest.importorskip("dvm_core._core")


class Training:
    """A torchrun of two ranks over a copy of the program."""

    def __init__(self, adapter, folder):
        self.folder, self.path = folder, folder / "trained.py"
        self.path.write_text((PROGRAMS / "trained.py").read_text())
        self.ranks, self.root = children(adapter, 2, [], module="torch.distributed.run", cwd=str(folder), python=[sys.executable],
                                         args=["--nproc-per-node", "2", str(self.path), "100000", "0.01"],
                                         dvm={"hotReload": "onSave", "holdRanks": True, "compareRanks": ["new"]})
        for rank in self.ranks.values():
            rank.event("dvm/step", timeout=WAIT)

    def losses(self, rank):
        """Loss and rate of each step so far."""
        lines = (self.folder / f"losses-{rank}").read_text().split("\n")[:-1]
        return [tuple(line.split()[1:]) for line in lines]

    def until_step(self, step):
        end = time.monotonic() + WAIT
        while len(self.losses(0)) < step:
            assert time.monotonic() < end
            time.sleep(0.02)

    def replace(self, old, new):
        text = self.path.read_text()
        assert old in text
        self.save(text.replace(old, new))

    def save(self, text):
        """At once: a file that is emptied and then filled may be read in between where the machine is busy."""
        self.path.with_suffix(".part").write_text(text)
        os.replace(self.path.with_suffix(".part"), self.path)

    def answers(self):
        """What each rank says of the edit."""
        return [self.ranks[f"rank {number}"].event("dvm/reload", timeout=WAIT, where=lambda body: not body["pending"])["body"]
                for number in range(2)]


@needs_torch
def test_all_ranks_take_an_edit_before_the_same_step_or_none(adapter, tmp_path):
    run = Training(adapter, tmp_path)
    run.replace("RATE = 0.5", "RATE = 0.25")
    first = run.answers()
    assert [body["outcome"] for body in first] == ["applied", "applied"], [body["reasons"] for body in first]
    run.replace("OWN = 0", "OWN = 7")
    for body in run.answers():
        assert body["outcome"] == "refused" and body["reasons"][0].startswith("rank 1: "), body
    run.replace("OWN = 7", "OWN = 0")
    run.answers()
    run.replace("return x * 1.0", "return x * (1.0 if NUMBER == 0 else missing)")
    why = f"rank 1: trained.py:{line_of(run.path, 'missing')}: NameError: name 'missing' is not defined"
    for body in run.answers():
        assert body["outcome"] == "refused" and body["reasons"] == [why], body
    run.ranks["rank 0"].request("dvm/undoReload")
    back = run.answers()
    assert [body["outcome"] for body in back] == ["applied", "applied"], back
    a_rank_inside_a_collective_is_said_to_be_running(run)
    rates = [float(rate) for _, rate in run.losses(0)]
    new, old = (first[1]["step"] + 1) // 2, (back[1]["step"] + 1) // 2  # of two captured calls each in rank 1
    assert rates == [0.5] * (new - 1) + [0.25] * (old - new) + [0.5] * (len(rates) - old + 1)
    parameters_that_differ_are_named(run)
    (tmp_path / "end").touch()
    run.root.event("terminated", timeout=WAIT)
    assert run.losses(0) == run.losses(1)


def a_rank_inside_a_collective_is_said_to_be_running(run):
    first, second = run.ranks["rank 0"], run.ranks["rank 1"]
    second.set_breakpoints(str(run.path), [line_of(run.path, "dist.all_reduce")])
    thread = second.event("stopped", timeout=WAIT)["body"]["threadId"]
    told = first.event("dvm/notice", "stopped", timeout=WAIT, where=lambda body: body.get("category", "held") == "held")
    inside = told["event"] == "dvm/notice"  # else it was still on its way there
    text = told["body"]["text"].removeprefix("not held yet: ")
    assert text.startswith("rank 1 stands (Paused on breakpoint)") and list(first.seen("stopped")) == ([] if inside else [told["body"]])
    assert first.request("threads")["threads"] and first.request("dvm/status")["connected"]
    second.set_breakpoints(str(run.path), [])
    step = len(run.losses(1))
    second.go_on(thread)
    run.until_step(step + 3)
    assert list(first.seen("stopped")) == ([] if inside else [told["body"]])


def parameters_that_differ_are_named(run):
    assert not [body for rank in run.ranks.values() for body in rank.seen("dvm/ranks")]
    run.save((PROGRAMS / "trained.py").read_text().replace("WRONG = 0.0", "WRONG = 1e-3"))
    answers = run.answers()
    assert [body["outcome"] for body in answers] == ["applied", "applied"], answers
    steps = [body["step"] for body in answers]
    assert steps[0] > steps[1] + 2
    for rank in run.ranks.values():
        body = rank.event("dvm/ranks", timeout=WAIT)["body"]
        assert (body["name"], body["ranks"], body["differ"], body["elements"]) == ("new", [0, 1], 4, 4)
        assert steps[0] <= body["step"] <= steps[0] + 2 and body["firstDiffering"] == [0] and body["largest"]["value"] > 0
        assert body["text"].startswith(f"new differs between rank 0 and rank 1 at step {body['step']} (of rank 1: ")
        assert "): 4 of 4 elements, the first at [0], max |d| " in body["text"]
        assert body["path"] == str(run.path) and body["line"] == line_of(run.path, "new = w")


def test_a_stop_in_one_rank_holds_the_others_and_any_of_them_lets_all_go_on(adapter, tmp_path):
    found, root = children(adapter, 2, [], program=str(PROGRAM), args=["free", str(tmp_path / "end")],
                           dvm={"hotReload": "off", "holdRanks": True})
    first, second = found["rank 0"], found["rank 1"]
    for rank in found.values():
        rank.event("dvm/step", timeout=WAIT)
    for stops, held in ((second, first), (first, second)):
        stops.set_breakpoints(str(PROGRAM), [LINE])
        stood = stops.event("stopped", timeout=WAIT)["body"]
        body = held.event("stopped", timeout=WAIT)["body"]
        name = "rank 1" if stops is second else "rank 0"
        assert (stood["reason"], body["reason"], body["text"]) == ("breakpoint", "pause", f"{name} stands (Paused on tensor line)")
        assert held.stack(body["threadId"]) and not list(root.seen("stopped"))
        stops.set_breakpoints(str(PROGRAM), [])
        held.go_on(body["threadId"])
        stops.event("continued", timeout=WAIT)
        for rank in found.values():
            launches = max(told["launches"] for told in rank.seen("dvm/step"))
            rank.event("dvm/step", timeout=WAIT, where=lambda told, launches=launches: told["launches"] > launches)
    second.request("pause", threadId=1)
    thread = second.event("stopped", timeout=WAIT)["body"]["threadId"]
    first.event("stopped", timeout=WAIT)
    second.request("next", threadId=thread)
    first.event("continued", timeout=WAIT)
    thread = second.event("stopped", timeout=WAIT, where=lambda body: body["reason"] == "step")["body"]["threadId"]
    first.event("stopped", timeout=WAIT)
    (tmp_path / "end").touch()
    second.go_on(thread)
    root.event("terminated", timeout=WAIT)
    assert "ended 0 0" in root.printed()
