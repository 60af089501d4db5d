"""The text in force of every file: what the running functions were compiled from, which a save soon makes different from the disk."""
from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType

from dvm_wire.saves import Stamp, read, stamp

from .leftover import Leftover


def tidy(text: str) -> str:
    """Text that came from an editor instead of the disk, as `read` would give it."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def same_file(a: str, b: str) -> bool:
    """Whether two spellings of a path mean one file: as given, through links, or by inode."""
    if a == b:
        return True
    real_a, real_b = os.path.realpath(a), os.path.realpath(b)
    if os.path.normcase(real_a) == os.path.normcase(real_b):
        return True
    try:
        return os.path.samefile(a, b)
    except OSError:
        return False


def modules_of(path: str) -> list[ModuleType]:
    """Loaded modules made from that file; a script imported again under its own name gives two."""
    modules = {id(module): (module, file) for module in list(sys.modules.values()) if (file := _file(module))}
    name = os.sep + os.path.basename(path)
    # The same base name first: a look at every loaded module's file would be thousands of system calls.
    found = [module for module, file in modules.values() if (os.sep + file).endswith(name) and same_file(file, path)]
    return found or [module for module, file in modules.values() if os.path.islink(file) and same_file(file, path)]


def _file(module: object) -> str:
    # Not getattr: modules with a lazy __getattr__ would load things because we looked.
    file = getattr(module, "__dict__", {}).get("__file__")
    return file if isinstance(file, str) and file.endswith(".py") else ""


_real = functools.lru_cache(maxsize=4096)(os.path.realpath)  # asked for with each breakpoint


class SourceBook:
    """Remembers each user file's text when its module is first seen, and after each reload that came into force."""

    def __init__(self, libraries: Iterable[str] = ()) -> None:
        self._libraries = tuple(libraries)  # prefixes of files that are nobody's to edit: not worth remembering
        self._texts: dict[str, str] = {}
        self._first: dict[str, str] = {}
        self._stamps: dict[str, Stamp | None] = {}  # of the files, when their text was taken
        self._modules_seen = -1
        self.changes = 0  # goes up with each text that is another
        self.leftover = Leftover()

    def scan(self) -> None:
        """Remembers the files of modules imported since the last call. Cheap when there were none."""
        modules = len(sys.modules)
        if modules == self._modules_seen:
            return
        for path in self._user_files():
            key = os.path.realpath(path)
            if key not in self._texts:
                self.remember(key)
        self._modules_seen = modules  # last: another thread that asks meanwhile reads them, too, instead of going without

    def imported(self, file: str) -> None:
        """A module's code begins to run: its file is what it was made from, whatever is saved a moment later."""
        if file.endswith(".py") and not file.startswith(self._libraries):
            self.remember(file)

    def _user_files(self) -> Iterator[str]:
        for module in list(sys.modules.values()):
            file = _file(module)
            if file and not file.startswith(self._libraries):
                yield file

    def files(self) -> set[str]:
        """All files whose text is known, links resolved."""
        return set(self._texts)

    def remember(self, path: str) -> None:
        """Takes the text on disk as the text in force, if none is known yet."""
        try:
            key = os.path.realpath(path)
            mark, text = stamp(key), read(path)
            self._stamps.setdefault(key, mark)
            self._texts.setdefault(key, self._first.setdefault(key, text))  # of two threads' texts the same one
        except (OSError, SyntaxError, ValueError):
            pass  # gone or unreadable: a reload of it will say so

    def begun_as(self, path: str, text: str) -> None:
        """The text that the program was started from, as who started it has read it: the one on disk may be a later one. Of no matter once
        a reload came into force."""
        key = os.path.realpath(path)
        if self._texts.get(key) == self._first.get(key):
            self._texts[key] = self._first[key] = text
            self.changes += 1

    def stamps(self) -> dict[str, Stamp | None]:
        """Of all files whose text is known, when it was taken; links resolved."""
        return dict(self._stamps)

    def get(self, path: str) -> str | None:
        return self._texts.get(_real(path))

    def first(self, path: str) -> str | None:
        """The text that the module's own code was compiled from."""
        return self._first.get(os.path.realpath(path))

    def put(self, path: str, text: str) -> None:
        key = os.path.realpath(path)
        self._texts[key] = text
        self.changes += 1
        self._stamps.pop(key, None)  # how the file was then says nothing any more
