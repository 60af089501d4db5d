"""What a debugger needs of models compiled by torch.compile(backend="dvm"): places with columns and modules, stops, exchanged code."""
import sys
from pathlib import Path

import numpy as np
import pytest
from agent_harness import Running, adapter, line_of  # noqa: F401 - the fixture among them
from torch_kit import torch

import dvm_core as dvm
from dvm_core import _core, advice
from dvm_core.agent import views
from dvm_core.agent.places import Texts
from dvm_core.frontends import attempts, capture, reloadable, torch_reload
from dvm_core.hotreload import report
from dvm_core.hotreload.sources import SourceBook

SOURCE = """import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x) * 2.0
        return torch.tanh(h)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(Block(), Block())

    def forward(self, x):
        return self.layers(x).sum()
"""


@pytest.fixture
def module(tmp_path):
    """The model of a file of its own, so that its programs are its own."""
    torch._dynamo.reset()
    path = tmp_path / "compiled_model.py"
    path.write_text(SOURCE)
    sys.path.insert(0, str(tmp_path))
    sys.modules.pop("compiled_model", None)
    import compiled_model

    yield compiled_model
    sys.path.remove(str(tmp_path))
    torch._dynamo.reset()


def programs_of(module):
    return [p for p in _core.programs() if any(i.place and _core.place_info(i.place)[0] == module.__file__ for i in p.instructions)]


def edited(module, old, new):
    """Gives Block.forward the code of the file with something replaced, as a reload does."""
    source = Path(module.__file__).read_text().replace(old, new)
    names = {}
    exec(compile(source, module.__file__, "exec"), names)
    module.Block.forward.__code__ = names["Block"].forward.__code__


def test_instructions_know_columns_and_the_module_and_gradients_those_of_their_line(module):
    torch.compile(module.Model(), backend="dvm")(torch.ones(3, 4)).backward()
    places = {_core.place_info(i.place) for p in programs_of(module) for i in p.instructions if i.place}
    line = SOURCE.splitlines().index("        h = self.lin(x) * 2.0") + 1
    for backward in (False, True):
        for block in range(2):
            assert (module.__file__, line, line, 13, 30, f"forward (layers.{block})", backward) in places
            assert (module.__file__, line + 1, line + 1, 16, 29, f"forward (layers.{block})", backward) in places


def test_a_model_of_stock_modules_names_them_where_it_has_no_line():
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.Tanh()))
    before = {p.id for p in _core.programs()}
    torch.compile(model, backend="dvm")(torch.ones(3, 4))
    found = {_core.place_info(i.place)[:2] + _core.place_info(i.place)[5:6] for p in _core.programs() if p.id not in before
             for i in p.instructions}
    assert {("", 0, "0"), ("", 0, "1.0")} <= found


def test_a_stop_in_a_forward_is_inside_the_compiled_call_and_the_debugger_is_told_that_its_python_does_not_run(module):
    model = module.Model()
    compiled = torch.compile(model, backend="dvm")
    x = torch.ones(3, 4)
    expected = compiled(x)
    program = programs_of(module)[-1]
    index = next(i.index for i in program.instructions if i.name == "TANH")
    stops = []

    def stop(launch, instruction, reason, hooks):
        seen, frame, names = capture.launching(), sys._getframe(), []
        while frame is not None:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        stops.append((instruction, launch.next, seen.mode, seen.front_end, test.__name__ in names))

    test = test_a_stop_in_a_forward_is_inside_the_compiled_call_and_the_debugger_is_told_that_its_python_does_not_run
    _core.set_stop_handler(stop)
    _core.set_hook(program.id, index, _core.HOOK_STOP, 1)
    try:
        assert torch.equal(compiled(x), expected)
    finally:
        _core.clear_hook(program.id, index, _core.HOOK_STOP, 1)
        _core.set_stop_handler(None)
    assert stops == [(index, index, "graph", "torch", True)]


def test_exchanged_code_of_an_inner_module_is_compiled_again_and_other_files_change_nothing(module, tmp_path):
    torch.manual_seed(0)
    model = module.Model()
    compiled = torch.compile(model, backend="dvm")
    x = torch.ones(3, 4)
    old = compiled(x)
    assert torch_reload.outdated(str(tmp_path / "other.py")) == 0
    edited(module, "* 2.0", "* 3.0")
    assert torch_reload.outdated(module.__file__) == 1
    new = compiled(x)
    assert torch.allclose(new, model(x)) and not torch.allclose(new, old)
    assert torch.equal(compiled(x), new)


