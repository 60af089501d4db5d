# outcome: applied
# check: held.label() == 'mode train' and held is Mode.TRAIN and Mode(1) is held
# undo: held.label() == 'train'
# ---- before
import enum


class Mode(enum.Enum):
    TRAIN = 1

    def label(self):
        return self.name.lower()


held = Mode.TRAIN
# ---- after
import enum


class Mode(enum.Enum):
    TRAIN = 1

    def label(self):
        return 'mode ' + self.name.lower()


held = Mode.TRAIN
