"""`ms.jit(backend="dvm")`: MindSpore compiles a function as a whole, and its graph runs on this package's virtual machine.

The plug-in that MindSpore loads is C++ against MindSpore's own headers, which no two versions have alike: it is compiled when it is first
asked for, and kept in the user's cache for this version.
"""
from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from ...errors import UnsupportedError
from ..notices import notice

_SOURCE = Path(__file__).with_name("backend.cc")
# The flags MindSpore itself was compiled with, as far as they change what its classes look like.
_FLAGS = ("-std=c++17", "-O1", "-fPIC", "-shared", "-w", "-D_GLIBCXX_USE_CXX11_ABI=0", "-DENABLE_FAST_HASH_TABLE=1")
_INCLUDES = ("", "mindspore", "mindspore/core/include", "mindspore/ccsrc", "mindspore/ccsrc/include", "mindspore/core/mindrt/include",
             "mindspore/core/mindrt", "mindspore/ops", "third_party", "third_party/include", "third_party/pybind11",
             "third_party/robin_hood_hashing")
_LIBRARIES = ("mindspore_backend_manager", "mindspore_core", "mindspore_common")
_INSTEAD = 'use @dvm.jit(mode="graph"), which needs no compiler'

_registered = False


def register() -> None:
    """Makes "dvm" a back end of `ms.jit`, once for a process: `dvm.register_mindspore_backend()`, then `@ms.jit(backend="dvm")`.

    The first time, the plug-in is compiled, which takes about 15 s. Raises UnsupportedError, which says what to do, where there is no
    compiler, or where the MindSpore that is installed does not take it."""
    global _registered
    if _registered:
        return
    import mindspore

    try:
        from mindspore.graph import register_custom_backend
    except ImportError:
        raise UnsupportedError(f"MindSpore {mindspore.__version__} takes no back ends of others (it has no register_custom_backend, "
                               f"there in 2.9 and 2.10); {_INSTEAD}") from None
    from . import graphs  # noqa: F401 - what it lacks of MindSpore is said before anything is compiled

    library = built(Path(mindspore.__file__).parent, mindspore.__version__)
    if not register_custom_backend("dvm", str(library)):
        raise UnsupportedError(f"MindSpore {mindspore.__version__} does not load {library}; remove that file to have it compiled anew, or "
                               f"{_INSTEAD}")
    _registered = True


def built(home: Path, version: str) -> Path:
    """The plug-in for the MindSpore in a folder, from the cache or compiled now. Raises UnsupportedError where that fails."""
    compiler = shlex.split(os.environ.get("CXX", "")) or [shutil.which("g++") or shutil.which("c++") or ""]
    command = [*compiler, *_FLAGS, *(f"-I{home / 'include' / folder}" for folder in _INCLUDES),
               f"-I{sysconfig.get_paths()['include']}", str(_SOURCE), f"-L{home / 'lib'}", *(f"-l{name}" for name in _LIBRARIES)]
    stamp = hashlib.sha256("\0".join([version, sys.version, *command]).encode() + _SOURCE.read_bytes()).hexdigest()[:16]
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dvm"
    made = folder / f"mindspore-{version}-{stamp}.so"
    if made.is_file() and made.stat().st_uid == os.getuid():
        return made
    if not compiler[0] or not shutil.which(compiler[0]):
        raise UnsupportedError(f'ms.jit(backend="dvm") is compiled for the MindSpore that is installed, and there is no C++ compiler '
                               f"{compiler[0] or 'g++'} here: install one or name it in CXX, or {_INSTEAD}")
    if not (home / "include" / "mindspore" / "include" / "custom_backend_api.h").is_file():
        raise UnsupportedError(f"MindSpore {version} at {home} came without the headers its back ends are compiled against; {_INSTEAD}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    notice(f"the plug-in for MindSpore {version} is compiled, which takes about 15 s; from now on it is in {folder}", category="mindspore")
    with tempfile.TemporaryDirectory(dir=folder) as work:  # a compile that is interrupted leaves nothing that would be loaded
        fresh = Path(work) / "backend.so"
        run = subprocess.run([*command, "-o", str(fresh)], capture_output=True, text=True, errors="replace")
        if run.returncode:
            log = folder / "mindspore-failed.log"
            log.write_text(shlex.join(command) + "\n" + run.stderr)
            first = next((line for line in run.stderr.splitlines() if "error" in line), run.stderr.strip()[-200:])
            raise UnsupportedError(f"the plug-in does not fit MindSpore {version}: {first} (all of it is in {log}); {_INSTEAD}")
        os.replace(fresh, made)
    return made
