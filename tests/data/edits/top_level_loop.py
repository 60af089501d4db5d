# outcome: refused
# reason: line 2: `for i in range(3):`
# check: total == 3
# ---- before
total = 0
for i in range(3):
    total += i
# ---- after
total = 0
for i in range(3):
    total += i * 2
