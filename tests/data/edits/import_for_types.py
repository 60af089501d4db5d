# outcome: unchanged
# check: root(4) == 2
# ---- before
from typing import TYPE_CHECKING


def root(x):
    return x // 2
# ---- after
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal


def root(x):
    return x // 2
