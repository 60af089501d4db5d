# outcome: refused
# reason: is top-level code
# check: top_level == ['with']
# ---- before
import contextlib

with contextlib.suppress(KeyError):
    top_level.append('with')
# ---- after
import contextlib

with contextlib.suppress(ValueError):
    top_level.append('with')
