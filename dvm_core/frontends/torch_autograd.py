"""What PyTorch's autograd sees of a compiled graph with gradients: a Function of ours in the place of AOTAutograd's, which does for all
graphs what few of them need. It is used where a graph asks for nothing special; everything else, and what a call may ask for (hooks of
saved tensors, transforms, compiled autograd), goes AOTAutograd's way. Both run the same two graphs, so the bits are the same."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import Function
from torch.fx import GraphModule, Node

from . import torch_compat as compat
from .notices import notice

_ALIASES = (torch.ops.aten.alias.default, torch.ops.aten.detach.default)
_VIEWS = (torch.ops.aten.view.default, torch.ops.aten.permute.default, torch.ops.aten.t.default, torch.ops.aten.transpose.int,
          torch.ops.aten.unsqueeze.default, torch.ops.aten.expand.default)
_inner = compat.autograd()


def partition(joint: GraphModule, inputs: Any, **rest: Any) -> tuple[GraphModule, GraphModule]:
    """The default partition, with less to keep for the backward: of a value and its alias one, of a view of an argument the argument."""
    for node in joint.graph.nodes:
        if node.target in _ALIASES and node.args[0].op == "call_function" and not any(user.op == "output" for user in node.users) \
                and not _marked(node):
            node.replace_all_uses_with(node.args[0])
            joint.graph.erase_node(node)
    nodes = list(joint.graph.nodes)
    last = max(at for at, node in enumerate(nodes) if node.meta.get("partitioner_tag") == "is_forward" or "primals" in str(node.target))
    before, after = nodes[:last + 1], set(nodes[last + 1:-1])
    written = {node.args[0] for node in nodes if node.target is torch.ops.aten.copy_.default}  # arguments that are changed
    again: dict[Node, Node] = {}
    with joint.graph.inserting_after(before[-1]):
        for node in reversed(before):
            root = node.args[0] if node.target in _VIEWS else None
            if isinstance(root, Node) and root.op == "placeholder" and root not in written and not _marked(node) \
                    and not after.isdisjoint(node.users):
                again[node] = joint.graph.node_copy(node)
                again[node].meta["partitioner_tag"] = "is_backward"
    for node, copy in again.items():
        node.replace_all_uses_with(copy, lambda user: user in after)
    return compat.partitioning.default(joint, inputs, **rest)


def _marked(node: Node) -> bool:
    """Whether the user said how the node's result is kept."""
    return not node.meta.keys().isdisjoint(("recompute", "saved_tensor_with_no_vc_check"))


def taken_over(executable: type) -> None:
    """From now on graphs that are compiled to executables of that type, which keeps the graph's `results`, get a Function of ours; where
    an inner part of PyTorch that it reads is missing, AOTAutograd's, which costs time and nothing else."""
    if not _inner:
        return
    way = _inner.Way
    plain = way.post_compile

    @functools.wraps(plain)
    def post_compile(spec: Any) -> Any:
        if not isinstance(spec.compiled_fw_func, executable):
            return plain(spec)
        spec.fw_metadata.bw_donated_idxs = []  # no memory of ours is used twice: what is saved may be kept for another backward
        try:
            return _direct(spec, functools.cache(lambda: plain(spec))) if _plain(spec) else plain(spec)
        except (AttributeError, TypeError) as error:  # of what is read there; AOTAutograd's own would raise them once more
            notice(f"PyTorch {torch.__version__} describes graphs in another way ({error}): AOTAutograd's autograd function is used, which "
                   f"takes longer", category="compatibility", once=("compat", "spec"))
            return plain(spec)

    way.post_compile = staticmethod(post_compile)