def test_a_swap_that_is_queued_is_made_between_two_forwards_and_the_next_is_its_trial(module):
    model = module.Model()
    compiled = torch.compile(model, backend="dvm")
    x = torch.ones(3, 4)
    old = compiled(x)
    told = []

    def swap(step):
        edited(module, "* 2.0", "* 3.0")
        torch_reload.outdated(module.__file__)
        reloadable.on_success(lambda passed: told.append((step, passed)), module.__file__)

    reloadable.at_next_call(swap)
    assert torch.equal(compiled(x), old) and told == []
    assert not torch.allclose(compiled(x), old)
    assert told == [(_core.step(), _core.step())]


def broken(x):
    raise KeyError("new code")


def shifted(x):
    return x * 2 + 1


@pytest.mark.parametrize("new", [broken, shifted])
def test_a_forward_does_not_end_the_trial_of_a_captured_functions_new_code(module, new):
    def scale(x):
        return x * 2

    function, a, x = dvm.jit(scale, mode="graph"), dvm.tensor(np.ones((2, 3), np.float32)), torch.ones(3, 4)
    compiled = torch.compile(module.Model(), backend="dvm")
    compiled(x)
    for _ in range(3):
        function(a)
    assert torch_reload.shows(module.__file__) and not torch_reload.shows(__file__)
    old, told, errors = scale.__code__, [], []

    def undo(error):
        errors.append(type(error))
        scale.__code__ = old

    def swap(step):
        scale.__code__ = new.__code__
        reloadable.trial(undo, __file__)
        reloadable.on_success(told.append, __file__)

    reloadable.at_next_call(swap)
    for _ in range(3):
        compiled(x)
    assert told == errors == []
    result = function(a).numpy()[0, 0]
    assert (result, errors, told) == ((2, [KeyError], []) if new is broken else (3, [], [_core.step()]))
    assert not reloadable.waiting() and function(a).numpy()[0, 0] == result


def test_a_replay_is_held_until_the_trial_that_a_forward_swapped_in(module):
    factors = {"scale": 2.0}

    def scale(x):
        return x * factors["scale"]

    function, a, x, told = dvm.jit(scale, mode="graph"), dvm.tensor(np.ones((2, 3), np.float32)), torch.ones(3, 4), []
    compiled = torch.compile(module.Model(), backend="dvm")
    for _ in range(3):
        function(a)
    reloadable.at_next_call(lambda step: reloadable.on_success(told.append, __file__))
    compiled(x)
    assert told == []
    function(a)  # its arguments are known: only the hold brings this call to Python
    assert told == [_core.step()]


@pytest.mark.parametrize("new", ["* missing", "* torch.ones(5)"])
def test_new_code_whose_first_call_fails_is_taken_back_and_the_call_is_made_with_the_old_code(module, new):
    model, x, undone, told = module.Model(), torch.ones(3, 4), [], []
    compiled = torch.compile(model, backend="dvm")
    expected = compiled(x)
    old = module.Block.forward.__code__

    def undo(error):
        undone.append(report.failure(error, module.__file__))
        module.Block.forward.__code__ = old
        torch_reload.outdated(module.__file__)

    def swap(step):
        edited(module, "* 2.0", new)
        torch_reload.outdated(module.__file__)
        reloadable.trial(undo, module.__file__)
        reloadable.on_success(told.append, module.__file__)

    reloadable.at_next_call(swap)
    for _ in range(3):
        assert torch.equal(compiled(x), expected)
    assert len(undone) == 1 and undone[0].startswith("compiled_model.py:9: ") and told == [] and not reloadable.waiting()
    reloadable.at_next_call(lambda step: (edited(module, "* 2.0", "* 3.0"), torch_reload.outdated(module.__file__)))
    compiled(x)
    assert torch.equal(compiled(x), torch.compile(model, backend="dvm")(x)) and not torch.equal(compiled(x), expected)


