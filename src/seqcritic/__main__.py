"""`python -m seqcritic` is the command line."""

import sys

from seqcritic.cli import main

sys.exit(main())
