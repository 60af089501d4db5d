def rows(n):
    for i in range(n):
        yield i


running = rows(3)
next(running)
