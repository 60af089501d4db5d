"""torch.compile(model, backend="dvm"): AOTAutograd's forward and backward graphs, run by our core.

A call with arguments of a new kind records its ops with the shapes of that call; the core finds the program by its structure and patches
the shapes in, so that none is compiled for another size. Later calls of that kind are replayed (torch_replay). PyTorch finds `dvm` by its
entry point, this package need not be imported.
"""
from __future__ import annotations

import operator
import re
from typing import Any

import torch

from .. import _core
from . import (
    attempts,
    observed,
    reloadable,
    torch_attention,
    torch_autograd,
    torch_index,
    torch_math,
    torch_nn,
    torch_reload,
    torch_windows,
)
from . import capture as captures
from . import torch_compat as compat
from .torch_layouts import look_at_the_whole, orders_of
from .torch_names import Names
from .torch_ops import VIEWS, Value
from .torch_places import place_of
from .torch_replay import Builder, Snapshot, filled
from .torch_run import Run, name_of

# Kept whole: one op with the gradient torch defines for it. The flash attention must be among them: its decomposition gives another second
# result than its gradient reads, and the gradients would be wrong without a word.
_WHOLE = ("flash_attention_for_cpu", "silu", "gelu", "softmax_backward", "layer_norm_backward", "rms_norm", "nll_loss",
          "embedding_dense_backward", "tanh_backward", "sigmoid_backward", "threshold_backward", "dropout_backward", "select_backward",
          "slice_backward", "batch_norm_backward")
_TABLES = (torch_attention, torch_index, torch_math, torch_nn, torch_windows)  # which fill TABLE
_PLANS = 128  # of one graph, the least recently used goes first
_fake, _FAKE = (compat.faking.mode, compat.faking.Key.FAKE) if compat.faking else (None, None)
_TOKEN = re.compile(r'File "<dvm>", line (\d+)')


def dvm(module: torch.fx.GraphModule, inputs: list[Any], **_: Any) -> Any:
    """The backend. Graphs keep every op that torch runs with its own random numbers, so that a seed gives what it gives without us."""
    places = []
    torch_reload.compiled()
    for number, node in enumerate(module.graph.nodes):  # a token instead of the stack: AOTAutograd copies it to all that comes of the node
        places.append(place_of(node))
        node.meta["stack_trace"] = f'  File "<dvm>", line {number}, in node\n'
    table = {op: rule for op, rule in compat.core_aten_decompositions().items() if not any(name in str(op) for name in _WHOLE)}

    listed = any(isinstance(value, (list, tuple, dict)) for value in inputs)  # of a graph that compiled autograd made
    names = Names(module.graph.nodes, places, arguments=not listed)

    def compiler(backward: bool = False, inference: bool = False) -> Any:
        return lambda graph, _: Executable(graph, places, backward, inference, names)

    if compat.counts:
        compat.counts.counters["aot_autograd"]["total"] += 1  # tells DistributedDataParallel that a part went through AOTAutograd
    partition = {"partition_fn": torch_autograd.partition} if compat.partitioning else {}

    def compiled(module: Any, inputs: list[Any]) -> Any:
        return compat.aot_module_simplified(module, inputs, fw_compiler=compiler(), bw_compiler=compiler(backward=True),
                                            inference_compiler=compiler(inference=True), decompositions=table,
                                            keep_inference_input_mutations=True, **partition)

    return compat.flatten_graph_inputs(module, inputs, compiled) if listed else compiled(module, inputs)


torch_reload.tried(dvm)
if compat.skipping:
    compat.skipping.add(__name__.partition(".")[0])


def _shared_views(module: torch.fx.GraphModule) -> frozenset[torch.fx.Node]:
    """Views that lead from one value to two results or more: the user may write into one and read the other. Of graphs with gradients
    AOTAutograd makes such results itself."""
    results = next(node for node in module.graph.nodes if node.op == "output").args[0]
    ways: dict[torch.fx.Node, dict[torch.fx.Node, list[torch.fx.Node]]] = {}
    for result in results:
        node, way = result, []
        while isinstance(node, torch.fx.Node) and (name_of(node.target) in VIEWS or node.target is operator.getitem):
            way.append(node)
            node = node.args[0]
        if isinstance(node, torch.fx.Node):
            ways.setdefault(node, {})[result] = way
    return frozenset(view for same in ways.values() if len(same) > 1 for way in same.values() for view in way)


def _number(node: torch.fx.Node) -> int:
    """Of the node of Dynamo's graph that a node comes of, -1 if none is known."""
    token = _TOKEN.findall(node.meta.get("stack_trace") or "")
    return int(token[-1]) if token else -1


