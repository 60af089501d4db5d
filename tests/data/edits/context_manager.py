# outcome: applied
# check: inside() == [2, 3]
# undo: inside() == [1, 1]
# ---- before
import contextlib


@contextlib.contextmanager
def noting(seen):
    seen.append(1)
    yield
    seen.append(1)


def inside():
    seen = []
    with noting(seen):
        pass
    return seen
# ---- after
import contextlib


@contextlib.contextmanager
def noting(seen):
    seen.append(2)
    yield
    seen.append(3)


def inside():
    seen = []
    with noting(seen):
        pass
    return seen
