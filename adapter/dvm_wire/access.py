"""Who may talk: the address and the token the adapter gives the processes it starts, in their environment."""
from __future__ import annotations

import hmac
import os
import secrets
import socket
from collections.abc import Mapping, MutableMapping

from .frames import WireError

ENV_ADDRESS = "DVM_AGENT"  # HOST:PORT of the adapter's wire server
ENV_TOKEN = "DVM_TOKEN"  # hex
ENV_LAUNCHED = "DVM_LAUNCHED"  # "1": the debugger started this process, which ends with it

# Bytes the kernel holds at each end. An answer waits for all that is before it: with the megabytes that Linux grows buffers to, a flood of
# snapshots keeps it for seconds.
BUFFER = 1 << 17


def new_token() -> str:
    """128 random bits in hex: any process of this machine can reach a loopback port, only the debuggee knows the token."""
    return secrets.token_hex(16)


def token_matches(expected: str, given: object) -> bool:
    """Compares in constant time; anything that is not a string does not match."""
    return isinstance(given, str) and hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace"))


def launched(environment: Mapping[str, str] = os.environ) -> bool:
    """True in a process that the debugger started: it must not outlive the debugger."""
    return environment.get(ENV_LAUNCHED) == "1"


def forget(environment: MutableMapping[str, str], before: Mapping[str, str | None]) -> None:
    """Takes out what leads to the adapter, and puts back what other variables were before, None for those that were not."""
    for name, value in {ENV_ADDRESS: None, ENV_TOKEN: None, **before}.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value


def connect(environment: Mapping[str, str] = os.environ, timeout: float = 5.0) -> socket.socket | None:
    """A connected blocking socket to the adapter named in `environment`, None if none is named.

    The first frame to write on it is {"type": "hello", "token": environment[ENV_TOKEN], ...}.
    Raises WireError for an address that is not HOST:PORT, OSError when nobody listens there."""
    address = environment.get(ENV_ADDRESS)
    if not address:
        return None
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise WireError(f"{ENV_ADDRESS}={address!r} is not HOST:PORT")
    sock = socket.create_connection((host, int(port)), timeout)
    sock.settimeout(None)
    # Answers are one small frame each: without this the kernel holds them back for an acknowledgement (40 ms).
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    return sock
