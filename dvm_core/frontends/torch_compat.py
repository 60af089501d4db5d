"""Every part of PyTorch that is not public and that this front end reads, and what happens if a version lacks it. Made for 2.13; where a
part is only nicer to have, the public way is gone, with one notice."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import torch._dynamo  # first: the parts below import one another

from . import internals

TESTED = "2.13"
_inner = internals.Internals("PyTorch", torch.__version__, TESTED, 'Without backend="dvm" the program runs as usual')


def _required(path: str, what: str) -> Any:
    return _inner.required(f"{path.rpartition('.')[2]} ({what})", lambda: internals.part(path))


def _optional(what: str, **paths: str) -> Any:
    """A namespace of the parts by name, None if one is not there."""
    return _inner.optional(what, lambda: SimpleNamespace(**{name: internals.part(path) for name, path in paths.items()}))


aot_module_simplified = _required("torch._functorch.aot_autograd.aot_module_simplified", "graphs of forward and backward")
core_aten_decompositions = _required("torch._decomp.core_aten_decompositions", "core ops")
flatten_graph_inputs = _required("torch._dynamo.utils.flatten_graph_inputs", "lists among the arguments of a graph")

# Without: DistributedDataParallel takes the parts of a model for graphs without gradients of their own, and says so.
counts = _optional("counters (what DistributedDataParallel asks for)", counters="torch._dynamo.utils.counters")
# Without: traces of more than one line mark all up to the end of the first.
spans = _optional("InstructionTranslatorBase (ends of expressions in places)",
                  Translator="torch._dynamo.symbolic_convert.InstructionTranslatorBase")
# Without: values have the names of the graph's listing.
descriptors = _optional("descriptors of AOTAutograd's arguments and results (names of values)",
                        Gradient="torch._functorch._aot_autograd.descriptors.GradAOTOutput",
                        Argument="torch._functorch._aot_autograd.descriptors.PlainAOTInput")
# Without: an edit makes Dynamo compile everything again, by `torch.compiler.reset()`.
tracing = _optional("InstructionTranslator and TracingContext (which functions an edit makes Dynamo compile again: now it is all)",
                    Translator="torch._dynamo.symbolic_convert.InstructionTranslator", Context="torch._guards.TracingContext")
# Without: an edit of code inside a compiled model is in force for good, also if its first call fails.
wrapping = _optional("OptimizeContext (the first call with new code as a trial)",
                     Context="torch._dynamo.eval_frame.OptimizeContext", innermost="torch._dynamo.eval_frame.innermost_backend")
# Without: a call under FakeTensorMode ends in an error.
faking = _optional("_get_dispatch_mode (calls under FakeTensorMode)", mode="torch._C._get_dispatch_mode",
                   Key="torch._C._TorchDispatchModeKey")
# Without: Dynamo would compile our own functions where a program's backward is compiled while it runs.
skipping = _optional("trace_rules.add (our own code is not the model's)", add="torch._dynamo.trace_rules.add")
# Without: AOTAutograd's own partition, which keeps more for the backward.
partitioning = _optional("default_partition (less to keep for the backward)", default="torch._functorch.partitioners.default_partition")


def autograd() -> Any:
    """What an autograd function of ours needs in the place of AOTAutograd's, None if that must stay: it takes longer and does all. Other
    versions may have parts of these names that do something else, so it stays there, too."""
    if not torch.__version__.startswith(f"{TESTED}."):
        return None
    inside = "torch._functorch._aot_autograd"
    wrappers = f"{inside}.runtime_wrappers"
    return _optional(
        "parts of AOTAutograd that an autograd function of ours is made of (its own is used, which takes longer)",
        Way=f"{wrappers}.AOTDispatchAutograd", Backward=f"{wrappers}._AutogradBackwardCompiler",
        First=f"{wrappers}._FirstInvocationContext", mark_dynamic=f"{wrappers}.mark_dynamo_propagated_dynamic_indices",
        Mutation=f"{inside}.schemas.MutationType", Context="torch._guards.TracingContext", compiled="torch._dynamo.compiled_autograd",
        transforms="torch._C._are_functorch_transforms_active", interpreter="torch._C._functorch.peek_interpreter_stack",
        hooks="torch._C._autograd._top_saved_tensors_default_hooks", kept="torch._C._autograd._get_current_graph_task_keep_graph",
        tls="torch._C._get_obj_in_tls", in_tls="torch._C._is_key_in_tls", forward_ad="torch.autograd.forward_ad",
        deterministic="torch.are_deterministic_algorithms_enabled")
