# outcome: applied
# check: everything() == [0, 10]
# undo: everything() == [0, 1]
# ---- before
import asyncio


async def rows():
    for i in range(2):
        yield i


def everything():
    async def gather():
        return [x async for x in rows()]
    return asyncio.run(gather())
# ---- after
import asyncio


async def rows():
    for i in range(2):
        yield i * 10


def everything():
    async def gather():
        return [x async for x in rows()]
    return asyncio.run(gather())
