"""Memory that does not grow: streams, and choices among many matrices.

Each runs in a process of its own, whose memory the system tells; at full size with ``SPDMETRIC_NIGHTLY=1``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is read as Linux tells it"
)

NIGHTLY = os.environ.get("SPDMETRIC_NIGHTLY") == "1"
READ = """
import re
import numpy as np
from random_matrices import labeled

def megabytes(name):  # VmRSS: now; VmHWM: at most so far
    return int(re.search(rf"{name}:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1e3
"""


def run(code: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", READ + code], capture_output=True, text=True, check=False,
                          cwd=Path(__file__).parent)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return [float(line) for line in done.stdout.split()]


def test_a_stream_takes_no_more_memory_the_longer_it_is():
    before, after = run(f"""
from spdmetric import LogEuclideanMetric
X, y = labeled(np.random.default_rng(0), 80, 4)
metric = LogEuclideanMetric(2.0, shape="discriminant", random_state=0)
for k in range({11_200 if NIGHTLY else 1_600}):
    rows = slice(k % 8 * 10, k % 8 * 10 + 10)
    metric.partial_fit(X[rows], y[rows], classes=[0, 1])
    if k == 1_199:  # the history has its thousand records
        print(megabytes("VmRSS"))
print(megabytes("VmRSS"))
""")
    assert after - before < (20 if NIGHTLY else 5)


@pytest.mark.skipif(not NIGHTLY, reason="a nightly run")
def test_a_choice_for_many_matrices_stays_under_two_gigabytes():
    (most,) = run("""
import warnings
from spdmetric import LogEuclideanMetricCV
warnings.simplefilter("ignore")
X, y = labeled(np.random.default_rng(0), 20_000, 8)
LogEuclideanMetricCV().fit(X, y)
print(megabytes("VmHWM"))
""")
    assert most < 2_000
