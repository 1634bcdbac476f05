"""`python -m sgdx_t5x.cli` is `sgdx`."""

import sys

from sgdx_t5x.cli import main

sys.exit(main())
