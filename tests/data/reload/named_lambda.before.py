scale = lambda x: x * 2
table = {"scale": scale}
