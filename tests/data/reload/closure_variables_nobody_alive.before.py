def make(k):
    j = 1
    def add(x):
        return x + k
    return add, j
