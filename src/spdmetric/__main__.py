"""``python -m spdmetric``."""

import sys

from spdmetric.cli import main

sys.exit(main())
