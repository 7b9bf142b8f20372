"""`python -m ascar` is `ascar`."""

import sys

from ascar.cli import main

if __name__ == "__main__":
    sys.exit(main())
