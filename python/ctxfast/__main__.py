"""`python -m ctxfast`: the command line."""

import sys

from ctxfast.cli import main

if __name__ == "__main__":
    sys.exit(main())
