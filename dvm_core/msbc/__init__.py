"""MSBC: tensor programs as bytes. Format: docs/bytecode.md."""

from .code import Code, Input, Instruction, Place
from .hashes import function_hash, instruction_hashes
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
    "function_hash",
    "instruction_hashes",
    "load",
    "patch_shapes",
    "verify",
]
