"""The native core (C++). Dtypes are the codes of native/types.h, opcodes those of native/ops.def, places are ids from `place`."""
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

OPS: tuple[tuple[str, int, str, int, str, str], ...]  # (name, code, class letter, arity, dtype rule, meaning), ops.def in order
TILE_OPS: tuple[tuple[int, str, str, str, str], ...]  # (id, name, name in listings, operand layout, meaning), isa.h in order
DTYPES: tuple[tuple[str, int, int], ...]  # (NumPy-style name, code, item size)
COVERAGE_FAULT: str

class Error(Exception):  # shape, dtype or bounds error: message names op, dtypes and shapes
    place: int  # id, or 0

# ---- places: where an instruction comes from -------------------------------------------------------------------------------------
def place(file: str, line: int, end_line: int = 0, column: int = 0, end_column: int = 0, function: str = "", backward: bool = False) -> int:
    """Interns a source place; ids start at 1. Lines from 1, columns from 1 in UTF-16 code units, 0 where unknown."""
def place_info(place: int) -> tuple[str, int, int, int, int, str, bool]: ...
def backward_place(place: int) -> int:
    """The same place, marked backward."""
def set_library_prefixes(prefixes: Sequence[str]) -> None:
    """Files under these prefixes are no user code; `user_place` walks past them."""
def user_place(frame_depth: int = 0) -> int:
    """The place of the innermost Python frame that is user code, from this thread's stack (native walk; memo per code object and
    instruction, file:line:columns from co_positions). 0 if there is none."""

def functions_alive(generations: int = 0, also: type | None = None) -> list[Any]:
    """Python functions, and objects of the type `also`, the garbage collector knows of: of its youngest `generations`,
    0: all. Other threads cannot observe the search."""

# ---- memory ----------------------------------------------------------------------------------------------------------------------
def empty(shape: tuple[int, ...], dtype: int) -> np.ndarray:
    """A NumPy array on pooled, 128-byte aligned memory (bfloat16 as uint16). Returned to the pool when the array dies."""

# ---- capture ---------------------------------------------------------------------------------------------------------------------
class Graph:
    """Ops recorded in order, run when flushed. Value ids count inputs and results together, from 0, and are never reused: a value
    recorded before a flush stays usable after it if it is in memory (an input, or kept by a flush). One thread at a time."""
    def __init__(self, name: str) -> None: ...
    name: str
    step: int  # call number of the captured function; carried into events
    def input(self, pointer: int, shape: tuple[int, ...], dtype: int, strides: tuple[int, ...] | None = None, keep: Any = None,
              cls: str = "") -> int:
        """An operand in memory. strides in elements (None: contiguous). keep: held until the graph dies. cls: the buffer's class in the
        memory view ("parameter", "activation", "gradient", "optimizer", "workspace"), "" = activation."""
    def op(self, opcode: int, operands: tuple[int, ...], attrs: tuple[int, ...] = (), shape: tuple[int, ...] | None = None, dtype: int = 0,
           imms: tuple[float | int, ...] = (), place: int = 0, name: str = "") -> int:
        """Records one instruction; shape inference happens here and raises Error. An operand of a class-B op may be -1: that side is
        imms[0]. shape: required where ops.def says "own". dtype: required where ops.def says attr."""
    def shape(self, value: int) -> tuple[int, ...]: ...
    def dtype(self, value: int) -> int: ...
    def place(self, value: int) -> int: ...
    def opcode(self, value: int) -> int: ...  # 0 for an input
    def operands(self, value: int) -> tuple[int, ...]: ...
    def attrs(self, value: int) -> tuple[int, ...]: ...
    def imms(self, value: int) -> tuple[float | int, ...]: ...
    def set_name(self, value: int, name: str) -> None: ...
    def pending(self) -> int:
        """Instructions recorded and not yet flushed."""
    def inputs(self) -> tuple[int, ...]:
        """The values in memory that pending instructions read, in the order of their program's inputs."""
    def size(self) -> int:
        """Values so far (inputs and results)."""
    def in_memory(self, value: int) -> bool: ...
    def constant(self, value: int) -> bool:
        """Whether a value lies in the memory of a dvm.constant, of which products keep panels."""
    def array(self, value: int) -> np.ndarray | None:
        """A view (no copy, real strides, read only) of a value in memory, else None. Keeps the storage alive."""
    def flush(self, keep: Sequence[int] = (), outputs: Sequence[tuple[int, int]] = ()) -> Launch | None:
        """Runs all pending instructions. keep: values that must be in memory afterwards (the graph owns the storage until released);
        outputs: (value, pointer) pairs written contiguously to caller's memory, which counts as the value's storage from then on (the
        caller keeps it alive; see release). Everything else may be fused away. GIL released while running."""
    def release(self, values: Sequence[int]) -> None:
        """The graph forgets these values: storage it owns goes back to the pool, outputs' pointers are no longer read."""

