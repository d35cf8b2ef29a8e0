"""Memory that does not grow: streams, and choices among many matrices.

Each runs in a process of its own, whose memory the system tells; at full size with ``SPDMETRIC_NIGHTLY=1``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nightly import NIGHTLY
from python_process import run_python

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is read as Linux tells it"
)

READ = """
import re
import numpy as np
from random_matrices import labeled

def megabytes(name):  # VmRSS: now; VmHWM: at most so far
    return int(re.search(rf"{name}:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1e3
"""


def run(code: str) -> list[float]:
    return [float(line) for line in run_python(READ + code, cwd=Path(__file__).parent).stdout.split()]


def test_a_stream_takes_no_more_memory_the_longer_it_is(record_property):
    before, after = run(f"""
from spdmetric import LogEuclideanMetric
X, y = labeled(np.random.default_rng(0), 80, 4)
metric = LogEuclideanMetric(2.0, weighting="discriminant", random_state=0)
for k in range({11_200 if NIGHTLY else 1_600}):
    rows = slice(k % 8 * 10, k % 8 * 10 + 10)
    metric.partial_fit(X[rows], y[rows], classes=[0, 1])
    if k == 1_199:  # the history has its thousand records
        print(megabytes("VmRSS"))
print(megabytes("VmRSS"))
""")
    if NIGHTLY:
        record_property("memory, partial_fit over 10,000 batches", f"grows by {after - before:.1f} MB")
    assert after - before < (20 if NIGHTLY else 5)


LARGE = {
    "LogEuclideanMetricCV, 20,000 matrices 8 x 8": """
from spdmetric import LogEuclideanMetricCV
X, y = labeled(np.random.default_rng(0), 20_000, 8)
LogEuclideanMetricCV().fit(X, y)
""",
    "LogEuclideanClassifier, 200,000 matrices 8 x 8": """
from time import process_time
from spdmetric import LogEuclideanClassifier
X, y = labeled(np.random.default_rng(0), 200_000, 8)
began = process_time()
np.linalg.eigh(X)
unit, began = process_time() - began, process_time()
LogEuclideanClassifier().fit(X, y)
print((process_time() - began) / unit)
""",
    "compare, 5,000 matrices 8 x 8": """
from spdmetric import compare
X, y = labeled(np.random.default_rng(0), 5_000, 8)
compare(X, y, repeats=1)
""",
}


@pytest.mark.skipif(not NIGHTLY, reason="a nightly run")
@pytest.mark.parametrize("what", LARGE)
def test_many_matrices_stay_under_two_gigabytes(what, record_property):
    quiet = "import warnings; warnings.simplefilter('ignore')"
    *units, most = run(f'{quiet}{LARGE[what]}print(megabytes("VmHWM"))')
    took = "".join(f", {unit:.1f} times one eigendecomposition of all" for unit in units)
    record_property(f"memory, {what}", f"at most {most:.0f} MB{took}")
    assert most < 2_000
    assert all(unit <= 150 for unit in units)
