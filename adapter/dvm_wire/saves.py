"""Saves: which files were saved and are written to their end, and the answer in a line. For watchers on either side of the wire."""
from __future__ import annotations

import io
import os
import stat
import time
import tokenize
from collections.abc import Callable, Collection, Iterable
from typing import Any

SETTLED = 0.02  # seconds a file must stay the same before it is read
UNTOLD = 1.0  # the same, where the end of its writer would be told of and was not: it may pause in the middle
_SHORT, _FEW = 40, 3  # characters of a value or statement, and how many changes, that are told in a line
_BEFORE = 15  # characters before the first that differs
EARLY = 10.0  # seconds that the end of a writer is remembered whose file nobody has asked for yet: a module that is just imported
_MOST_EARLY = 256  # files
_PATIENCE = 2.0  # seconds after which a file that never stays the same is read as it is

Stamp = tuple[int, int, int, int]  # modification time in ns, size, inode; time of the last change of any of it, also of the mode
_WRITTEN = slice(3)  # of a stamp, what no `chmod` changes


def stamp(path: str) -> Stamp | None:
    """None while the file is being replaced, or gone."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # also of what is no path
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns


def folders(files: Iterable[str]) -> list[str]:
    """What is to be watched for them. Folders, not files: editors save by renaming a new file over the old one, which a watch on the file
    would lose."""
    return sorted({folder for folder in map(os.path.dirname, files) if os.path.isdir(folder)})


def settle(path: str, now: Callable[[], float] = time.time, pause: Callable[[float], None] = time.sleep) -> None:
    """Returns when nothing has been written to the file for SETTLED seconds. One that was not written lately costs a look at it.

    An editor may empty a file before it fills it, and `RATE = 1` out of `RATE = 1.0` parses: what is read must be what stays."""
    try:
        status = os.stat(path)
        if now() - max(status.st_mtime, status.st_ctime) >= SETTLED:
            return
    except OSError:
        pass  # between two names: the new file comes at once, if it comes
    after = stamp(path)
    for _ in range(int(_PATIENCE / SETTLED)):
        pause(SETTLED)
        before, after = after, stamp(path)
        if after == before:
            return


def read(path: str) -> str:
    """A Python file's text: coding cookie and byte order mark honoured, line ends as `\\n`.

    Raises OSError (of what is no regular file, too), SyntaxError (unknown coding cookie), UnicodeDecodeError."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no regular file")
    with open(descriptor, "rb") as file:
        return decode(file.read())


def decode(data: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


class Saves:
    """The watched files as they were last. Whoever watches calls `look` when something has happened, and again while `moving`."""

    def __init__(self, now: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self.files: set[str] = set()
        self._known: dict[str, Stamp] = {}
        self._moving: dict[str, tuple[Stamp | None, float]] = {}  # as it was seen last, and since when
        self._closed: set[str] = set()  # of those that move
        self._early: dict[str, float] = {}  # closed before they were among the files, and when
        self.rest = SETTLED  # seconds that a file must stay the same which nobody has told of
        self._now, self._wall = now, wall

    @property
    def moving(self) -> bool:
        """Whether a file has changed and has not settled yet."""
        return bool(self._moving)

    def look(self, closed: Collection[str] = ()) -> list[str]:
        """Files that were saved since and have settled. A file seen for the first time is as it should be.

        closed: files that are known to be whole, for their writer has closed them. An empty one must settle all the same: editors empty a
        file before they fill it. Of these a save is seen also if size and modification time are as they were, and the others are not looked
        at: in a program that trains, each look waits for its turn."""
        now, saved = self._now(), []
        closed = {*closed, *self._come(closed, now)}
        passed = self._known.keys() - self._moving.keys() - set(closed) if closed else set()
        for path in sorted(self.files - passed):
            found = stamp(path)
            if path not in self._moving and (found is None or not self._differs(path, found, path in closed)):  # gone: its return is told
                continue
            if path not in self._moving:  # the event took its time: what it has stayed the same for already counts
                self._moving[path] = found, now - (max(0.0, self._wall() - found[0] / 1e9) if found else 0.0)
            seen, since = self._moving[path]
            if path in closed:
                self._closed.add(path)
            whole = path in closed and found is not None and found[1] > 0
            if found != seen and not whole:
                self._moving[path] = found, now
            elif whole or now - since >= (SETTLED if path in self._closed else self.rest):
                del self._moving[path]
                self._closed.discard(path)
                if found is not None and self._differs(path, found, path in closed):
                    self._known[path] = found
                    saved.append(path)
        return saved

    def was(self, path: str, stamp: Stamp | None) -> None:
        """How a file was when the program read it, if that was before the first look at it."""
        if stamp is not None:
            self._known.setdefault(path, stamp)

    def _come(self, closed: Collection[str], now: float) -> list[str]:
        """Files whose writer has closed them shortly before they were asked for."""
        self._early.update((path, now) for path in closed if path not in self.files and path.endswith(".py"))
        for path in list(self._early)[:-_MOST_EARLY]:
            del self._early[path]
        return [path for path in list(self._early) if path in self.files and now - self._early.pop(path) <= EARLY]

    def _differs(self, path: str, found: Stamp, closed: bool) -> bool:
        """Whether the file was written since it was read. A writer that has closed it may have set its times back (`cp -p`, `rsync -t`)."""
        if closed and path not in self._known:  # it was written before the first look at it, and who has read it may have been before that
            return True
        known = self._known.setdefault(path, found)
        return known != found if closed else known[_WRITTEN] != found[_WRITTEN]


def outcome(body: dict[str, Any]) -> str:
    """The answer to a save in one line."""
    name = os.path.basename(str(body.get("path", "")))
    why = "; ".join(body.get("reasons") or [])
    if body.get("outcome") != "applied":
        return f"{name} {body.get('outcome')}: {why or 'no function has changed'}".lstrip()
    how = "undone at" if body.get("undone") else "will be in force from" if body.get("pending") else "applied at"
    said = [f"{name} {how} step {body.get('step')}" if body.get("step") or not body.get("pending") else f"{name} waits", *_changes(body),
            *([f"{body.get('instructionsPatched')} of {total} instructions"] if (total := body.get("instructionsTotal")) else []),
            f"{body.get('ms', 0):.1f} ms"]
    return " · ".join(said + [why] * bool(why))


def _changes(body: dict[str, Any]) -> list[str]:
    """What took effect, a few words for each: `RATE: 0.1 → 0.2`, `forward: inserted h = relu(h)`, `new function scale`."""
    told = [_change(str(c.get("function", "")), str(c.get("what", "")), str(c.get("old") or ""), str(c.get("new") or ""))
            for c in body.get("changes") or []]
    return told[:_FEW] + [f"{len(told) - _FEW} more changes"] * (len(told) > _FEW)


def _change(function: str, what: str, old: str, new: str) -> str:
    if what.startswith(("new ", "removed ")):
        return f"{what} {function}"
    if what in ("inserted", "deleted"):
        return f"{function}: {what} {_brief(new if what == 'inserted' else old)}"
    before, after = (" ".join(text.split()) for text in (old, new))
    alike = len(os.path.commonprefix([before, after]))
    skip = max(0, alike - _BEFORE) if max(len(before), len(after)) > _SHORT and alike > _SHORT - _BEFORE else 0
    return f"{function}: {_brief(before, skip)} → {_brief(after, skip)}"


def _brief(text: str, skip: int = 0) -> str:
    """In a line. skip: characters that are left out at its beginning."""
    line = ("…" if skip else "") + " ".join(text.split())[skip:]
    return line if len(line) <= _SHORT else f"{line[:_SHORT - 1]}…"
