"""The one registry of methods: what each is, which data it can take, and the estimator that does it.

``METHODS[name].make(sizes)`` is a fresh scikit-learn classifier; `expression` and `program` are
the same as Python text to copy, read off the estimator that runs.  To add a method, add it to
`METHODS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.covariance import LedoitWolf
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC

from spdmetric.comparison.baselines import CSP_FILTERS, GMML, NCA, RCA, NearestNeighbor, from_pyriemann
from spdmetric.comparison.folds import fit_keywords, steps_of
from spdmetric.estimators import (
    CommonRange,
    LogEuclideanClassifier,
    LogEuclideanMetric,
    LogEuclideanMetricCV,
)
from spdmetric.estimators.cv import set_nested
from spdmetric.validation import check_psd, smallest_rank


class Sizes(NamedTuple):
    """What of the data decides the parameters of a method."""

    n: int  # training matrices
    d: int
    smallest_class: int  # training matrices of it
    smallest_rank: int  # of any matrix; d where all have full rank
    shared: bool = False  # whether matrices that are singular share one range, of that rank

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray) -> Sizes:
        """Sizes of a training set of positive semi-definite matrices."""
        (n, d, _), smallest = X.shape, int(np.unique(y, return_counts=True)[1].min())
        try:
            inside = CommonRange().fit(X).basis_.shape[1]
        except ValueError:  # some are singular inside it: they have ranges of their own
            return cls(n, d, smallest, smallest_rank(check_psd(X, 1)))
        return cls(n, d, smallest, inside, shared=inside < d)

    @property
    def definite(self) -> bool:
        """Whether all matrices have full rank."""
        return self.smallest_rank == self.d

    @property
    def inside(self) -> Sizes:
        """The same on the range that the matrices share."""
        return self._replace(d=self.smallest_rank, shared=False) if self.shared else self

    @property
    def low_rank(self) -> int | None:
        """Half the rank, for the metric of one low rank; None for definite matrices smaller than four."""
        if self.definite:
            return max(2, self.d // 2) if self.d >= 4 else None
        return max(1, self.smallest_rank // 2)  # near it, some are all but singular on the directions

    @property
    def low_ranks(self) -> tuple[int, ...]:
        """Ranks to choose among where matrices are singular, each on a range of its own."""
        return tuple(rank for rank in LOW_RANKS if 2 * rank <= self.smallest_rank) or (self.low_rank or 1,)


Make = Callable[[Sizes], BaseEstimator]


@dataclass(frozen=True)
class Method:
    """A line of the registry."""

    title: str
    short: str  # the head of a column; 1-NN where it names no classifier
    family: str  # a key of FAMILIES
    sentence: str
    recipe: Make  # a fresh classifier of matrices that it can take as they are
    definite: bool = True  # whether the matrices must have full rank
    neighbors: int = 1  # that vote
    smallest_d: int = 1  # size of the matrices below which it tells nothing
    extra: str | None = None  # of the package, that must be installed
    sweeps: bool = False  # chooses by cross-validation
    scatters: bool = False  # needs the covariance of the vectors, (p, p) with p = d(d+1)/2

    @property
    def takes(self) -> str:
        """What data it can take, in words."""
        words = "full rank, or one range" if self.definite else "any, singular ones too"
        if self.smallest_d > 1:
            words += f"; {self.smallest_d} x {self.smallest_d} or larger"
        return words + f"; {2 * self.neighbors} or more to learn from" * (self.neighbors > 1)

    def make(self, s: Sizes) -> BaseEstimator:
        """A fresh classifier; singular matrices that share a range are brought to it first."""
        made = self.recipe(s.inside)
        if not s.inside.definite:  # without a common range they have no Riemannian mean
            given(made, init="euclid", ranks=s.low_ranks)
        return make_pipeline(CommonRange(), *steps_of(made)) if s.shared else made


LOW_RANKS = (4, 8)

FAMILIES = {
    "distance": "a fixed distance, nearest neighbor",
    "learned": "a learned metric",
    "rival": "another method",
}


def _knn(k: int) -> Make:
    return lambda s: KNeighborsClassifier(min(k, s.n))


def _lda(_: Sizes) -> LinearDiscriminantAnalysis:
    # shrinkage="auto" would standardize the vectors first, which loses points on EEG.
    return LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=LedoitWolf())


_NEAREST = _knn(1)


def _learned(
    title: str, short: str, sentence: str, metric: Make, head: Make = _NEAREST, **rest: Any
) -> Method:
    return Method(title, short, "learned", sentence, lambda s: make_pipeline(metric(s), head(s)), **rest)


def _vectors(head: Make, *maps: type[BaseEstimator], **where: Any) -> Make:
    """Tangent vectors at the mean, unless told otherwise, linear maps of them, a classifier."""
    return lambda s: make_pipeline(LogEuclideanMetric(0.0, **where), *(made() for made in maps), head(s))


def _distance(title: str, short: str, metric: str, distance: str, definite: bool = True) -> Method:
    sentence = f"Label of the nearest training matrix by the {distance}."
    return Method(f"{title} + 1-NN", short, "distance", sentence, lambda s: NearestNeighbor(metric), definite)


def _at_identity(
    name: str, words: str, head: Make, *maps: type[BaseEstimator], weighting: str | None = None
) -> Method:
    sentence, family = f"Tangent vectors at I, then {words}.", "rival" if weighting is None else "learned"
    make = _vectors(head, *maps, init="identity", weighting=weighting)
    return Method(f"LogEuclid at I + {name}", f"LE at I, {name}", family, sentence, make)


def _tangent(name: str, words: str, head: Make) -> Method:
    sentence = f"Tangent vectors at the Riemannian mean, then {words}."
    return Method(f"Tangent space + {name}", f"LE at mean, {name}", "rival", sentence, _vectors(head))


def _mapped(name: str, words: str, made: type[BaseEstimator]) -> Method:
    sentence = f"Tangent vectors at the Riemannian mean, mapped by {words}."
    return Method(f"Tangent space + {name} + 1-NN", name, "rival", sentence, _vectors(_NEAREST, made))


def _pyriemann(title: str, sentence: str, make: Make | None = None, scatters: bool = False) -> Method:
    """A method of pyRiemann, by default its classifier of that name."""
    made = make or (lambda s: from_pyriemann("classification", title))
    return Method(
        title, title.replace(" +", ","), "rival", sentence, made, extra="compare", scatters=scatters
    )


def _chosen(title: str, short: str, words: str, head: str = "auto", **tried: Any) -> Method:
    sentence = (
        f"Reference point, rank and weighting of the metric and {words}, all chosen by cross-validation."
    )
    made = lambda s: LogEuclideanClassifier(LogEuclideanMetricCV(**tried) if tried else None, head=head)  # noqa: E731
    return Method(title, short, "learned", sentence, made, definite=False, sweeps=True)


METHODS: dict[str, Method] = {
    "spdmetric": _chosen("Chosen metric and head", "chosen", "nearest class mean or neighbors"),
    "spdmetric-neighbors": _chosen(
        "Chosen metric + neighbors", "chosen, k-NN", "the number of neighbors", head="neighbors"
    ),
    "logeuclid-identity": _distance("LogEuclid at I", "LE at I", "logeuclid", "LogEuclidean distance at I"),
    "logeuclid-mean": Method(
        "LogEuclid at the mean + 1-NN",
        "LE at mean",
        "distance",
        "Label of the nearest training matrix by the LogEuclidean distance at the Riemannian mean.",
        _vectors(_NEAREST),
    ),
    "logeuclid-kta": _learned(
        "Learned, full rank + 1-NN",
        "LE learned",
        "The metric of the paper, learned in a ball of radius 10.",
        lambda s: LogEuclideanMetric(radius=10.0),
    ),
    "riemann": _distance("Affine-invariant", "Riemann", "riemann", "affine-invariant distance"),
    "euclid": _distance("Euclid", "Euclid", "euclid", "Frobenius distance", definite=False),
    "stein": _distance("Stein", "Stein", "stein", "symmetrized Stein divergence"),
    "logeuclid-kta-rank": _learned(
        "Learned, low rank + 1-NN",
        "LE low rank",
        "A metric of half the rank, learned in a ball of radius 5.",
        lambda s: LogEuclideanMetric(radius=5.0, rank=s.low_rank, tol=1e-3),
        definite=False,
        smallest_d=4,
    ),
    "logeuclid-chosen": _learned(
        "Chosen metric + 1-NN",
        "LE chosen",
        "A metric whose radius, rank and weighting are chosen by cross-validation for one neighbor.",
        lambda s: LogEuclideanMetricCV(n_neighbors=1),
        definite=False,
        sweeps=True,
    ),
    "logeuclid-mean-11nn": replace(_tangent("11-NN", "eleven nearest neighbors", _knn(11)), neighbors=11),
    "logeuclid-mean-centroid": _tangent("centroid", "nearest class mean", lambda s: NearestCentroid()),
    "logeuclid-mean-lda": replace(_tangent("LDA", "shrinkage LDA", _lda), scatters=True),
    "logeuclid-mean-weighting": _learned(
        "Tangent space + weighting + 5-NN",
        "LE at mean, weighting, 5-NN",
        "Tangent vectors at the Riemannian mean with a discriminant weighting, then five nearest neighbors.",
        lambda s: LogEuclideanMetric(radius=0.0, weighting="discriminant"),
        lambda s: KNeighborsClassifier(min(5, s.smallest_class)),
    ),
    "class-directions": Method(
        "Class directions + LDA",
        "class directions, LDA",
        "rival",
        "The directions in which the class means differ most, without alignment, then shrinkage LDA.",
        lambda s: make_pipeline(LogEuclideanMetric(radius=0.0, rank=s.low_rank), _lda(s)),
        definite=False,
        smallest_d=4,
    ),
    "logeuclid-mean-logistic": _tangent(
        "logistic", "logistic regression", lambda s: LogisticRegression(max_iter=5000)
    ),
    "logeuclid-identity-weighting": _at_identity(
        "weighting + 1-NN", "a weighting, and one nearest neighbor", _NEAREST, weighting="discriminant"
    ),
    "logeuclid-identity-cv": _learned(
        "Learned by CV from I + 1-NN",
        "LE by CV from I",
        "Tangent vectors at I, or a learned point, with the weighting by cross-validation, then 1-NN.",
        lambda s: LogEuclideanMetricCV(
            LogEuclideanMetric(init="identity", tol=3e-2, max_iter=40), ranks=(None,), n_neighbors=1
        ),
        sweeps=True,
    ),
    "logeuclid-identity-ridge": _at_identity(
        "ridge", "ridge regression", lambda s: RidgeClassifierCV(alphas=tuple(10.0**k for k in range(-6, 7)))
    ),
    # Turned to the directions that the training vectors span, which changes nothing but the time.
    "logeuclid-identity-logistic": _at_identity(
        "logistic", "logistic regression", lambda s: LogisticRegression(max_iter=5000), PCA
    ),
    "mdm": _pyriemann("MDM", "Label of the nearest Riemannian class mean."),
    "fgmdm": _pyriemann(
        "FgMDM", "MDM after a geodesic filter, which keeps the discriminant directions alone.", scatters=True
    ),
    "csp-lda": _pyriemann(
        "CSP + LDA",
        f"Logarithms of the variance along {CSP_FILTERS} common spatial patterns, then LDA.",
        lambda s: make_pipeline(
            from_pyriemann("spatialfilters", "CSP", nfilter=min(CSP_FILTERS, s.d)),
            LinearDiscriminantAnalysis(),
        ),
    ),
    "nca": _mapped("NCA", "neighborhood components analysis", NCA),
    "gmml": _mapped("GMML", "geometric mean metric learning", GMML),
    "rca": _mapped("RCA", "relevant component analysis", RCA),
    "wasserstein": _distance(
        "Bures-Wasserstein", "Wasserstein", "wasserstein", "Bures-Wasserstein distance", False
    ),
    "svm": _tangent("SVM", "a support vector machine", lambda s: SVC()),
    # The first method with less and less learned: what each part of the choice is worth.
    "spdmetric-weighting": replace(
        _chosen("Chosen weighting and head", "chosen weighting", "", radii=(0.0,), ranks=(None,)),
        sentence="The metric at the mean, with or without a weighting, and the head, chosen by cross-validation.",
        definite=True,
    ),
    "spdmetric-mean": replace(
        _chosen(
            "Chosen head at the mean", "chosen head", "", radii=(0.0,), ranks=(None,), weightings=(None,)
        ),
        family="rival",
        sentence="Nearest class mean or neighbors, chosen by cross-validation, with the metric at the mean.",
        definite=True,
    ),
}

LARGEST_SCATTER = 4e9  # bytes of a (p, p) matrix beyond which a method is not run, on any machine


class Pair(NamedTuple):
    """A method, the same one with less learned, and in words what more is learned and what follows both."""

    learned: str
    plain: str
    what: str
    head: str


# The first of them that could be run, of those against the mean, is the comparison planned beforehand.
_ALL, _EITHER = "the metric (G, its rank and a weighting)", "class means or neighbors"
PAIRS = (
    Pair("spdmetric", "spdmetric-mean", _ALL, _EITHER),
    Pair("spdmetric-weighting", "spdmetric-mean", "the weighting alone", _EITHER),
    Pair("spdmetric", "spdmetric-weighting", "G and its rank beside the weighting", _EITHER),
    Pair("logeuclid-chosen", "logeuclid-mean", _ALL, "one nearest neighbor"),
)

# Those that `spdmetric compare` runs unless told otherwise, in the order in which it shows them.
COMPARED = (
    *("spdmetric", "spdmetric-weighting", "spdmetric-mean"),
    *("euclid", "wasserstein", "logeuclid-identity", "logeuclid-mean", "riemann", "stein"),
    *("logeuclid-kta", "logeuclid-kta-rank"),
    *("logeuclid-mean-11nn", "logeuclid-mean-lda", "logeuclid-mean-logistic", "svm"),
    *("mdm", "fgmdm", "csp-lda", "nca"),
)


def obstacle(method: Method, s: Sizes) -> str | None:
    """Why a method cannot be run, or would tell nothing, on data of these sizes; None where it can."""
    s = s.inside
    if method.definite and not s.definite:
        return f"needs matrices of full rank or one range; the lowest here is {s.smallest_rank} of {s.d}"
    size = 8 * (s.d * (s.d + 1) // 2) ** 2
    if method.scatters and size > LARGEST_SCATTER:
        return f"{size / 1e9:.0f} GB for the covariance of vectors of length {s.d * (s.d + 1) // 2}"
    if s.definite and s.d < method.smallest_d:
        return f"a low rank of {s.d} x {s.d} matrices leaves too little"
    if method.extra and find_spec("pyriemann") is None:
        return f"needs pyRiemann: pip install 'spdmetric[{method.extra}]'"
    return too_few(method, s.n)


def too_few(method: Method, n: int) -> str | None:
    """Why n training matrices are too few: when most of them vote, the votes tell little."""
    if method.neighbors == 1 or n >= 2 * method.neighbors:
        return None
    return f"{method.neighbors} neighbors of {n} training matrices would be half or more of all"


def given(estimator: BaseEstimator, **parameters: object) -> list[str]:
    """Set parameters on all steps that have them; the names of those that no step has."""
    steps = steps_of(estimator)
    found = {name: [set_nested(step, name, value) for step in steps] for name, value in parameters.items()}
    return [name for name in parameters if not any(found[name])]


# ---------------------------------------------------------------------------
# Code to copy


def expression(estimator: BaseEstimator, width: int = 80) -> str:
    """Python that makes an estimator anew; a pipeline has a line for each step where one is too short."""
    if not isinstance(estimator, Pipeline):
        with config_context(print_changed_only=True):
            return " ".join(estimator.__repr__(N_CHAR_MAX=10**6).split())
    steps = [expression(step) for _, step in estimator.steps]
    line = f"make_pipeline({', '.join(steps)})"
    lines = "".join(f"    {step},\n" for step in steps)
    return line if len(line) <= width else f"make_pipeline(\n{lines})"


READERS = {"read_matrices": "spdmetric.io.matrices", "read_signals": "spdmetric.io.signals"}


def program(estimator: BaseEstimator, read: str, read_new: str, **columns: str) -> str:
    """Python that reads a file, trains an estimator, and labels new matrices.

    ``read`` and ``read_new`` are calls of a function of `READERS`, as text, and ``columns`` what else
    `fit` is given, ``groups="known.groups"`` for instance, where a step takes it.
    """
    imports = {(READERS[name], name) for name in (call.partition("(")[0] for call in (read, read_new))}
    parts = [part for step in steps_of(estimator) for part in (step, *step.get_params().values())]
    made = {type(part) for part in parts if isinstance(part, BaseEstimator)}
    imports |= {(_public_module(kind), kind.__name__) for kind in made}
    if isinstance(estimator, Pipeline):
        imports.add(("sklearn.pipeline", "make_pipeline"))
    lines = [f"from {module} import {name}" for module, name in sorted(imports)]
    more = "".join(f", {name}={text}" for name, text in fit_keywords(estimator, **columns).items())
    lines += ["", f"known = {read}", f"model = {expression(estimator)}", f"model.fit(known.X, known.y{more})"]
    lines += ["", f"new = {read_new}", "print(model.predict(new.X))", ""]
    return "\n".join(lines)


def _public_module(made: type) -> str:
    """Where a class is imported from: the part of its module's name before anything private."""
    if made.__module__.startswith("spdmetric.estimators"):
        return "spdmetric"
    return made.__module__.partition("._")[0]
