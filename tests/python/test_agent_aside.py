"""What a person evaluates at a stop runs by itself, and is no part of the program that stands there."""
import numpy as np

import dvm_core as dvm
from dvm_core import _core
from dvm_core.frontends import capture


@dvm.jit
def forward(x, w):
    h = x * w
    s = h + 1.5
    return s / (s.max() + 1)


def test_captured_functions_and_single_ops_at_a_stop():
    x, w = (dvm.tensor(np.linspace(a, a + 1, 32, dtype=np.float32).reshape(8, 4)) for a in (0, 1))
    reference = forward(x, w).numpy()
    program = next(p for p in reversed(_core.programs()) if p.name == "forward")
    seen = []

    def handler(launch, instruction, reason, hooks):
        _core.set_stop_handler(lambda *nested: None)  # the launches below have the same hook
        size = capture.active().graph.size()
        with capture.set_aside():
            for _ in range(3):
                seen.append(np.array_equal(forward(x, w).numpy(), reference))
                seen.append(np.array_equal((x * 2).numpy(), x.numpy() * 2))
                seen.append(capture.active() is None)
        seen.append(capture.active().graph.size() == size)

    try:
        _core.set_hook(program.id, 3, _core.HOOK_STOP, 1)
        _core.set_stop_handler(handler)
        np.testing.assert_array_equal(forward(x, w).numpy(), reference)
    finally:
        _core.set_stop_handler(None)
        _core.clear_hook(program.id, 3, _core.HOOK_STOP, 1)
    assert seen == [True] * 10
