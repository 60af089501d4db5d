# outcome: applied
# keep: held = FROZEN
# check: held == {'bias', 'norm'} and frozen('norm')
# undo: held == {'bias'} and not frozen('norm')
# ---- before
FROZEN = {'bias'}


def frozen(name):
    return name in FROZEN
# ---- after
FROZEN = {'bias', 'norm'}


def frozen(name):
    return name in FROZEN
