"""What DVM takes to steer splitting, stages, tiles and tuning: checked, and without effect on any result here."""

from __future__ import annotations

from typing import Any

from .. import _core
from ..bf16 import convert_from_bf16, convert_to_bf16
from ..errors import ArgumentError, UnsupportedError
from . import builder_clone
from .builder_kinds import kind_of
from .builder_objects import NDObject, fail
from .builder_rules import Rules, tensor_of


class Hints(Rules):
    """Mixed into Kernel: structure and tuning."""

    stores: list[NDObject]

    def spec_next(self) -> None:
        """Where DVM may end a segment of a speculative kernel; here areas are found at each launch."""

    def parallel_add(self, ktype: Any, flags: Any = 0, core_limit: int = 0) -> None:
        """What follows is independent of what came before; here it is one program either way."""
        kind_of(ktype, flags)
        if not isinstance(core_limit, int) or core_limit < 0:
            raise fail(ArgumentError, f"core_limit {core_limit!r} is no number of cores", _core.user_place(), op="parallel_add")

    def seq_add(self, ktype: Any, flags: Any = 0) -> None:
        """The next stage of a sequence."""
        kind_of(ktype, flags)

    def p_next(self) -> None:
        """`parallel_add` as scripts of 2024 spell it."""

    def stage_switch(self, ktype: Any = "vector") -> None:
        """`seq_add` as scripts of 2024 spell it."""
        kind_of(ktype)

    def stage_load(self, x: NDObject) -> NDObject:
        """What an earlier stage made: x itself."""
        return tensor_of(x, "stage_load")

    def tile(self, start: int, end: int, num: int, factor: int = 0) -> None:
        """Manual tiling of axes `start` to `end`, counted from the lowest (last), into `num` tiles; tiles are chosen here."""
        if not (all(isinstance(item, int) for item in (start, end, num, factor)) and 0 <= start <= end and num > 0 and factor >= 0):
            raise fail(
                ArgumentError,
                f"tile({start!r}, {end!r}, {num!r}, {factor!r}): axes count from 0 at the last, start <= end, at least one tile",
                _core.user_place(),
            )

    def set_store_inplace(self, store: NDObject) -> None:
        """The output may take the place of an input; give the same array to `input` and `set_output` for that."""
        self._is_store(store, "set_store_inplace")

    def set_store_temp(self, store: NDObject) -> None:
        """A store that only ends a segment; here it is an output like another."""
        self._is_store(store, "set_store_temp")

    def set_load_bind(self, load: NDObject, store: NDObject) -> None:
        """A load that reads what a store of the same kernel wrote."""
        self._is_store(store, "set_load_bind")
        if load.op != "Load" or load.dtype_ is not store.dtype_:
            raise fail(ArgumentError, f"takes a load of {store.dtype_}, got {load!r}", _core.user_place(), op="set_load_bind")
        if load.id < store.id:
            raise fail(ArgumentError, "the load must be declared after the store it reads", _core.user_place(), op="set_load_bind")
        load.op, load.operands, load.attrs, load.dims = "Copy", (store.operands[0],), {}, None

    def clear_store_memory(self, store: NDObject) -> None:
        """The output is zeroed before each run: of a strided store, what lies between."""
        self._is_store(store, "clear_store_memory")
        store.attrs["clear"] = True

    def clone(self, base: Any, remap_list: Any = ()) -> list[Any]:
        """Adds the graph of another kernel to this one; what stands here for each tensor, number or list of `remap_list`."""
        return builder_clone.clone(self, base, remap_list)  # type: ignore[arg-type]

    def _is_store(self, store: Any, op: str) -> None:
        if not any(store is known for known in self.stores):
            raise fail(ArgumentError, f"takes what k.store(...) gives, got {store!r}", _core.user_place(), op=op)

    # ---- switches of the whole process: results here depend on none of them ---------------------------------------

    @staticmethod
    def set_deterministic(enable: bool = True) -> None:
        """Sums have one order, with it or without; on a faithful device without it another one at every launch, as on the chip."""
        _core.set_deterministic(enable)

    @staticmethod
    def set_online_tuning(enable: bool = True) -> None:
        """Tiles follow from the shapes; nothing is timed."""

    @staticmethod
    def set_lazy_tuning(enable: bool = True) -> None:
        """As `set_online_tuning`."""

    @staticmethod
    def set_vf_fusion(level: int = 1) -> None:
        """Elementwise chains are always one loop over a tile."""

    def msprof(self, path: str = "", count: int = 1) -> None:
        """A profiler of NPUs: raises UnsupportedError, which says what measures here."""
        raise fail(UnsupportedError, "is a profiler of NPUs; k.perf() and dvm.stats() measure here", _core.user_place(), op="msprof")

    @staticmethod
    def set_cube_store_type(kind: Any = 0) -> None:
        """A matmul's rows go to what follows, in local memory."""

    set_determ = set_deterministic

    # ---- numbers that NumPy has no type for ----------------------------------------------------------------------

    convert_to_bf16 = staticmethod(convert_to_bf16)
    convert_from_bf16 = staticmethod(convert_from_bf16)
