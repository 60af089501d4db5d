def make(k):
    def add(x, y=0):
        return x + k + y
    return add


one = make(1)
