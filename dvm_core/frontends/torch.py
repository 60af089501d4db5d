"""torch.compile(model, backend="dvm"): AOTAutograd's forward and backward graphs, run by our core.

A call with arguments of a new kind records its ops with the shapes of that call; the core finds the program by its structure and patches
the shapes in, so that none is compiled for another size. Later calls of that kind are replayed (torch_replay). PyTorch finds `dvm` by its
entry point, this package need not be imported.
"""
from __future__ import annotations

import functools
import operator
import re
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch._dynamo.utils import flatten_graph_inputs
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import default_partition

from .. import _core
from ..errors import where
from . import capture as captures
from . import observed, reloadable, torch_attention, torch_index, torch_math, torch_nn, torch_reload, torch_windows
from .emit import BF16, BOOL, F16, F32, F64, I8, I32, I64, U8, Emitter
from .notices import notice
from .torch_halves import half_of, narrowed, widened
from .torch_ops import NAMED, NOTHING, TABLE, VIEWS, Parts, Unlowerable, Value
from .torch_places import place_of
from .torch_replay import Builder, Snapshot, filled

DTYPES = {torch.float32: F32, torch.float16: F16, torch.bfloat16: BF16, torch.float64: F64, torch.bool: BOOL, torch.int8: I8,
          torch.uint8: U8, torch.int32: I32, torch.int64: I64}
_TORCH = {code: dtype for dtype, code in DTYPES.items()}

# Kept whole: one op with the gradient torch defines for it. The flash attention must be among them: its decomposition gives another second
# result than its gradient reads, and the gradients would be wrong without a word.
_WHOLE = ("flash_attention_for_cpu", "silu", "gelu", "softmax_backward", "layer_norm_backward", "rms_norm", "nll_loss",
          "embedding_dense_backward", "tanh_backward", "sigmoid_backward", "threshold_backward", "dropout_backward", "select_backward",
          "slice_backward", "batch_norm_backward")
_TABLES = (torch_attention, torch_index, torch_math, torch_nn, torch_windows)  # which fill TABLE
_PLANS = 128  # of one graph, the least recently used goes first
_TOKEN = re.compile(r'File "<dvm>", line (\d+)')


def dvm(module: torch.fx.GraphModule, inputs: list[Any], **_: Any) -> Any:
    """The backend. Graphs keep every op that torch runs with its own random numbers, so that a seed gives what it gives without us."""
    if any(isinstance(value, (list, tuple, dict)) for value in inputs):
        return flatten_graph_inputs(module, inputs, dvm)
    places = []
    torch_reload.compiled()
    for number, node in enumerate(module.graph.nodes):  # a token instead of the stack: AOTAutograd copies it to all that comes of the node
        places.append(place_of(node))
        node.meta["stack_trace"] = f'  File "<dvm>", line {number}, in node\n'
    table = {op: rule for op, rule in core_aten_decompositions().items() if not any(name in str(op) for name in _WHOLE)}

    def compiler(backward: bool = False, inference: bool = False) -> Any:
        return lambda graph, _: Executable(graph, places, backward, inference)

    return aot_module_simplified(module, inputs, fw_compiler=compiler(), bw_compiler=compiler(backward=True),
                                 inference_compiler=compiler(inference=True), decompositions=table, partition_fn=default_partition,
                                 keep_inference_input_mutations=True)


torch_reload.tried(dvm)


def _shared_views(module: torch.fx.GraphModule) -> frozenset[torch.fx.Node]:
    """Views that lead from one value to two results or more: the user may write into one and read the other. Of graphs with gradients
    AOTAutograd makes such results itself."""
    results = next(node for node in module.graph.nodes if node.op == "output").args[0]
    ways: dict[torch.fx.Node, dict[torch.fx.Node, list[torch.fx.Node]]] = {}
    for result in results:
        node, way = result, []
        while isinstance(node, torch.fx.Node) and (_name(node.target) in VIEWS or node.target is operator.getitem):
            way.append(node)
            node = node.args[0]
        if isinstance(node, torch.fx.Node):
            ways.setdefault(node, {})[result] = way
    return frozenset(view for same in ways.values() if len(same) > 1 for way in same.values() for view in way)


