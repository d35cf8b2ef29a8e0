"""Same input, same bits: whatever the process did before, however many threads there are."""

import numpy as np
import pytest

from python_process import run_python
from spdmetric import LogEuclideanMetric
from spdmetric.datasets import make_toy

FIT = """
import hashlib, sys, warnings
import numpy as np
from spdmetric import LogEuclideanMetric
from spdmetric.datasets import make_toy

warnings.simplefilter("ignore")  # of few iterations

def digest(n, d, **options):
    X, y, X_new, _ = make_toy(n, 10, d=d, random_state=0)
    metric = LogEuclideanMetric(max_iter=3, **options).fit(X, y)
    numbers = metric.components_, metric.transform(X_new), np.array(metric.alignment_)
    return hashlib.sha256(b"".join(a.tobytes() for a in numbers)).hexdigest()
"""


def run(code, **environment):
    return run_python(FIT + code, **environment).stdout.split()


def test_a_fit_does_not_depend_on_what_the_process_did_before():
    """Small enough for NumPy, large enough for the kernels: on both sides of the threshold, and near it."""
    small = "print(*(digest(n, d) for n, d in [(10, 4), (38, 8), (40, 8), (50, 8)]))"
    assert run(small) == run("digest(200, 22)\n" + small)


def test_no_number_of_threads_changes_a_bit():
    """BLAS with two threads of its own adds up in another order."""
    code = """
for n, d, options in [(300, 40, {}), (3000, 30, {}), (300, 12, {"kernel": "rbf"})]:
    print(digest(n, d, n_jobs=1, **options) == digest(n, d, n_jobs=2, **options))
"""
    assert run(code, OPENBLAS_NUM_THREADS="2", MKL_NUM_THREADS="2", OMP_NUM_THREADS="2") == ["True"] * 3


@pytest.mark.parametrize("d", [4, 8])
def test_a_matrix_is_transformed_alike_in_any_company(d):
    X, y, X_new, _ = make_toy(60, 50, d=d, random_state=0)
    metric = LogEuclideanMetric(tol=0.1).fit(X, y)
    np.testing.assert_array_equal(metric.transform(X_new)[7:8], metric.transform(X_new[7:8]))
