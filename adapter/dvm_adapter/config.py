"""Launch and attach arguments: what is ours in them, checked, and what debugpy gets."""
from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dvm_wire import ENV_ADDRESS, ENV_LAUNCHED, ENV_TOKEN

from . import path_map
from .errors import RequestError

HOT_RELOAD = ("onSave", "manual", "off")
CAPTURE = ("breakpoint", "watched", "all")

# name: (type, default, allowed values or smallest number)
_SETTINGS: dict[str, tuple[type, Any, Any]] = {
    "device": (str, "cpu", None),
    "capture": (str, "breakpoint", CAPTURE),
    "sampleEvery": (int, 100, 1),
    "snapshotMaxBytes": (int, 1 << 20, 0),
    "snapshotTimeoutMs": (int, 100, 1),
    "hotReload": (str, "onSave", HOT_RELOAD),
    "holdRanks": (bool, False, None),
    "compareRanks": (list, [], None),
}
# Devices by name, as dvm.devices.names() has them: what the program's own installation lacks is refused there.
_DEVICE = re.compile(r"cpu|npu-sim:(910b|950)(:faithful)?|ascend:[0-9]{1,4}")
_VARIABLE = re.compile(r"(grad\()?[^\W\d]\w*(\.[^\W\d]\w*)*(?(1)\))")
DEVICES = "cpu, npu-sim:910b, npu-sim:950, npu-sim:910b:faithful, npu-sim:950:faithful, ascend:N"
_KINDS = {int: "a whole number", str: "a string", bool: "true or false", list: "a list of names"}
_LARGEST: dict[str, Any] = {"snapshotTimeoutMs": 60_000}
STAND_IN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stand_in")  # a folder that has `dvm` for scripts written for DVM
ENV_BUNDLED = "DVM_BUNDLED"  # the folder that an extension has put in front of PYTHONPATH, to start the adapter that comes with it


def read_settings(given: Any) -> dict[str, Any]:
    """The `dvm` object with defaults filled in. Raises RequestError for an unknown name or a value out of its range."""
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise RequestError(f'"dvm" in the launch configuration must be an object, not {given!r}', show=True)
    for name in given:
        if name not in _SETTINGS:
            raise RequestError(f'unknown setting "dvm.{name}" in the launch configuration; known: {", ".join(_SETTINGS)}', show=True)
    settings = {}
    for name, (kind, default, allowed) in _SETTINGS.items():
        value: Any = given.get(name, default)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise RequestError(f'"dvm.{name}" must be {_KINDS[kind]}, not {value!r}', show=True)
        if isinstance(allowed, tuple) and value not in allowed:
            raise RequestError(f'"dvm.{name}" is {value!r}; allowed: {", ".join(allowed)}', show=True)
        if kind is int and value < allowed:
            raise RequestError(f'"dvm.{name}" is {value}; it must be at least {allowed}', show=True)
        if isinstance(value, list) and not all(isinstance(entry, str) and _VARIABLE.fullmatch(entry) for entry in value):
            raise RequestError(f'"dvm.{name}" is {value!r}; allowed: names of variables, as w, self.w or grad(w)', show=True)
        if name == "device" and not _DEVICE.fullmatch(str(value)):
            raise RequestError(f'"dvm.device" is {value!r}; allowed: {DEVICES}', show=True)
        if name in _LARGEST and value > _LARGEST[name]:
            raise RequestError(f'"dvm.{name}" is {value}; it must be at most {_LARGEST[name]}', show=True)
        settings[name] = value
    return settings


@dataclass
class Config:
    """What the session was started with."""

    launched: bool = False
    no_debug: bool = False
    settings: dict[str, Any] = field(default_factory=lambda: read_settings({}))
    arguments: dict[str, Any] = field(default_factory=dict)  # as the client gave them
    mappings: list[dict[str, str]] = field(default_factory=list)  # of paths
    connect: tuple[str, int] | None = None  # a debugpy that already listens
    child: int | None = None  # process id of a child session's process
    process: int | None = None  # a running program that waits for no debugger
    relay: dict[str, Any] | None = None  # address and token of the first session's wire server

    @classmethod
    def read(cls, command: str, arguments: dict[str, Any]) -> Config:
        """Raises RequestError for what cannot be meant."""
        config = cls(launched=command == "launch", settings=read_settings(arguments.get("dvm")), arguments=arguments)
        config.mappings = path_map.read(arguments.get("pathMappings"))
        config.no_debug = bool(arguments.get("noDebug"))
        if command == "attach":
            if "device" not in (arguments.get("dvm") or {}):
                config.settings["device"] = ""  # a program that runs stays where it is
            config.connect = _address(arguments.get("connect"), arguments.get("host"), arguments.get("port"))
            child = arguments.get("subProcessId")
            config.child = child if isinstance(child, int) else None
            relay = arguments.get("dvmRelay")
            config.relay = relay if isinstance(relay, dict) else None
            config.process = _process(arguments.get("processId"))
            if config.connect is None and not any(arguments.get(name) for name in ("processId", "listen")):
                raise RequestError('attach needs "connect": {"host": ..., "port": ...}, or "processId", or "listen"', show=True)
        return config


