SIZE = 3
table = [0] * SIZE
