"""The columns of the tables.

A method takes a `Work` and gives labels of its test matrices.  Most are an embedding, named
and computed once for all that use it, and a head that classifies its vectors; the others
classify the matrices directly.  To add one, add it to `METHODS` and its title to `TITLES`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spdmetric.estimators import LogEuclideanMetric
from spdmetric.evaluation import baselines as rivals
from spdmetric.geometry import pairwise_distance
from spdmetric.paper.ablations import early_stop_factor, unnormalized_factor
from spdmetric.paper.work import Vectors, Work, cv_vectors, vectors_at

Method = Callable[[Work], np.ndarray]
Embedding = Callable[[Work], Vectors]
Head = Callable[[Vectors, np.ndarray], np.ndarray]

# ---------------------------------------------------------------------------
# Embeddings


def _learned(metric: LogEuclideanMetric, work: Work) -> Vectors:
    metric.fit(work.X, work.y)
    return Vectors(metric.transform(work.X), metric.transform(work.X_test))


def _rank_metric(d: int) -> LogEuclideanMetric:
    """Half the rank in a ball of radius 5; full rank where half would be less than two."""
    rank = max(2, d // 2) if d >= 4 else None
    return LogEuclideanMetric(5.0, rank=rank, tol=1e-3)


EMBEDDINGS: dict[str, Embedding] = {
    "mean": lambda work: _learned(LogEuclideanMetric(0.0), work),
    "kta": lambda work: _learned(LogEuclideanMetric(10.0), work),
    "rank": lambda work: _learned(_rank_metric(work.X.shape[1]), work),
    "cv for 1": lambda work: cv_vectors(work, 1),
    "cv for 11": lambda work: cv_vectors(work, 11),
    "cv for 51": lambda work: cv_vectors(work, 51),
    "early stop": lambda work: vectors_at(early_stop_factor(work.X, work.y), work),
    "unnormalized": lambda work: vectors_at(unnormalized_factor(work.X, work.y), work),
    "nca": lambda work: rivals.nca(embedded("mean", work), work.y),
    "gmml": lambda work: rivals.gmml(embedded("mean", work), work.y),
    "rca": lambda work: rivals.rca(embedded("mean", work), work.y),
}


def embedded(name: str, work: Work) -> Vectors:
    """Vectors of a named embedding, computed once for a task."""
    return work.once(name, lambda: EMBEDDINGS[name](work))


# ---------------------------------------------------------------------------
# Heads


def _nearest(distances: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Labels of the nearest training matrices; distances of shape (n_test, n_train)."""
    return y[np.argmin(distances, axis=1)]


def nearest(vectors: Vectors, y: np.ndarray) -> np.ndarray:
    """One nearest neighbor; the squared distances lack what all training vectors share."""
    train, test = vectors
    return _nearest(np.sum(train**2, axis=1) - 2 * test @ train.T, y)


def neighbors(k: int) -> Head:
    """Vote of the k nearest neighbors, of all training vectors where there are fewer."""

    def head(vectors: Vectors, y: np.ndarray) -> np.ndarray:
        from sklearn.neighbors import KNeighborsClassifier

        return KNeighborsClassifier(min(k, len(y))).fit(vectors.train, y).predict(vectors.test)

    return head


def centroid(vectors: Vectors, y: np.ndarray) -> np.ndarray:
    """Nearest class mean."""
    from sklearn.neighbors import NearestCentroid

    return NearestCentroid().fit(vectors.train, y).predict(vectors.test)


def shrinkage_lda(vectors: Vectors, y: np.ndarray) -> np.ndarray:
    """Linear discriminant analysis, its covariance shrunk after Ledoit and Wolf."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    return lda.fit(vectors.train, y).predict(vectors.test)


def logistic(vectors: Vectors, y: np.ndarray) -> np.ndarray:
    """Logistic regression with scikit-learn's penalty."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=5000).fit(vectors.train, y).predict(vectors.test)


# ---------------------------------------------------------------------------
# Methods


def _on(embedding: str, head: Head) -> Method:
    return lambda work: head(embedded(embedding, work), work.y)


