"""What is compared, and for each method the code that gives it.

Most are methods of the experiments; here they have families, and learn with as many inner
folds and directions as the data at hand allow.  To add one, add it to `ENTRIES`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spdmetric.estimators import LogEuclideanMetric
from spdmetric.estimators.cv import default_ranks
from spdmetric.evaluation.methods import METHODS, nearest, neighbors, shrinkage_lda
from spdmetric.linalg.symmetric import sqrtm
from spdmetric.paper.work import SharedSweepCV, Vectors, Work


@dataclass(frozen=True)
class Means:
    """What the learned methods may use: inner folds, ranks to choose from, one rank to set."""

    inner: int  # folds in which radius and rank are chosen
    ranks: tuple[int | None, ...] | None  # None: all that LogEuclideanMetricCV tries by itself
    rank: int | None  # of the metric of one low rank; None where the matrices are too small


def means_for(d: int, smallest_rank: int, smallest_class: int) -> Means:
    """Choose them: ranks of at most that of the matrices, folds of at most the smallest class."""
    half = max(2, d // 2) if d >= 4 else None
    if smallest_rank == d:
        return Means(min(5, smallest_class), None, half)
    low = tuple(m for m in default_ranks(d) if m is not None and m <= smallest_rank) or (smallest_rank,)
    return Means(min(5, smallest_class), low, min(half or 1, smallest_rank))


class Fold(Work):
    """Training and test matrices, and what the learned methods may use."""

    def __init__(self, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, means: Means):
        super().__init__(X, y, X_test)
        self.means = means


# ---------------------------------------------------------------------------
# Methods that the experiments do not have


def cv_metric(fold: Fold, n_neighbors: int) -> SharedSweepCV:
    """The metric whose radius and rank suit a number of neighbors, learned once for a fold."""

    def learn() -> SharedSweepCV:
        metric = SharedSweepCV(n_neighbors=n_neighbors, cv=fold.means.inner, ranks=fold.means.ranks)
        metric.work = fold
        return metric.fit(fold.X, fold.y)

    return fold.once(("metric by cv", n_neighbors), learn)


def cv_embedded(fold: Fold, n_neighbors: int) -> Vectors:
    """Vectors of that metric."""
    metric = cv_metric(fold, n_neighbors)
    return Vectors(metric.transform(fold.X), metric.transform(fold.X_test))


def _low_rank(fold: Fold) -> np.ndarray:
    metric = LogEuclideanMetric(5.0, rank=fold.means.rank, tol=1e-3).fit(fold.X, fold.y)
    return nearest(Vectors(metric.transform(fold.X), metric.transform(fold.X_test)), fold.y)


def distances_wasserstein(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Bures-Wasserstein distances between all matrices of two stacks, positive semi-definite ones too.

    Parameters
    ----------
    X, Y : ndarrays of shape (n, d, d) and (m, d, d)
        Covariance matrices.

    Returns
    -------
    D : ndarray of shape (n, m)
    """
    traces = np.trace(X, axis1=1, axis2=2)[:, None] + np.trace(Y, axis1=1, axis2=2)
    columns = []
    for root in np.array([sqrtm(B) for B in Y]):
        values = np.linalg.eigvalsh(root @ X @ root)
        columns.append(np.sqrt(np.maximum(values, 0)).sum(axis=1))
    return np.sqrt(np.maximum(traces - 2 * np.stack(columns, axis=1), 0))


def _wasserstein(fold: Work) -> np.ndarray:
    return fold.y[np.argmin(distances_wasserstein(fold.X_test, fold.X), axis=1)]


def _svm(fold: Work) -> np.ndarray:
    from sklearn.svm import SVC

    metric = LogEuclideanMetric(0.0).fit(fold.X, fold.y)
    return SVC().fit(metric.transform(fold.X), fold.y).predict(metric.transform(fold.X_test))


# ---------------------------------------------------------------------------
# The table


@dataclass(frozen=True)
class Entry:
    """A line of the comparison."""

    title: str
    family: str  # a key of FAMILIES
    run: Callable[[Fold], np.ndarray]
    code: str  # an expression; {cv}, {cv11} and {rank} stand for arguments
    part: str = "quick"  # what is run together: "quick", or "cv", which shares one sweep
    definite: bool = True  # whether the matrices must have full rank


FAMILIES = {
    "distance": "a fixed distance, nearest neighbor",
    "learned": "a learned metric",
    "rival": "another method",
}

