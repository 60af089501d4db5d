def rate():
    return 0.1
