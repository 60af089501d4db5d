"""Golden protocol logs: a conversation as text, compared with a stored one. DVM_GOLDEN=update writes the stored one anew."""
import json
import os
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "golden"
# Their number and order depend on timing, or on the machine.
_LEFT_OUT = {"output", "thread", "process", "module", "loadedSource", "continued", "dvm/step", "dvm/notice", "dvm/program",
             "progressUpdate", "debugpyWaitingForServer"}
_VARYING = {"seq", "request_seq", "systemProcessId", "pointerSize", "startMethod", "isLocalProcess"}
# Numbers of the machine or the moment.
_SHOWN_AS = {"processId", "shellProcessId", "subProcessId", "port", "job", "ms", "heldMs", "ns"}
_NUMBERED = re.compile(r"\b((?:Subprocess|process|127\.0\.0\.1:) ?)\d+")


def conversation(log_file: str, paths: dict[str, str], until: str = "", without: tuple[str, ...] = ()) -> str:
    """What client and adapter said, one message a line; ids of ours numbered by appearance, `paths` replaced by their names.

    A request that the adapter makes of the client is ⇐, its answer ⇒. until: a request with which it ends; without: events left out."""
    known: dict[int, str] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: "…" if key in _SHOWN_AS else plain(item) for key, item in value.items() if key not in _VARYING}
        if isinstance(value, list):
            return [plain(item) for item in value]
        if isinstance(value, int) and value >= 1 << 28:
            return known.setdefault(value, f"<ours {len(known) + 1}>")
        if isinstance(value, float):
            return float(f"{value:.6g}")  # the order of sums is the processor's
        if isinstance(value, str):
            if value.startswith("0x") and len(value) < 12:
                return plain(int(value, 16))
            for path, name in paths.items():
                value = value.replace(path, name)
            if len(value) > 3 and value.isdigit():
                return "…"  # a port among arguments
            return _NUMBERED.sub(r"\1…", value)
        return value

    lines = []
    for line in open(log_file, encoding="utf-8"):
        entry = json.loads(line)
        message = entry.get("message") or {}
        if entry.get("peer") != "client" or message.get("event") in (*_LEFT_OUT, *without):
            continue
        kind = message["type"]
        name = message.get("command") or message.get("event")
        body = plain(message.get("arguments") if kind == "request" else message.get("body"))
        if kind == "request" and name == until:
            break
        if name == "initialize":
            body = "…"  # what is announced has a test of its own
        mark = {"request": "→", "response": "←" if message.get("success") else "✗", "event": "!"}[kind]
        if (kind == "request") != (entry["direction"] == "<-") and kind != "event":
            mark = {"request": "⇐", "response": "⇒"}[kind]
        lines.append(f"{mark} {name} {json.dumps(body, ensure_ascii=False, sort_keys=True)}")
    return "\n".join(lines) + "\n"


def check(name: str, text: str) -> None:
    """Compares with golden/NAME.txt."""
    stored = FOLDER / f"{name}.txt"
    if os.environ.get("DVM_GOLDEN") == "update":
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8"), f"the conversation has changed; if that is meant: DVM_GOLDEN=update (see {stored})"
