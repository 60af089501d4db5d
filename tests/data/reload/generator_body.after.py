def rows(n):
    for i in range(n):
        yield i * 10


running = rows(3)
next(running)
