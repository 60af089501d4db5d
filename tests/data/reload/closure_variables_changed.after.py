def make(k):
    j = 1
    def add(x):
        return x + k + j
    return add, j


one = make(1)[0]
