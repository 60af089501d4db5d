import enum


class Mode(enum.Enum):
    TRAIN = 1
    TEST = 3
