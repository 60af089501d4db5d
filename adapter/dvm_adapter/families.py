"""The request families. Importing one declares its requests and capabilities; `load` imports them all."""
from __future__ import annotations

import importlib

FAMILIES = (
    "lifecycle", "restart", "breakpoints", "function_breakpoints", "exceptions", "running", "stack", "variables", "evaluate", "memory",
    "writing", "disassembly", "sources", "locations", "modules", "data", "tensors", "views", "export", "memory_view", "reload",
)


def load() -> None:
    for name in FAMILIES:
        importlib.import_module("." + name, __package__)
