# outcome: unchanged
# reason: `Schedule` is gone from the text; it stays defined in the running program until restart
# reason: `decay` is gone from the text
# check: schedule.rate(1) == 1.0 and decay(1) == 0.5
# ---- before
import functools


class Schedule:
    scale = 2

    def rate(self, step):
        return self.scale / (1 + step)


def named(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)
    return call


@named
def decay(step):
    return 0.5 ** step


schedule = Schedule()
# ---- after
import functools


def named(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)
    return call


schedule = Schedule()
