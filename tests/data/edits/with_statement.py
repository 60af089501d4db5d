# outcome: applied
# check: read() == 'b'
# undo: read() == 'a'
# ---- before
import io


def read():
    with io.StringIO('a') as file:
        return file.read()
# ---- after
import io


def read():
    with io.StringIO('b') as file, io.StringIO('c'):
        return file.read()
