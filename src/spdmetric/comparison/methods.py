"""The one registry of methods: what each is, which data it can take, and the estimator that does it.

``METHODS[name].make(sizes)`` is a fresh scikit-learn classifier; `expression` is the same as Python to copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.covariance import LedoitWolf
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC

from spdmetric.comparison.baselines import FirstView, NearestNeighbor, from_pyriemann
from spdmetric.comparison.folds import steps_of
from spdmetric.estimators import (
    CommonRange,
    LogEuclideanClassifier,
    LogEuclideanMetric,
    LogEuclideanMetricCV,
    LogEuclideanRegressor,
)
from spdmetric.estimators.cv import MetricPredictor, set_nested
from spdmetric.validation import check_psd, smallest_rank

CSP_FILTERS = 6
NCA_INPUTS, NCA_OUTPUTS, NCA_STEPS = 50, 10, 100


class Sizes(NamedTuple):
    """What of the data decides the parameters of a method."""

    n: int  # training matrices
    d: int
    smallest_class: int  # training matrices of it
    smallest_rank: int  # of any matrix; d where all have full rank
    shared: bool = False  # whether matrices that are singular share one range, of that rank
    several: bool = False  # whether a sample has several matrices, of that size or smaller
    real: bool = True  # no complex ones

    @classmethod
    def from_data(cls, X: np.ndarray, y: np.ndarray) -> Sizes:
        """Sizes of a training set of positive semi-definite matrices."""
        d, smallest, inside = X.shape[-1], int(np.unique(y, return_counts=True)[1].min()), None
        if X.ndim == 3:
            with suppress(ValueError):  # some are singular inside it: they have ranges of their own
                inside = CommonRange().fit(X).basis_.shape[1]
        rank = smallest_rank(check_psd(X, 1)) if inside is None else inside
        return cls(len(X), d, smallest, rank, inside == rank < d, X.ndim == 4, np.isrealobj(X))

    @property
    def definite(self) -> bool:
        """Whether all matrices have full rank."""
        return self.smallest_rank == self.d

    @property
    def inside(self) -> Sizes:
        """The same on the range that the matrices share."""
        return self._replace(d=self.smallest_rank, shared=False) if self.shared else self

    @property
    def low_rank(self) -> int:
        """Half the rank: near it, some singular matrices are all but singular on the directions."""
        return max(1, self.smallest_rank // 2)


Make = Callable[[Sizes], BaseEstimator]
IsSlow = Callable[[int, int, int], bool]  # of the numbers of matrices, of rows of one, and of classes


@dataclass(frozen=True)
class Method:
    """A line of the registry."""

    title: str
    short: str  # the head of a column; 1-NN where it names no classifier
    family: str  # "distance" (fixed, nearest neighbor), "learned" (metric) or "baseline"
    sentence: str
    recipe: Make  # a fresh classifier of matrices that it can take as they are
    definite: bool = True  # whether the matrices must have full rank
    neighbors: int = 1  # that vote
    smallest_d: int = 1  # size of the matrices below which it tells nothing
    extra: str | None = None  # of the package, that must be installed
    chooses: bool = False  # by cross-validation
    real: bool = False  # whether complex matrices are none for it
    is_slow: IsSlow = lambda n, d, n_classes: False  # so that it is run only where it is named

    @property
    def takes(self) -> str:
        """What data it can take, in words."""
        words = "full rank, or one range" if self.definite else "any, singular ones too"
        words += f"; {self.smallest_d} x {self.smallest_d} or larger" * (self.smallest_d > 1)
        return words + f"; {2 * self.neighbors} or more to learn from" * (self.neighbors > 1)

    def make(self, s: Sizes) -> BaseEstimator:
        """A fresh classifier; singular matrices that share a range are brought to it first.

        Of several matrices a sample all but metrics of ours take the first; ours have the vectors of all.
        """
        estimator = self.recipe(s.inside)
        if not s.inside.definite:  # without a common range they have no Riemannian mean
            ranks = tuple(rank for rank in (4, 8) if 2 * rank <= s.smallest_rank) or (s.low_rank,)
            set_where_known(estimator, init="euclid", ranks=ranks)
        steps, ours = steps_of(estimator), LogEuclideanMetric | LogEuclideanMetricCV | MetricPredictor
        if s.several and not isinstance(steps[0], ours):
            return make_pipeline(FirstView(), *steps)
        return make_pipeline(CommonRange(), *steps) if s.shared else estimator


def _method(
    family: str, title: str, short: str, sentence: str, *steps: BaseEstimator | Make, **rest: Any
) -> Method:
    """A method of steps: estimators, which are copied, or functions that make one for the sizes."""

    def recipe(s: Sizes) -> BaseEstimator:
        made = [clone(step) if isinstance(step, BaseEstimator) else step(s) for step in steps]
        return made[0] if len(made) == 1 else make_pipeline(*made)

    chooses = any(isinstance(step, LogEuclideanMetricCV | MetricPredictor) for step in steps)
    return Method(title, short, family, sentence, recipe, chooses=chooses, **rest)


_learned, _baseline = partial(_method, "learned"), partial(_method, "baseline")
_chosen = partial(_learned, definite=False)


def _distance(title: str, short: str, metric: str, distance: str, **rest: Any) -> Method:
    sentence = f"Label of the nearest training matrix by the {distance}."
    if metric in ("riemann", "stein", "wasserstein"):  # which decompose a matrix for each pair
        rest["is_slow"] = lambda n, d, n_classes: n**2 * d**2 > 1e9
    return _method("distance", f"{title} + 1-NN", short, sentence, NearestNeighbor(metric), **rest)


def _tangent(name: str, words: str, head: BaseEstimator | Make, task: str = "auto", **rest: Any) -> Method:
    sentence = f"Tangent vectors at the Riemannian mean, then {words}."
    steps = LogEuclideanMetric(0.0, task=task), head
    return _baseline(f"Tangent space + {name}", f"LE at mean, {name}", sentence, *steps, **rest)


def _pyriemann(name: str, sentence: str, **rest: Any) -> Method:
    make: Make = lambda s: from_pyriemann("classification", name)  # noqa: E731
    return _baseline(name, name, sentence, make, extra="compare", **rest)


def _knn(k: int) -> Make:
    return lambda s: KNeighborsClassifier(min(k, s.n))


def _principal(s: Sizes) -> PCA:
    # Tangent vectors have more coordinates than there are matrices.
    return PCA(min(NCA_INPUTS, s.n - 1, s.d * (s.d + 1) // 2), svd_solver="full")


def _nca(s: Sizes) -> NeighborhoodComponentsAnalysis:
    outputs = min(NCA_OUTPUTS, _principal(s).n_components)
    return NeighborhoodComponentsAnalysis(outputs, max_iter=NCA_STEPS, random_state=0)


def _has_long_vectors(n: int, d: int, n_classes: int) -> bool:
    return (d * (d + 1) // 2) ** 3 > 5e10


_AT_MEAN = LogEuclideanMetric(0.0)
_CHOSEN_AT_MEAN = LogEuclideanMetricCV(radii=(0.0,), ranks=(None,), weightings=(None,))
# shrinkage="auto" would standardize the vectors first, which loses points on EEG.
_LDA = LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=LedoitWolf())

METHODS: dict[str, Method] = {
    "spdmetric": _chosen(
        *("LogEuclideanClassifier", "chosen"),
        "Metric (G, rank and weighting) and class means or neighbors, all chosen by cross-validation.",
        LogEuclideanClassifier(),
    ),
    "spdmetric-neighbors": _chosen(
        *("LogEuclideanClassifier, neighbors", "chosen, k-NN"),
        "Metric (G, rank and weighting) and the number of neighbors, all chosen by cross-validation.",
        LogEuclideanClassifier(head="neighbors"),
    ),
    "logeuclid-identity": _distance("LogEuclid at I", "LE at I", "logeuclid", "LogEuclidean distance at I"),
    "logeuclid-mean": _method(
        *("distance", "LogEuclid at the mean + 1-NN", "LE at mean"),
        "Label of the nearest training matrix by the LogEuclidean distance at the Riemannian mean.",
        *(_AT_MEAN, _knn(1)),
    ),
    "logeuclid-kta": _learned(
        *("LogEuclideanMetric + 1-NN", "LE learned"),
        "The metric of the paper, learned in a ball of radius 10.",
        *(LogEuclideanMetric(radius=10.0), _knn(1)),
    ),
    "riemann": _distance("Affine-invariant", "Riemann", "riemann", "affine-invariant distance"),
    "euclid": _distance("Euclid", "Euclid", "euclid", "Frobenius distance", definite=False),
    "stein": _distance("Stein", "Stein", "stein", "symmetrized Stein divergence"),
    "logeuclid-kta-rank": _learned(
        *("LogEuclideanMetric, low rank + 1-NN", "LE low rank"),
        "A metric of half the rank, learned in a ball of radius 5.",
        *(lambda s: LogEuclideanMetric(radius=5.0, rank=s.low_rank, tol=1e-3), _knn(1)),
        definite=False,
        smallest_d=4,
    ),
    "logeuclid-chosen": _chosen(
        *("LogEuclideanMetricCV + 1-NN", "LE chosen"),
        "A metric whose radius, rank and weighting are chosen by cross-validation for one neighbor.",
        *(LogEuclideanMetricCV(n_neighbors=1), _knn(1)),
    ),
    "logeuclid-mean-11nn": _tangent("11-NN", "eleven nearest neighbors", _knn(11), neighbors=11),
    "logeuclid-mean-lda": _tangent("LDA", "shrinkage LDA", _LDA, is_slow=_has_long_vectors),
    "logeuclid-mean-logistic": _tangent("logistic", "logistic regression", LogisticRegression(max_iter=5000)),
    "mdm": _pyriemann("MDM", "Label of the nearest Riemannian class mean."),
    "fgmdm": _pyriemann(
        *("FgMDM", "MDM after a geodesic filter, which keeps the discriminant directions alone."),
        is_slow=_has_long_vectors,
        real=True,
    ),
    "csp-lda": _baseline(
        *("CSP + LDA", "CSP, LDA"),
        f"Logarithms of the variance along {CSP_FILTERS} common spatial patterns, then LDA.",
        lambda s: from_pyriemann("spatialfilters", "CSP", nfilter=min(CSP_FILTERS, s.d)),
        LinearDiscriminantAnalysis(),
        is_slow=lambda n, d, n_classes: n_classes > 2 and d > 64,  # it diagonalizes the class means jointly
        extra="compare",
        real=True,
    ),
    "nca": _baseline(
        *("Tangent space + NCA + 1-NN", "NCA"),
        "Tangent vectors at the Riemannian mean, mapped by neighborhood components analysis.",
        *(_AT_MEAN, _principal, _nca, _knn(1)),
        is_slow=lambda n, d, n_classes: n**2 > 4e6,
    ),
    "wasserstein": _distance(
        "Bures-Wasserstein", "Wasserstein", "wasserstein", "Bures-Wasserstein distance", definite=False
    ),
    "svm": _tangent("SVM", "a support vector machine", SVC()),
    # The first method with less and less learned: what each part of the choice is worth.
    "spdmetric-weighting": _learned(
        *("LogEuclideanClassifier, weighting", "chosen weighting"),
        "The metric at the mean, a weighting or none, and the classifier, chosen by cross-validation.",
        LogEuclideanClassifier(LogEuclideanMetricCV(radii=(0.0,), ranks=(None,))),
    ),
    "spdmetric-mean": _baseline(
        *("LogEuclideanClassifier at the mean", "chosen head"),
        "Nearest class mean or neighbors, chosen by cross-validation, with the metric at the mean.",
        LogEuclideanClassifier(_CHOSEN_AT_MEAN),
    ),
}

# The same for regression targets, all of which are run by default.
REGRESSORS: dict[str, Method] = {
    "regressor": _chosen(
        *("LogEuclideanRegressor", "chosen"),
        "Metric (G, rank and weighting) and ridge regression or neighbors, all chosen by cross-validation.",
        LogEuclideanRegressor(),
    ),
    "regressor-mean": _baseline(
        *("LogEuclideanRegressor at the mean", "chosen regression"),
        "Ridge regression or neighbors, chosen by cross-validation, with the metric at the mean.",
        LogEuclideanRegressor(_CHOSEN_AT_MEAN),
    ),
    "logeuclid-mean-ridge": _tangent(
        "ridge", "ridge regression", RidgeCV((1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)), "regression"
    ),
    "mean": _baseline(
        *("Mean of the targets", "mean", "The mean of the training targets, whatever the matrix."),
        DummyRegressor(),
        definite=False,
    ),
}

# A method, and the same one with the metric at the mean: does learning help?  The first that was run answers.
PAIRS = (
    ("regressor", "regressor-mean"),
    ("spdmetric", "spdmetric-mean"),
    ("spdmetric-weighting", "spdmetric-mean"),
    ("logeuclid-chosen", "logeuclid-mean"),
)

# Those that `spdmetric compare` runs by default, in the order in which it shows them.
COMPARED = (
    *("spdmetric", "spdmetric-weighting", "spdmetric-mean"),
    *("euclid", "wasserstein", "logeuclid-identity", "logeuclid-mean", "riemann", "stein"),
    *("logeuclid-kta", "logeuclid-kta-rank"),
    *("logeuclid-mean-11nn", "logeuclid-mean-lda", "logeuclid-mean-logistic", "svm"),
    *("mdm", "fgmdm", "csp-lda", "nca"),
)


def check_names(names: Iterable[str], known: Mapping[str, Method]) -> None:
    """Refuse names of methods that a registry does not have."""
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"No method {', '.join(unknown)}; there are {', '.join(known)}.")


def find_method(name: str) -> Method:
    """A method of either registry."""
    return METHODS.get(name) or REGRESSORS[name]


def find_obstacle(method: Method, s: Sizes) -> str | None:
    """Why a method cannot be run, or would tell nothing, on data of these sizes; None where it can."""
    s = s.inside
    if method.real and not s.real:
        return "takes real matrices only"
    if method.definite and not s.definite:
        return f"needs matrices of full rank or one range; the lowest here is {s.smallest_rank} of {s.d}"
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


def set_where_known(estimator: BaseEstimator, **parameters: object) -> list[str]:
    """Set parameters on all steps that have them; the names of those that no step has."""
    steps = steps_of(estimator)
    found = {name: [set_nested(step, name, value) for step in steps] for name, value in parameters.items()}
    return [name for name in parameters if not any(found[name])]


def expression(estimator: BaseEstimator, width: int = 80) -> str:
    """Python that makes an estimator anew; a pipeline has a line for each step where one is too short."""
    if not isinstance(estimator, Pipeline):
        with config_context(print_changed_only=True):
            return " ".join(estimator.__repr__(N_CHAR_MAX=10**6).split())
    steps = [expression(step) for _, step in estimator.steps]
    line = f"make_pipeline({', '.join(steps)})"
    lines = "".join(f"    {step},\n" for step in steps)
    return line if len(line) <= width else f"make_pipeline(\n{lines})"
