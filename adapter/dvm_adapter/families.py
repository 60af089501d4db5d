"""The request families. Importing one declares its requests and capabilities; `load` imports them all."""
from __future__ import annotations

import importlib

FAMILIES = (
    "lifecycle", "breakpoints", "exceptions", "running", "stack", "variables", "evaluate", "memory", "disassembly", "sources", "tensors",
    "export", "reload",
)


def load() -> None:
    for name in FAMILIES:
        importlib.import_module("." + name, __package__)
