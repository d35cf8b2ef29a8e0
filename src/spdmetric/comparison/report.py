"""A finished comparison: its answer as text, table, picture, page and file, and its winner, trained."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from sklearn.base import BaseEstimator

from spdmetric.comparison import chosen
from spdmetric.comparison.chosen import Drawn
from spdmetric.comparison.describe import Description, counted
from spdmetric.comparison.methods import METHODS, program
from spdmetric.comparison.plan import RECENTERED
from spdmetric.comparison.run import Comparison
from spdmetric.comparison.verdict import Estimate, Line, Verdict, sentences, title
from spdmetric.io.atomic import write_atomically
from spdmetric.io.files import as_csv
from spdmetric.io.matrices import Matrices
from spdmetric.plots.style import need_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

Row = dict[str, str | float | bool | None]  # of the table
SCHEMA = 1  # of the .csv and .json files; see docs/guide/compare.md
COLUMNS = (
    *("schema", "method", "title", "family", "recentered", "score", "decides"),
    *("mean", "se", "low", "high", "behind", "behind_se", "tied", "seconds"),
)
# Their types in the table schema of the .json file; the others are numbers.
_KINDS = {"schema": "integer", **dict.fromkeys(("recentered", "decides", "tied"), "boolean")}
_KINDS |= dict.fromkeys(("method", "title", "family", "score"), "string")


@dataclass(frozen=True)
class Origin:
    """Where the matrices were read from, for the page and for the code to copy."""

    file: str = "matrices.npz"
    test_file: str | None = None
    arguments: Mapping[str, object] = field(default_factory=dict)  # others of the function that reads
    signals: bool = False
    steps: tuple[BaseEstimator, ...] = ()  # from what was read to the matrices
    command: str = ""  # none for arrays in Python
    skipped: bool = False  # whether some could not be used, and were left out
    saved: tuple[str, str] | None = None  # method and file of a model

    def calls(self) -> tuple[str, str]:
        """Calls of `read_matrices` or `read_signals`, for the training and the new matrices."""
        function = "read_signals" if self.signals else "read_matrices"
        # Where labels and groups are in the file they are found.
        again = {name: value for name, value in self.arguments.items() if name not in ("labels", "groups")}
        new = f"new{Path(self.file).suffix}" if self.signals else "new.npz"
        if self.test_file is None and not self.signals:
            again = {}
        return _call(function, self.file, self.arguments), _call(function, self.test_file or new, again)

    def program(self, estimator: BaseEstimator, *, groups: bool) -> str:
        """Python that reads the same file, leaves out what was left out, trains, and labels new matrices."""
        good = "[usable(known)]" if self.skipped else ""
        text = program(estimator, *self.calls(), **({"groups": f"known.groups{good}"} if groups else {}))
        if not self.skipped:
            return text
        bad = "bad_signals" if self.signals else "bad_matrices"
        text = text.replace("known.X, known.y", f"known.X{good}, known.y{good}")
        text = text.replace("new.X", "new.X[usable(new)]").replace(
            "\nknown =", f"{_USABLE.format(bad)}known ="
        )
        return f"from spdmetric.validation import {bad}\n{text}"


_USABLE = """

def usable(found):
    bad = {{one.index for one in {}(found.X)}}
    return [k for k in range(len(found.X)) if k not in bad]


