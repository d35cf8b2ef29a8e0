"""What an import costs."""

from python_process import run_python

HEAVY = {"matplotlib", "torch", "dask", "pyriemann", "mne", "moabb", "skimage", "PIL"}


def test_what_is_loaded_and_when():
    """By the import nothing; by a submodule NumPy; by a fit nothing optional, by a small one no kernels."""
    code = (
        "import sys, spdmetric\n"
        "print(*sys.modules)\n"
        "X, y, *_ = spdmetric.datasets.make_toy(10, 2, d=4, random_state=0)\n"
        "print(*sys.modules)\n"
        "spdmetric.LogEuclideanMetric(1.0).fit(X, y).transform(X)\n"
        "print(*sys.modules)"
    )
    imported, submodule, fitted = (set(line.split()) for line in run_python(code).stdout.splitlines())
    assert not imported & {"numpy", "scipy", "sklearn", "numba", *HEAVY}
    assert "numpy" in submodule
    assert not fitted & {"numba", *HEAVY}


def test_the_estimators_bring_little_beyond_sklearn_neighbors():
    """No time is asserted: what is counted is what would take it, the modules loaded."""
    code = (
        "import sys, sklearn.neighbors\n"
        "print(len(sys.modules))\n"
        "from spdmetric import LogEuclideanMetric\n"
        "print(len(sys.modules))"
    )
    neighbors, ours = map(int, run_python(code).stdout.split())
    assert ours <= 1.1 * neighbors
