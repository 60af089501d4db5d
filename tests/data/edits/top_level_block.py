# outcome: refused
# reason: is top-level code
# check: top_level == ['try']
# ---- before
try:
    top_level.append('try')
finally:
    pass
# ---- after
try:
    top_level.append('again')
finally:
    top_level.append('end')
