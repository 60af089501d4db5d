"""The call boundary hot reload hangs on: order, trial, taking back."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dvm_core as dvm
from dvm_core import _core
from dvm_core.frontends import array_call, attempts, reloadable, signatures

A = dvm.tensor(np.ones((2, 3), np.float32))


def make() -> Any:
    """A captured function whose code is exchanged by changing its __code__, as hot reload does."""
    def f(x: Any) -> Any:
        return x * 2

    return dvm.jit(f)


def double(x: Any) -> Any:
    return x * 2


def triple(x: Any) -> Any:
    return x * 3


def broken(x: Any) -> Any:
    raise KeyError("new code")


def alike(x: Any) -> Any:
    return {}["new code"]


def other_shape(x: Any) -> Any:
    return (x * 2).sum(0)


def exchange(function: Any, new: Any) -> Any:
    inner = function.__dvm__.function
    old = inner.__code__

    def undo(error: Exception) -> None:
        errors.append(error)
        inner.__code__ = old

    errors: list[Exception] = []

    def apply(step: int) -> None:
        inner.__code__ = new.__code__
        reloadable.trial(undo)

    reloadable.at_next_call(apply)
    return errors


def test_queued_code_is_in_force_at_the_next_call_with_its_step() -> None:
    f, steps = make(), []
    f(A)
    reloadable.at_next_call(steps.append)
    assert not steps
    f(A)
    f(A)
    assert steps == [reloadable.step() - 1]


def test_good_code_passes_its_trial() -> None:
    f, passed = make(), []
    f(A)
    errors = exchange(f, triple)
    reloadable.on_success(passed.append)
    assert f(A).numpy()[0, 0] == 3
    assert f(A).numpy()[0, 0] == 3
    assert not errors and passed == [reloadable.step() - 1]


@pytest.mark.parametrize(("new", "kind"), [(broken, KeyError), (other_shape, reloadable.OutputsChanged)])
def test_bad_code_is_taken_back_and_the_step_is_not_lost(new: Any, kind: type) -> None:
    f, passed = make(), []
    f(A)
    step = reloadable.step()
    errors = exchange(f, new)
    reloadable.on_success(passed.append)
    assert f(A).numpy()[0, 0] == 2
    assert reloadable.step() == step + 1
    assert [type(error) for error in errors] == [kind]
    assert not passed
    assert f(A).numpy()[0, 0] == 2


def named(name: str, function: Any) -> Any:
    function.__qualname__ = name
    return dvm.jit(function)


class Swaps:
    """Exchanges of `guilty`'s code that are made at a call of `first`, and what each hears of late trials."""

    def __init__(self, tag: str) -> None:
        self.first, self.guilty, self.rare = named(f"first{tag}", make().__dvm__.function), named(f"guilty{tag}", lambda x: x + 1), make()
        self.heard: list[str] = []
        for function in (self.first, self.guilty):
            function(A)

    def swap(self, name: str, code: Any, blamed: bool = True) -> None:
        inner = self.guilty.__dvm__.function
        old = inner.__code__

        def late(error: BaseException) -> Any:
            self.heard.append(f"{name}: {error}")
            if not blamed:
                return None
            inner.__code__ = old

            def settled(helped: bool) -> None:
                self.heard.append(f"{name} {'was it' if helped else 'was not'}")
                if not helped:
                    inner.__code__ = code

            return settled

        def apply(step: int) -> None:
            inner.__code__ = code
            reloadable.trial(lambda error: None, late=late)

        reloadable.at_next_call(apply)
        self.first(A)


