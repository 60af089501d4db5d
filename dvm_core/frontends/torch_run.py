"""One call of a compiled graph: its ops are recorded as ours; PyTorch runs the others, on tensors that lie as its own would."""
from __future__ import annotations

import functools
import operator
from typing import Any

import torch

from .. import _core
from ..errors import where
from . import capture as captures
from . import observed
from .emit import BF16, BOOL, F16, F32, F64, I8, I32, I64, U8, Emitter
from .notices import notice
from .torch_halves import half_of, narrowed, widened
from .torch_layouts import Order, back
from .torch_ops import NAMED, NOTHING, TABLE, VIEWS, Parts, Unlowerable, Value
from .torch_replay import CPU, Builder

DTYPES = {torch.float32: F32, torch.float16: F16, torch.bfloat16: BF16, torch.float64: F64, torch.bool: BOOL, torch.int8: I8,
          torch.uint8: U8, torch.int32: I32, torch.int64: I64}
TORCH = {code: dtype for dtype, code in DTYPES.items()}


class _Shown(captures.Capture):
    """What a debugger sees of a run while a program of it is launched. The Python lines of the model do not run: the core stops at them."""

    front_end = "torch"
    mode = "graph"

    def __init__(self, run: Run) -> None:
        super().__init__(run.graph, run.graph.name, run.graph.step)
        self.run = run

    def flush_all(self) -> None:
        pass  # all is in the launch that stands

    def find(self, tensor: Any) -> int | None:
        found = self.run.known.get(id(tensor))
        return None if found is None else found[0]

    def name_of(self, value: int) -> str:
        return self.run.inputs.get(value, "")


class Run(Emitter):
    """One call of an executable: what is recorded, and tensors by value."""

    def __init__(self, name: str, builder: Builder | None, shared: frozenset[torch.fx.Node], orders: dict[torch.fx.Node, Order]) -> None:
        self.graph = _core.Graph(name)
        self.shared = shared  # nodes whose results must be views of what they look into
        self.orders = orders  # of nodes whose results lie in another order
        self.builder = builder  # of the plan for calls like this one
        self.place = 0
        self.names: dict[int, str] = {}  # of arguments, by the tensor's id
        self.inputs: dict[int, str] = {}  # the same by value
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
        name = name_of(target)
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
                    raise  # a result of ours has no gaps where torch's had some: there this view takes a copy
            else:
                if not isinstance(result, torch.Tensor):  # parts
                    return self.called(node, result)
                if self.builder is not None:
                    self.builder.view(node, result)
                return result
        if node in self.shared and isinstance(args[0], Value):
            return self.fallback(node, name, values, counted=False)
        value = self.lowered(node, name, args, kwargs, values)
        return self.fallback(node, name, values) if value is None else value

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
            self.builder.call(node, result, (observed.of(self.graph.name), fallback) if fallback else None)
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
            if id(tensor) in self.names:
                self.inputs[value] = self.names[id(tensor)]
            if self.builder is not None:
                self.builder.bind(node, value, tensor, values)
        return found[0]

    def drop(self, value: Any) -> None:
        """No op to come reads this value: a tensor's memory is free once what is recorded has run."""
        self.names.pop(id(value), None)
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

    def fallback(self, node: torch.fx.Node, name: str, values: dict, counted: bool = True) -> Any:
        """Runs what is recorded, then the op by torch. counted: there is no instruction for it."""
        counted = counted and name != "aten.copy_.default"  # the write of a changed input is torch's by design
        if counted:
            self.notice(name)
        wanted: dict[Any, Value] = {other: value for other, value in values.items() if isinstance(value, Value)}
        parts = {other: value for other, value in values.items() if isinstance(value, Parts)}
        wanted.update({v: v for value in parts.values() for v in value if isinstance(v, Value)})
        made = self.tensors(wanted, values)
        values.update({other: made[other] for other in wanted if isinstance(other, torch.fx.Node)})
        values.update({other: Parts(made[v] if isinstance(v, Value) else v for v in value) for other, value in parts.items()})
        target: Any = node.target
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
        if not counted:
            return self.called(node, target(*args, **kwargs))
        return self.called(node, observed.of(self.graph.name).elsewhere(name, lambda: target(*args, **kwargs)), name)

    def notice(self, name: str) -> None:
        """Counts an op that torch runs, and tells of it once for each line."""
        file, line = where(self.place) if self.place else ("", 0)
        notice(f"{name} is run by PyTorch: no instruction of ours computes it here", path=file, line=line, category="fallback",
               once=("fallback", name, file, line))
        observed.of(self.graph.name).fallbacks[name] += 1

    def tensors(self, wanted: dict[Any, Value], values: dict) -> dict[Any, torch.Tensor]:
        """Runs what is recorded and gives these values as tensors of their own memory, in the orders of those that are of nodes."""
        ways = {name: (value, self.orders.get(name, ())) for name, value in wanted.items()}
        lies = {way: Value(self.transpose(*way)) if way[1] else way[0] for way in ways.values()}  # the value that is written for it
        made = {v: torch.empty(self.shape(v), dtype=TORCH[self.dtype(v)], device=CPU) for v in lies.values()}
        if self.builder is not None:
            self.builder.launch(self.graph, made, {node: (lies[way], way[1]) for node, way in ways.items()}, values)
        with captures.replaying(_Shown(self)):
            self.graph.flush((), [(v, tensor.data_ptr()) for v, tensor in made.items()])
        self.over.extend((lies[way], made[lies[way]]) for way in lies if way[1])
        self.release()
        seen = {way: made[v].permute(back(way[1])) if way[1] else made[v] for way, v in lies.items()}
        for (v, order), tensor in seen.items():
            if not order:
                self.known[id(tensor)] = (v, tensor)
        return {name: seen[way] for name, way in ways.items()}


# Named arguments of ops that change nothing for us: results are in the CPU's memory, and lie as its own.
_NO_MATTER = (("pin_memory", False), ("device", torch.device("cpu")), ("layout", torch.strided), ("memory_format", torch.contiguous_format),
              ("memory_format", torch.preserve_format), ("memory_format", torch.channels_last),
              ("memory_format", torch.channels_last_3d), ("non_blocking", False))
name_of = functools.cache(str)  # of an op: asked for at every node


def _codes(node: torch.fx.Node) -> list[int]:
    """Our codes of the dtypes that PyTorch gives a node's results, 0 of what is no tensor."""
    found = node.meta.get("val")
    return [DTYPES.get(value.dtype, 0) if isinstance(value, torch.Tensor) else 0
            for value in (found if isinstance(found, (tuple, list)) else [found])]


def _holds_tensor(tree: Any) -> bool:
    return isinstance(tree, torch.Tensor) or (isinstance(tree, (tuple, list)) and any(map(_holds_tensor, tree)))
