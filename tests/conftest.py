"""What several test files share: random matrices, and where the real data are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("ci", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("nightly", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20150206)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = os.environ.get("SPDMETRIC_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data: set SPDMETRIC_DATA to their folder")
    return Path(folder)
