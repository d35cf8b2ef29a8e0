"""Methods that only the tables have, and all that they can have: `KNOWN`."""

from __future__ import annotations

from sklearn.base import BaseEstimator, clone
from sklearn.covariance import LedoitWolf
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline

from reproduction.ablations import AblatedMetric
from reproduction.baselines import GMML, RCA
from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.comparison.methods import METHODS, Make, Method


def _at_identity(name: str, words: str, *steps: BaseEstimator) -> Method:
    sentence = f"Tangent vectors at I, then {words}."
    make: Make = lambda s: make_pipeline(LogEuclideanMetric(0.0, init="identity"), *map(clone, steps))  # noqa: E731
    return Method(f"LogEuclid at I + {name}", f"LE at I, {name}", "baseline", sentence, make)


def _mapped(name: str, words: str, learner: type[BaseEstimator]) -> Method:
    sentence = f"Tangent vectors at the Riemannian mean, mapped by {words}."
    make: Make = lambda s: make_pipeline(LogEuclideanMetric(0.0), learner(), KNeighborsClassifier(1))  # noqa: E731
    return Method(f"Tangent space + {name} + 1-NN", name, "baseline", sentence, make)


def _ablation(variant: str, sentence: str) -> Method:
    make: Make = lambda s: make_pipeline(AblatedMetric(variant), KNeighborsClassifier(1))  # noqa: E731
    return Method(f"Learned, {variant} + 1-NN", variant, "learned", sentence, make)


TABLE_METHODS: dict[str, Method] = {
    "logeuclid-mean-centroid": Method(
        "Tangent space + centroid",
        "LE at mean, centroid",
        "baseline",
        "Tangent vectors at the Riemannian mean, then nearest class mean.",
        lambda s: make_pipeline(LogEuclideanMetric(0.0), NearestCentroid()),
    ),
    "logeuclid-mean-weighting": Method(
        "Tangent space + weighting + 5-NN",
        "LE at mean, weighting, 5-NN",
        "learned",
        "Tangent vectors at the Riemannian mean with a discriminant weighting, then five nearest neighbors.",
        lambda s: make_pipeline(
            LogEuclideanMetric(radius=0.0, weighting="discriminant"),
            KNeighborsClassifier(min(5, s.smallest_class)),
        ),
    ),
    "class-directions": Method(
        "Class directions + LDA",
        "class directions, LDA",
        "baseline",
        "The directions in which the class means differ most, without alignment, then shrinkage LDA.",
        lambda s: make_pipeline(
            LogEuclideanMetric(radius=0.0, rank=s.low_rank),
            LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=LedoitWolf()),
        ),
        definite=False,
        smallest_d=4,
    ),
    "logeuclid-identity-weighting": Method(
        "LogEuclid at I + weighting + 1-NN",
        "LE at I, weighting + 1-NN",
        "learned",
        "Tangent vectors at I, then a weighting, and one nearest neighbor.",
        lambda s: make_pipeline(
            LogEuclideanMetric(0.0, init="identity", weighting="discriminant"), KNeighborsClassifier(1)
        ),
    ),
    "logeuclid-identity-cv": Method(
        "Learned by CV from I + 1-NN",
        "LE by CV from I",
        "learned",
        "Tangent vectors at I, or a learned point, with the weighting by cross-validation, then 1-NN.",
        lambda s: make_pipeline(
            LogEuclideanMetricCV(
                LogEuclideanMetric(init="identity", tol=3e-2, max_iter=40), ranks=(None,), n_neighbors=1
            ),
            KNeighborsClassifier(1),
        ),
        chooses=True,
    ),
    "logeuclid-identity-ridge": _at_identity(
        "ridge", "ridge regression", RidgeClassifierCV(alphas=tuple(10.0**k for k in range(-6, 7)))
    ),
    # Turned to the directions that the training vectors span, which changes nothing but the time.
    "logeuclid-identity-logistic": _at_identity(
        "logistic", "logistic regression", PCA(), LogisticRegression(max_iter=5000)
    ),
    "gmml": _mapped("GMML", "geometric mean metric learning", GMML),
    "rca": _mapped("RCA", "relevant component analysis", RCA),
}

ABLATIONS: dict[str, Method] = {
    "kta-early-stop": _ablation("early stop", "The metric of the paper, the ball as its authors ran it."),
    "kta-unnormalized": _ablation("not normalized", "The metric of the paper without its denominator."),
}

KNOWN: dict[str, Method] = {**METHODS, **TABLE_METHODS, **ABLATIONS}
