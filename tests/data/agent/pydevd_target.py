"""A program that stops itself through dvm_core.agent.python_stop; what happens is named by its argument."""
import sys
import threading
import time

from dvm_core.agent import conditions, connected, python_stop
from dvm_core.agent.tracing import TRACING, anything_set, threads_run


def stop(x):
    local = x * 10
    python_stop.suspend_here(sys._getframe())  # stops here
    after = local + 1  # the next line
    return after


def stops():
    for i in range(5):
        stop(i)


def steps_over_ours():
    stop(1)
    connected()  # a function of the package
    return 1  # after it


def called_by_ours():
    def callback(text):
        seen = text  # called by the package
        return seen

    result = conditions.Gate("condition").stops(callback, print)  # calls the package
    return result  # after the call


def with_another_thread():
    running = threading.Event()

    def spin():
        while not done:
            running.set()
            time.sleep(0.001)

    done = []
    other = threading.Thread(target=spin, name="other")
    other.start()
    running.wait()
    try:
        stop(1)
    finally:
        done.append(1)
        other.join()


def joins():
    """The main thread waits where no trace event comes, while another thread stops at a breakpoint."""
    arrived = []

    def other():
        time.sleep(0.3)
        marked = 1  # a breakpoint here
        arrived.append(marked)

    thread = threading.Thread(target=other, name="other")
    thread.start()
    python_stop.prepare()
    while thread.is_alive():
        thread.join(0.02)
        python_stop.join(sys._getframe())  # waits here
    print("joined", arrived)


def asks_at_once():
    """Several threads ask for the queue of a thread that has none yet."""
    find, together, got = python_stop.debugger().get_internal_queue_and_event, threading.Barrier(4), []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def ask():
        for i in range(200):
            together.wait()
            got.append((i, *map(id, find(f"thread {i}"))))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    print("queues", len(set(got)), flush=True)


def swapped():
    def old(x):
        return x

    def new(x):
        y = x + 1  # in the new code
        return y

    stop(1)
    old.__code__ = new.__code__
    python_stop.code_changed()
    print("value", old(1))


def untraced():
    """Off and on again in the main thread, in one that was there before, and in one that starts while it is off."""
    seen = {}
    done = []

    def spin(name):
        while not done:
            seen[name] = sys.gettrace() is not None
            time.sleep(0.001)
            here = len(seen)  # in every thread
        return here

    def start(name):
        threading.Thread(target=spin, args=(name,), name=name).start()

    def until(traced):
        end = time.monotonic() + 20
        while set(seen.values()) != {traced} or (sys.gettrace() is not None) != traced:
            assert time.monotonic() < end, seen
            TRACING.look()
            time.sleep(0.01)
        print("traced", traced, sorted(seen), flush=True)

    print("set", anything_set(python_stop.debugger()), "run", threads_run())
    start("before")
    until(True)
    TRACING.wanted = False
    until(False)
    start("meanwhile")
    time.sleep(0.1)
    until(False)
    TRACING.wanted = True
    until(True)
    stop(1)
    while not done:  # the debugger ends it
        time.sleep(0.01)


def leaves():
    TRACING.wanted = False
    while sys.gettrace() is not None:
        TRACING.look()
        time.sleep(0.01)
    hooked = sys.excepthook
    TRACING.leave()
    print("traced", sys.gettrace() is not None, "hooked", hooked is not sys.__excepthook__, sys.excepthook is not sys.__excepthook__)


if __name__ == "__main__":
    print("attached", python_stop.attached())
    python_stop.prepare()
    globals()[sys.argv[1]]()
    print("END")
