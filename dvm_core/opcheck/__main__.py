"""python -m dvm_core.opcheck OP...: the digests of these ops' results, as JSON; `dvm doctor --ops` starts one per SIMD level."""

import json
import sys

from .modes import own_digests

json.dump(own_digests(sys.argv[1:]), sys.stdout)
