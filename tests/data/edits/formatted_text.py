# outcome: applied
# check: show(1.5) == 'loss 1.50!'
# undo: show(1.5) == 'loss 1.5'
# ---- before
def show(x):
    return f'loss {x:.1f}'
# ---- after
def show(x):
    return f'loss {x:.2f}!'
