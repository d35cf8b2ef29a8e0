"""What several test files share: random matrices, and where the real data are."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("ci", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("nightly", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_terminal_summary(terminalreporter):
    """Figures that tests recorded, in whatever process: lines as they are, then sums by name."""
    reports = [report for some in terminalreporter.stats.values() for report in some]
    told = [pair for r in reports if getattr(r, "when", None) == "call" for pair in r.user_properties]
    if told:
        sums = Counter()
        terminalreporter.section("figures")
        for name, value in told:
            if isinstance(value, str):
                terminalreporter.write_line(f"{name}: {value}")
            else:
                sums[name] += value
        terminalreporter.write_line(", ".join(f"{count:,} {name}" for name, count in sums.items()))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20150206)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = os.environ.get("SPDMETRIC_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data: set SPDMETRIC_DATA to their folder")
    return Path(folder)


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
