"""torch.compile(model, backend="dvm"): AOTAutograd's forward and backward graphs, run by our core.

Every call records its ops with the shapes of that call; the core finds the program by its structure and patches the shapes in, so that
none is compiled for another size. PyTorch finds `dvm` by its entry point, this package need not be imported.
"""
from __future__ import annotations

import operator
import os
import re
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch._dynamo.utils import flatten_graph_inputs
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import default_partition

from .. import _core
from ..errors import where
from . import observed
from .emit import BF16, BOOL, F16, F32, F64, I8, I32, I64, U8, Emitter
from .notices import notice
from .torch_ops import TABLE, VIEWS, Unlowerable, Value

DTYPES = {torch.float32: F32, torch.float16: F16, torch.bfloat16: BF16, torch.float64: F64, torch.bool: BOOL, torch.int8: I8,
          torch.uint8: U8, torch.int32: I32, torch.int64: I64}
_TORCH = {code: dtype for dtype, code in DTYPES.items()}

# Kept whole: one op with the gradient torch defines for it. The flash attention must be among them: its decomposition gives another second
# result than its gradient reads, and the gradients would be wrong without a word.
_WHOLE = ("flash_attention_for_cpu", "silu", "gelu", "softmax_backward", "layer_norm_backward", "rms_norm", "nll_loss",
          "embedding_dense_backward", "tanh_backward", "sigmoid_backward", "threshold_backward", "dropout_backward", "select_backward",
          "slice_backward", "batch_norm_backward")
_HOME = os.path.dirname(torch.__file__) + os.sep
_TOKEN = re.compile(r'File "<dvm>", line (\d+)')
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


def dvm(module: torch.fx.GraphModule, inputs: list[Any], **_: Any) -> Any:
    """The backend. Graphs keep every op that torch runs with its own random numbers, so that a seed gives what it gives without us."""
    if any(isinstance(value, (list, tuple, dict)) for value in inputs):
        return flatten_graph_inputs(module, inputs, dvm)
    places = []
    for number, node in enumerate(module.graph.nodes):  # a token instead of the stack: AOTAutograd copies it to all that comes of the node
        frames = [found for found in _FRAME.findall(node.meta.get("stack_trace") or "") if not found[0].startswith(_HOME)]
        places.append(_core.place(frames[-1][0], int(frames[-1][1]), function=frames[-1][2]) if frames else 0)
        node.meta["stack_trace"] = f'  File "<dvm>", line {number}, in node\n'
    table = {op: rule for op, rule in core_aten_decompositions().items() if not any(name in str(op) for name in _WHOLE)}

    def compiler(backward: bool) -> Any:
        return lambda graph, _: Executable(graph, places, backward)

    return aot_module_simplified(module, inputs, fw_compiler=compiler(False), bw_compiler=compiler(True), decompositions=table,
                                 partition_fn=default_partition, keep_inference_input_mutations=True)


class Executable:
    """A graph of aten ops as a function of a list of arguments, which it empties."""

    _boxed_call = True

    def __init__(self, module: torch.fx.GraphModule, places: list[int], backward: bool) -> None:
        self.name = "torch backward" if backward else "torch forward"
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
        run = _Run(self.name)
        values = dict(self.attributes)
        values.update(zip(self.inputs, arguments, strict=True))
        arguments.clear()
        for node, place, gone in self.steps:
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
            run.place = place
            values[node] = run.call(node.target, args, kwargs, values)
            for other in gone:
                run.drop(values.pop(other, None))
        results = torch.fx.node.map_arg(self.results, values.__getitem__)
        made = run.tensors([value for value in results if isinstance(value, Value)])
        return [made[value] if isinstance(value, Value) else value for value in results]


class _Run(Emitter):
    """One call of an executable: what is recorded, and tensors by value."""

    def __init__(self, name: str) -> None:
        self.graph = _core.Graph(name)
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

    def call(self, target: Any, args: tuple, kwargs: dict, values: dict) -> Any:
        """The result of an op: a Value if we record it, else what torch gives."""
        name = str(target)
        if name == "aten.sym_size.int":
            return (self.shape(args[0]) if isinstance(args[0], Value) else args[0].shape)[args[1]]
        if target is operator.getitem or not any(isinstance(a, (Value, torch.Tensor)) for a in _flat((args, kwargs))):
            return target(*args, **kwargs)
        if name in VIEWS and isinstance(args[0], torch.Tensor):
            return target(*args, **kwargs)
        lowering = TABLE.get(name)
        if lowering is not None and not kwargs:
            try:
                return lowering(self, *(self.value(a) if isinstance(a, torch.Tensor) else a for a in args))
            except (Unlowerable, _core.Error):
                pass  # torch takes it, or says what is wrong with it
        return self.fallback(target, name, args, kwargs, values)

    def value(self, tensor: torch.Tensor) -> Value:
        """A tensor as an operand, where it lies."""
        found = self.known.get(id(tensor))
        if found is None:
            if tensor.dtype not in DTYPES or tensor.device.type != "cpu" or tensor.layout != torch.strided or tensor.numel() == 0 \
                    or tensor.is_conj() or tensor.is_neg():
                raise Unlowerable
            value = Value(self.graph.input(tensor.data_ptr(), tuple(tensor.shape), DTYPES[tensor.dtype], tuple(tensor.stride()), tensor,
                                           "parameter" if isinstance(tensor, torch.nn.Parameter) else ""))
            found = self.known[id(tensor)] = (value, tensor)
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
        self.over.clear()

    def fallback(self, target: Any, name: str, args: tuple, kwargs: dict, values: dict) -> Any:
        """Runs what is recorded, then the op by torch."""
        if name != "aten.copy_.default":  # the write of a changed input is torch's by design
            file, line = where(self.place) if self.place else ("", 0)
            notice(f"{name} is run by PyTorch: no instruction of ours computes it here", path=file, line=line, category="fallback",
                   once=("fallback", name, file, line))
            observed.of(self.graph.name).fallbacks[name] += 1
        made = self.tensors([v for v in _flat((args, kwargs, list(values.values()))) if isinstance(v, Value)])
        for node, value in values.items():
            if isinstance(value, Value):
                values[node] = made[value]
        args, kwargs = torch.utils._pytree.tree_map(lambda v: made[v] if isinstance(v, Value) else v, (args, kwargs))
        return target(*args, **kwargs)

    def tensors(self, wanted: list[Value]) -> dict[Value, torch.Tensor]:
        """Runs what is recorded and gives these values as tensors of their own memory."""
        made = {v: torch.empty(self.shape(v), dtype=_TORCH[self.dtype(v)]) for v in dict.fromkeys(wanted)}
        self.graph.flush((), [(v, tensor.data_ptr()) for v, tensor in made.items()])
        self.release()
        for v, tensor in made.items():
            self.known[id(tensor)] = (v, tensor)
        return made


def _flat(tree: Any) -> list[Any]:
    return torch.utils._pytree.tree_leaves(tree)
