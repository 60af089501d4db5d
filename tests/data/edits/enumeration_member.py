# outcome: refused
# reason: belongs to an enumeration
# check: Mode.TEST.value == 2
# ---- before
import enum


class Mode(enum.Enum):
    TRAIN = 1
    TEST = 2
# ---- after
import enum


class Mode(enum.Enum):
    TRAIN = 1
    TEST = 3
