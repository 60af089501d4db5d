# outcome: applied
# check: name('a/b') == 'b'
# undo: name('a/b') == 'a/b'
# ---- before
def name(path):
    return path
# ---- after
import os.path


def name(path):
    return os.path.basename(path)