class Executable:
    """A graph of aten ops as a function of a list of arguments, which it empties."""

    _boxed_call = True

    def __init__(self, module: torch.fx.GraphModule, places: list[int], backward: bool, inference: bool = False) -> None:
        self.name = "torch backward" if backward else "torch forward"
        self.backward = backward
        observed.of(self.name)  # it is told of, also if nothing falls back
        self.shared = _shared_views(module) if inference else frozenset()
        self.plans = _core.TensorPlans(_PLANS)
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
                token = _TOKEN.findall(node.meta.get("stack_trace") or "")
                place = places[int(token[-1])] if token else 0
                gone = dying.get(node, []) + ([] if node in last else [node])
                self.steps.append((node, _core.backward_place(place) if backward and place else place, gone))

    def __call__(self, arguments: list[Any]) -> list[Any]:
        if self.backward:
            return self.call(arguments)
        if captures.active() is None:
            _core.set_step(_core.step() + 1)
        results = self.call(arguments)
        if reloadable.waiting() and captures.active() is None:
            reloadable.passed(torch_reload.shows, self)
        return results

    def call(self, arguments: list[Any]) -> list[Any]:
        """Replays a call, or records it."""
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
        results = self.record(_Run(self.name, builder, self.shared), values, 0)
        plan = builder.plan(self.results) if builder is not None else None
        if plan is not None:
            self.plans.add(key, plan)
        return results

    def go_on(self, snapshot: Snapshot, slots: list[Any]) -> list[Any]:
        """Records the rest of a call."""
        values = {node: filled(entry, slots) for node, entry in snapshot.values.items()}
        slots.clear()
        return self.record(_Run(self.name, shared=self.shared), values, snapshot.position)

    def record(self, run: _Run, values: dict[torch.fx.Node, Any], position: int) -> list[Any]:
        """Records and runs the nodes from a position on, with the values that are there."""
        for at in range(position, len(self.steps)):
            node, run.place, gone = self.steps[at]
            if run.builder is not None and not run.graph.pending():
                run.builder.looks(at, values)
            if node not in values:
                values[node] = run.call(node, values)
            for other in gone:
                run.drop(values.pop(other, None))
        if run.builder is not None and not run.graph.pending():
            run.builder.looks(len(self.steps), values)
        results = torch.fx.node.map_arg(self.results, values.__getitem__)
        made = run.tensors([value for value in results if isinstance(value, Value)], values)
        return [made[value] if isinstance(value, Value) else value for value in results]


class _Shown(captures.Capture):
    """What a debugger sees of a run while a program of it is launched. The Python lines of the model do not run: the core stops at them."""

    front_end = "torch"
    mode = "graph"

    def __init__(self, run: _Run) -> None:
        super().__init__(run.graph, run.graph.name, run.graph.step)
        self.run = run

    def flush_all(self) -> None:
        pass  # all is in the launch that stands

    def find(self, tensor: Any) -> int | None:
        found = self.run.known.get(id(tensor))
        return None if found is None else found[0]


