def scale(
    x,
    y,
):
    return (
        x * 2
        + y
    )
