"""Programs that note whether they are traced; which one runs is named by the argument. The tensor engine in them is real."""
import itertools
import os
import sys
import threading
import time

import numpy as np

import dvm_core as dvm

traced, threads_traced, beats, done = True, {}, 0, False


def beat(pause=0.0):
    global traced, beats
    traced = sys.gettrace() is not None
    beats += 1  # every beat
    if pause:
        time.sleep(pause)


def hot():
    while not done:
        beat()


def sleeps():
    while not done:
        beat()
        time.sleep(0.2)
        after = beats  # after the sleep
    return after


@dvm.jit
def forward(x, scale):
    h = x * scale
    s = h + 1  # in the captured function
    return s


def captured():
    x = dvm.tensor(np.ones((8, 4), np.float32))
    while not done:
        forward(x, 2.0).numpy()
        beat()


def in_thread(name):
    while not done:
        threads_traced[name] = sys.gettrace() is not None
        time.sleep(0.005)
        there = beats  # in a thread
    return there


def threads():
    for number in range(1000):
        if number % 50 == 0 and number < 200:
            threading.Thread(target=in_thread, args=(number,), daemon=True).start()
        beat(0.02)


def untraced(seconds=10.0):
    """Until the debugger has turned tracing off."""
    end = time.monotonic() + seconds
    while traced and time.monotonic() < end:
        beat(0.001)
    print("traced", traced, flush=True)


def raises():
    untraced()
    raise ValueError("on purpose")  # ends the program


def raises_in_thread():
    untraced()

    def broken():
        raise KeyError("in a thread")  # ends the thread

    thread = threading.Thread(target=broken)
    thread.start()
    thread.join()


def stops_itself():
    for _ in range(2):
        untraced()
        dvm.debug.breakpoint()
        beat()  # after the call of breakpoint


def listens():
    print("listening", dvm.debug.listen(("127.0.0.1", 0))[1], flush=True)
    for number in itertools.count():
        beat(0.005)
        if number % 20 == 0:
            print("traced", traced, flush=True)


def forks():
    untraced()
    child = os.fork()
    if child == 0:
        beat()  # in the child
        hot()
    os.waitpid(child, 0)


globals()[sys.argv[1]]()
print("END")
