"""What this front end reads of PyTorch's inside: without any one of these parts it says so, and gives PyTorch's numbers another way."""
from __future__ import annotations

import contextlib
import dataclasses
import importlib
import sys

import pytest
from torch_kit import fresh, torch  # noqa: F401 - the fixture among them

import dvm_core as dvm
from dvm_core.frontends import internals, notices, torch_compat

REQUIRED = ["torch._functorch.aot_autograd.aot_module_simplified", "torch._decomp.core_aten_decompositions",
            "torch._dynamo.utils.flatten_graph_inputs"]
PATCHED = [(torch._dynamo.symbolic_convert.InstructionTranslatorBase, "frame_summary"),
           (torch._dynamo.eval_frame.OptimizeContext, "__call__"),
           (torch._functorch._aot_autograd.runtime_wrappers.AOTDispatchAutograd, "post_compile")]


def read_paths(ask=None):
    """All paths that the front end asks for."""
    found, plain = [], internals.part
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(internals, "part", lambda path: found.append(path) or plain(path))
        if ask is not None:
            ask()
        else:
            with anew():
                pass
    return found


@contextlib.contextmanager
def anew():
    """The front end imported once more; what it put into PyTorch is taken back."""
    patched = [(owner, name, owner.__dict__[name]) for owner, name in PATCHED]
    ours = {name: module for name, module in sys.modules.items() if name.startswith("dvm_core.frontends.torch")}
    package = sys.modules["dvm_core.frontends"]
    for name in ours:
        del sys.modules[name]
        delattr(package, name.rpartition(".")[2])
    for owner, name, value in patched:  # as PyTorch made it
        plain = value.__func__ if isinstance(value, staticmethod) else value
        while hasattr(plain, "__wrapped__"):
            plain = plain.__wrapped__
        setattr(owner, name, staticmethod(plain) if isinstance(value, staticmethod) else plain)
    try:
        yield importlib.import_module("dvm_core.frontends.torch")
    finally:
        for owner, name, value in patched:
            setattr(owner, name, value)
        for name, module in ours.items():
            sys.modules[name] = module
            setattr(package, name.rpartition(".")[2], module)


AUTOGRAD = sorted({*read_paths(torch_compat.autograd)} - {"torch._guards.TracingContext"})


@pytest.fixture
def told(monkeypatch):
    found = []
    monkeypatch.setattr(notices, "_told", set())
    notices.add_sink(found.append)
    yield found
    notices.remove_sink(found.append)


def missing(monkeypatch, gone):
    plain = internals.part

    def part(path):
        if path == gone:
            raise AttributeError(f"no {path}")
        return plain(path)

    monkeypatch.setattr(internals, "part", part)


def trains(backend):
    """Loss and gradients are eager mode's, twice; whether our autograd function was the one."""
    weight = torch.linspace(-1, 1, 12).reshape(4, 3).requires_grad_()
    x = torch.linspace(0, 2, 8).reshape(2, 4)

    def loss(x):
        return torch.tanh(x @ weight).square().sum()

    expected, = torch.autograd.grad(loss(x), weight)
    compiled = torch.compile(loss, backend=backend)
    for _ in range(2):
        result = compiled(x)
        weight.grad = None
        result.backward()
        torch.testing.assert_close(weight.grad, expected)
    return result.grad_fn.name() == "CompiledBackward"


def test_every_part_is_asked_for_by_its_path():
    paths = read_paths()
    assert len(paths) == len(set(paths)) + 1 and set(REQUIRED) < set(paths)  # TracingContext for two ends


@pytest.mark.parametrize("path", REQUIRED)
def test_a_part_that_nothing_works_without_is_named_with_the_versions(path, monkeypatch):
    missing(monkeypatch, path)
    said = rf"PyTorch 2\.13\..* has no {path.rpartition('.')[2]} .*tested with PyTorch 2\.13\. .*the program runs as usual"
    with pytest.raises(dvm.UnsupportedError, match=said), anew():
        pass


def test_an_autograd_function_of_ours_needs_all_its_parts(told):
    for path in AUTOGRAD:
        notices._told.clear()
        with pytest.MonkeyPatch.context() as patch:
            missing(patch, path)
            assert torch_compat.autograd() is None and path in told[-1]["text"]
    assert len(told) == len(AUTOGRAD)


def test_without_any_other_part_models_train_with_one_notice(told):
    trained = set()
    for path in sorted({*read_paths()} - {*REQUIRED, *AUTOGRAD[1:]}):
        torch._dynamo.reset()
        told.clear()
        notices._told.clear()
        with pytest.MonkeyPatch.context() as patch:
            missing(patch, path)
            with anew() as module:
                mine = [note["text"] for note in told if note["category"] == "compatibility"]
                assert mine and all(path in text for text in mine), path
                groups = {text.partition("(")[0] for text in mine}
                if groups <= trained:  # nothing is used of a group that lacks a part
                    continue
                trained |= groups
                assert trains(module.dvm) == (not any("autograd function" in text for text in mine)), path
                if module.compat.tracing is None:
                    assert module.torch_reload.shows("any.py") and module.torch_reload.outdated("any.py") == 1


def test_another_version_of_pytorch_has_its_own_autograd_function(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.14.0")
    assert torch_compat.autograd() is None


@pytest.mark.parametrize("field", ["num_mutated_inp_runtime_indices", "tensors_saved_for_backwards_no_vc_check_slice"])
def test_graphs_described_in_another_way_go_aotautograds(field, told):
    class Data:
        def __init__(self, real):
            object.__setattr__(self, "real", real)

        def __getattr__(self, name):
            if name == field and sys._getframe(1).f_globals["__name__"].startswith("dvm_core."):
                raise AttributeError(f"no {name}")
            return getattr(self.real, name)

        def __setattr__(self, name, value):
            setattr(self.real, name, value)

    with anew() as module:
        way = PATCHED[2][0]
        plain = way.post_compile
        way.post_compile = staticmethod(lambda spec: plain(dataclasses.replace(spec, fw_metadata=Data(spec.fw_metadata))))
        assert not trains(module.dvm)
    mine = [note["text"] for note in told if note["category"] == "compatibility"]
    assert len(mine) == 1 and field in mine[0]
