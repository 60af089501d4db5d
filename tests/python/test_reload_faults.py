"""A fault of ours at each stage of a reload: it is answered with what failed, the old program runs on, and the next save works."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import pytest
from reload_kit import program  # noqa: F401 - the fixture among them

from dvm_core.hotreload import apply, fingerprint, plan, reloader, transaction

TWO = "RATE = 1\n\n\ndef scale(x):\n    return x * 2 * RATE\n"
STAGES = [(reloader, "Live"), (reloader, "parse"), (reloader, "classify"), (plan, "_codes"), (plan.names, "plan"),
          (fingerprint, "snapshot"), (apply.Patch, "apply"), (fingerprint, "launches"), (transaction, "_outdated")]


def broken(*args, **kwargs):
    raise RuntimeError("injected")


@pytest.mark.parametrize("where, name", STAGES, ids=[name for _, name in STAGES])
def test_a_fault_at_any_stage_is_answered_and_leaves_the_old_program(program, monkeypatch, where, name):
    p = program(TWO)
    monkeypatch.setattr(where, name, broken)
    answer = p.call_until(p.save(TWO.replace("= 1", "= 7").replace("* 2", "* 3")))
    monkeypatch.undo()
    assert answer.outcome == "refused" and "injected" in answer.reasons[0]
    assert p.module.scale(1) == 2 and p.module.RATE == 1 and p.book.get(str(p.path)) == TWO
    assert p.call_until(p.undo()).outcome == "unchanged"
    assert p.call_until(p.save(TWO.replace("* 2", "* 5"))).outcome == "applied" and p.module.scale(1) == 5


def test_what_was_swapped_is_swapped_back_when_a_later_place_takes_no_new_value(program, monkeypatch):
    p = program(TWO)
    item = apply.item

    def refusing(names, name, value):
        made = item(names, name, value)
        made.write = broken
        return made

    monkeypatch.setattr(apply, "item", refusing)  # the constant comes after the function's code
    answer = p.call_until(p.save(TWO.replace("= 1", "= 7").replace("* 2", "* 3")))
    assert answer.outcome == "refused" and "injected" in answer.reasons[0]
    assert p.module.scale(1) == 2 and p.module.RATE == 1


def test_a_fault_after_the_swap_does_not_deny_what_is_in_force(program):
    p = program(TWO)
    p.reloader.host.swapped = broken
    answer = p.call_until(p.save(TWO.replace("* 2", "* 3")))
    assert answer.outcome == "applied" and "injected" in answer.reasons[0] and p.module.scale(1) == 3