# ---- arrays ----------------------------------------------------------------------------------------------------------------------
class Recorder:
    """A graph being recorded by arrays, and the arrays that wait for its values."""
    graph: Graph
    def take_over(self) -> None:
        """Arrays whose values are in memory now have them."""
    def wanted(self) -> list[int]:
        """Ids of values that arrays wait for: the next flush must keep them."""
    def find(self, array: Tensor) -> int | None:
        """The array's value id in this graph, None if it is not known there."""

class Tensor:
    """What dvm.Array is made of: a value in memory or still to be computed. The operators record; what is not plain goes to the
    subclass's methods `_binary`, `_divide` and `_op`."""
    dtype: Any
    shape: tuple[int, ...]
    ndim: int
    size: int
    in_memory: bool  # computed, or an input
    constant: bool  # made by dvm.constant: nobody can write its memory, and products keep its panels
    given_away: bool  # a call took it (donate)
    on_device: bool  # in memory that only a device reads
    def _numpy(self) -> np.ndarray:
        """The values, computed if they must be."""
    def _item(self) -> Any:
        """The element of an array of one, as a Python number; None: numpy() tells more."""
    def _reduced(self, opcode: int, axis: Any, keepdims: bool) -> Any:
        """A reduction over one axis or, None, all of them; None if it takes more than that."""
    def __bool__(self) -> bool: ...
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __add__(self, other: Any) -> Any: ...
    def __radd__(self, other: Any) -> Any: ...
    def __sub__(self, other: Any) -> Any: ...
    def __rsub__(self, other: Any) -> Any: ...
    def __mul__(self, other: Any) -> Any: ...
    def __rmul__(self, other: Any) -> Any: ...
    def __truediv__(self, other: Any) -> Any: ...
    def __rtruediv__(self, other: Any) -> Any: ...
    def __and__(self, other: Any) -> Any: ...
    def __rand__(self, other: Any) -> Any: ...
    def __or__(self, other: Any) -> Any: ...
    def __ror__(self, other: Any) -> Any: ...
    def __lt__(self, other: Any) -> Any: ...
    def __le__(self, other: Any) -> Any: ...
    def __gt__(self, other: Any) -> Any: ...
    def __ge__(self, other: Any) -> Any: ...
    def __neg__(self) -> Any: ...
    def __abs__(self) -> Any: ...
    def __invert__(self) -> Any: ...

def record(opcode: int, operands: tuple[Any, ...], attrs: tuple[int, ...] = (), shape: tuple[int, ...] | None = None, dtype: int = 0,
           imms: tuple[float | int, ...] = ()) -> Any:
    """Records an instruction of the user's line where the calling thread records; the Array of its result. Operands are arrays, None
    where immediate 0 stands."""
def array_from_numpy(array: np.ndarray, dtype: int) -> Any:
    """An Array on the memory of a NumPy array whose items are of that dtype."""
def array_from_dlpack(capsule: Any) -> Any:
    """An Array on the memory of what __dlpack__ gave, which must live on the CPU."""