"""


def _call(function: str, file: str, arguments: Mapping[str, object]) -> str:
    given = [repr(file), *(f"{name}={value!r}" for name, value in arguments.items())]
    return f"{function}({', '.join(given)})"


@dataclass(frozen=True)
class Report:
    """A finished comparison; as text, its answer."""

    data: Matrices
    test: Matrices | None
    described: list[Description]  # of both
    comparison: Comparison
    verdict: Verdict
    channels: Sequence[str] | None = None
    facts: dict[str, str] = field(default_factory=dict)  # date, version, settings: in words
    _fitted: dict[str, BaseEstimator] = field(default_factory=dict, init=False, repr=False)

    def __str__(self) -> str:
        return "\n".join(sentences(self.verdict))

    def __repr__(self) -> str:
        methods = counted(len(self.verdict.lines), "method")
        return f"<Report on {self.data.name}: {methods}; print() it for the answer>"

    @property
    def rows(self) -> list[Row]:
        """The numbers, tidy: a row for each method and score; None where there is none."""
        return [_row(line, score, self.verdict) for line in self.verdict.lines for score in line.scores]

    @property
    def table(self) -> DataFrame | list[Row]:
        """`rows` as a DataFrame, or as they are where pandas is not installed."""
        try:
            from pandas import DataFrame
        except ImportError:
            return self.rows
        return DataFrame(self.rows, columns=COLUMNS)

    def best_estimator(self, method: str | None = None) -> BaseEstimator:
        """Train the winner on all the training matrices.

        Parameters
        ----------
        method : str, optional
            Another method of `spdmetric.comparison.methods.METHODS`; by default the one with the highest
            score of those that need no recentering.

        Returns
        -------
        estimator : classifier
            Fitted, the same at each call.
        """
        method = method or chosen.winner(self.verdict)
        if method not in METHODS:
            raise ValueError(f"No method {method}; there are {', '.join(METHODS)}.")
        if method not in self._fitted:
            self._fitted[method] = chosen.fit_all(self.comparison.plan, method)
        return self._fitted[method]

    @cached_property
    def drawn(self) -> Drawn | None:
        """The learned metric that is drawn; None where no method has one, or all matrices give none."""
        method = chosen.drawn_method(self.verdict)
        if method is None:
            return None
        try:
            fitted = self.best_estimator(method)
        except ValueError:  # the page says so
            return None
        return chosen.draw(self.comparison.plan, method, fitted)

    def plot(self) -> Axes:
        """Draw the score that decides, of every method, with its standard error, in a figure of pyplot."""
        need_matplotlib()
        import matplotlib.pyplot as plt

        from spdmetric.comparison import pictures

        return pictures.ranking(self.verdict, plt.figure()).axes[0]

    def save(self, path: str | PathLike[str], origin: Origin | None = None) -> None:
        """Write the page.

        Parameters
        ----------
        path : path-like
            An HTML file, which needs no other and no network.
        origin : Origin, optional
            Where the matrices were read from, for the code to copy.
        """
        from spdmetric.comparison.page import render

        write_atomically(path, render(self, origin or Origin()).encode(errors="replace"))

    def _repr_html_(self) -> str:
        """Return the page in a frame, for notebooks."""
        from spdmetric.comparison.page import render

        page = escape(render(self, Origin()))
        look = "width:100%;height:40rem;border:1px solid #d9dee4"
        return f'<iframe title="spdmetric.compare" srcdoc="{page}" style="{look}"></iframe>'

    def as_csv(self) -> str:
        """`rows` as CSV; missing numbers are empty."""
        return as_csv([COLUMNS, *(row.values() for row in self.rows)])

    def as_json(self) -> str:
        """`rows` as JSON with a table schema, and beside them the answer and the facts."""
        fields = [{"name": name, "type": _KINDS.get(name, "number")} for name in COLUMNS]
        document = {
            "format": f"spdmetric.compare {SCHEMA}",
            "answer": sentences(self.verdict),
            "facts": self.facts,
            "schema": {"fields": fields, "pandas_version": "1.4.0"},
            "data": self.rows,
        }
        return json.dumps(document, indent=1) + "\n"


def _row(line: Line, score: str, verdict: Verdict) -> Row:
    method, _, form = line.method.partition(" ")
    decides = score == verdict.plan.scoring
    mean, se, low, high = _numbers(line.scores[score])
    behind, behind_se, *_ = _numbers(line.behind if decides else None)
    tied = line is verdict.best or line.tied
    facts = (SCHEMA, method, title(line.method), METHODS[method].family, form == RECENTERED, score, decides)
    numbers = (mean, se, low, high, behind, behind_se, tied, line.seconds)
    return dict(zip(COLUMNS, facts + numbers, strict=True))


def _numbers(found: Estimate | None) -> tuple[float | None, ...]:
    if found is None or not found.known:
        return (None if found is None else found.mean, None, None, None)
    return found.mean, found.se, found.mean - found.half, found.mean + found.half
