"""A training loop that waits for no debugger: a line a step, with the loss to the last bit. Arguments: steps, pause, and what else."""
import os
import subprocess
import sys
import threading
import time

import numpy as np

import dvm_core as dvm


@dvm.jit
def forward(w, x):
    h = w * x
    s = h + 1.5
    return s.log()


def counts(stop):
    n = 0
    while not stop.is_set():
        n += 1  # in a thread
        if n % 1000 == 0:
            time.sleep(0.001)


def child(how):
    """Its exit code: whether a process can be started as ever, and has a door."""
    if how == "fork":
        pid = os.fork()
        if not pid:
            os._exit(7 if sys.modules["dvm_core.door"]._keeper is not None else 8)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return subprocess.run([sys.executable, "-c", "raise SystemExit(7)"], stdin=subprocess.DEVNULL).returncode


def train(steps, pause, how):
    w = np.linspace(1, 2, 32, dtype=np.float32).reshape(8, 4)
    x = np.linspace(0.5, 2, 32, dtype=np.float32).reshape(8, 4)
    for number in range(1, steps + 1):
        y = forward(dvm.tensor(w), dvm.tensor(x)).numpy()
        w = w + np.float32(0.01) * y  # after the step
        traced = sys.gettrace() is not None or any(t.name == "dvm-tracing" for t in threading.enumerate())
        print("step", number, float(y.mean()).hex(), "traced" if traced else "free", flush=True)
        if how in ("fork", "spawn") and number % 10 == 0:
            print("child", child(how), flush=True)
        time.sleep(pause)


if __name__ == "__main__":
    what = sys.argv[3] if len(sys.argv) > 3 else ""
    stop = threading.Event()
    if what == "threads":
        for _ in range(3):
            threading.Thread(target=counts, args=(stop,), daemon=True).start()
    train(int(sys.argv[1]), float(sys.argv[2]), what)
    stop.set()