def exported(array: np.ndarray, dtype: int) -> Any:
    """An object with __dlpack__ on the memory of a NumPy array whose items are of that dtype."""
def array_of(data: Any) -> Any:
    """An Array on the memory of a NumPy array or a framework's CPU tensor; None if it takes more than that."""
def give_away(array: Tensor) -> None:
    """The array cannot be read any more."""
def constant_of(array: Tensor) -> Any:
    """A copy that nobody can write."""
def array_alias(array: Tensor) -> Any:
    """Another Array on the same memory."""
class Replay:
    """A flush that can be run again on other memory of the same shapes."""
REPLAYED_ARGUMENTS: int
"""At most so many arguments has a function whose calls are replayed."""
class Replays:
    """The replays of a function in graph mode, by kind of arguments. donated: numbers of the arguments that are given away; name: of the
    function, under which calls are counted."""
    def __init__(self, donated: Sequence[int], name: str) -> None: ...
    def run(self, arguments: tuple[Any, ...]) -> Any:
        """The function's result, None if it must be called."""
    def add(self, arguments: tuple[Any, ...], replay: Replay, single: bool, guards: Callable[[], bool] | None,
            code: Sequence[tuple[Any, ...]] = ()) -> None:
        """For arguments like these. single: the result is one array, else a tuple. guards(): whether what is read from outside is as it
        was. code: (function, code, defaults, defaults by name) of functions that must still have these."""
    def clear(self) -> None: ...
    def __len__(self) -> int: ...
class TensorReplay:
    """A flush that can be run again on a framework's tensors in a list."""
    def run(self, slots: list[Any]) -> bool:
        """Puts the results into their slots. False, nothing run: a tensor is another than it was, or hooks, checks or the memory log want
        a launch."""
    def slots(self) -> list[int]:
        """Slots that it reads."""
def tensor_replay(graph: Graph, inputs: Sequence[tuple[int, int, int, tuple[tuple[int, ...], tuple[int, ...]] | None]],
                  outputs: Sequence[tuple[int, int, tuple[int, ...], Any]], empty: Callable[..., Any], device: Any) -> TensorReplay | None:
    """What is recorded now, to be run again: inputs (value, slot, offset in bytes, None or the shape and strides to compare), outputs
    (value, slot, shape, dtype) made by empty(shape, dtype=dtype, device=device). None: an input is not among them, or an output
    is not pending."""
class TensorPlans:
    """What to do for arguments of a kind: dtypes, shapes and strides of tensors, and plain values. The `most` used last are kept."""
    def __init__(self, most: int) -> None: ...
    def find(self, arguments: list[Any]) -> Any:
        """The plan for these, None if there is none or a debugger is attached."""
    def key(self, arguments: list[Any]) -> list[int]:
        """Of arguments; empty if they are of kinds that are not known, or while a debugger is attached."""
    def add(self, key: Sequence[int], plan: Any) -> None: ...
    def clear(self) -> None: ...
    def __len__(self) -> int: ...
class ReplayedFunction:
    """What a caller of a function in graph mode calls: a replay, and where none stands for the call, `otherwise`."""
    def __init__(self, replays: Replays, otherwise: Callable[..., Any]) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
def recorded(arguments: tuple[Any, ...], results: tuple[Any, ...]) -> Replay | None:
    """What is recorded now as a Replay, None if a result is no part of it."""
def hold_replays(hold: bool) -> None:
    """While held, every call of a function in graph mode is made in Python."""
def step() -> int:
    """Number of the current or last outermost captured call."""
def tell_modules(callback: Callable[[str], object] | None) -> None:
    """callback(file) is called before each module's code runs, in the thread that imports it; what it raises is lost. None: no more."""
def begin_call(name: str) -> int:
    """Begins the next step, an outermost call of the captured function of that name. Its number."""
def calls() -> dict[str, int]:
    """Outermost captured calls so far, replays included, of each captured function that was called."""
