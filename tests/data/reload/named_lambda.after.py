# a comment moves it
scale = lambda x: x * 3
table = {"scale": scale}
