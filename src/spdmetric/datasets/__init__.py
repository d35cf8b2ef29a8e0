"""Data made for examples and tests, and the whitening of sessions."""

from spdmetric.datasets.regression import make_regression
from spdmetric.datasets.toy import make_toy
from spdmetric.datasets.whitening import whiten

__all__ = ["make_regression", "make_toy", "whiten"]
