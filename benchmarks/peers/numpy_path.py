"""spdmetric itself without compiled code, in a process of its own."""

from __future__ import annotations

TITLE = "NumPy path"
REQUIRES = ("spdmetric",)
GROUPS = ("process",)

# The seam to the compiled kernels: this variable switches them off.
ENVIRONMENT = {"SPDMETRIC_COMPILED": "0"}
