def make(k):
    def add(x):
        return x + k
    return add


one = make(1)
