# outcome: applied
# check: Layer().rate == 4
# undo: Layer().rate == 3
# ---- before
import functools


class Layer:
    @functools.cached_property
    def rate(self):
        return 3
# ---- after
import functools


class Layer:
    @functools.cached_property
    def rate(self):
        return 4
