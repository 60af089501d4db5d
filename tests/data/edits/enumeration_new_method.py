# outcome: applied
# check: held.label() == 'train' and len(Mode) == 1
# undo: not hasattr(held, 'label')
# ---- before
import enum


class Mode(enum.Enum):
    TRAIN = 1


held = Mode.TRAIN
# ---- after
import enum


class Mode(enum.Enum):
    TRAIN = 1

    def label(self):
        return self.name.lower()


held = Mode.TRAIN