class _Run(Emitter):
    """One call of an executable: what is recorded, and tensors by value."""

    def __init__(self, name: str, builder: Builder | None = None, shared: frozenset[torch.fx.Node] = frozenset()) -> None:
        self.graph = _core.Graph(name)
        self.shared = shared  # nodes whose results must be views of what they look into
        self.builder = builder  # of the plan for calls like this one
        self.place = 0
        self.known: dict[int, tuple[Value, Any]] = {}  # id of a tensor -> its value, and itself to keep the id taken
        self.over: list[tuple[Value, Any]] = []  # no op to come reads these; what is recorded may

    def op(self, opcode: int, operands: tuple[int, ...], attrs: tuple[int, ...] = (), shape: tuple[int, ...] | None = None, dtype: int = 0,
           imms: tuple[float, ...] = ()) -> int:
        return Value(self.graph.op(opcode, operands, attrs, shape, dtype, imms, self.place))

    def shape(self, value: int) -> tuple[int, ...]:
        return self.graph.shape(value)

    def dtype(self, value: int) -> int:
        return self.graph.dtype(value)

    def call(self, node: torch.fx.Node, values: dict) -> Any:
        """The result of a node: a Value if we record it, else what torch gives."""
        target: Any = node.target
        name = _name(target)
        args: Any
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
        read = [values[other] for other in node.all_input_nodes]
        if name == "aten.sym_size.int":
            result = (self.shape(args[0]) if isinstance(args[0], Value) else args[0].shape)[args[1]]
            return self.plain(node, result)
        if target is operator.getitem and isinstance(args[0], Parts):
            if self.builder is not None:
                self.builder.part(node, node.args[0], args[1], args[0][args[1]])
            return args[0][args[1]]
        if target is operator.getitem:
            return self.called(node, args[0][args[1]]) if _holds_tensor(read) else self.plain(node, target(*args, **kwargs))
        if not any(isinstance(a, (Value, torch.Tensor)) for a in read):
            return self.made(node, name, args, kwargs)
        if name in VIEWS and isinstance(args[0], torch.Tensor):
            try:
                result = target(*args, **kwargs)
            except RuntimeError:
                if "view" not in name:
                    raise  # a result of ours is contiguous where torch's had other strides: there this view takes a copy
            else:
                if not isinstance(result, torch.Tensor):  # parts
                    return self.called(node, result)
                if self.builder is not None:
                    self.builder.view(node, result)
                return result
        if node in self.shared and isinstance(args[0], Value):
            return self.fallback(node, name, args, kwargs, values, counted=False)
        value = self.lowered(node, name, args, kwargs, values)
        return self.fallback(node, name, args, kwargs, values) if value is None else value

    def made(self, node: torch.fx.Node, name: str, args: tuple, kwargs: dict) -> Any:
        """A node's result that no tensor is needed for."""
        if (value := self.lowered(node, name, args, kwargs, {})) is not None:
            return value
        result: Any = node.target(*args, **kwargs)  # type: ignore[operator]
        if not _holds_tensor((result, *node.all_input_nodes)):
            return self.plain(node, result)
        self.notice(name)
        return self.called(node, result, name)

    def lowered(self, node: torch.fx.Node, name: str, args: tuple, kwargs: dict, values: dict) -> Any:
        """The result of a node that we record, None of another one."""
        lowering = TABLE.get(name)
        given: dict[str, Any] = {key: value for key, value in kwargs.items() if value is not None and (key, value) not in _NO_MATTER}
        if lowering is None or not given.keys() <= NAMED.get(name, frozenset()):
            return None
        try:
            if name in NOTHING:
                args = tuple(None if isinstance(a, torch.Tensor) and a.numel() == 0 else a for a in args)
            operands = [self.operand(node, a, values) for a in args]
            given = {key: self.operand(node, a, values) for key, a in given.items()}
            half = 0 if name in VIEWS else half_of(self, [*operands, *given.values()])
            if not half:
                return lowering(self, *operands, **given)
            given = {key: widened(self, name, half, a) for key, a in given.items()}
            return narrowed(self, lowering(self, *widened(self, name, half, operands), **given), _codes(node))
        except (Unlowerable, _core.Error):
            return None  # torch takes it, or says what is wrong with it

    def plain(self, node: torch.fx.Node, result: Any) -> Any:
        """A node's result that follows from shapes and plain values."""
        if self.builder is not None:
            self.builder.known(node, result)
        return result

    def called(self, node: torch.fx.Node, result: Any, fallback: str = "") -> Any:
        """A node's result that torch gave."""
        if self.builder is not None:
            self.builder.call(node, result, (observed.of(self.graph.name).fallbacks, fallback) if fallback else None)
        return result

    def operand(self, node: torch.fx.Node, tree: Any, values: dict) -> Any:
        """An argument of a lowering: tensors, also those in lists, as values; dtypes as our codes."""
        if isinstance(tree, torch.Tensor):
            return self.value(node, tree, values)
        if isinstance(tree, torch.dtype):
            return DTYPES.get(tree, 0)
        return [self.operand(node, a, values) for a in tree] if isinstance(tree, (list, tuple)) else tree

    def value(self, node: torch.fx.Node, tensor: torch.Tensor, values: dict) -> Value:
        """A tensor as an operand, where it lies."""
        found = self.known.get(id(tensor))
        if found is None:
            if tensor.dtype not in DTYPES or tensor.device.type != "cpu" or tensor.layout != torch.strided or tensor.numel() == 0 \
                    or tensor.is_conj() or tensor.is_neg():
                raise Unlowerable
            value = Value(self.graph.input(tensor.data_ptr(), tuple(tensor.shape), DTYPES[tensor.dtype], tuple(tensor.stride()), tensor,
                                           "parameter" if isinstance(tensor, torch.nn.Parameter) else ""))
            found = self.known[id(tensor)] = (value, tensor)
            if self.builder is not None:
                self.builder.bind(node, value, tensor, values)
        return found[0]

    def drop(self, value: Any) -> None:
        """No op to come reads this value: a tensor's memory is free once what is recorded has run."""
        if (found := self.known.pop(id(value), None)) is not None:
            self.over.append(found)
            if not self.graph.pending():
                self.release()

    def release(self) -> None:
        """Lets go of the tensors that were dropped. Nothing may be recorded and not run."""
        self.graph.release([value for value, _ in self.over])
        if self.builder is not None:
            self.builder.release(int(value) for value, _ in self.over)
        self.over.clear()

    def fallback(self, node: torch.fx.Node, name: str, args: tuple, kwargs: dict, values: dict, counted: bool = True) -> Any:
        """Runs what is recorded, then the op by torch. counted: there is no instruction for it."""
        counted = counted and name != "aten.copy_.default"  # the write of a changed input is torch's by design
        if counted:
            self.notice(name)
        wanted = [v for value in values.values() for v in (value if isinstance(value, Parts) else (value,)) if isinstance(v, Value)]
        made = self.tensors(wanted, values)
        for other, value in values.items():
            if isinstance(value, Value):
                values[other] = made[value]
            elif isinstance(value, Parts):
                values[other] = Parts(made[v] if isinstance(v, Value) else v for v in value)
        args, kwargs = torch.utils._pytree.tree_map(lambda v: made[v] if isinstance(v, Value) else v, (args, kwargs))
        target: Any = node.target
        return self.called(node, target(*args, **kwargs), name if counted else "")

    def notice(self, name: str) -> None:
        """Counts an op that torch runs, and tells of it once for each line."""
        file, line = where(self.place) if self.place else ("", 0)
        notice(f"{name} is run by PyTorch: no instruction of ours computes it here", path=file, line=line, category="fallback",
               once=("fallback", name, file, line))
        observed.of(self.graph.name).fallbacks[name] += 1

    def tensors(self, wanted: list[Value], values: dict) -> dict[Value, torch.Tensor]:
        """Runs what is recorded and gives these values as tensors of their own memory."""
        made = {v: torch.empty(self.shape(v), dtype=_TORCH[self.dtype(v)]) for v in dict.fromkeys(wanted)}
        if self.builder is not None:
            self.builder.launch(self.graph, made, values)
        with captures.replaying(_Shown(self)):
            self.graph.flush((), [(v, tensor.data_ptr()) for v, tensor in made.items()])
        self.release()
        for v, tensor in made.items():
            self.known[id(tensor)] = (v, tensor)
        return made


# Named arguments of ops that change nothing for us: results are ours, in the CPU's memory, contiguous.
_NO_MATTER = (("pin_memory", False), ("device", torch.device("cpu")), ("layout", torch.strided), ("memory_format", torch.contiguous_format),
              ("memory_format", torch.preserve_format), ("non_blocking", False))
_name = functools.cache(str)  # of an op: asked for at every node


def _codes(node: torch.fx.Node) -> list[int]:
    """Our codes of the dtypes that PyTorch gives a node's results, 0 of what is no tensor."""
    found = node.meta.get("val")
    return [DTYPES.get(value.dtype, 0) if isinstance(value, torch.Tensor) else 0
            for value in (found if isinstance(found, (tuple, list)) else [found])]


def _holds_tensor(tree: Any) -> bool:
    return isinstance(tree, torch.Tensor) or (isinstance(tree, (tuple, list)) and any(map(_holds_tensor, tree)))
