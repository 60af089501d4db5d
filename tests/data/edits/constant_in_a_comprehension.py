# outcome: applied
# check: rates() == [0.2, 0.4] and Layer().rates() == {0.2}
# undo: rates() == [0.1, 0.2] and Layer().rates() == {0.1}
# ---- before
RATE = 0.1


def rates():
    return [RATE * n for n in (1, 2)]


class Layer:
    def rates(self):
        return {RATE for _ in range(2)}
# ---- after
RATE = 0.2


def rates():
    return [RATE * n for n in (1, 2)]


class Layer:
    def rates(self):
        return {RATE for _ in range(2)}
