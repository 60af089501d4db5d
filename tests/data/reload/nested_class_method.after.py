class Outer:
    class Inner:
        def value(self):
            return 2