def test_the_first_call_of_each_other_function_behind_a_swap_is_a_late_trial() -> None:
    swaps = Swaps("a")
    swaps.swap("proven", triple.__code__)
    assert swaps.guilty(A).numpy()[0, 0] == 3 and not swaps.heard
    swaps.swap("bad", broken.__code__)
    swaps.swap("elsewhere", broken.__code__, blamed=False)
    assert swaps.guilty(A).numpy()[0, 0] == 3  # made again
    assert swaps.heard == ["elsewhere: 'new code'", "bad: 'new code'", "bad was it"]  # the last first, past one that has no part in it
    swaps.guilty.__dvm__.function.__code__ = broken.__code__
    with pytest.raises(KeyError):  # it was called since
        swaps.guilty(A)
    assert len(swaps.heard) == 3


def test_an_edit_without_which_the_call_fails_alike_stays_in_force() -> None:
    swaps = Swaps("b")
    inner = swaps.guilty.__dvm__.function
    inner.__code__ = broken.__code__  # of the program's own
    swaps.swap("good", alike.__code__)
    with pytest.raises(KeyError, match="new code"):
        swaps.guilty(A)
    assert swaps.heard == ["good: 'new code'", "good was not"]


def test_results_that_have_other_shapes_at_each_call_are_no_edits_fault() -> None:
    swaps = Swaps("c")
    rows = [1]

    def grows(x: Any) -> Any:
        rows.append(1)
        return dvm.tensor(np.ones((len(rows),), np.float32)) * 2

    swaps.guilty = named("grows", grows)
    swaps.guilty(A)
    swaps.swap("good", grows.__code__)
    assert swaps.guilty(A).shape == (5,)
    assert [heard.rpartition(" ")[2] for heard in swaps.heard[1:]] == ["not"]


def test_a_function_that_was_never_called_before_the_swap_is_waited_for() -> None:
    swaps = Swaps("d")
    swaps.rare = named("rare", lambda x: x + 5)
    swaps.swap("good", triple.__code__)
    assert swaps.rare.__dvm__.key in reloadable._late
    swaps.rare(A)
    assert swaps.rare.__dvm__.key not in reloadable._late


def test_a_swap_can_be_for_a_call_of_one_function_with_and_without_replays() -> None:
    def other(x: Any) -> Any:
        return x + 1

    f, g = dvm.jit(other), dvm.jit(other_shape, mode="graph")
    name, of = f.__dvm__.key, g.__dvm__.key
    before, replayed = reloadable.calls().get(name, 0), reloadable.calls().get(of, 0)
    for _ in range(4):
        g(A)
    f(A)
    assert (reloadable.calls()[name], reloadable.calls()[of]) == (before + 1, replayed + 4)
    assert [_core.call_of_step(reloadable.step() - back) for back in (0, 1)] == [(name, before + 1), (of, replayed + 4)]
    seen: list[tuple[int, int]] = []
    reloadable.at_next_call(lambda step: seen.append((step, reloadable.calls()[of])), replayed + 6, of)
    for _ in range(3):
        f(A)
        g(A)
    assert seen == [(reloadable.step() - 2, replayed + 6)] and not reloadable.waiting()


def test_what_is_taken_from_the_queue_holds_nothing_up() -> None:
    f = make()
    cancel = reloadable.at_next_call(lambda step: None, 10**9, "a function that is called no more")
    f(A)
    assert reloadable.waiting()
    cancel()
    assert not reloadable.waiting()
    cancel()  # it has gone


def test_a_call_that_cannot_be_described_is_made_all_the_same() -> None:
    swapped: list[int] = []
    reloadable.at_next_call(swapped.append)
    for number in range(4):
        assert attempts.attempt(lambda number=number: number, lambda path: True, lambda: 1 / 0, lambda result: 1 / 0) == number
    assert len(swapped) == 1 and not reloadable.waiting()


@pytest.mark.parametrize(("value", "said"), [
    ({"tensor": A, "int": 2, "float": (0.5, None)}, "dict(tensor: float32[2,3], int: 2, float: tuple(0.5, None))"),
    ([A, "a"], "list(float32[2,3], a)"),
])
def test_arguments_named_like_parts_of_a_signature_are_arguments(value: Any, said: str) -> None:
    described = signatures.signature(value, array_call.describe)
    assert signatures.words(described) == said
    assert signatures.without_sizes(described) == signatures.without_sizes(signatures.signature(value, array_call.describe))
    assert "2" not in str(signatures.without_sizes(described)).replace("float32", "").replace("', 2)", "")


