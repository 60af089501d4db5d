# outcome: applied
# reason: Outer.Inner.value constant 1 -> 2
# check: Outer.Inner().value() == 2
# ---- before
class Outer:
    class Inner:
        def value(self):
            return 1
# ---- after
class Outer:
    class Inner:
        def value(self):
            return 2
