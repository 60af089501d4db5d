"""`pathMappings`: the client's paths and the program's, where the same files are called differently. debugpy maps its own; this is for the
tensor engine."""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .errors import RequestError

_KEYS = ("path", "file")  # what a path is called on the wire
_WINDOWS = re.compile(r"[A-Za-z]:($|[\\/])|\\\\")
_HERE = "."  # the program's working directory, as debugpy has it


def read(given: Any) -> list[dict[str, str]]:
    """The mappings of a configuration, their ends without separators. Raises RequestError for what cannot be meant."""
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
        raise RequestError(f'"pathMappings" must be a list of objects with localRoot and remoteRoot, not {given!r}', show=True)
    mappings = []
    for one in given:
        roots = {name: one.get(name) for name in ("localRoot", "remoteRoot")}
        if not all(isinstance(root, str) and root for root in roots.values()):
            raise RequestError(f'"pathMappings" has {dict(one)!r}; each needs a localRoot and a remoteRoot', show=True)
        mappings.append({name: str(root).rstrip("/\\") or str(root) for name, root in roots.items()})
    return mappings


class PathMap:
    """Between the two: longer roots first, whole folders only, slashes of both kinds and drive letters of either case."""

    def __init__(self, mappings: list[dict[str, str]], cwd: str = "") -> None:
        """cwd: the program's working directory, which `.` stands for."""
        pairs = [(one["localRoot"], cwd.rstrip("/\\") if one["remoteRoot"] == _HERE else one["remoteRoot"]) for one in mappings]
        self._pairs = [(local, remote) for local, remote in pairs if remote and local != remote]

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def to_program(self, path: str) -> str:
        return _moved(path, self._pairs)

    def to_client(self, path: str) -> str:
        return _moved(path, [(remote, local) for local, remote in self._pairs])

    def message_to_program(self, message: Any) -> Any:
        return _with_paths(message, self.to_program)

    def message_to_client(self, message: Any) -> Any:
        return _with_paths(message, self.to_client)


def _moved(path: str, pairs: list[tuple[str, str]]) -> str:
    for root, other in sorted(pairs, key=lambda pair: -len(pair[0])):
        below = _below(path, root)
        if below is not None:
            separator = "\\" if _WINDOWS.match(other) else "/"
            return separator.join([other.rstrip("/\\"), *below]) if below else other
    return path


def _below(path: str, root: str) -> list[str] | None:
    """The parts of a path below a folder, None where it is not in it."""
    parts, above = _parts(path), _parts(root)
    return parts[len(above):] if _folded(parts[:len(above)]) == _folded(above) else None


def _parts(path: str) -> list[str]:
    return re.split(r"[\\/]+" if _WINDOWS.match(path) else "/+", path.rstrip("/\\"))


def _folded(parts: list[str]) -> list[str]:
    return [parts[0].lower(), *parts[1:]] if parts and _WINDOWS.match(parts[0]) else parts


def _with_paths(value: Any, moved: Any) -> Any:
    if isinstance(value, dict):
        return {key: moved(item) if key in _KEYS and isinstance(item, str) else _with_paths(item, moved) for key, item in value.items()}
    return [_with_paths(item, moved) for item in value] if isinstance(value, list) else value
