"""A program that stops itself through dvm_core.agent.python_stop; what happens is named by its argument."""
import sys
import threading
import time

from dvm_core.agent import conditions, connected, python_stop


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


if __name__ == "__main__":
    print("attached", python_stop.attached())
    python_stop.prepare()
    globals()[sys.argv[1]]()
    print("END")
