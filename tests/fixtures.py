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
