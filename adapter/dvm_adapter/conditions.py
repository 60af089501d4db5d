"""What can be said of a condition before any program runs: hit counts, and whether a text is an expression at all."""
from __future__ import annotations

import json
import re

from dvm_wire import syntax
from dvm_wire.filters import WrongFilter, read
from dvm_wire.logged import split_message

# debugpy's own syntax, since its users know it; a bare number means "on that hit". `% 0` would never stop.
HIT_CONDITION = re.compile(r"\s*(?:(?:==|>=|<=|>|<)?\s*\d+|%\s*0*[1-9]\d*)\s*")
HIT_SYNTAX = "a hit count is a number, or ==, >, >=, <, <= or % and a number (% at least 1)"
# A value by its name in the program's text, `%4` or `%4.max()`. After an operand the sign is the operator.
NUMBERED = re.compile(r"((?:^|[-+*/%(\[{,:<>=!&|^~@]|\b(?:and|or|not|in|is|if|else))\s*)%(i?[0-9]{1,9})\b")


def wrong_hits(text: object) -> str:
    """What is wrong with a hit count, "" if nothing."""
    return f"{HIT_SYNTAX}; this is {text!r}" if text and not HIT_CONDITION.fullmatch(str(text)) else ""


def wrong_expression(text: object) -> str:
    """What is wrong with a condition as an expression, "" if nothing. What its names mean is known at a stop only."""
    stripped = str(text or "").strip()
    try:
        if stripped:
            syntax.parse(NUMBERED.sub(r"\1_\2", stripped), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"the condition `{stripped}` is not an expression: {getattr(error, 'msg', error)}"
    return ""


def wrong_filter(name: str, text: object) -> str:
    """What is wrong with a numeric filter's condition, "" if nothing; whether it names a device that is there, the program knows."""
    try:
        read(name, str(text or ""))
    except WrongFilter as error:
        return str(error)
    return ""


def logged(message: str) -> str:
    """A log point's message as debugpy takes it. By itself it fails as a whole where one expression does, takes `%` for its own sign and
    braces in quotes for ends: the parts go to what has been put into its server (see events.py), in digits."""
    if "{" not in message and "}" not in message:
        return message
    parts = json.dumps(split_message(message)).encode().hex()
    return f"{{__import__('pydevd_file_utils').dvm_logged('{parts}', globals(), locals())}}"