@pytest.mark.parametrize(("rows", "new", "told"), [
    (3, "self.lin(x[:, :2].repeat(1, 2))[:, :2]", "Block would return float32[3,2] instead of float32[3,4] for the same inputs"),
    (5, "self.lin(x)[0]", "Block would return float32[4] instead of float32[3,4] for inputs like these"),
    (5, "self.lin(x) * 3.0", None),
])
def test_new_code_whose_results_are_otherwise_is_taken_back_and_other_sizes_alone_are_no_change(module, rows, new, told):
    model, errors = module.Block(), []
    compiled, x = torch.compile(model, backend="dvm"), torch.ones(rows, 4)
    compiled(torch.ones(3, 4))
    expected, old = model(x), module.Block.forward.__code__

    def undo(error):
        errors.append(str(error))
        module.Block.forward.__code__ = old
        torch_reload.outdated(module.__file__)

    def swap(step):
        edited(module, "self.lin(x) * 2.0", new)
        torch_reload.outdated(module.__file__)
        reloadable.trial(undo, module.__file__)

    reloadable.at_next_call(swap)
    compiled(torch.ones(3, 4))  # shows what results are like
    assert torch.allclose(compiled(x), expected) == bool(told)
    assert errors == ([told] if told else []) and not reloadable.waiting()


def test_a_swap_made_while_a_call_runs_is_tried_by_the_next_one_and_a_loop_that_is_compiled_ends_trials_by_its_rounds(module):
    model, x, told = module.Model(), torch.ones(3, 4), []

    def loop(rounds, during=None):
        total = 0.0
        for number in range(rounds):
            if number == 1 and during is not None:
                torch._dynamo.graph_break()
                during()
            total = total + model(x)
        return total

    compiled = torch.compile(model, backend="dvm")
    expected = compiled(x).item()
    running = torch.compile(loop, backend="dvm")
    during = torch._dynamo.disable(lambda: reloadable.on_success(told.append, module.__file__))
    assert running(2, during).item() == pytest.approx(2 * expected) and told == []
    compiled(x)
    assert told == [_core.step()]
    assert not attempts.calling()


def test_a_place_is_its_expression_and_nothing_after_it_and_graphs_are_advised_on(tmp_path):
    torch._dynamo.reset()
    path = tmp_path / "nested.py"
    path.write_text("import torch\n\n\ndef work(x):\n    return (torch.exp(torch.tanh(torch.sin(x)))\n            + 1)\n")
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    torch.compile(names["work"], backend="dvm")(torch.ones(3))
    found = {(i.name, *_core.place_info(i.place)[1:5]) for p in _core.programs() for i in p.instructions
             if i.place and _core.place_info(i.place)[0] == str(path)}
    assert {"torch forward"} <= set(advice.of(dvm.stats()))
    assert {("SIN", 5, 5, 34, 46), ("TANH", 5, 5, 23, 47), ("EXP", 5, 5, 13, 48)} <= found