def test_changed_outputs_are_named_with_shapes() -> None:
    f = make()
    f(A)
    errors = exchange(f, other_shape)
    f(A)
    assert "would return float32[3] instead of float32[2,3]" in str(errors[0])


def test_other_shape_is_fine_where_nothing_was_known() -> None:
    f = make()
    errors = exchange(f, other_shape)
    assert f(dvm.tensor(np.ones((5, 7, 2), np.float32))).shape == (7, 2)
    assert not errors


def test_results_are_compared_whatever_the_sizes_and_numbers_of_the_arguments_are() -> None:
    def step(x: Any, rate: float) -> Any:
        return x * rate, x

    def alone(x: Any, rate: float) -> Any:
        return x * rate

    def swap(number: int) -> None:
        f.__dvm__.function.__code__ = alone.__code__
        reloadable.trial(undo)

    def undo(error: BaseException) -> None:
        errors.append(str(error))
        f.__dvm__.function.__code__ = old

    f, old, errors = dvm.jit(step), step.__code__, []
    f(A, 0.5)
    reloadable.at_next_call(swap)
    results = f(dvm.tensor(np.ones((5, 7), np.float32)), 0.25)
    assert len(results) == 2 and errors == [
        "test_results_are_compared_whatever_the_sizes_and_numbers_of_the_arguments_are.<locals>.step would return float32[5,7] instead of "
        "tuple(float32[2,3], float32[2,3]) for inputs like these"]


def test_error_of_the_old_code_reaches_the_user() -> None:
    f = make()
    f.__dvm__.function.__code__ = broken.__code__
    with pytest.raises(KeyError, match="new code"):
        f(A)


def test_failing_undo_or_apply_does_not_end_training(capsys: pytest.CaptureFixture[str]) -> None:
    f = make()
    reloadable.at_next_call(lambda step: 1 / 0)
    assert f(A).numpy()[0, 0] == 2
    assert "hot reload failed inside the debugger: ZeroDivisionError" in capsys.readouterr().err


def test_registered_functions_are_found_while_alive() -> None:
    f = make()
    assert f.__dvm__ in reloadable.functions()
    assert f.__dvm__.function.__qualname__ == f.__dvm__.name


@pytest.mark.parametrize("make_call", [lambda f: f(A), lambda f: attempts.attempt(f.__dvm__.function, lambda path: True, tuple, type)])
def test_ctrl_c_takes_new_code_back_and_the_call_is_not_made_again(make_call: Any) -> None:
    f, passed = make(), []
    f(A)

    def interrupt(*inputs: Any) -> Any:
        made.append(1)
        raise KeyboardInterrupt

    made: list[int] = []
    errors: list[BaseException] = []
    reloadable.trial(errors.append)
    reloadable.on_success(passed.append)
    with pytest.raises(KeyboardInterrupt):
        make_call(dvm.jit(interrupt))
    assert made == [1] and [type(error) for error in errors] == [KeyboardInterrupt] and not passed and not reloadable.waiting()


def test_methods_of_two_objects_are_not_compared_with_one_another() -> None:
    class Head:
        def __init__(self, width: int) -> None:
            self.width = width

        @dvm.jit
        def forward(self, x: Any) -> Any:
            return x[:, :self.width]

    narrow, wide, errors = Head(2), Head(3), []
    for head in (wide, narrow):
        head.forward(A)
    for head, shape in ((wide, (2, 3)), (narrow, (2, 2))):
        reloadable.at_next_call(lambda step: reloadable.trial(errors.append))
        assert head.forward(A).shape == shape
    assert not errors and not reloadable.waiting()
