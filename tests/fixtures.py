"""Fixtures of all tests, those of reproduction too: random numbers, and where the real data are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20150206)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = os.environ.get("SPDMETRIC_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data: set SPDMETRIC_DATA to their folder")
    return Path(folder)


@pytest.fixture(scope="module")
def numpy_only():
    """For problems so small that they do not repay loading the compiled kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPDMETRIC_COMPILED", "0")
        yield


@pytest.fixture(scope="session")
def page(tmp_path_factory):
    """The page of a comparison of a few methods, made once for all who look at it."""
    from comparison_data import FEW, write_page

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPDMETRIC_COMPILED", "0")
        return write_page(tmp_path_factory.mktemp("comparison"), "--methods", FEW)


@pytest.fixture
def chunks_of(monkeypatch):
    """Give chunks another size than the default, which depends on that of the matrices alone."""

    def set_size(size: int) -> None:
        monkeypatch.setattr("spdmetric.objectives.data.default_chunk_size", lambda d: size)

    return set_size


@pytest.fixture
def batches_of(monkeypatch):
    """Give mini-batches another size than the default."""

    def set_size(size: int) -> None:
        monkeypatch.setattr("spdmetric.estimators._streaming.batch_size", lambda d: size)
        monkeypatch.setattr("spdmetric.solvers.stochastic.default_batch_size", lambda n, d: size)

    return set_size
