# outcome: applied
# check: kept(3) == 16 and power()(3) == 16
# undo: kept(3) == 8 and power()(3) == 8
# ---- before
def power():
    def go(n):
        return 1 if n == 0 else 2 * go(n - 1)
    return go


kept = power()
# ---- after
def power():
    def go(n):
        return 2 if n == 0 else 2 * go(n - 1)
    return go


kept = power()
