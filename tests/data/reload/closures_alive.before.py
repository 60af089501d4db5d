def make(k):
    def add(x):
        return x + k
    return add


one, two = make(1), make(2)
