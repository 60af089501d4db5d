def scale(x: float) -> float:
    return x * 2
