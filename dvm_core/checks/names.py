"""Instructions and buffers of tile code in the user's words: op, name of the value, line."""

from __future__ import annotations

import os
from typing import Any

from ..dtypes import BY_CODE
from ..errors import where


class Names:
    """Of one program."""

    def __init__(self, program: Any) -> None:
        self.instructions = program.instructions
        self.inputs = program.input_count

    def place(self, instruction: int) -> tuple[str, int]:
        """(file, line) of a tensor instruction."""
        return where(self.instructions[instruction].place) if 0 <= instruction < len(self.instructions) else ("", 0)

    def at(self, instruction: int) -> str:
        """` (file.py:12)`, the file without its folder; nothing where no line is known."""
        file, line = self.place(instruction)
        return f" ({os.path.basename(file)}:{line})" if file else ""

    def value(self, local: int) -> str:
        """A value: its name in the user's code, else %number."""
        i = local - self.inputs
        name = self.instructions[i].value_name if i >= 0 else ""
        return name or (f"%{local}" if i >= 0 else f"input %{local}")

    def tensor(self, instruction: int) -> str:
        """`EXP e (file.py:12)`."""
        item = self.instructions[instruction]
        return f"{item.name}{' ' + item.value_name if item.value_name else ''}{self.at(instruction)}"

    def tile(self, facts: dict[str, Any], number: int) -> str:
        """A tile instruction: its number, text, and the op it belongs to."""
        if not 0 <= number < len(facts["uses"]):
            return "what runs before the tiles"
        use = facts["uses"][number]
        return f"{number} `{use['text']}` of {self.tensor(use['instruction'])}"

    def buffer(self, buffer: dict[str, Any]) -> str:
        """What a buffer holds."""
        dtype, owner = BY_CODE[buffer["dtype"]].name, buffer["instruction"]
        if buffer["loaded"]:
            loaded = f"{self.value(buffer['value'])} " if buffer["value"] >= 0 else ""
            return f"{loaded}{dtype} loaded for {self.tensor(owner)}"
        return f"{dtype} of {self.tensor(owner)}"
