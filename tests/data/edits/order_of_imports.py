# outcome: unchanged
# check: size() == 3
# ---- before
import json
import math


def size():
    return math.floor(json.loads("3.5"))
# ---- after
import math
import json


def size():
    return math.floor(json.loads("3.5"))
