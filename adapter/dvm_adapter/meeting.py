"""Where ranks can meet: the captured call that all of them take an edit before."""
from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from .agent_peer import Message

AHEAD = 0.02  # seconds to the call that is chosen: by then all ranks have been told
_TOGETHER = 2  # calls that ranks which wait for each other in every step are apart at most, each asked a moment later
_LATELY = 60.0  # seconds since a call of a function that is likely to be called again


@dataclass(frozen=True)
class Meeting:
    """The call of that number. of: the captured function whose calls are counted, "" for those of all together."""
    number: int
    of: str = ""

    def __str__(self) -> str:
        return f"call {self.number} of `{self.of.rpartition(':')[2]}`" if self.of else f"step {self.number}"

    def passed_over(self, before: Collection[Message], now: Collection[Message]) -> bool:
        """Whether the ranks have gone on since without a call of that function: it may be called no more."""
        still = all(_made(was, self.of) == _made(its, self.of) for was, its in zip(before, now, strict=False))
        return bool(self.of) and still and any(was["step"] != its["step"] for was, its in zip(before, now, strict=False))


def choose(paces: Collection[Message], further: int, without: Collection[str] = ()) -> Meeting:
    """A little later than any rank is at. paces: of each rank, as the agent tells it; further: how many times as far away as it need be;
    without: functions that are not to be counted.

    Ranks need not make the same captured calls: one may evaluate in between. Where they keep together in the calls of one function, those
    are counted."""
    of = _counted([{name: told for name, told in pace["calls"].items() if name not in without} for pace in paces])
    rate = max(float(pace["rate"]) * _made(pace, of) / max(1, pace["step"]) for pace in paces)
    return Meeting(max(_made(pace, of) for pace in paces) + further * (1 + math.ceil(AHEAD * rate)), of)


def _made(pace: Message, of: str) -> int:
    """Calls so far."""
    return int(pace["calls"].get(of, [0])[0] if of else pace["step"])


def _counted(calls: list[dict[str, list[float]]]) -> str:
    common = [name for name in calls[0] if all(name in others for others in calls)]
    near = [name for name in common if max(each[name][0] for each in calls) - min(each[name][0] for each in calls) <= _TOGETHER]
    ages = {name: [each[name][1] for each in calls] for name in near}
    lately = [name for name in near if 0 <= min(ages[name]) <= max(ages[name]) <= _LATELY] or [name for name in near if -1 in ages[name]]
    return max(lately, key=lambda name: calls[0][name][0], default="")
