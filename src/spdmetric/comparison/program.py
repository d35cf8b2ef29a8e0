"""Code to copy: Python that reads the data of a comparison, trains a method, and labels new matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from spdmetric.comparison.folds import fit_keywords, steps_of
from spdmetric.comparison.methods import expression


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
    title: str | None = None  # of the page

    def calls(self) -> tuple[str, str]:
        """Calls of `read_matrices` or `read_signals`, for the training and the new matrices."""
        again = dict(self.arguments) if self.test_file is not None or self.signals else {}
        for name in ("labels", "groups"):  # where they are in the file they are found
            again.pop(name, None)
        new = f"new{Path(self.file).suffix}" if self.signals else "new.npz"
        return self._call(self.file, self.arguments), self._call(self.test_file or new, again)

    def _call(self, file: str, arguments: Mapping[str, object]) -> str:
        texts = [repr(file), *(f"{name}={value!r}" for name, value in arguments.items())]
        return f"{'read_signals' if self.signals else 'read_matrices'}({', '.join(texts)})"


def write_program(estimator: BaseEstimator, origin: Origin, *, groups: bool = False) -> str:
    """Python that reads the same file, trains, and labels new matrices; ``groups``: those of the file too."""
    known, new = origin.calls()
    parts = [part for step in steps_of(estimator) for part in (step, *step.get_params().values())]
    kinds = {type(part) for part in parts if isinstance(part, BaseEstimator)}
    what = "signals" if origin.signals else "matrices"
    imports = {(f"spdmetric.io.{what}", f"read_{what}"), *((_public_module(k), k.__name__) for k in kinds)}
    if isinstance(estimator, Pipeline):
        imports.add(("sklearn.pipeline", "make_pipeline"))
    usable, of_known, of_new = "", "", ""
    if origin.skipped:
        imports.add(("spdmetric.validation", f"bad_{what}"))
        usable, of_known, of_new = _USABLE.format(what=what), "[usable(known)]", "[usable(new)]"
    columns = [f"known.X{of_known}", f"known.y{of_known}"]
    if groups:
        keywords = fit_keywords(estimator, groups=f"known.groups{of_known}")
        columns += [f"{name}={text}" for name, text in keywords.items()]
    lines = [f"from {module} import {name}" for module, name in sorted(imports)]
    lines += [usable, f"known = {known}", f"model = {expression(estimator)}"]
    lines += [f"model.fit({', '.join(columns)})", "", f"new = {new}"]
    return "\n".join([*lines, f"print(model.predict(new.X{of_new}))", ""])


_USABLE = """

def usable(found):
    bad = {{one.index for one in bad_{what}(found.X)}}
    return [k for k in range(len(found.X)) if k not in bad]

"""


def _public_module(kind: type) -> str:
    """Where a class is imported from: the part of its module's name before anything private."""
    if kind.__module__.startswith("spdmetric.estimators"):
        return "spdmetric"
    return kind.__module__.partition("._")[0]
