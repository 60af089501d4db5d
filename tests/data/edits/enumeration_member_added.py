# outcome: refused
# reason: `Mode.TEST` belongs to an enumeration
# check: len(Mode) == 1
# ---- before
import enum


class Mode(enum.Enum):
    TRAIN = 1
# ---- after
import enum


class Mode(enum.Enum):
    TRAIN = 1
    TEST = 2
