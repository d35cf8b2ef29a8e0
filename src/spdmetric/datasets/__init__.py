"""Data sets: each gives SPD matrices of shape (n, d, d) and their labels."""

from spdmetric.datasets.toy import make_toy

__all__ = ["make_toy"]
