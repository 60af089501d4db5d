"""A bytecode virtual machine for tensor programs, made to be debugged while it runs.

Everything but the native core is imported when first used, so that `import dvm_core` costs next to nothing.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from .dtypes import DataType, bfloat16, bool_, float16, float32, float64, int8, int32, int64, uint8
from .errors import ArgumentError, DeviceError, DtypeError, Error, OutOfMemoryError, ShapeError, UnknownNameError, UnsupportedError

if TYPE_CHECKING:
    from . import msbc
    from .agent import debug
    from .bf16 import convert_from_bf16, convert_to_bf16
    from .checks import check
    from .devices import device, set_device
    from .frontends.array import Array, constant, tensor
    from .frontends.array_exchange import from_dlpack
    from .frontends.builder import IntArrayRef, Kernel, NDObject, PyKernel, ScalarRef, kernel
    from .frontends.jit import jit
    from .programs import programs

__version__ = "0.1.0"

# name -> (module, attribute; "" = the module itself)
_LAZY = {
    "jit": ("frontends.jit", "jit"),
    "kernel": ("frontends.builder", "kernel"),
    "Kernel": ("frontends.builder", "Kernel"),
    "PyKernel": ("frontends.builder", "PyKernel"),
    "NDObject": ("frontends.builder", "NDObject"),
    "IntArrayRef": ("frontends.builder", "IntArrayRef"),
    "ScalarRef": ("frontends.builder", "ScalarRef"),
    # the same under the names of other years
    "KernelBase": ("frontends.builder", "Kernel"),
    "ShapeRef": ("frontends.builder", "IntArrayRef"),
    "NDSymInt": ("frontends.builder", "ScalarRef"),
    "NDSymFloat": ("frontends.builder", "ScalarRef"),
    **{name: ("frontends.builder_kinds", name) for name in ("K_VEC", "K_CUBE", "K_MIX", "K_PARAL", "K_SEQ", "K_SPLIT", "K_EAGER")},
    **{name: ("frontends.builder_kinds", name) for name in ("F_DYN", "F_UWS", "F_SPEC", "F_OPT_FRAC", "F_PRIV1", "F_PRIV2")},
    "register_mindspore_backend": ("frontends.mindspore_backend", "register"),
    "tester": ("tester", ""),
    "tensor": ("frontends.array", "tensor"),
    "constant": ("frontends.array", "constant"),
    "convert_to_bf16": ("bf16", "convert_to_bf16"),
    "convert_from_bf16": ("bf16", "convert_from_bf16"),
    "from_dlpack": ("frontends.array_exchange", "from_dlpack"),
    "Array": ("frontends.array", "Array"),
    "programs": ("programs", ""),
    "msbc": ("msbc", ""),
    "debug": ("agent.debug", ""),
    "set_device": ("devices", "set_device"),
    "check": ("checks", "check"),
    "device": ("devices", "device"),
    "Device": ("devices", "Device"),
}

__all__ = [
    "ArgumentError",
    "Array",
    "DataType",
    "Device",
    "DeviceError",
    "DtypeError",
    "Error",
    "IntArrayRef",
    "Kernel",
    "NDObject",
    "OutOfMemoryError",
    "PyKernel",
    "ScalarRef",
    "ShapeError",
    "UnknownNameError",
    "UnsupportedError",
    "bfloat16",
    "bool_",
    "check",
    "constant",
    "convert_from_bf16",
    "convert_to_bf16",
    "debug",
    "device",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "int8",
    "int32",
    "int64",
    "jit",
    "kernel",
    "msbc",
    "programs",
    "set_deterministic",
    "set_device",
    "stats",
    "tensor",
    "uint8",
]


def __getattr__(name: str) -> Any:
    target = _LAZY.get(name)
    if target is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f".{target[0]}", __name__)
    value = getattr(module, target[1]) if target[1] else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


def stats() -> dict[str, Any]:
    """Counters of the whole process: programs, launches, selector hits and misses, compile times (microseconds), patches, bytes.

    `time_us` splits the VM's own time, in microseconds, into record, fuse, tile, encode, bind (finding program and segment, patching them,
    giving results their memory), dispatch (from kernel to kernel), kernels and waiting (for helpers, another launch, the GIL); `functions`
    has by name of captured function its launches, its instructions run and its own `time_us`. It is the launching thread's time; a stop is
    nobody's. Recording and dispatch are sampled. A function's `shapes` are the sets of shapes it was launched with (4,096 at most are
    told apart), `shape_changes` the launches whose shapes were not those of the one before.

    `advice` says for each function whether it gains from the VM: `verdict` ("pays", "does not pay", "not enough data"), `why`, what to
    `do`, `notes` and the `figures` behind them.

    The selector has ready code by shapes: `selector_hits`, `selector_misses`, of those `selector_clusters` that took the tile code of a
    near shape, `selector_segments` and `selector_bytes` it holds, `selector_evictions`. `compile_us` is of code made anew, `cluster_us` of
    those.

    `panels` are those of constants (`dvm.constant`): built, used by a product, and their bytes, which `bytes_live` has among its own.

    `captures` counts the debugger's snapshots: taken, published, placeholders (without bytes, and why), of these late and dropped.
    """
    from . import _core, advice

    told = _core.stats()
    told["advice"] = {name: found.told() for name, found in advice.of(told).items()}
    return told


def set_deterministic(enabled: bool = True) -> None:
    """Whether sums of parts are added in one fixed order (at first). False matters on faithful devices alone: there they are added in
    another order at every launch, as a chip's atomic additions arrive. Everywhere else results never depend on cores, tiles or fusing."""
    _core.set_deterministic(enabled)


def _library_prefixes() -> list[str]:
    # Where a frame is no user code: this package, the standard library, installed packages.
    found = [os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.abspath(os.__file__)), "<frozen"]
    found += [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    return [prefix if prefix == "<frozen" else prefix + os.sep for prefix in found]


try:
    from . import _core
except ImportError:  # not built: whatever needs it says so itself, and `dvm doctor` must still start
    pass
else:
    _core.set_library_prefixes(_library_prefixes())

if os.environ.get("DVM_AGENT"):
    importlib.import_module(".agent", __name__).start()
else:
    importlib.import_module(".door", __name__).open_soon()
