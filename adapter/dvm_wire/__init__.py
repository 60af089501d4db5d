"""The wire between the debug adapter and the debugged process: frames, limits, the token, saves. Standard library only.

Both interpreters load this package, the editor's and the user's. A frame is a 4-byte big-endian length and that many bytes of UTF-8 JSON,
one object. JSON has no NaN and no infinity: they travel as the strings "NaN", "Infinity", "-Infinity" (`number` turns them back).

    sock = connect()                                # debuggee: address and token from the environment; None if there is no debugger
    write_frame(sock, {"ev": "step", "step": 3})    # any thread; frames never interleave
    message = read_frame(sock)                      # None at the end of the stream
"""
from .access import BUFFER, ENV_ADDRESS, ENV_LAUNCHED, ENV_TOKEN, connect, forget, launched, new_token, token_matches
from .blocking import read_frame, write_frame
from .frames import HEADER, MAX_FRAME, MOST_KEPT, WireError, body_length, decode, dump, encode, number, plain
from .saves import SETTLED, Saves, folders, outcome, settle

__all__ = [
    "BUFFER", "ENV_ADDRESS", "ENV_LAUNCHED", "ENV_TOKEN", "HEADER", "MAX_FRAME", "MOST_KEPT", "SETTLED", "Saves", "WireError",
    "body_length", "connect", "decode", "dump", "encode", "folders", "forget", "launched", "new_token", "number", "outcome", "plain",
    "read_frame", "settle", "token_matches", "write_frame",
]
