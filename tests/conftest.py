"""Profiles of hypothesis, figures that tests record, and the fixtures that all tests share."""

import os
from collections import Counter

from hypothesis import settings

from fixtures import batches_of, chunks_of, data_folder, numpy_only, page, rng  # noqa: F401

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