class Executable:
    """A graph of aten ops as a function of a list of arguments, which it empties."""

    _boxed_call = True

    def __init__(self, module: torch.fx.GraphModule, places: list[int], backward: bool, inference: bool = False,
                 names: Names | None = None) -> None:
        self.name = "torch backward" if backward else "torch forward"
        self.backward = backward
        observed.of(self.name)  # it is told of, also if nothing falls back
        self.shared = _shared_views(module) if inference else frozenset()
        self.plans = _core.TensorPlans(_PLANS)
        look_at_the_whole(module.graph.nodes)
        self.orders = orders_of(module.graph.nodes)
        nodes = list(module.graph.nodes)
        self.names = {} if names is None else (names.backward if backward else names.forward)(nodes, _number)
        self.inputs: list[torch.fx.Node] = []
        self.steps: list[tuple[torch.fx.Node, int, list[torch.fx.Node]]] = []  # node, place, what nobody reads after it
        last: dict[torch.fx.Node, torch.fx.Node] = {}
        self.attributes: dict[torch.fx.Node, Any] = {}
        for node in module.graph.nodes:
            last.update(dict.fromkeys(node.all_input_nodes, node))
        dying: dict[torch.fx.Node, list[torch.fx.Node]] = {}
        for node, reader in last.items():
            dying.setdefault(reader, []).append(node)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                self.inputs.append(node)
            elif node.op == "get_attr":
                self.attributes[node] = operator.attrgetter(node.target)(module)
            elif node.op == "output":
                self.results = node.args[0]
            else:
                number = _number(node)
                place = places[number] if number >= 0 else 0
                gone = dying.get(node, []) + ([] if node in last else [node])
                self.steps.append((node, _core.backward_place(place) if backward and place else place, gone))

    def __call__(self, arguments: list[Any]) -> list[Any]:
        if self.backward:
            return self.call(arguments)
        if captures.active() is None:
            _core.next_step()
        results = self.call(arguments)
        if reloadable.waiting() and captures.active() is None:
            attempts.passed(torch_reload.shows, self)
        return results

    def call(self, arguments: list[Any]) -> list[Any]:
        """Replays a call, or records it; under FakeTensorMode there is nothing to compute."""
        if _fake is not None and _fake(_FAKE) is not None:
            return self.imagined(arguments)
        plan = self.plans.find(arguments)
        if plan is not None:
            return plan.run(arguments, self.go_on)
        key = self.plans.key(arguments)
        builder = None
        if key and len({id(a) for a in arguments if isinstance(a, torch.Tensor)}) == sum(isinstance(a, torch.Tensor) for a in arguments):
            builder = Builder(self.inputs, arguments, self.attributes)
        values = dict(self.attributes)
        values.update(zip(self.inputs, arguments, strict=True))
        arguments.clear()
        run = Run(self.name, builder, self.shared, self.orders)
        run.names = {id(values[node]): name for node, name in self.names.items() if node in values}
        results = self.record(run, values, 0)
        plan = builder.plan(self.results) if builder is not None else None
        if plan is not None:
            self.plans.add(key, plan)
        return results

    def imagined(self, arguments: list[Any]) -> list[Any]:
        """The results as PyTorch's ops give them."""
        values = {**self.attributes, **dict(zip(self.inputs, arguments, strict=True))}
        arguments.clear()
        for node, _, gone in self.steps:
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = node.target(*args, **kwargs)  # type: ignore[operator]
            for other in gone:
                values.pop(other, None)
        return [values[node] if isinstance(node, torch.fx.Node) else node for node in self.results]

    def go_on(self, snapshot: Snapshot, slots: list[Any]) -> list[Any]:
        """Records the rest of a call."""
        values = {node: filled(entry, slots) for node, entry in snapshot.values.items()}
        slots.clear()
        return self.record(Run(self.name, None, self.shared, self.orders), values, snapshot.position)

    def record(self, run: Run, values: dict[torch.fx.Node, Any], position: int) -> list[Any]:
        """Records and runs the nodes from a position on, with the values that are there."""
        for at in range(position, len(self.steps)):
            node, run.place, gone = self.steps[at]
            if run.builder is not None and not run.graph.pending():
                run.builder.looks(at, values)
            if node not in values:
                values[node] = made = run.call(node, values)
                if node in self.names and isinstance(made, Value):
                    run.graph.set_name(made, self.names[node])
            for other in gone:
                run.drop(values.pop(other, None))
        if run.builder is not None and not run.graph.pending():
            run.builder.looks(len(self.steps), values)
        written = run.tensors({node: value for node in self.results if isinstance(value := values.get(node), Value)}, values)
        return [written[node] if node in written else values.get(node, node) for node in self.results]


torch_autograd.taken_over(Executable)
