"""The numbers of the MSBC format: header, instruction fields, sections, trailer. docs/bytecode.md shows them as pictures."""

from __future__ import annotations

import struct

from .. import _core
from ..dtypes import TABLE
from ..errors import Error

MAGIC = b"MSBC"
VERSION = 1
HEADER_SIZE = 0x20  # magic, version u32, 24 reserved zero bytes
END = 0x00  # the opcode that ends the stream

# Operand types: bit 0 = the left operand is a tensor, bit 1 = the right one is. An operand that is no tensor is immediate 0.
NO_TENSOR = 0x00  # FULL, IOTA
TENSOR_SCALAR = 0x01  # a tensor on the left, an immediate on the right
SCALAR_TENSOR = 0x02
TENSOR = 0x03  # every operand is a tensor

FLOAT32 = 0x01
MAX_RANK = 10
MAX_DTYPE = 9
MAX_TENSOR_BYTES = 1 << 40  # larger size products are refused
MAX_FILE = (1 << 32) - 1  # offsets of the index are u32
MAX_STRING = 1 << 16  # bytes of one name or path

# Value ids: an instruction's result is its output id (1, 2, ... in order); input i is INPUT | i. So neither a longer loop nor another
# input renumbers anything.
INPUT = 0x8000_0000
MAX_INPUTS = 1 << 16  # of a file that does not describe them

NO_LINE = 0  # debug_info: the line is unknown
LONG_LINE = 0xFFFF  # debug_info: look into the source map

IMM_FLOAT, IMM_INT = 1, 2  # kind byte of an immediate; 8 bytes follow (f64, i64)
IMM_SIZE, ATTR_SIZE = 9, 8

INDEX, SOURCE_MAP, SYMBOLS, HASHES, CONSTANTS = 1, 2, 3, 4, 5
SECTION_NAMES = {INDEX: "index", SOURCE_MAP: "source map", SYMBOLS: "symbols", HASHES: "hashes", CONSTANTS: "constants"}
SECTION_ENTRY = struct.Struct(">IQQ")  # kind, offset, length
TRAILER = struct.Struct(">QI4s")  # offset of the section table, entries, magic
TRAILER_MAGIC = b"CBSM"
MAX_SECTIONS = 64
HASH_SIZE = 32
PLACE = struct.Struct(">IIIIIIB")  # file, function (both: string numbers), line, end line, column, end column, backward
NO_PLACE = 0xFFFF_FFFF

U16, U32, I64, F64 = struct.Struct(">H"), struct.Struct(">I"), struct.Struct(">q"), struct.Struct(">d")

# opcode -> (name, class letter, arity, dtype rule); names as in native/ops.def
OPS = {code: (name, cls, arity, rule) for name, code, cls, arity, rule, _ in _core.OPS}
NAMES = {code: entry[0] for code, entry in OPS.items()}
CODES = {name: code for code, name in NAMES.items()}
OWN_SHAPE = frozenset(code for _, code, _, _, _, meaning in _core.OPS if " own" in meaning)  # shape is an argument
ITEM_SIZE = {code: size for _, code, size in _core.DTYPES}
NUMPY = {dtype.code: "uint16" if dtype.name == "bfloat16" else dtype.name for dtype in TABLE}


class MsbcError(Error, ValueError):
    """Bytes that are no valid MSBC. `offset` is where in the file, `rule` the rule that is broken."""

    def __init__(self, offset: int, rule: str) -> None:
        self.offset = offset
        self.rule = rule
        super().__init__(f"MSBC: at offset {offset:#x}: {rule}")
