"""Frames between adapter and debuggee: what arrives is what was sent, and hostile input is refused."""
import json
import math
import socket
import struct
import threading

import dvm_wire
import pytest


@pytest.fixture
def pair():
    a, b = socket.socketpair()
    yield a, b
    a.close()
    b.close()


def test_objects_arrive_as_they_were_sent(pair):
    message = {"ev": "notice", "text": "naïve ✓ \ud83d", "list": [1, 2.5, None, True], "deep": {"a": {"b": []}}}
    dvm_wire.write_frame(pair[0], message)
    assert dvm_wire.read_frame(pair[1]) == message


def test_nan_and_infinity_travel_as_words_and_come_back_as_numbers(pair):
    dvm_wire.write_frame(pair[0], {"values": [math.nan, math.inf, -math.inf, 1.5], "tuple": (1, math.nan)})
    answer = dvm_wire.read_frame(pair[1])
    assert answer == {"values": ["NaN", "Infinity", "-Infinity", 1.5], "tuple": [1, "NaN"]}
    numbers = [dvm_wire.number(value) for value in answer["values"]]
    assert math.isnan(numbers[0]) and numbers[1:] == [math.inf, -math.inf, 1.5]
    with pytest.raises(dvm_wire.WireError):
        dvm_wire.number("nan")


def test_numpy_scalars_are_numbers_on_the_wire(pair):
    numpy = pytest.importorskip("numpy")
    dvm_wire.write_frame(pair[0], {"n": numpy.int64(3), "f": numpy.float32("inf"), "b": numpy.bool_(True)})
    assert dvm_wire.read_frame(pair[1]) == {"n": 3, "f": "Infinity", "b": True}
    with pytest.raises(TypeError):
        dvm_wire.encode({"array": numpy.zeros(3)})


def test_frames_of_many_threads_do_not_mix(pair):
    writers = [threading.Thread(target=lambda n=n: [dvm_wire.write_frame(pair[0], {"from": n, "pad": "x" * 3000 * n}) for _ in range(20)])
               for n in range(5)]
    for writer in writers:
        writer.start()
    received = [dvm_wire.read_frame(pair[1]) for _ in range(100)]
    for writer in writers:
        writer.join()
    assert all(len(message["pad"]) == 3000 * message["from"] for message in received)
    assert sorted(message["from"] for message in received) == sorted(list(range(5)) * 20)


def test_the_end_between_frames_is_an_end_and_inside_one_an_error(pair):
    dvm_wire.write_frame(pair[0], {"a": 1})
    pair[0].sendall(b"\0\0")
    pair[0].shutdown(socket.SHUT_WR)
    assert dvm_wire.read_frame(pair[1]) == {"a": 1}
    with pytest.raises(dvm_wire.WireError, match="header"):
        dvm_wire.read_frame(pair[1])
    assert dvm_wire.read_frame(pair[1]) is None


@pytest.mark.parametrize("raw, words", [
    (struct.pack(">I", 0), "length 0"),
    (struct.pack(">I", dvm_wire.MAX_FRAME + 1), "length 67108865"),
    (b"\xff\xff\xff\xff", "length 4294967295"),
    (struct.pack(">I", 2) + b"[]", "JSON list"),
    (struct.pack(">I", 3) + b"{]}", "not JSON"),
    (struct.pack(">I", 9) + b'{"a":NaN}', "NaN is not JSON"),
    (struct.pack(">I", 4) + b"\xff\xfe{}", "not JSON"),
    (struct.pack(">I", 200_000) + b"[" * 200_000, "not JSON"),
    (struct.pack(">I", 10) + b"{}", "ended 8 bytes before"),
])
def test_what_is_no_frame_is_refused_with_a_reason(pair, raw, words):
    def send():
        pair[0].sendall(raw)
        pair[0].shutdown(socket.SHUT_WR)

    sender = threading.Thread(target=send)
    sender.start()
    with pytest.raises(dvm_wire.WireError, match=words):
        dvm_wire.read_frame(pair[1])
    sender.join()


def test_a_frame_above_the_limit_is_not_sent(pair):
    with pytest.raises(dvm_wire.WireError, match="above the limit"):
        dvm_wire.write_frame(pair[0], {"data": "x" * (dvm_wire.MAX_FRAME + 1)})
    dvm_wire.write_frame(pair[0], {"still": "usable"})
    assert dvm_wire.read_frame(pair[1]) == {"still": "usable"}


def test_the_token_must_be_the_very_one():
    token = dvm_wire.new_token()
    assert len(token) == 32 and token != dvm_wire.new_token()
    assert dvm_wire.token_matches(token, token)
    for wrong in ("", token[:-1], token + "0", None, 5, "é"):
        assert not dvm_wire.token_matches(token, wrong)


def test_connect_needs_an_address():
    assert dvm_wire.connect({}) is None
    with pytest.raises(dvm_wire.WireError, match="HOST:PORT"):
        dvm_wire.connect({dvm_wire.ENV_ADDRESS: "nowhere"})
    assert not dvm_wire.launched({}) and dvm_wire.launched({dvm_wire.ENV_LAUNCHED: "1"})


def test_a_dump_is_strict_json():
    assert json.loads(dvm_wire.dump({"x": [math.nan]}), parse_constant=lambda name: pytest.fail(name)) == {"x": ["NaN"]}
