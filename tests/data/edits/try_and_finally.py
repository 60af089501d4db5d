# outcome: applied
# check: order(True) == ['body', 'KeyError', 'end'] and order(False) == ['body', 'else', 'end']
# undo: order(True) == ['body', 'error', 'finally']
# ---- before
def order(fail):
    seen = ['body']
    try:
        if fail:
            raise KeyError(1)
    except KeyError:
        seen.append('error')
    finally:
        seen.append('finally')
    return seen
# ---- after
def order(fail):
    seen = ['body']
    try:
        if fail:
            raise KeyError(1)
    except KeyError as error:
        seen.append(type(error).__name__)
    else:
        seen.append('else')
    finally:
        seen.append('end')
    return seen
