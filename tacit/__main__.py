"""`python -m tacit` is the same as `tacit`."""

import sys

from tacit.cli.main import entry

sys.exit(entry())