_KNN = "KNearestNeighbor(n_neighbors=1, metric={!r})".format
_AT_MEAN = "make_pipeline(LogEuclideanMetric(radius=0), {})".format
_BY_CV = "make_pipeline(LogEuclideanMetricCV({}), {})".format
_LDA = 'LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")'

ENTRIES: dict[str, Entry] = {
    "euclid": Entry("Euclid + 1-NN", "distance", METHODS["euclid"], _KNN("euclid"), definite=False),
    "wasserstein": Entry(
        "Bures-Wasserstein + 1-NN", "distance", _wasserstein, _KNN("wasserstein"), definite=False
    ),
    "logeuclid-identity": Entry(
        "LogEuclid at I + 1-NN", "distance", METHODS["logeuclid-identity"], _KNN("logeuclid")
    ),
    "logeuclid-mean": Entry(
        "LogEuclid at the mean + 1-NN",
        "distance",
        METHODS["logeuclid-mean"],
        _AT_MEAN("KNeighborsClassifier(1)"),
    ),
    "riemann": Entry("Affine-invariant + 1-NN", "distance", METHODS["riemann"], _KNN("riemann")),
    "stein": Entry("Stein + 1-NN", "distance", METHODS["stein"], _KNN("logdet")),
    "logeuclid-kta": Entry(
        "Learned, full rank + 1-NN",
        "learned",
        METHODS["logeuclid-kta"],
        "make_pipeline(LogEuclideanMetric(radius=10.0), KNeighborsClassifier(1))",
    ),
    "logeuclid-kta-rank": Entry(
        "Learned, low rank + 1-NN",
        "learned",
        _low_rank,
        "make_pipeline(LogEuclideanMetric(radius=5.0, rank={rank}, tol=1e-3), KNeighborsClassifier(1))",
        definite=False,
    ),
    "logeuclid-kta-cv": Entry(
        "Learned by CV + 1-NN",
        "learned",
        lambda fold: nearest(cv_embedded(fold, 1), fold.y),
        _BY_CV("{cv}", "KNeighborsClassifier(1)"),
        part="cv",
        definite=False,
    ),
    "logeuclid-kta-cv-11nn": Entry(
        "Learned by CV + 11-NN",
        "learned",
        lambda fold: neighbors(11)(cv_embedded(fold, 11), fold.y),
        _BY_CV("{cv11}", "KNeighborsClassifier(11)"),
        part="cv",
        definite=False,
    ),
    "logeuclid-kta-cv-lda": Entry(
        "Learned by CV + LDA",
        "learned",
        lambda fold: shrinkage_lda(cv_embedded(fold, 1), fold.y),
        _BY_CV("{cv}", _LDA),
        part="cv",
        definite=False,
    ),
    "logeuclid-mean-11nn": Entry(
        "Tangent space + 11-NN",
        "rival",
        METHODS["logeuclid-mean-11nn"],
        _AT_MEAN("KNeighborsClassifier(11)"),
    ),
    "logeuclid-mean-lda": Entry(
        "Tangent space + LDA", "rival", METHODS["logeuclid-mean-lda"], _AT_MEAN(_LDA)
    ),
    "logeuclid-mean-logistic": Entry(
        "Tangent space + logistic",
        "rival",
        METHODS["logeuclid-mean-logistic"],
        _AT_MEAN("LogisticRegression(max_iter=5000)"),
    ),
    "svm": Entry("Tangent space + SVM", "rival", _svm, _AT_MEAN("SVC()")),
    "mdm": Entry("MDM", "rival", METHODS["mdm"], "MDM()"),
    "fgmdm": Entry("FgMDM", "rival", METHODS["fgmdm"], "FgMDM()"),
    "csp-lda": Entry(
        "CSP + LDA",
        "rival",
        METHODS["csp-lda"],
        "make_pipeline(CSP(nfilter={filters}), LinearDiscriminantAnalysis())",
    ),
    "nca": Entry(
        "Tangent space + NCA + 1-NN",
        "rival",
        METHODS["nca"],
        _AT_MEAN(
            "PCA({inputs}), NeighborhoodComponentsAnalysis({outputs}, max_iter=100, random_state=0), "
            "KNeighborsClassifier(1)"
        ),
    ),
}

# Learning against no learning, the same classifier after both; the first pair is the one planned beforehand.
PAIRS = (
    ("logeuclid-kta-cv", "logeuclid-mean", "one nearest neighbor"),
    ("logeuclid-kta-cv-11nn", "logeuclid-mean-11nn", "eleven nearest neighbors"),
    ("logeuclid-kta-cv-lda", "logeuclid-mean-lda", "shrinkage LDA"),
)


