# outcome: refused
# reason: of class `Mode` changed
# check: len(Mode) == 2
# ---- before
import enum


class Mode(enum.Enum):
    TRAIN = 1
    TEST = 2
# ---- after
import enum


class Mode(enum.Enum):
    TRAIN = 1
