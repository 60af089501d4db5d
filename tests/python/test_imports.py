"""Modules may be imported by two threads at once: the program's, and the one that keeps its door for a debugger.

A thread that imports `package.part` while another is inside `package/__init__` does not wait for it. If the part then asks for
`from . import other`, each thread waits for what the other holds; Python gives one of them a module that is half made, and an ImportError
or a KeyError follows. So from a package that imports its parts, others import through the package, or parts that ask for nothing of it."""
import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "dvm_core"


def imports(path):
    """(module, names) of each import from this package at the top of a file, in order."""
    found = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].relative_to(ROOT.parent).parts
            found.append((".".join([*folder, *filter(None, [node.module])]), [alias.name for alias in node.names]))
    return found


def waits_for_its_package(package, part, seen=()):
    """Whether a part, or one that it imports, has `from . import`."""
    path = ROOT / package / f"{part}.py"
    for module, _ in imports(path) if path.exists() else []:
        inside = module.removeprefix(f"dvm_core.{package}")
        if inside == "" or (inside.startswith(".") and inside != module and inside[1:] not in seen
                            and waits_for_its_package(package, inside[1:], (*seen, part))):
            return True
    return False


def faults(eager, files):
    for path in files:
        through = set()
        for module, _ in imports(path):
            package, _, part = module.removeprefix("dvm_core.").partition(".")
            if package not in eager or package == path.parent.name:
                continue
            if not part:
                through.add(package)
            elif package not in through and waits_for_its_package(package, part):
                yield f"{path.relative_to(ROOT.parent)}: from {module} import"


def test_no_two_threads_wait_for_each_others_modules():
    eager = {path.parent.name for path in ROOT.glob("*/__init__.py")
             if any(module.startswith(f"dvm_core.{path.parent.name}.") for module, _ in imports(path))}
    assert {"msbc", "hotreload"} <= eager and waits_for_its_package("msbc", "text") and not waits_for_its_package("msbc", "code")
    assert list(faults(eager, ROOT.rglob("*.py"))) == []
