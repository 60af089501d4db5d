"""Takes each internal of MindSpore away in turn, in a child, and trains a little: prints what came of it as JSON."""
from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from dvm_core.frontends import internals, notices

Found = dict[str, dict[str, Any]]
KINDS = ("required", "optional")


def _train(captured: Callable[[Any], Any]) -> list[float]:
    net, ramp = nn.SequentialCell(nn.Dense(4, 3), nn.Tanh()), ops.arange(3).astype(ms.float32)
    weight, bias = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), np.zeros(3, np.float32)
    net[0].weight.set_data(Tensor(weight))
    net[0].bias.set_data(Tensor(bias))
    optimizer = nn.SGD(net.trainable_params(), 0.1)

    def loss(x: Tensor) -> Tensor:
        h = net(x) * ramp
        h[0] = 0.5
        return (h * h).mean()

    gradient = ms.value_and_grad(captured(loss), None, net.trainable_params())
    losses = []
    for step in range(3):
        value, gradients = gradient(Tensor(np.full((2, 4), 0.1 * step + 0.1, np.float32)))
        captured(lambda given: optimizer(given))(gradients)
        losses.append(float(value))
    return losses


def _without(kind: str, what: str, asked: Found) -> Callable[..., Any]:
    plain = getattr(internals.Internals, kind)

    def get(self: Any, name: str, find: Callable[[], Any]) -> Any:
        asked.setdefault(name, {"kind": kind})

        def gone() -> Any:
            raise AttributeError("taken away")

        return plain(self, name, gone if name == what else find)

    return get


def _tried(what: str) -> dict[str, Any]:
    """In this process. what: the internal to be without ("": none)."""
    texts: list[str] = []
    asked: Found = {}
    notices.add_sink(lambda note: texts.append(note["text"]))
    for kind in KINDS:
        setattr(internals.Internals, kind, _without(kind, what, asked))
    error, losses = "", []
    try:
        import dvm_core as dvm

        losses = _train(dvm.jit)
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
    return {"error": error, "losses": losses, "notices": texts, "asked": asked}


def _in_child(what: str) -> dict[str, Any]:
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(sending, "w") as file:
            json.dump(_tried(what), file)
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text)


def main() -> int:
    whole = _in_child("")
    found: Found = {}
    for what, asked in whole["asked"].items():
        came = _in_child(what)
        right = len(came["losses"]) == 3 and bool(np.allclose(came["losses"], whole["losses"], rtol=1e-5))
        found[what] = {"kind": asked["kind"], "right": right, "error": came["error"], "notices": came["notices"]}
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
