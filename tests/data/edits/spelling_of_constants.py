# outcome: unchanged
# check: many() == (1000, 16, 'ab', 0.5)
# ---- before
def many():
    return (1000, 16, 'ab', 0.5)
# ---- after
def many():
    return 1_000, 0x10, "a" "b", 5e-1