def call_of_step(step: int) -> tuple[str, int] | None:
    """The captured function that a step was a call of, and which; None if it was none, or is long ago."""
def next_step() -> int:
    """Begins a step that is no captured function's call. Its number."""
def current_recorder() -> Recorder:
    """Where the calling thread records: the graph of its active capture, or one of its own."""
def active_capture() -> Any:
    """The calling thread's active capture, None: none."""
def set_active_capture(capture: Any, aside: bool = False) -> None:
    """Whoever sets it keeps it alive. aside: only for a while, the captured call goes on."""
def set_array_class(cls: type, flush_capture: Callable[[Any], None], dtypes: Sequence[Any], numpy: type,
                    of_numpy: dict[Any, int]) -> None: ...

# ---- programs --------------------------------------------------------------------------------------------------------------------
class Program:
    """The instructions of one flush, cached by structure: op sequence, dtypes, ranks, attributes, places. Shapes, strides and immediates
    are patched in at every launch. Local ids: inputs 0..n-1, then one per instruction."""
    id: int
    name: str
    backward: bool  # any instruction is marked backward
    @property
    def launches(self) -> int: ...
    def forget_segments(self) -> None:
        """Lets go of the code that the selector has of it; a launch that runs keeps its own, a later one compiles anew."""
    @property
    def segments(self) -> int:
        """For how many shapes, kept values, hooks and devices the selector has code of it ready."""
    @property
    def input_count(self) -> int: ...
    @property
    def places(self) -> tuple[int, ...]:
        """Of each instruction where it comes from, 0 for nowhere: see `place_info`."""
    @property
    def instructions(self) -> list[Instruction]:
        """With the shapes and immediates of the last launch."""
    @property
    def input_shapes(self) -> list[tuple[tuple[int, ...], int]]: ...  # (shape, dtype) of the last launch
    @property
    def input_classes(self) -> list[str]: ...  # "parameter", or "" where nothing is known
    @property
    def areas(self) -> list[Area]:
        """How the last launch was fused, hooks included."""
    def fused_areas(self) -> list[Area]:
        """How it is fused with no hooks at the last shapes."""
    def tile_text(self, area: int) -> str:
        """Disassembly of an area's tile code (names as DVM's das), one instruction a line, each ending in `; %<instruction index>`."""
    def passes(self) -> list[tuple[str, str]]:
        """(pass, what it made as text) in order, with no hooks at the last shapes; compiles anew."""
    def compile_ns(self) -> int:
        """What compiling it anew for the cpu takes, with no hooks at the last shapes. Nothing runs, nothing is kept."""
    def extents_seen(self) -> list[tuple[int, int]]:
        """(smallest, largest) extent of every dimension of the inputs over all launches, input after input."""
    def tile_words(self, area: int) -> bytes: ...
    def kept(self) -> list[int]:
        """Local ids in memory after the last launch."""

class Instruction:
    index: int
    opcode: int
    name: str  # opcode name
    operands: tuple[int, ...]  # local ids, -1 = immediate
    attrs: tuple[int, ...]
    imms: tuple[float | int, ...]
    shape: tuple[int, ...]
    dtype: int
    place: int
    value_name: str  # the user's name for it, "" if none
    folded_into: int  # index of the instruction it was merged into, -1
    area: int  # area in the unhooked fusing, -1 for pure views

class Area:
    index: int
    kind: str  # "vector", "cube" (matmul with what follows), "move", "reduce"
    instructions: tuple[int, ...]
    cut_reason: str  # why the area could not grow further, in words
    stack: tuple[int, ...]  # areas that run side by side with it, itself among them
    tiles: int
    tile_rows: int
    tile_cols: int
    ns: int  # of the last launch

