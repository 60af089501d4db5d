def scale(x):
    return x * 2


if __name__ == "__main__":
    print(scale(1))
