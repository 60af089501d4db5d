"""Starts a worker by multiprocessing spawn; the worker has a fake tensor agent of its own. Argument "free": nobody will
debug it; a number: it is that rank."""
import multiprocessing
import os
import sys


def step(x):
    h = x * 2
    return h


def work(queue):
    from fake_agent import FakeAgent

    agent = FakeAgent(__file__, step.__code__.co_firstlineno + 1)
    agent.ready.wait(0.2 if "free" in sys.argv else 4)
    value = step(21)
    agent.launch()
    queue.put(value)


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].isdigit():
        os.environ["RANK"] = sys.argv[1]
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print("from the worker:", queue.get(timeout=60), flush=True)
    process.join()