class Launch:
    """One run of a program; kept by its owner while its values are wanted."""
    program: Program
    number: int  # counts from 1 over the process
    step: int
    next: int  # index of the next instruction to run; == len(instructions) when done
    done: bool
    def array(self, local_id: int) -> np.ndarray | None:
        """View of a value in memory (read only), None if not computed yet or fused away."""
    def constant(self, local_id: int) -> bool:
        """Whether a value lies in the memory of a dvm.constant, of which products keep panels."""
    def measured(self) -> bytes:
        """Statistics taken so far: rows of float64, a column for each name of MEASURED."""
    def run_until(self, instruction: int) -> None:
        """For a stopped launch: runs up to, not including, that instruction (each instruction an area of its own, every result kept).
        May be called from any thread while the stop handler has not returned. GIL released."""

def planned_areas(graph: Graph, keep: Sequence[int]) -> list[Area]:
    """How a graph's pending instructions would be fused on the cpu with these values kept. Nothing runs, no input's memory is read."""
def programs() -> list[Program]: ...
def program(id: int) -> Program: ...

# ---- hooks: patches of a program's tile code, in force from its next launch ---------------------------------------------------------
HOOK_STOP: int  # stop before the instruction
HOOK_STATS: int  # statistics of its result
HOOK_CAPTURE: int  # bytes of its result, copied on the copy stream
# Instruction -1 - i of a STATS or CAPTURE hook is the program's input i, taken on the launching thread before anything has run.
HOOK_CHECK: int  # stop after the launch if its result has a NaN (imm bit 0) or infinity (bit 1)
def set_hook(program: int, instruction: int, kind: int, hook: int, every: int = 1, limit: int = 1 << 20) -> None:
    """hook: the caller's id, given back in events. every: the next launch and then each n-th. limit: bytes for CAPTURE; for CHECK its
    bits (neither: both)."""
def clear_hook(program: int, instruction: int, kind: int, hook: int) -> None: ...
def clear_hooks() -> None: ...
def change_hooks(clear: Sequence[tuple[int, int, int, int]], set: Sequence[tuple[int, int, int, int, int, int, bool]]) -> None:
    """Takes out hooks, (program, instruction, kind, hook), and sets others, (program, instruction, kind, hook, every, limit, joint), each
    program's at a stroke; programs that are forgotten are passed over. joint: of the hooks with this id together, in whatever programs,
    each n-th captured call is taken in which one of them is met."""
def set_check(mask: int) -> None:
    """HOOK_CHECK on every float instruction of every program (bit 0 NaN, bit 1 Inf; 0 = off)."""
def set_measure(every: int) -> None:
    """Statistics of every float result in every n-th launch of every program; the stop handler gets the complete launch with the reason
    "measured". 0: off."""
MEASURED: tuple[str, ...]  # columns of Launch.measured()
def set_program_handler(handler: Callable[[Program], None] | None) -> None:
    """Called with the GIL on the capturing thread when a new program was made, before its first launch: set hooks here."""
def set_input_handler(handler: Callable[[Program | None], list[tuple[int, int]] | None] | None) -> None:
    """handler(None) is called with the GIL on the capturing thread when an instruction over arrays has been recorded that brought inputs,
    with the user's frames there; handler(program) before each launch, while Graph.inputs() are its inputs: it may give pairs
    (hook, instruction) that this launch passes over."""
def set_stop_handler(handler: Callable[[Launch, int, str, tuple[int, ...]], None] | None) -> None:
    """handler(launch, instruction, reason, hook ids) is called with the GIL on the launching thread; reason "hook" (before the
    instruction), "nan" or "inf" (the instruction made it; the launch is complete, every result in memory). The launch goes on from
    launch.next when it returns. An exception it raises leaves flush() (the launch is abandoned)."""
def poll_events(limit: int = 1000) -> list[dict[str, Any]]:
    """Takes finished hook results: {"kind": "stats"|"capture", "hook", "program", "instruction", "launch", "step", "shape", "dtype",
    "beside": values the launch takes for this hook,
    "stats": {count, finite, zero, nan, pos_inf, neg_inf, min, max, mean, std, histogram}, "data": bytes (capture), "placeholder": reason
    or "" (capture), "time_ns"}. The queue is bounded; {"kind": "dropped", "count": n} says what was lost."""
