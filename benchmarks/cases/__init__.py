"""The cases, by key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from benchmarks.outcomes import Outcome, Setting


@dataclass(frozen=True)
class Case:
    """One case: its key in the results, and what runs it.

    Its kind says under which circumstances: "kernel", in a process with one BLAS thread and the
    compiled kernels loaded; "user", each in a fresh process with an untouched environment;
    "result", numbers that are no times.
    """

    key: str
    run: Callable[[Setting], Outcome]
    kind: str = "kernel"


def all_cases() -> list[Case]:
    """Every case, in the order of the table."""
    from benchmarks.cases import (
        classifier,
        default,
        evaluate,
        fit,
        growth,
        large,
        neighbors,
        process,
        search,
        session,
        tolerance,
    )

    kernels = (evaluate, fit, default, neighbors, search, growth)
    modules = (session, process, classifier, *kernels, tolerance, large)
    return [case for module in modules for case in module.cases()]


def select(cases: Sequence[Case], patterns: Sequence[str]) -> list[Case]:
    """Cases whose key matches one of the patterns; all without patterns.

    A pattern is a key ("fit/toy8"), a group ("fit"), how names begin ("default" of "fit/default-toy8"),
    or has wildcards ("evaluate/*").
    """
    if not patterns:
        return list(cases)
    for pattern in patterns:
        if not any(_matches(case.key, pattern) for case in cases):
            raise ValueError(
                f"No case matches {pattern!r}: expected a key, a group or a pattern. "
                f"There are {', '.join(c.key for c in cases)}."
            )
    return [case for case in cases if any(_matches(case.key, pattern) for pattern in patterns)]


def _matches(key: str, pattern: str) -> bool:
    group, _, name = key.partition("/")
    return fnmatchcase(key, pattern) or group == pattern.rstrip("/") or name.startswith(f"{pattern}-")