def _plain(spec: Any) -> bool:
    """Whether the graph asks for nothing but outputs and gradients."""
    data = spec.fw_metadata
    special = (spec.maybe_subclass_meta, spec.backward_state_indices, spec.disable_amp, data.tokens, data.num_backward_tokens,
               data.is_rng_op_functionalized, data.num_graphsafe_rng_states, data.num_opaque_objects_saved_for_bw,
               data.num_mutated_inp_runtime_indices, data.num_outputs_aliased, data.num_intermediate_bases,
               data.grad_enabled_mutation is not None, data.indices_of_inputs_that_requires_grad_with_mutations_in_bw)
    context, mutation = _inner.Context.try_get(), _inner.Mutation
    return not any(special) and getattr(context, "ddp_optimizer_ctx", None) is None \
        and all(info.mutation_type in (mutation.NOT_MUTATED, mutation.MUTATED_IN_GRAPH) and not info.mutates_storage_metadata
                for info in data.input_info)


def _root(node: Any) -> Any:
    """The node whose memory a node's result may be in."""
    while isinstance(node, Node) and node.op == "call_function" and node.args and isinstance(node.args[0], Node):
        schema = getattr(node.target, "_schema", None)
        if schema is not None and not any(result.alias_info for result in schema.returns):
            return node
        node = node.args[0]  # of a view; of getitem; of what is not known
    return node


class _Once(Function):
    """A backward that is part of a graph itself (`create_graph=True`)."""

    @staticmethod
    def forward(ctx: Any, run: Callable[[], Any], *_: Any) -> Any:
        return run()

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise RuntimeError("torch.compile with backend dvm has no double backward, as AOTAutograd has none: "
                           "call the part that is differentiated twice without torch.compile")


class _Boxed(type(Function)):  # type: ignore[misc]
    @property
    def boxed_grads_call(cls) -> bool:
        """Whether gradients come as a list, to be let go of early: compiled autograd has them as they are."""
        return not _inner.compiled.compiled_autograd_enabled


