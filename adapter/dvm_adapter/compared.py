"""A watch that every rank of a job has: what it took in the same call of a captured function must be the same everywhere, as gradients and
parameters of data-parallel training are. Each rank sends a digest of every snapshot; bytes are asked for only where those differ."""
from __future__ import annotations

import asyncio
import collections
from typing import TYPE_CHECKING, Any

from .agent_peer import Message
from .errors import RequestError
from .tasks import background

if TYPE_CHECKING:
    from .edit import Rank
    from .job import Job

_CALLS = 256  # of a watch, for which digests of some ranks are awaited
_ANSWER = 5.0  # seconds for a rank's bytes, and for the difference
_MOST_BYTES = 16 << 20

_Key = tuple[str, bool, int, str]  # the watch's name, whether of a backward pass, which time in its call, of which captured function


class Compared:
    """Of one job."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._digests: dict[_Key, collections.OrderedDict[int, dict[Rank, Message]]] = {}
        self._differing: set[_Key] = set()  # told of, and not equal since
        self._telling: set[asyncio.Task[None]] = set()

    def heard(self, rank: Rank, event: Message) -> None:
        """A rank's `digest`."""
        of, at = event.get("call") or ("", event["step"])  # ranks may have made other calls in between, and be at other steps
        key = str(event.get("name")), bool(event.get("backward")), int(event.get("ordinal") or 0), str(of)
        calls = self._digests.setdefault(key, collections.OrderedDict())
        found = calls.setdefault(int(at), {})
        found[rank] = event
        ranks = set(self._job.ranks.values())
        if len(ranks) > 1 and ranks <= found.keys():
            del calls[int(at)]
            self._look(key, {rank: found[rank] for rank in ranks})
        elif len(calls) > _CALLS:
            calls.popitem(last=False)

    def _look(self, key: _Key, found: dict[Rank, Message]) -> None:
        if any(event.get("missing") for event in found.values()):  # a copy that came too late
            return
        if len({event.get("digest") for event in found.values()}) == 1:
            self._differing.discard(key)
        elif key not in self._differing:
            self._differing.add(key)
            background(self._tell(key, found), self._telling)

    async def _tell(self, key: _Key, found: dict[Rank, Message]) -> None:
        first, *others = sorted(found, key=lambda rank: rank.number)
        for other in others:
            if found[other].get("digest") == found[first].get("digest"):
                continue
            try:
                body = await _difference(first, found[first], other, found[other])
            except RequestError as error:
                body = {"text": f"by how much is not known: {error}"}
            if body.get("differ") == 0:  # signs of zeros, or what NaN carry
                continue
            what = f"{'backward of ' if key[1] else ''}{key[0]}"
            at, its = found[first]["step"], found[other]["step"]
            where = f"{what} differs between {first.name} and {other.name} at step {at}{f' (of {other.name}: {its})' if its != at else ''}"
            told = {**body, "name": key[0], "backward": key[1], "step": at, "ranks": [first.number, other.number],
                    "path": found[first].get("path") or "", "line": found[first].get("line") or 0, "text": f"{where}: {body['text']}"}
            for rank in list(self._job.ranks.values()):
                rank.link.tell("differs", body=told)


async def _difference(first: Rank, its: Message, other: Rank, others: Message) -> Message:
    """What the dvm/compare of the other rank says of both. Raises RequestError."""
    if its.get("shape") != others.get("shape"):
        return {"text": f"shapes {its.get('shape')} and {others.get('shape')}"}
    sent = await first.link.ask("tensor", watch=its["watch"], snapshot=its["snapshot"], maxBytes=_MOST_BYTES, timeout=_ANSWER)
    if "data" not in sent:
        raise RequestError(str(sent.get("reason") or "its values cannot be sent"))
    b = {name: sent[name] for name in ("data", "dtype", "shape")}
    made = await other.link.ask("compare", a={"watch": others["watch"], "snapshot": others["snapshot"]}, b=b, timeout=_ANSWER)
    told: Message = {name: made[name] for name in ("elements", "differ", "largest", "firstDiffering") if name in made}
    if largest := told.get("largest"):  # for the rank that was asked, `a` is its own
        told["largest"] = {**largest, "a": largest["b"], "b": largest["a"]}
    return {**told, "text": _words(told)}


def _words(told: dict[str, Any]) -> str:
    text = f"{told.get('differ')} of {told.get('elements')} elements"
    if told.get("firstDiffering") is not None:
        text += f", the first at {told['firstDiffering']}"
    largest = told.get("largest")
    return text + (f", max |d| {largest['value']:.3g} at {largest['index']} ({largest['a']} and {largest['b']})" if largest else "")
