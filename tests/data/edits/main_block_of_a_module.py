# outcome: unchanged
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2


if __name__ == "__main__":
    print(scale(1))
# ---- after
def scale(x):
    return x * 2


if __name__ == "__main__":
    print(scale(2))