def _direct(spec: Any, general: Callable[[], Any]) -> Callable[[list[Any]], Any]:
    """The graph as a function of a list of arguments. general: AOTAutograd's own, made when it is needed."""
    data, executable = spec.fw_metadata, spec.compiled_fw_func
    returned, results = data.num_forward_returns, executable.results
    wanted = [n for n, info in enumerate(data.input_info) if info.requires_grad and n not in spec.indices_of_inps_to_detach]
    mutated = list(data.mutated_graph_handled_indices_seen_by_autograd)
    fixed = [n for n, info in enumerate(data.output_info) if not info.requires_grad and issubclass(info.raw_type, torch.Tensor)]
    unsafe = list(data.unsafe_view_out_indices)
    dynamic = [(n, info.dynamic_dims) for n, info in enumerate(data.output_info) if info.dynamic_dims] if data.dynamic_outputs else []
    # What the user can write into is checked by autograd. The rest is this call's own, and lies beside it.
    outside = {_root(node) for node in results[:returned]}
    saved = range(returned, len(results))
    numbers = saved[len(saved) - data.num_symints_saved_for_bw:]
    order = [*numbers, *saved[:len(saved) - len(numbers)]]  # as the backward takes them
    unchecked = range(len(results))[data.tensors_saved_for_backwards_no_vc_check_slice]

    def seen(n: int) -> bool:
        root = _root(results[n])
        return n not in unchecked and (not isinstance(root, Node) or root.op != "call_function" or root in outside)

    checked = [(at, n) for at, n in enumerate(order) if n not in numbers and seen(n)]
    places = [at for at, _ in checked]
    own = [None if at in places else n for at, n in enumerate(order)]
    compiler = _inner.Backward(
        compiled_bw=spec.compiled_bw_func, lazy_backward_info=spec.lazy_backward_info, disable_amp=False, bw_compiler=spec.bw_compiler,
        aot_config=spec.aot_config, fw_metadata=data, try_save_cache_entry=spec.try_save_cache_entry)
    tangents = [n for n, info in enumerate(data.output_info)
                if info.requires_grad_for_backward and issubclass(info.raw_type, torch.Tensor)]
    every = tangents == list(range(returned))
    straight = [(meta, meta.memory_format is not None and meta.memory_format.memory_format is torch.contiguous_format)
                for meta in data.subclass_tangent_meta]
    strict = data.deterministic is not None and not data.deterministic

    general_tangent, backward_of, mark = _inner.Way.process_runtime_tangent, compiler.get_or_compile, _inner.mark_dynamic
    kept, interpreter, key = _inner.kept, _inner.interpreter, "context"

    def tangent(grad: Any, number: int) -> Any:
        meta, plain = straight[number]
        if plain and type(grad) is torch.Tensor and grad.is_contiguous():
            return grad
        return general_tangent(grad, meta, number, data.traced_tangents_descs[number])[0]

    class Compiled(Function, metaclass=_Boxed):

        @staticmethod
        def forward(ctx: Any, arguments: list[Any], *_: Any) -> tuple[Any, ...]:
            made = executable(arguments)
            ctx.save_for_backward(*[value.detach() if (value := made[n])._is_view() else value for _, n in checked])
            ctx.own = [None if n is None else made[n] for n in own]
            outputs = made[:returned]
            for n in unsafe:
                outputs[n] = torch.ops.aten._unsafe_view(outputs[n], outputs[n].shape)
            if fixed:
                ctx.mark_non_differentiable(*[outputs[n] for n in fixed])
                ctx._materialize_non_diff_grads = False
            return tuple(outputs)

        @staticmethod
        def backward(ctx: Any, *given: Any) -> Any:
            grads = given[0] if given and type(given[0]) is list else list(given)
            arguments, held = ctx.own, ctx.saved_tensors  # which raises if they are gone
            if interpreter() is not None:
                raise RuntimeError("the backward of a compiled graph is called within a transform (vmap, grad, vjp): compile the transform "
                                   "as a whole, or leave torch.compile out")
            if strict and _inner.deterministic():
                raise RuntimeError("torch.use_deterministic_algorithms was turned on between a compiled graph's forward and its backward")
            again = kept()
            arguments = arguments.copy()
            for at, tensor in zip(places, held, strict=True):
                arguments[at] = tensor
            arguments += [tangent(grad, n) for n, grad in enumerate(grads if every else [grads[n] for n in tangents])]
            grads.clear()
            del held

            def run() -> tuple[Any, ...]:
                ctx.maybe_clear_saved_tensors()
                if not again:
                    ctx.own = None
                made = backward_of(saved_tensors_use_once=not again)(arguments)
                return (None, *[made[n] for n in wanted])

            if torch.is_grad_enabled():
                wanting = torch.empty(0, requires_grad=True, device="cpu")
                return _Once.apply(run, wanting, *[a for a in arguments if isinstance(a, torch.Tensor)])
            context = _inner.tls(key) if _inner.in_tls(key) else None
            return run() if context is None else context.run(run)

    apply = super(Function, Compiled).apply  # type: ignore[misc]  # without what transforms need
    first = _inner.First()
    transforms, hooks, compiled, forward_ad = _inner.transforms, _inner.hooks, _inner.compiled, _inner.forward_ad
    for owner, name in ((compiled, "compiled_autograd_enabled"), (forward_ad, "_current_level"), (first, "_is_first")):
        getattr(owner, name)  # read at every call

    def call(arguments: list[Any]) -> Any:
        if transforms() or hooks(True) or compiled.compiled_autograd_enabled or forward_ad._current_level >= 0:
            return general()(arguments)
        for n in spec.indices_of_inps_to_detach:
            arguments[n] = arguments[n].detach() if isinstance(arguments[n], torch.Tensor) else arguments[n]
        if mutated:
            torch.autograd.graph.increment_version([arguments[n] for n in mutated])
        given = [arguments[n] for n in wanted]
        if first._is_first or not torch.is_grad_enabled():
            with first(), torch.enable_grad():
                first._is_first = False
                outputs = apply(arguments, *given)
        else:
            outputs = apply(arguments, *given)
        for n, axes in dynamic:
            mark(outputs[n], axes)
        return outputs

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