def _process(given: Any) -> int | None:
    if given is None or given == "":
        return None
    number = int(given) if isinstance(given, str) and given.strip().isdecimal() else given
    if isinstance(number, int) and not isinstance(number, bool) and number > 0:
        return number
    why = "only VS Code shows that list" if isinstance(given, str) and given.startswith("${command:") else "it must be a process's number"
    raise RequestError(f'"processId" is {given!r}: {why}', show=True)


def _address(connect: Any, host: Any, port: Any) -> tuple[str, int] | None:
    if connect is None:
        connect = {"host": host, "port": port} if port is not None else None
    if connect is None:
        return None
    if not isinstance(connect, Mapping):
        raise RequestError(f'"connect" must be an object with host and port, not {connect!r}', show=True)
    number = connect.get("port")
    if isinstance(number, str) and number.isdigit():
        number = int(number)
    if not isinstance(number, int) or not 0 < number < 65536:
        raise RequestError(f'"connect.port" must be a port number, not {connect.get("port")!r}', show=True)
    return str(connect.get("host") or "127.0.0.1"), number


def for_debugpy(config: Config, environment: Mapping[str, str]) -> dict[str, Any]:
    """debugpy's arguments. environment: what the program needs to find us; only a launched program gets it this way."""
    arguments = {key: value for key, value in config.arguments.items() if key not in ("dvm", "dvmRelay")}
    # debugpy takes the type as a word of its own; its autoReload re-executes modules, which would fight our hot reload.
    arguments["type"] = "python"
    arguments["autoReload"] = {"enable": False}
    if config.mappings:
        arguments["pathMappings"] = config.mappings
    if config.launched:
        given = arguments.get("env")
        if given is not None and not isinstance(given, Mapping):
            raise RequestError(f'"env" must be an object of names and strings, not {given!r}', show=True)
        arguments["env"] = {**(given or {}), **environment}
        if not arguments.get("python") and isinstance(arguments.get("pythonPath"), str):
            arguments["python"] = [arguments.pop("pythonPath")]
        for name in ("program", "cwd"):
            if isinstance(arguments.get(name), str):
                arguments[name] = os.path.expanduser(arguments[name])
        if not config.no_debug:  # `terminate` is Ctrl-C then, at which a training may save; a second one ends the process
            arguments.setdefault("onTerminate", "KeyboardInterrupt")
    return arguments


def own_path(forwarded: dict[str, Any], no_debug: bool) -> None:
    """Gives a program that gets this process's environment the PYTHONPATH that was there before the adapter's own folder was put in front;
    in a terminal it has the shell's. One that no debugger enters finds `dvm` there, too (see events.py)."""
    if forwarded.get("console", "internalConsole") != "internalConsole":
        return
    environment, bundled = forwarded["env"], os.environ.get(ENV_BUNDLED)
    folders = str(environment.get("PYTHONPATH", os.environ.get("PYTHONPATH")) or "").split(os.pathsep)
    kept = [folder for folder in folders if folder and folder != bundled] + [STAND_IN] * no_debug
    if bundled or no_debug:
        environment.update({"PYTHONPATH": os.pathsep.join(kept) or None, ENV_BUNDLED: None})


def environment_for(config: Config, address: str, token: str) -> dict[str, str]:
    """The variables that lead a program's agent to this adapter. In order: a program that imports dvm_core while they are set looks for the
    address, and must find all others then, so that is the last."""
    variables = {ENV_TOKEN: token}
    if config.settings["device"]:
        variables["DVM_DEVICE"] = config.settings["device"]
    if config.launched:
        variables[ENV_LAUNCHED] = "1"
    return {**variables, ENV_ADDRESS: address}
