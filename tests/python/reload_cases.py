"""The cases in tests/data/edits: a text, what is saved over it, and what must hold then.

A case is a file: a head of comments, then parts, each behind a line `# ---- NAME`.
    outcome: applied, unchanged or refused         reason: text of the answer (may be given several times)
    keep: name = expression, taken before a save (`Call(f)` is a running call)   check: holds after it; refused: holds before it, too
    undo: holds before the save and after its undo; without it `check` must not hold then
    call: captured call the program makes meanwhile (default: one that has nothing to do with the file)
    later: holds after the part `later` was saved on top of a refused one
    before-as, after-as: how a part lies on the disk: an encoding, `crlf`, `cr`"""
import importlib.util
import sys
import threading
from pathlib import Path

DATA = Path(__file__).parent.parent / "data" / "edits"
CASES = sorted(DATA.glob("*.py"))


class Case:
    def __init__(self, path):
        head, *parts = ("\n" + path.read_bytes().decode()).split("\n# ---- ")
        self.parts = {name: text for name, text in (part.split("\n", 1) for part in parts)}
        pairs = [line[2:].split(": ", 1) for line in head.splitlines() if line.startswith("# ")]
        self.said = {name: [value for key, value in pairs if key == name] for name, _ in pairs}

    def __getitem__(self, name):
        return self.said.get(name, [""])[0]

    def data(self, part):
        kinds = self[f"{part}-as"].split()
        ends = {"crlf": "\r\n", "cr": "\r"}
        end = next((ends[kind] for kind in kinds if kind in ends), "\n")
        encoding = next((kind for kind in kinds if kind not in ends), "utf-8")
        return self.parts[part].replace("\n", end).encode(encoding)


class Call:
    """A call of a case's function on a thread of its own: it says that it has begun, and stands until `end`, which gives its result."""

    def __init__(self, function):
        self.begun, self.gate, self.result = threading.Event(), threading.Event(), None
        self.thread = threading.Thread(target=self.run, args=(function,), daemon=True)
        self.thread.start()
        self.begun.wait()

    def run(self, function):
        self.result = function(self.begun, self.gate)

    def end(self):
        self.gate.set()
        self.thread.join()
        return self.result


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    vars(module)["top_level"] = []  # texts note here what they run once
    spec.loader.exec_module(module)
    return module
