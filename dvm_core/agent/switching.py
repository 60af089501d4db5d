"""Switching devices from the editor: at once, or when the step that runs or stands at a stop has ended."""
from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .. import _core, devices
from ..errors import DeviceError
from .commands import Answer, Arguments, CommandError, command, need
from .connection import hidden_thread

if TYPE_CHECKING:
    from .session import Session

_AT_ONCE = 0.1  # seconds a request may wait for the running step
_TRY, _BETWEEN = 0.05, 0.02  # seconds for which captured calls are held back to get a turn, and then are not


class Switching:
    """The device last asked for, while the program is not on it yet."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._wanted = ""

    def to(self, name: str) -> bool:
        """False: it is done later, and a notice tells. Raises DeviceError if it cannot be done."""
        self._wanted = ""
        if devices.switched(name, _AT_ONCE):
            return True
        self._wanted = name
        hidden_thread(lambda: self._later(name), "dvm-switch").start()
        return False

    def forget(self) -> None:
        self._wanted = ""

    def _later(self, name: str) -> None:
        text, category = f"the program runs on {name} now", "device"
        try:
            while self._wanted == name and not devices.switched(name, _TRY):
                time.sleep(_BETWEEN)
        except DeviceError as error:
            text, category = str(error), "error"
        if self._wanted == name:
            self._wanted = ""
            self._session.later("device", device=devices.device())
            self._session.later("notice", text=text, path="", line=0, category=category)


@command("device")
def device(session: Session, arguments: Arguments) -> Answer:
    """`retiled`: programs whose tile code is made anew, from the same bytecode, when they are next launched. `pending`: the device in use
    when the captured calls that run now, or stand at a stop, have ended."""
    before, name = devices.device(), need(arguments, "device", str)
    try:
        done = session.switching.to(name)
    except DeviceError as error:
        raise CommandError(str(error)) from None
    switched = devices.device() != before
    told: Answer = {"device": devices.device(), "switched": switched, "retiled": len(_core.programs()) if switched else 0}
    return told if done else {**told, "pending": name}
