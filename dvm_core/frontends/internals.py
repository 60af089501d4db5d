"""Parts of a framework that are not public: what happens if the version at hand lacks one that this package relies on."""
from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import UnsupportedError
from .notices import notice


def part(path: str) -> Any:
    """What has that path, `torch._guards.TracingContext`. Raises ImportError or AttributeError where there is none."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


class Internals(NamedTuple):
    """A framework, its version and the one this package is made for, and what its programs do without us."""

    framework: str
    version: str
    tested: str
    without: str

    def required(self, what: str, get: Callable[[], Any]) -> Any:
        """What `get` finds. Raises UnsupportedError, with the versions, where nothing can work without it."""
        try:
            return get()
        except (ImportError, AttributeError) as error:
            raise UnsupportedError(f"{self.framework} {self.version} has no {what} ({error}); captured functions were tested with "
                                   f"{self.framework} {self.tested}. {self.without}") from None

    def optional(self, what: str, get: Callable[[], Any]) -> Any:
        """What `get` finds, None with one notice where something is only nicer with it."""
        try:
            return get()
        except (ImportError, AttributeError) as error:
            notice(f"{self.framework} {self.version} has no {what} ({error}), there in {self.tested}", category="compatibility",
                   once=("compat", what))
            return None
