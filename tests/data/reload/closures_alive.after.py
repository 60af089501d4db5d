def make(k):
    def add(x):
        return x + k * 10
    return add


one, two = make(1), make(2)
