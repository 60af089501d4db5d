# outcome: refused
# reason: `SIZES` was [1, 2] in the text, but is a list in the running program
# check: sizes() == [1, 2, 3]
# ---- before
SIZES = [1, 2]
SIZES.append(3)


def sizes():
    return SIZES
# ---- after
SIZES = [1, 5]
SIZES.append(3)


def sizes():
    return SIZES
