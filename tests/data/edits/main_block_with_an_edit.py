# outcome: applied
# check: scale(2) == 6 and top_level == []
# undo: scale(2) == 4
# ---- before
def scale(x):
    return x * 2


if __name__ == '__main__':
    top_level.append(scale(1))
# ---- after
def scale(x):
    return x * 3


if __name__ == '__main__':
    top_level.append(scale(2))
    top_level.append(scale(3))
