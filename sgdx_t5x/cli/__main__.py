"""`python -m sgdx_t5x.cli` is `sgdx`."""

import sys

from sgdx_t5x.cli import main

if __name__ == "__main__":
  sys.exit(main())
