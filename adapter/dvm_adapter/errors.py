"""The one way a request fails on purpose."""
from __future__ import annotations


class RequestError(Exception):
    """A request that cannot be served: the text is shown to the person, so it says what was wrong and what to do.

    `show`: the editor opens a dialog for it; without it the text appears where the request came from (a hover, a watch)."""

    def __init__(self, message: str, *, show: bool = False) -> None:
        super().__init__(message)
        self.show = show


class PeerGone(RequestError):
    """The process at the other end of a channel has gone while an answer was awaited."""
