"""MSBC: tensor programs as bytes. Format: docs/bytecode.md."""

from .code import Code, Input, Instruction, Place
from .layout import MAGIC, VERSION, MsbcError
from .patch import patch_shapes
from .program import LoadedProgram, load
from .text import disassemble
from .verify import verify
from .write import dump

__all__ = [
    "MAGIC",
    "VERSION",
    "Code",
    "Input",
    "Instruction",
    "LoadedProgram",
    "MsbcError",
    "Place",
    "disassemble",
    "dump",
    "load",
    "patch_shapes",
    "verify",
]