def synchronize_copies() -> None:
    """Waits until all captures so far are in the queue."""
def set_capture_timeout(milliseconds: int, drop_after: int = 0) -> None:
    """How long a capture may wait for its copy before it becomes a placeholder (100 at first), and how long a copy that is late is held
    before it is dropped (10,000 at first; 0: a hundred times `milliseconds`). For captures taken from now on. Error outside of 1..60000."""
def capture_stats() -> dict[str, int]:
    """Captures: taken, published, placeholders, of these late (the copy came after all) and dropped (it was given up); held_bytes wait or
    are held for late copies."""
def delay_copies(milliseconds: int) -> None:
    """For tests: keeps the copy stream busy that long."""
def event_fd() -> int:
    """An eventfd that becomes readable when poll_events has something."""
def stats_of(array: np.ndarray) -> dict[str, Any]:
    """The same statistics, of any array (any strides)."""

# ---- whole-process ------------------------------------------------------------------------------------------------------------------
def stats() -> dict[str, Any]:
    """The dictionary of dvm.stats()."""
def memory_log(enable: bool) -> None: ...
def log_class(address: int, cls: str) -> None: ...
def log_replaced(address: int, by: int, cls: str) -> None: ...
def memory_events(since: int = 0) -> list[dict[str, Any]]:
    """Bounded log of buffers: {"id", "name", "cls", "bytes", "address", "reuse" (times this address was handed out), "step", "born" and
    "freed" (counter over all instructions run, -1 = still live), "born_ns", "freed_ns", "place", "program", "instruction",
    "in_place_of"}."""
def set_threads(n: int) -> None: ...
def set_step(step: int) -> None: ...
def simd_level() -> str: ...
def shapes_used(most: int) -> list[tuple[str, int, tuple[int, ...], tuple[int, ...], int, int]]:
    """(name, structure, geometry, kept ids, number of ids, launches) of this run's programs, most used first."""
def know_shapes(shapes: Sequence[tuple[int, Sequence[int], Sequence[int], int]]) -> None:
    """(structure, geometry, kept ids, number of ids) of an earlier run: compiled in the background when their program is made."""
def synchronize_warming() -> None:
    """Waits until the known shapes of the programs made so far are compiled."""
def forget_segments() -> None:
    """For tests: every shape is compiled anew at its next launch, with nothing taken from a near one."""
def set_clusters(on: bool) -> None:
    """For tests and benchmarks: whether near shapes share tile code. Never changes a result."""
def set_tile_elements(n: int) -> None:
    """For tests: elements per tile (0 = automatic). Never changes a result."""
def simd_levels() -> list[str]:
    """The SIMD levels of this build that this processor has."""
def selftest_kernel(level: str, table: str, op: int, dtype: int, *args: Any) -> Any:
    """Runs one kernel of one level on NumPy arrays, for tests (native/bind_selftest.cc). False or None where there is no such kernel."""

# ---- devices ------------------------------------------------------------------------------------------------------------------------
def profiles() -> list[dict[str, Any]]:
    """The devices: name, arch, simulated, faithful, elsewhere, ub_bytes, ub_reserve, vector_cores, cube_cores, events,
    memory_bytes."""
def device() -> str:
    """The device later launches use."""
def set_device(name: str, wait_ms: int = 5000) -> dict[str, int] | None:
    """Chooses the device of later launches and moves the buffers of arrays there. Returns how many `buffers` and `bytes`, or None if
    captured calls of other threads still run after `wait_ms`: nothing has changed then. Error if a copy fails or there is no room: nothing
    has changed."""
def add_device(name: str, arch: str, run: Callable[[int, list[Instruction], dict[int, tuple[np.ndarray, int]],
                                                    dict[int, tuple[np.ndarray, int]]], None]) -> None:
    """A device of later launches, which call run(inputs, instructions, read, made): the number of the program's inputs, some of its
    instructions, the values in memory they may read and those they are to make, by local id as (array, dtype); bfloat16 as uint16. What it
    raises leaves the flush. Error if there is a device of that name."""