def _pairwise(metric: str) -> Method:
    return lambda work: _nearest(pairwise_distance(work.X_test, work.X, metric), work.y)


METHODS: dict[str, Method] = {
    "logeuclid-identity": _pairwise("logeuclid"),
    "logeuclid-mean": _on("mean", nearest),
    "logeuclid-kta": _on("kta", nearest),
    "riemann": _pairwise("riemann"),
    "euclid": _pairwise("euclid"),
    "stein": _pairwise("stein"),
    "kta-early-stop": _on("early stop", nearest),
    "kta-unnormalized": _on("unnormalized", nearest),
    "logeuclid-kta-rank": _on("rank", nearest),
    "logeuclid-kta-cv": _on("cv for 1", nearest),
    "logeuclid-mean-11nn": _on("mean", neighbors(11)),
    "logeuclid-kta-cv-11nn": _on("cv for 11", neighbors(11)),
    "logeuclid-mean-51nn": _on("mean", neighbors(51)),
    "logeuclid-kta-cv-51nn": _on("cv for 51", neighbors(51)),
    "logeuclid-mean-centroid": _on("mean", centroid),
    "logeuclid-kta-cv-centroid": _on("cv for 1", centroid),
    "logeuclid-mean-lda": _on("mean", shrinkage_lda),
    "logeuclid-kta-cv-lda": _on("cv for 1", shrinkage_lda),
    "logeuclid-mean-logistic": _on("mean", logistic),
    "mdm": rivals.mdm,
    "fgmdm": rivals.fgmdm,
    "csp-lda": rivals.csp_lda,
    "nca": _on("nca", nearest),
    "gmml": _on("gmml", nearest),
    "rca": _on("rca", nearest),
}

# The paper's five columns, and the divergence it mentions.
PAPER_COLUMNS = ("logeuclid-identity", "logeuclid-mean", "logeuclid-kta", "riemann", "euclid", "stein")
COLUMNS = (*PAPER_COLUMNS, "logeuclid-kta-rank", "logeuclid-kta-cv")
ABLATIONS = ("kta-early-stop", "kta-unnormalized")
BEYOND = tuple(name for name in METHODS if name not in ABLATIONS)

# What a method is compared with pair by pair: tangent vectors at the mean with the same head.
BASELINES = {
    name: f"logeuclid-mean{head}"
    for head in ("-11nn", "-51nn", "-centroid", "-lda")
    for name in (f"logeuclid-mean{head}", f"logeuclid-kta-cv{head}")
}
BASELINE = "logeuclid-mean"  # of all others

# Neighbors that vote, where they are more than one.
VOTERS = {f"logeuclid-{embedding}-{k}nn": k for embedding in ("mean", "kta-cv") for k in (11, 51)}

TITLES = {
    "logeuclid-identity": "LE at I",
    "logeuclid-mean": "LE at mean",
    "logeuclid-kta": "LE learned",
    "riemann": "Riemann",
    "euclid": "Euclid",
    "stein": "Stein",
    "kta-early-stop": "early stop",
    "kta-unnormalized": "not normalized",
    "logeuclid-kta-rank": "LE low rank",
    "logeuclid-kta-cv": "LE by CV",
    "logeuclid-mean-11nn": "LE at mean, 11-NN",
    "logeuclid-kta-cv-11nn": "LE by CV, 11-NN",
    "logeuclid-mean-51nn": "LE at mean, 51-NN",
    "logeuclid-kta-cv-51nn": "LE by CV, 51-NN",
    "logeuclid-mean-centroid": "LE at mean, centroid",
    "logeuclid-kta-cv-centroid": "LE by CV, centroid",
    "logeuclid-mean-lda": "LE at mean, LDA",
    "logeuclid-kta-cv-lda": "LE by CV, LDA",
    "logeuclid-mean-logistic": "LE at mean, logistic",
    "mdm": "MDM",
    "fgmdm": "FgMDM",
    "csp-lda": "CSP, LDA",
    "nca": "NCA",
    "gmml": "GMML",
    "rca": "RCA",
}
