"""No tensors at all: everything must work as with debugpy alone."""
import sys
import time


def add(a, b):
    total = a + b
    return total


def main(count):
    result = 0
    for i in range(count):
        result = add(result, i)
    return result


if len(sys.argv) > 1 and sys.argv[1] == "flood":
    for i in range(80_000):
        print("line", i, "of many")
elif len(sys.argv) > 1 and sys.argv[1] == "sleep":
    print("ready", flush=True)
    time.sleep(60)
elif len(sys.argv) > 1 and sys.argv[1] == "raise":
    raise ValueError("on purpose")
else:
    print("result", main(4))
