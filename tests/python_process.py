"""Python code in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def run_python(code: str, *arguments: object, cwd=None, **environment: str) -> subprocess.CompletedProcess:
    """Run code to its end, which must be a good one; what it wrote is in the result."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    options = {"cwd": cwd, "env": os.environ | environment, "timeout": 600}
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr[-3000:]
    return done