@pytest.mark.parametrize("wrong", ["b(h[:, :1])", "(torch._dynamo.graph_break(), b(h[:, :1]))[1]", "missing(h)"])
def test_a_refusal_names_the_line_at_fault_where_the_call_is_in_the_same_file(tmp_path, wrong):
    path = tmp_path / "together.py"
    path.write_text(f"import torch\n\n\ndef head(b, h):\n    h = h * 2\n    return {wrong}\n\n\ndef forward(x):\n    return head(\n        "
                    "torch.nn.Linear(4, 2), x)\n\n\ndef run():\n    return torch.compile(forward, backend='dvm')(torch.ones(3, 4))\n")
    names = {"__name__": "together"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    torch._dynamo.reset()
    with pytest.raises((NameError, RuntimeError)) as caught:
        names["run"]()
    assert report.failure(caught.value, str(path)).startswith("together.py:6: ")


def test_at_a_stop_in_a_backward_gradients_and_arguments_have_names(module):
    model = module.Model()
    compiled, x = torch.compile(model, backend="dvm"), torch.ones(3, 4, requires_grad=True)
    compiled(x).backward()
    program, seen = next(p for p in reversed(programs_of(module)) if p.backward), {}

    def stop(launch, instruction, reason, hooks):
        view = views.LaunchView(launch, instruction, capture.launching(), Texts(SourceBook()), sys._getframe())
        seen.update({tensor.name: (tensor.shape, tensor.array()) for tensor in view.tensors()})

    last = max(i.index for i in program.instructions)
    _core.set_stop_handler(stop)
    _core.set_hook(program.id, last, _core.HOOK_STOP, 1)
    try:
        compiled(x).backward()
    finally:
        _core.clear_hook(program.id, last, _core.HOOK_STOP, 1)
        _core.set_stop_handler(None)
    named = {i.value_name for i in program.instructions}
    assert {"grad(h)", "grad(x)", "grad(self.layers.0.lin.weight)", "grad(self.layers.1.lin.bias)"} <= named
    assert seen["x"][0] == (3, 4)
    h = model.layers[0].lin(x) * 2.0
    loss = model.layers[1](torch.tanh(h)).sum()
    for name, expected in zip(("grad(h)", "grad(x)"), torch.autograd.grad(loss, (h, x)), strict=True):
        np.testing.assert_allclose(seen[name][1], expected, rtol=1e-5, atol=1e-6)


def test_a_result_of_several_ops_names_its_last_and_an_intermediate_keeps_its_own(tmp_path):
    torch._dynamo.reset()
    path = tmp_path / "several.py"
    path.write_text("import torch\n\n\ndef work(x, w, labels):\n    g = torch.tanh(x)\n    k = g + x * w\n"
                    "    loss = torch.nn.functional.cross_entropy(k, labels)\n    return loss * 2\n")
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    x, w = (torch.randn(3, 4, requires_grad=True) for _ in range(2))
    known = {p.id for p in _core.programs()}
    torch.compile(names["work"], backend="dvm")(x, w, torch.tensor([0, 1, 2])).backward()
    found = {i.value_name for p in _core.programs() if p.id not in known and p.backward for i in p.instructions}
    assert {"grad(g)", "grad(loss)", "grad(x)", "grad(w)"} <= found <= {"", "grad(g)", "grad(k)", "grad(loss)", "grad(x)", "grad(w)"}


def test_a_captured_call_does_not_end_the_trial_of_a_compiled_models_new_code(module):
    function, a, x = dvm.jit(lambda x: x * 2), dvm.tensor(np.ones(3, np.float32)), torch.ones(3, 4)
    compiled, told, undone = torch.compile(module.Model(), backend="dvm"), [], []
    function(a)
    expected, old = compiled(x), module.Block.forward.__code__

    def undo(error):
        undone.append(type(error).__name__)
        module.Block.forward.__code__ = old
        torch_reload.outdated(module.__file__)

    def swap(step):
        edited(module, "* 2.0", "* missing")
        torch_reload.outdated(module.__file__)
        reloadable.trial(undo, module.__file__)
        reloadable.on_success(told.append, module.__file__)

    reloadable.at_next_call(swap)
    function(a)  # it begins with the swap, and shows nothing of the model
    assert module.Block.forward.__code__ is not old and reloadable.waiting()
    assert torch.equal(compiled(x), expected) and len(undone) == 1 and told == [] and not reloadable.waiting()


PLAIN = """import torch


def forward(x):
    count = 3  # no op
    h = x * 2.0

    y = torch.tanh(h) + count
    return y
"""


def test_a_breakpoint_on_a_compiled_line_without_an_op_is_moved_to_the_next_that_has_one(adapter, tmp_path):  # noqa: F811
    path, names = tmp_path / "plain_lines.py", {}
    path.write_text(PLAIN)
    exec(compile(PLAIN, str(path), "exec"), names)
    torch._dynamo.reset()
    first, second, third = (line_of(text, path) for text in ("count = 3", "y = torch", "return y"))
    asked = [{"id": number, "path": str(path), "line": line} for number, line in ((1, first), (2, second), (3, third))]
    adapter.request("breakpoints", lines=asked)
    running = Running(torch.compile(names["forward"], backend="dvm"), torch.ones(8))
    stops = []
    for _ in range(2):
        stops.append(adapter.event("vmstop"))
        adapter.request("go", thread=stops[-1]["thread"])
    assert np.array_equal(running.join().numpy(), (torch.tanh(torch.ones(8) * 2) + 3).numpy())
    assert [stop["bp"] for stop in stops] == [[1], [2]]
    told = {event["id"]: event for event in adapter.seen if event.get("ev") == "bound"}
    assert told[1]["line"] == first + 1
    assert told[1]["message"].startswith(f"the next line with an instruction, of line {first} there is none; ")
    assert "line" not in told[2] and told[3]["hint"] and told[3]["message"].startswith("nothing stops here: ")
    torch._dynamo.reset()


def test_a_watch_of_a_name_that_nothing_has_is_told_which_names_there_are(adapter, tmp_path):  # noqa: F811
    path, names = tmp_path / "plain_names.py", {}
    path.write_text(PLAIN)
    exec(compile(PLAIN, str(path), "exec"), names)
    torch._dynamo.reset()
    adapter.request("watch", expression="nosuchthing", path=str(path), what="stats")
    compiled = torch.compile(names["forward"], backend="dvm")
    for _ in range(4):
        compiled(torch.ones(8))
    text = "watch nosuchthing: nothing has made it in 2 steps; made so far: h, y"
    assert adapter.event("notice", where=lambda event: event["category"] == "watch")["text"] == text
    torch._dynamo.reset()
