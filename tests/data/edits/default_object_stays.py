# outcome: applied
# keep: seen = note.__defaults__[0]
# check: note.__defaults__[0] is seen and note.__defaults__[1] == 9
# undo: note.__defaults__[1] == 1
# ---- before
def note(seen=[], k=1):
    seen.append(k)
    return seen


note()
# ---- after
def note(seen=[], k=9):
    seen.append(k)
    return seen


note()
