"""`python -m dvm_adapter.lsp`: the language server on stdio."""
from __future__ import annotations

import argparse
import logging
import sys


def main() -> int:
    parser = argparse.ArgumentParser("dvm lsp", description="The language server, on stdin and stdout: shapes, areas, times.")
    parser.add_argument("--stdio", action="store_true", help="what it does anyway; many editors pass it")
    parser.add_argument("--verbose", action="store_true", help="log every message to stderr")
    options = parser.parse_args()
    try:
        from .server import make
    except ImportError as error:
        print(f"dvm lsp needs the package {error.name}: {sys.executable} -m pip install pygls watchfiles", file=sys.stderr)
        return 1
    logging.basicConfig(stream=sys.stderr, level=logging.DEBUG if options.verbose else logging.WARNING)
    make().start_io()
    return 0


if __name__ == "__main__":
    sys.exit(main())