def device_copies() -> dict[str, Any]:
    """Copies to and from simulated devices: copies_in, copies_out, bytes_in, bytes_out, faults, copy_us (modelled); and what needed none:
    resident_inputs, resident_results, resident_bytes."""
def device_memory(name: str) -> dict[str, int]:
    """The memory of a simulated device: bytes used, peak and limit."""
def set_device_memory(bytes: int) -> None:
    """For tests: how much memory simulated devices have; 0: what their profiles say."""
def is_device_address(address: int) -> bool:
    """Whether it is an address on a simulated device, which the host cannot read."""
def device_addresses() -> list[tuple[int, int, str]]:
    """Buffers with an address on a device: address, bytes, and the device that has them now."""
def set_link(latency_us: float = -1, bytes_per_us: float = -1, paced: bool = False) -> None:
    """The link of all simulated devices instead of their profiles' (negative: as there). paced: copies take that long, else it is only
    counted."""
def cast_route(device: str, from_: int, to: int) -> list[int]:
    """The dtypes a cast goes through on a device, the last one included."""
def set_copy_timeout(milliseconds: int) -> None:
    """How long a copy to or from a device may take before the launch gives up (5000 at first)."""
def plant_fault(kind: str, after: int = 0, milliseconds: int = 0, of: str = "", rate: float = 0, seed: int = 0) -> None:
    """For tests: what goes wrong: fail (half of the bytes arrive), stall, lose (the event) or memory (no room for an allocation); of copies
    in, out, snapshot or move. Once, after so many more; with a rate, that share of them until clear_faults, chosen by the seed."""
def clear_faults() -> None:
    """For tests: nothing goes wrong any more."""
def check(program: int, device: str = "") -> dict[str, Any]:
    """What is known of a program's tile code: of its last launch, or compiled for a device at the last shapes (nothing runs).

    areas, of each: kind, instructions, cut_reason, tiles, tile, device, peak and limit (bytes of the UB), events by pair of pipes;
    uses: of each tile instruction its tensor instruction, pipe ("load", "simd", "store"), text, the ranges of bytes it writes and reads;
    buffers: bytes, dtype, instruction, value (loaded from), loaded, first, last, pinned; fullest (a use) and held (its buffers);
    races, overwrites (made, over, reader, bytes), aliases (use, bytes), unstored (values).
    overflows: areas that were cut since they do not fit: instructions, bytes, limit, tile, held."""
def ub_map(program: int, area: int) -> dict[str, Any]:
    """What `check` says of one area of the last launch, which must be of a simulated device."""
def races(program: int, area: int) -> list[dict[str, Any]]:
    """Pairs of tile instructions of an area that touch the same bytes with nothing to order them: kind, first, second (numbers of tile
    instructions), instructions (their tensor instructions), pipes, tiles_apart, bytes."""
def plant_in_code(program: int, area: int, use: int, fault: str) -> None:
    """For tests: a fault in an area's code, at tile instruction `use`: deaf (it waits for nobody), short (it makes one element), stuck (it
    stores every tile to the same place), missing (it and what follows is not there), over (its result lies over another value that is
    still read), alias (its result lies over part of its operand)."""
def set_ub_room(bytes: int) -> None:
    """For tests: how much of the UB values may take on simulated devices; 0: what their profiles say."""
def set_deterministic(enabled: bool) -> None:
    """Whether faithful devices add partial sums in one fixed order (at first) or in another one at every launch."""
def set_sum_orders(orders: int) -> None:
    """How many orders of every sum over several parts simulated devices try, 0 at first."""
def sum_spreads() -> list[dict[str, Any]]:
    """What the orders tried gave since the last call: op, place, shape, dtype, parts, orders, elements, differing, worst (element), lowest,
    highest."""
