# outcome: refused
# reason: `rows` was a function and became an asynchronous function
# check: rows(1) == [1]
# ---- before
def rows(x):
    return [x]
# ---- after
async def rows(x):
    return [x]
