"""Calls of PyTorch's ops: the samples of its own list of operators (`op_db`), through torch.compile(backend="dvm") and without.

`python scripts/coverage_torch.py NAME …` also calls these with operands transposed in memory and with halves beside whole numbers."""
from __future__ import annotations

import sys
import types
import unittest
import warnings
from typing import Any

import numpy as np
import torch
from coverage_calls import Verdict, differs, judge
from torch._dynamo.utils import counters

from dvm_core.frontends import observed

warnings.filterwarnings("ignore")
TOLERANCE = 1e-4


def published() -> dict[str, Any]:
    """Every operator of PyTorch's list by name, in its first variant."""
    if "expecttest" not in sys.modules:
        try:
            import expecttest  # noqa: F401
        except ImportError:  # of PyTorch's own tests, which are not run here
            sys.modules["expecttest"] = types.ModuleType("expecttest")
            sys.modules["expecttest"].TestCase = unittest.TestCase  # type: ignore[attr-defined]
    from torch.testing._internal.common_methods_invocations import op_db
    found: dict[str, Any] = {}
    for op in op_db:
        found.setdefault(op.name, op)
    return found


def _arrays(tree: Any) -> list[np.ndarray]:
    return [leaf.detach().resolve_conj().resolve_neg().numpy().copy() for leaf in torch.utils._pytree.tree_leaves(tree)
            if isinstance(leaf, torch.Tensor)]


def _weighted(results: Any) -> Any:
    """A number made of all float results, to take gradients of."""
    total = 0.0
    for leaf in torch.utils._pytree.tree_leaves(results):
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad and leaf.dtype.is_floating_point:
            total = total + (leaf * torch.linspace(0.5, 1.5, leaf.numel()).reshape(leaf.shape)).sum()
    return total


def _turned(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers with another axis innermost in memory."""
    if tensor.dim() == 4:
        return tensor.contiguous(memory_format=torch.channels_last)
    return tensor.mT.contiguous().mT if tensor.dim() > 1 else tensor


def _mixed(sample: Any) -> Any:
    """The first operand in half precision, float operands after it as whole numbers."""
    changed = iter([torch.float16])
    return sample.transform(lambda a: a.to(next(changed, torch.int64)) if isinstance(a, torch.Tensor) and a.is_floating_point() else a)


# What the results must be the same of, too: how the sample is changed, and the tolerance.
VARIANTS: dict[str, tuple[Any, float]] = {
    "turned": (lambda sample: sample.transform(lambda a: _turned(a) if isinstance(a, torch.Tensor) else a), TOLERANCE),
    "halves with whole numbers": (_mixed, 2e-3),
}


def _sample(op: Any) -> Any:
    torch.manual_seed(0)
    dtype = torch.float32 if torch.float32 in op.dtypes else torch.int64
    wants = dtype == torch.float32 and bool(op.supports_autograd)
    for sample in op.sample_inputs("cpu", dtype, requires_grad=wants):
        tensors = _tensors(sample)
        if tensors and all(0 < t.numel() < 100_000 for t in tensors):
            return sample
    return None


def _tensors(sample: Any) -> list[torch.Tensor]:
    leaves = torch.utils._pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _call(op: Any, function: Any, gradients: bool = True, change: Any = None) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Results of the op's sample, and gradients of its operands ([]: it has none). The sample is made anew: an op may change it."""
    sample = change(_sample(op)) if change else _sample(op)
    wanted = [t for t in _tensors(sample) if t.requires_grad] if gradients else []
    torch.manual_seed(1)
    results = function(sample.input, *sample.args, **sample.kwargs)
    total = _weighted(results)
    if not isinstance(total, torch.Tensor) or not wanted:
        return _arrays(results), []
    found = torch.autograd.grad(total, wanted, allow_unused=True)
    return _arrays(results), _arrays([torch.zeros_like(t) if g is None else g for t, g in zip(wanted, found, strict=True)])


def verdict(name: str) -> Verdict | None:
    """None where PyTorch has no sample for it here, cannot run it, or gives other numbers each time."""
    op = published()[name]
    if "empty" in name:  # what happens to lie in memory
        return None
    try:
        sample = _sample(op)
        if sample is None:
            return None
        plain, again = (_call(op, op.op, False)[0] for _ in range(2))
        if not plain or any(not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(plain, again, strict=True)):
            return None
    except Exception:
        return None
    try:
        gradients = _call(op, op.op)[1]
    except Exception:
        gradients = []
    found = Verdict(name, ", ".join("x".join(map(str, t.shape)) or "scalar" for t in _tensors(sample)))
    ours: list[np.ndarray] = []

    def captured() -> list[np.ndarray]:
        torch._dynamo.reset()
        counters.clear()
        results, ours[:] = _call(op, torch.compile(lambda *args, **kwargs: op.op(*args, **kwargs), backend="dvm"), bool(gradients))
        return results

    lacking = observed.of("torch backward").fallbacks.total()
    found.forward, found.note = judge(captured, plain, TOLERANCE, "torch forward", views=True)
    eager = found.forward == "ours" and bool(counters["graph_break"] or not counters["stats"]["unique_graphs"])
    if eager:
        found.forward = "fell back"  # not in a graph at all
    if gradients:
        off = differs(ours, gradients, TOLERANCE) if found.forward != "refused" else ""
        fell = eager or observed.of("torch backward").fallbacks.total() > lacking
        found.backward = "wrong" if off else "refused" if found.forward == "refused" else "fell back" if fell else "ours"
        found.note = found.note or off
    return found


def varied(name: str) -> Verdict | None:
    """That, and the op with its sample changed in ways that PyTorch takes; another result makes the verdict "wrong"."""
    found, op = verdict(name), published()[name]
    if found is None or found.forward != "ours":
        return found
    for name, (change, tolerance) in VARIANTS.items():
        try:
            plain = _call(op, op.op, False, change)[0]
        except Exception:
            continue
        torch._dynamo.reset()
        try:
            ours = _call(op, torch.compile(lambda *args, **kwargs: op.op(*args, **kwargs), backend="dvm"), False, change)[0]
            off = differs(ours, plain, tolerance)
        except Exception as error:
            off = f"{type(error).__name__}: {error}".partition("\n")[0][:160]
        if off:
            found.forward, found.note = "wrong", f"{name}: {off}"
    return found


if __name__ == "__main__":
    for asked in sys.argv[1:]:
        print(asked, varied(asked), flush=True)

