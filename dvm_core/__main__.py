"""`python -m dvm_core` is the `dvm` command."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
