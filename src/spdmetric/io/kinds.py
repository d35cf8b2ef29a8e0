"""What model files hold: every class that can be stored, and of each all fields with their types and shapes.

To add a class, add it to `KINDS`: where it stands in a pipeline, and its fields.  A field is an attribute,
unless the class has functions of its own that take the fields out and put them in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.covariance import OAS, LedoitWolf, ShrunkCovariance
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifierCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import SVC

from spdmetric.comparison.baselines import GMML, NCA, RCA, NearestNeighbor, from_pyriemann
from spdmetric.estimators import CommonRange, LogEuclideanMetric, LogEuclideanMetricCV, Shrinkage
from spdmetric.estimators.cv import Path as RadiusPath
from spdmetric.estimators.embedding import Embedding
from spdmetric.estimators.heads import ClassMeans, Neighbors
from spdmetric.linalg.symmetric import Spectrum
from spdmetric.manifolds import BallPoint, RankPoint
from spdmetric.solvers import Record, Solution, Status
from spdmetric.validation import check_psd

State = dict[str, Any]
_LARGEST_TRIED = 2000  # size of matrices up to which an estimator is tried when it is loaded


def _attributes(step: BaseEstimator, rules: Mapping[str, str]) -> State:
    """The fields of an estimator; those that may be None are None where it has no such attribute."""
    return {
        name: getattr(step, name, None) if "?" in rule else getattr(step, name)
        for name, rule in rules.items()
    }


def _with_attributes(step: BaseEstimator, state: State) -> BaseEstimator:
    vars(step).update({name: value for name, value in state.items() if value is not None})
    return step


def _tried(step: BaseEstimator, size: int | None) -> None:
    """Use an estimator once, so that what does not go together is told when it is loaded."""
    if size is not None and size <= _LARGEST_TRIED:
        X = (
            np.eye(size)[None]
            if KINDS[type(step).__name__].takes.startswith("matrices")
            else np.zeros((1, size))
        )
        (step.predict if hasattr(step, "predict") else step.transform)(X)


class Functions(NamedTuple):
    """What takes the fields out of an estimator, puts them in, and tries what was loaded."""

    state: Callable[[BaseEstimator, Mapping[str, str]], State] = _attributes
    fitted: Callable[[BaseEstimator, State], BaseEstimator] = _with_attributes
    trial: Callable[[BaseEstimator, int | None], None] = _tried


_PLAIN = Functions()


class Kind(NamedTuple):
    """How the estimators of a class are stored."""

    made: type | tuple[str, str]  # the class, or module and name of one of pyRiemann, imported when needed
    place: str  # what its arrays are called by in a file
    takes: str  # "signals", "matrices d" or "vectors v": what it is given, and the letter of its size
    gives: str  # the same of what it makes; "labels" or "numbers" at the end of a pipeline
    fields: Mapping[str, str]
    by: Functions = _PLAIN


def class_of(name: str) -> type[BaseEstimator]:
    """The class of a kind."""
    made = KINDS[name].made
    return made if isinstance(made, type) else type(from_pyriemann(*made))


def kind_of(step: BaseEstimator) -> str | None:
    """Name of the kind of an estimator, None of those that cannot be stored; subclasses are others."""
    name = type(step).__name__
    made = KINDS[name].made if name in KINDS else None
    if isinstance(made, tuple):
        return name if type(step).__module__ == f"pyriemann.{made[0]}" else None
    return name if type(step) is made else None


# ---------------------------------------------------------------------------
# Metrics


def _metric_state(step: BaseEstimator, rules: Mapping[str, str]) -> State:
    solution = step.solution_
    found = {field.name: getattr(step.embedding_, field.name) for field in fields(Embedding)}
    found |= {"coordinates": solution.point.coordinates, "status": solution.status.name}
    found |= {name: float(getattr(solution, name)) for name in ("value", "residual", "multiplier")}
    found["history"] = np.array(solution.history, dtype=np.float64)
    if isinstance(step, LogEuclideanMetricCV):
        found["path_"] = np.array(step.path_, dtype=np.float64)
    return found | {name: getattr(step, name) for name in rules if name not in found}


def _metric(step: BaseEstimator, state: State) -> BaseEstimator:
    step.embedding_ = Embedding(**{field.name: state[field.name] for field in fields(Embedding)})
    S, W = state["coordinates"], state["factor"]
    point = RankPoint(S) if state["low_rank"] else BallPoint(Spectrum(S[:, -1], S[:, :-1]), np.eye(len(W)))
    point.factor = W
    rows = state["history"].tolist()
    history = tuple(Record(int(i), value, gap, d, int(n), t) for i, value, gap, d, n, t in rows)
    how = state["residual"], state["multiplier"], history
    step.solution_ = Solution(point, state["value"], Status[state["status"]], *how)
    if "path_" in state:
        state["path_"] = RadiusPath(*state["path_"])
    vars(step).update({k: v for k, v in state.items() if k.endswith("_") and k != "components_"})
    return step


def _metric_tried(step: BaseEstimator, size: int | None) -> None:
    B, center = step.embedding_.basis, step.embedding_.center
    if len(B) <= _LARGEST_TRIED:  # the center of the training matrices, the identity beside their range
        X = B @ center @ B.T + np.mean(np.diag(center)) * (np.eye(len(B)) - B @ B.T)
        seen = step.transform if step.domains_ is None else step.embedding_.embed
        seen((X + X.T)[None] / 2)


# ---------------------------------------------------------------------------
# Of scikit-learn


def _neighbors_state(step: BaseEstimator, rules: Mapping[str, str]) -> State:
    if isinstance(step, KNeighborsClassifier):  # from these scikit-learn builds the same neighbors again
        return {"vectors": step._fit_X, "labels": step.classes_[step._y]}
    values = np.asarray(step._y, dtype=np.float64)
    return {"vectors": step._fit_X, "values": values.reshape(len(values), -1), "one": values.ndim == 1}


def _neighbors(step: BaseEstimator, state: State) -> BaseEstimator:
    if isinstance(step, KNeighborsRegressor):
        return step.fit(state["vectors"], state["values"][:, 0] if state["one"] else state["values"])
    return step.fit(state["vectors"], state["labels"])


def _ridge_state(step: BaseEstimator, rules: Mapping[str, str]) -> State:
    found: State = {"one": np.ndim(step.coef_) == 1}
    found |= {"coefficients": np.atleast_2d(step.coef_), "intercepts": np.atleast_1d(step.intercept_)}
    return found | _attributes(step, {name: rule for name, rule in rules.items() if name not in found})


def _ridge(step: BaseEstimator, state: State) -> BaseEstimator:
    B, a = state["coefficients"], state["intercepts"]
    if state["one"] and len(B) > 1:
        raise ValueError(f"coefficients has {len(B)} rows for one number")
    step.coef_, step.intercept_ = (B[0], float(a[0])) if state["one"] else (B, a)
    step.n_features_in_ = B.shape[1]
    return step


def _ridge_classifier(step: RidgeClassifierCV, state: State) -> RidgeClassifierCV:
    step.alpha_, step.best_score_, classes = state["alpha_"], state["best_score_"], state["classes_"]
    if len(state["coefficients"]) != (1 if len(classes) == 2 else len(classes)):
        raise ValueError(f"coefficients has {len(state['coefficients'])} rows for {len(classes)} classes")
    step._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1).fit(classes)
    if not isinstance(getattr(type(step), "classes_", None), property):  # it is, before scikit-learn 1.9
        step.classes_ = classes
    return _ridge(step, state)


def _svc_state(step: SVC, rules: Mapping[str, str]) -> State:
    if step._sparse or len(step._probA):
        raise ValueError(
            "An SVC of sparse vectors, or with probability=True, cannot be stored in a model file."
        )
    found = {"gamma": float(step._gamma), "n_support": step.n_support_}
    return found | _attributes(step, {name: rule for name, rule in rules.items() if name not in found})


def _svc(step: SVC, state: State) -> SVC:
    """What these numbers count must be there: libsvm follows them without a bound."""
    counts = state.pop("n_support")
    if (counts < 0).any() or counts.sum() != len(state["support_"]) or step.kernel not in _KERNELS:
        raise ValueError(f"n_support is {counts.tolist()} and kernel {step.kernel!r}")
    sign = -1 if len(state["classes_"]) == 2 else 1  # the one that scikit-learn shows is turned
    found = {"_n_support": counts, "_gamma": state.pop("gamma"), "_sparse": False, "fit_status_": 0}
    found |= {"_probA": np.empty(0), "_probB": np.empty(0), "_effective_probability": False}
    found |= {"_dual_coef_": sign * state["dual_coef_"], "_intercept_": sign * state["intercept_"]}
    return _with_attributes(step, state | found | {"shape_fit_": state["support_vectors_"].shape})


_KERNELS = ("linear", "poly", "rbf", "sigmoid")

# ---------------------------------------------------------------------------
# Of pyRiemann


def _covariances_state(step: BaseEstimator, rules: Mapping[str, str]) -> State:
    if step.kwds:
        raise ValueError(
            f"Covariances with {sorted(step.kwds)} cannot be stored in a model file, only plain."
        )
    return {}


def _covariances_tried(step: BaseEstimator, size: int | None) -> None:
    step.transform(np.random.default_rng(0).standard_normal((1, 2, 50)))


def _mdm_state(step: BaseEstimator, rules: Mapping[str, str]) -> State:
    found = {"metric_mean": step._metric_mean, "metric_dist": step._metric_dist}
    return found | {"covmeans_": step.covmeans_, "classes_": step.classes_}


def _mdm(step: BaseEstimator, state: State) -> BaseEstimator:
    step._metric_mean, step._metric_dist = state["metric_mean"], state["metric_dist"]
    step.covmeans_, step.classes_ = state["covmeans_"], state["classes_"]
    return step


def _fgmdm_state(step: BaseEstimator, rules: Mapping[str, str]) -> State:
    ts = step._fgda._ts
    found = {"reference": ts.reference_, "map": step._fgda._W, "metric_map": ts._metric_map}
    return found | _mdm_state(step._mdm, rules)


def _fgmdm(step: BaseEstimator, state: State) -> BaseEstimator:
    """A geodesic filter and an MDM, as its `fit` makes them."""
    step._mdm = _mdm(from_pyriemann("classification", "MDM", metric=step.metric), state)
    options = {"metric": step.metric, "tsupdate": step.tsupdate}
    step._fgda = from_pyriemann("tangentspace", "FGDA", **options)
    ts = step._fgda._ts = from_pyriemann("tangentspace", "TangentSpace", **options)
    ts.reference_, ts._metric_mean, ts._metric_map = (
        state["reference"],
        state["metric_mean"],
        state["metric_map"],
    )
    step._fgda._W, step._fgda.classes_ = state["map"], state["classes_"]
    step.classes_ = state["classes_"]
    return step


def _csp_tried(step: BaseEstimator, size: int | None) -> None:
    if step.log is not True:
        raise ValueError("CSP without log=True makes matrices, which cannot be stored in a model file")
    _tried(step, size)


def _neighbor_tried(step: NearestNeighbor, size: int | None) -> None:
    check_psd(step.X_, 1)


# ---------------------------------------------------------------------------
# The table

# Of every field the kinds of dtype, and the shape in letters: equal letters are equal sizes, all but h at
# least 1.  "?": it may be None.  "~": it may be infinite; nothing may be NaN.  "=d": it is the size d itself.
_LABELS = "biufSUO c"
_METRIC = {
    **{"n_features_in_": "iu=d", "classes_": "biufSUO? c", "n_iter_": "iu"},
    **{"alignment_": "f", "gamma_": "f?", "radius_": "f", "weighting_penalty_": "f?", "weighting_score_": "f?"},
    # From matrices to vectors, see `Embedding`; components_, which follows, is for other programs.
    **{"low_rank": "b=l", "basis": "f d k", "center": "f k k", "rotation": "f k k", "factor": "f m k"},
    **{"frame": "f m m", "distance": "f", "session_weight": "f", "weighting": "f? p q", "components_": "f m d"},
    **{"domains_": "iuU? e", "domain_means_": "f? e d d", "domain_mean": "f? d d"},
    # The solution: its coordinates in the ball, and how the solver came there.
    **{"coordinates": "f m x", "status": "U", "value": "f~", "residual": "f~", "multiplier": "f~"},
    "history": f"f~ h {len(Record._fields)}",
}
_CV = {
    **{"best_index_": "iu", "best_params_": "plain", "best_score_": "f", "cv_results_": "plain"},
    **{"n_neighbors_": "iu?", "temperature_": "f", "path_": f"f~ {len(RadiusPath._fields)} z"},
}
_LINEAR = {"n_features_in_": "iu=v", "classes_": _LABELS, "coef_": "f r v", "intercept_": "f r"}
# Of one number the last axis is left out where scikit-learn does so.
_RIDGE = {"coefficients": "f o v", "intercepts": "f o", "one": "b"}
_MAP = {"center_": "f v", "axes_": "f k v", "map_": "f k q"}
_MEANS = {"covmeans_": "f c d d", "classes_": _LABELS, "metric_mean": "U", "metric_dist": "U"}
_SUPPORT = {
    **{"n_features_in_": "iu=v", "classes_": _LABELS, "class_weight_": "f c", "gamma": "f"},
    **{"support_": "iu s", "support_vectors_": "f s v", "dual_coef_": "f b s", "n_support": "iu c"},
    "intercept_": "f w",
}
_CENTROIDS = {
    **{"n_features_in_": "iu=v", "classes_": _LABELS, "centroids_": "f c v"},
    **{"class_prior_": "f? c", "within_class_std_dev_": "f? v"},
}
_PCA = {
    **{"n_features_in_": "iu=v", "n_components_": "iu=q", "n_samples_": "iu", "mean_": "f v"},
    **{"components_": "f q v", "explained_variance_": "f q", "explained_variance_ratio_": "f q"},
    **{"singular_values_": "f q", "noise_variance_": "f"},
}

# Sizes that follow from others: of a full-rank factor, of vectors without a shape and with one, of tangent
# vectors, and of linear classifiers and pairs of classes.
FOLLOWING: dict[str, Callable[[Mapping[str, int]], int | None]] = {
    "m": lambda z: None if z["l"] else z["k"],
    "x": lambda z: z["k"] + 1 - z["l"],
    "p": lambda z: z["m"] * (z["m"] + 1) // 2,
    "v": lambda z: z.get("q", z["m"] * (z["m"] + 1) // 2) if "m" in z else None,
    "t": lambda z: z["d"] * (z["d"] + 1) // 2,
    "r": lambda z: 1 if z["c"] == 2 else z["c"],
    "b": lambda z: z["c"] - 1,
    "w": lambda z: z["c"] * (z["c"] - 1) // 2,
}


def _head(made: type, fields: Mapping[str, str], gives: str = "labels", by: Functions = _PLAIN) -> Kind:
    return Kind(made, "head", "vectors v", gives, fields, by)


def _of_matrices(made: type | tuple[str, str], fields: Mapping[str, str], by: Functions) -> Kind:
    return Kind(made, "classifier", "matrices d", "labels", fields, by)


_OF_METRICS = Functions(_metric_state, _metric, _metric_tried)
_OF_NEIGHBORS = Functions(_neighbors_state, _neighbors)
_OF_COVARIANCES = Functions(_covariances_state, trial=_covariances_tried)
KINDS: dict[str, Kind] = {
    "Covariances": Kind(
        ("estimation", "Covariances"), "signals", "signals", "matrices d", {}, _OF_COVARIANCES
    ),
    "Shrinkage": Kind(Shrinkage, "shrinkage", "matrices d", "matrices d", {"n_features_in_": "iu=d"}),
    "CommonRange": Kind(
        CommonRange,
        "range",
        "matrices d",
        "matrices k",
        {"n_features_in_": "iu=d", "basis_": "f d k"},
        Functions(trial=lambda step, size: None),  # its fields say all
    ),
    "LogEuclideanMetric": Kind(LogEuclideanMetric, "metric", "matrices d", "vectors v", _METRIC, _OF_METRICS),
    "LogEuclideanMetricCV": Kind(
        LogEuclideanMetricCV, "metric", "matrices d", "vectors v", _METRIC | _CV, _OF_METRICS
    ),
    "CSP": Kind(
        ("spatialfilters", "CSP"),
        "filters",
        "matrices d",
        "vectors q",
        {"filters_": "f q d", "patterns_": "f q d"},
        Functions(trial=_csp_tried),
    ),
    **{made.__name__: Kind(made, "map", "vectors v", "vectors q", _MAP) for made in (GMML, NCA, RCA)},
    "PCA": Kind(PCA, "map", "vectors v", "vectors q", _PCA),
    "KNeighborsClassifier": _head(
        KNeighborsClassifier, {"vectors": "f n v", "labels": "biufSUO n"}, by=_OF_NEIGHBORS
    ),
    "KNeighborsRegressor": _head(
        KNeighborsRegressor, {"vectors": "f n v", "values": "f n o", "one": "b"}, "numbers", _OF_NEIGHBORS
    ),
    "Ridge": _head(Ridge, _RIDGE, "numbers", Functions(_ridge_state, _ridge)),
    "NearestCentroid": _head(NearestCentroid, _CENTROIDS),
    "LinearDiscriminantAnalysis": _head(
        LinearDiscriminantAnalysis, _LINEAR | {"priors_": "f c", "means_": "f c v"}
    ),
    "LogisticRegression": _head(LogisticRegression, _LINEAR | {"n_iter_": "iu h"}),
    "RidgeClassifierCV": _head(
        RidgeClassifierCV,
        {"classes_": _LABELS, **_RIDGE, "alpha_": "f", "best_score_": "f"},
        by=Functions(_ridge_state, _ridge_classifier),
    ),
    "SVC": _head(SVC, _SUPPORT, by=Functions(_svc_state, _svc)),
    # Heads of LogEuclideanClassifier.
    "ClassMeans": _head(ClassMeans, {"means": "f c v", "variance": "f", "share": "f c"}),
    "Neighbors": _head(
        Neighbors,
        {"vectors": "f n v", "codes": "iu n", "weight": "f n", "n_classes": "iu=c", "n_neighbors": "iu"},
    ),
    "NearestNeighbor": _of_matrices(
        NearestNeighbor,
        {"X_": "f n d d", "y_": "biufSUO n", "classes_": _LABELS},
        Functions(trial=_neighbor_tried),
    ),
    "MDM": _of_matrices(("classification", "MDM"), _MEANS, Functions(_mdm_state, _mdm)),
    "FgMDM": _of_matrices(
        ("classification", "FgMDM"),
        {**_MEANS, "reference": "f d d", "map": "f t t", "metric_map": "U"},
        Functions(_fgmdm_state, _fgmdm),
    ),
}
OWN_HEADS = ("ClassMeans", "Neighbors")  # of which no estimator is made

# Estimators that are parameters of others: their own parameters are stored, nothing that was fitted.
PARAMETERS = {made.__name__: made for made in (LedoitWolf, OAS, ShrunkCovariance)}
