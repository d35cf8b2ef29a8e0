"""Python processes of their own, and what they find in their environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
SWITCH = "SPDMETRIC_COMPILED"  # "0" switches the kernels off, "1" takes them wherever they can be used

Environment = Mapping[str, str | None]  # None: the variable is not set

# What a user's process finds: none of the variables that the benchmark knows of.
UNTOUCHED: Environment = dict.fromkeys((*THREADS, SWITCH, "SPDMETRIC_DATA"), None)
# What the kernel cases find.
PINNED: Environment = {**UNTOUCHED, **dict.fromkeys(THREADS, "1")}


def run_python(code: str, *arguments: str, environment: Environment | None = None) -> str:
    """Output of a Python process of its own; an error in it is raised here with its last line.

    A variable of the environment that is given as None is not set there.
    """
    wanted = {**os.environ, **(environment or {})}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={name: value for name, value in wanted.items() if value is not None},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise RuntimeError(f"a subprocess failed with code {done.returncode}: {last[0]}")
    return done.stdout
