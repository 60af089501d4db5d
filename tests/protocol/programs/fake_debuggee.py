"""A program with a fake tensor agent: arguments say how many steps, and what happens at each."""
import sys
import threading
import time

from fake_agent import FakeAgent


def step(x):
    h = x * 2
    return h + 1


def train(steps, pause):
    total = 0
    for number in range(1, steps + 1):
        total += step(number)
        agent.launch()
        agent.send(ev="step", step=number, launches=number)
        for watch, name in list(agent.watches.items()):
            agent.send(ev="snapshot", watchId=watch, name=name, step=number, stats={"mean": float("nan")}, shape=[3, 4], dtype="float32",
                       program=3, instruction=2)
        time.sleep(pause)
    return total


agent = FakeAgent(__file__, step.__code__.co_firstlineno + 1)
agent.ready.wait(5)
if "--thread" in sys.argv:
    worker = threading.Thread(target=train, args=(int(sys.argv[1]), 0.01), name="trainer")
    worker.start()
    if "--second" in sys.argv:
        time.sleep(0.3)
        print("main goes on")
    worker.join()
else:
    print("total", train(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0))
