# outcome: applied
# keep: running = started()
# check: end(running) == 1 and end(started()) == 2
# undo: end(started()) == 1
# ---- before
class Pause:
    def __await__(self):
        yield


async def work():
    await Pause()
    return 1


def started():
    running = work()
    running.send(None)
    return running


def end(running):
    try:
        running.send(None)
    except StopIteration as stop:
        return stop.value
# ---- after
class Pause:
    def __await__(self):
        yield


async def work():
    await Pause()
    return 2


def started():
    running = work()
    running.send(None)
    return running


def end(running):
    try:
        running.send(None)
    except StopIteration as stop:
        return stop.value
