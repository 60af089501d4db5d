from __future__ import annotations


def scale(x):
    return x * 2