def left_out(d: int, smallest_rank: int, n_train: int) -> dict[str, str]:
    """Methods that the data do not allow, each with the reason."""
    reasons = {}
    for name, entry in ENTRIES.items():
        if entry.definite and smallest_rank < d:
            reasons[name] = f"needs matrices of full rank; the lowest here is {smallest_rank} of {d}"
        elif entry.code.count("11") and n_train < 22:
            reasons[name] = f"eleven neighbors of {n_train} training matrices would be half of all"
    if d < 4 and smallest_rank == d:
        reasons["logeuclid-kta-rank"] = f"a low rank of {d} x {d} matrices leaves too little"
    return reasons


# ---------------------------------------------------------------------------
# Code to copy

_MODULES = {
    "make_pipeline": "sklearn.pipeline",
    "KNeighborsClassifier": "sklearn.neighbors",
    "NeighborhoodComponentsAnalysis": "sklearn.neighbors",
    "PCA": "sklearn.decomposition",
    "LinearDiscriminantAnalysis": "sklearn.discriminant_analysis",
    "LogisticRegression": "sklearn.linear_model",
    "SVC": "sklearn.svm",
    "KNearestNeighbor": "pyriemann.classification",
    "MDM": "pyriemann.classification",
    "FgMDM": "pyriemann.classification",
    "CSP": "pyriemann.spatialfilters",
    "LogEuclideanMetric": "spdmetric",
    "LogEuclideanMetricCV": "spdmetric",
}


def expression(name: str, means: Means, d: int, n: int) -> str:
    """The estimator of a method, as Python."""
    given = {} if means.inner == 5 else {"cv": means.inner}
    if means.ranks is not None:
        given["ranks"] = means.ranks  # type: ignore[assignment]
    inputs = min(50, d * (d + 1) // 2, n - 1)
    return ENTRIES[name].code.format(
        cv=_arguments(**given),
        cv11=_arguments(**given, n_neighbors=11),
        rank=means.rank,
        filters=min(6, d),
        inputs=inputs,
        outputs=min(10, inputs),
    )


def _arguments(**given: object) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in given.items())


def program(name: str, means: Means, d: int, n: int, read: str, read_new: str) -> str:
    """A whole program: read a file, train the method, label new matrices.

    Parameters
    ----------
    name : str
        A key of `ENTRIES`.
    means : Means
        As used in the comparison.
    d, n : int
        Size and number of the matrices.
    read, read_new : str
        Calls of `spdmetric.io.matrices.read_matrices` for the training and the new matrices.

    Returns
    -------
    code : str
    """
    made = _laid_out(expression(name, means, d, n))
    words = set(re.findall(r"\w+", made))
    modules: dict[str, list[str]] = {}
    for word in sorted(words & set(_MODULES)):
        modules.setdefault(_MODULES[word], []).append(word)
    imports = [f"from {module} import {', '.join(names)}" for module, names in sorted(modules.items())]
    return "\n".join([*imports, *(_WITH_CODES if "KNearestNeighbor" in words else _PLAIN), ""]).format(
        read=read, read_new=read_new, made=made
    )


def _laid_out(made: str, width: int = 80) -> str:
    """One step of a pipeline a line, where one line would be too long."""
    if len(made) <= width or not made.startswith("make_pipeline("):
        return made
    depth, steps, step = 0, [], ""
    for letter in made[len("make_pipeline(") : -1]:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            steps.append(step.strip())
            step = ""
        else:
            step += letter
    return "make_pipeline(\n" + "".join(f"    {part},\n" for part in (*steps, step.strip())) + ")"


_PLAIN = (
    "from spdmetric.io.matrices import read_matrices",
    "",
    "known = {read}",
    "model = {made}",
    "model.fit(known.X, known.y)",
    "",
    "new = {read_new}",
    "print(model.predict(new.X))",
)
# Of words, pyRiemann 0.12 cuts all predictions to the length of the first.
_WITH_CODES = (
    "from spdmetric.io.matrices import read_matrices",
    "import numpy as np",
    "",
    "known = {read}",
    "classes, codes = np.unique(known.y, return_inverse=True)  # this classifier wants numbers",
    "model = {made}",
    "model.fit(known.X, codes)",
    "",
    "new = {read_new}",
    "print(classes[model.predict(new.X)])",
)
