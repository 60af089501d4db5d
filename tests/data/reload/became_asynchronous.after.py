async def rows(x):
    return [x]
