"""scikit-learn's checks of estimators, for estimators whose X is a stack of matrices.

scikit-learn skips nearly all of its checks on such estimators, as most make up X of two dimensions.  Those
that make up no X run as they are (`AS_IT_IS`).  Each of the others is written anew under its name
(`check`), or is in `CANNOT` with the reason.  The page ``docs/estimator_checks.md`` has the same lists.

To have an estimator checked, put it in `ESTIMATORS`.
"""

from __future__ import annotations

import inspect
import pickle
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted

from random_matrices import labeled
from spdmetric import (
    CommonRange,
    FilterBankCovariances,
    LogEuclideanClassifier,
    LogEuclideanMetric,
    LogEuclideanMetricCV,
    LogEuclideanRegressor,
    Shrinkage,
)
from spdmetric.estimators.cv import set_nested

ESTIMATORS: dict[str, BaseEstimator] = {
    "LogEuclideanMetric": LogEuclideanMetric(2.0),
    "LogEuclideanMetric, rank 2": LogEuclideanMetric(2.0, rank=2),
    "LogEuclideanMetricCV": LogEuclideanMetricCV(radii=(0, 2), ranks=(None,), cv=2),
    "LogEuclideanClassifier": LogEuclideanClassifier(LogEuclideanMetricCV(radii=(0, 2), ranks=(None,)), cv=2),
    "LogEuclideanRegressor": LogEuclideanRegressor(LogEuclideanMetricCV(radii=(0, 2), ranks=(None,)), cv=2),
    "CommonRange": CommonRange(),
    "Shrinkage": Shrinkage(),
    "FilterBankCovariances": FilterBankCovariances(),
}

Check = Callable[[BaseEstimator, np.ndarray, np.ndarray], None]  # of an estimator, matrices and labels
ADAPTED: dict[str, Check] = {}  # by the name of scikit-learn's check
OF_LABELS: set[Check] = set()  # for estimators that take labels and weights
OF_CLASSES: set[Check] = set()  # for those whose labels name classes

AS_IT_IS = (
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
)

CANNOT = {
    "check_array_api_input": "tensors have tests of their own, for fit, transform, pairs and kernels: "
    "`tests/test_tensors.py`",
    "check_array_api_mixed_inputs": "as above: `fit` brings X, y and weights to NumPy, from wherever each is",
    "check_array_api_same_namespace": "as above: vectors are where the matrices are, what is learned is not",
    "check_sample_weight_equivalence_on_sparse_data": "no sparse input: an SPD matrix has few zeros",
    "check_sparsify_coefficients": "there is no `coef_`",
    "check_class_weight_balanced_linear_classifier": "no linear classifier on the entries of X",
}

METHODS = ("transform", "predict", "predict_proba", "decision_function")


def check(*names: str, of: set[Check] | None = None) -> Callable[[Check], Check]:
    """Register a check under the names of scikit-learn's that it stands for, and for what it is."""

    def register(function: Check) -> Check:
        ADAPTED.update(dict.fromkeys(names, function))
        if of is not None:
            of.add(function)
        return function

    return register


def concerns(check: Check, estimator: BaseEstimator) -> bool:
    """Whether what a check asks is there: labels, or labels of classes."""
    if not get_tags(estimator).target_tags.required:
        return check not in OF_LABELS | OF_CLASSES
    return check not in OF_CLASSES or not is_regressor(estimator)


def names_of(estimator: BaseEstimator) -> set[str]:
    """The checks that scikit-learn runs for an estimator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it skips most of them for 3-D input
        found = [check for _, check in estimator_checks_generator(estimator, mark=None)]
    return {getattr(check, "func", check).__name__ for check in found}


def data(n: int = 24, d: int = 3, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    return labeled(np.random.default_rng(0), n, d, classes=classes)


def uses(estimator: BaseEstimator) -> dict[str, Callable[[object], np.ndarray]]:
    """What can be asked of a fitted estimator about matrices."""
    return {name: getattr(estimator, name) for name in METHODS if hasattr(estimator, name)}


def outputs(estimator: BaseEstimator, X: object) -> dict[str, np.ndarray]:
    return {name: np.asarray(use(X)) for name, use in uses(estimator).items()}


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray], atol: float = 0.0) -> None:
    assert one.keys() == other.keys()
    for name, expected in one.items():
        if expected.dtype.kind in "fc" and atol:
            np.testing.assert_allclose(other[name], expected, atol=atol)
        else:
            np.testing.assert_array_equal(other[name], expected)


class NotAnArray:
    """What NumPy can make an array of, and nothing else."""

    def __init__(self, values: np.ndarray):
        self._values = values

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return self._values


# -- What fit does to the estimator ----------------------------------------------------


@check(
    "check_estimators_overwrite_params",
    "check_dont_overwrite_parameters",
    "check_estimators_fit_returns_self",
)
def fit_keeps_parameters_and_returns_self(estimator, X, y):
    if "init" in estimator.get_params():
        estimator.set_params(init=np.eye(3))
    before = dict(estimator.get_params(deep=False))
    assert estimator.fit(X, y) is estimator
    np.testing.assert_array_equal(X, data()[0])
    np.testing.assert_array_equal(y, data()[1])
    after = estimator.get_params(deep=False)
    assert all(after[name] is value for name, value in before.items())
    public = {name for name in vars(estimator) if not name.startswith("_")} - set(before)
    assert public
    assert all(name.endswith("_") for name in public)


@check("check_dict_unchanged")
def asking_changes_nothing(estimator, X, y):
    estimator.fit(X, y)
    before = dict(vars(estimator))
    outputs(estimator, X)
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[name] is value for name, value in before.items())


@check("check_fit_score_takes_y")
def methods_take_y_second(estimator, X, y):
    for name in ("fit", "score", "partial_fit", "fit_transform"):
        if hasattr(estimator, name):
            assert list(inspect.signature(getattr(estimator, name)).parameters)[1] == "y"


@check("check_fit_idempotent")
def fit_twice_is_fit_once(estimator, X, y):
    expected = outputs(clone(estimator).fit(X, y), X)
    estimator.fit(*data(d=4))
    for _ in range(2):
        same(expected, outputs(estimator.fit(X, y), X))


@check("check_estimators_unfitted", "check_transformers_unfitted", "check_fit_check_is_fitted")
def unfitted_says_so(estimator, X, y):
    for name in METHODS:
        if hasattr(type(estimator), name):
            with pytest.raises(NotFittedError, match="not fitted yet"):
                getattr(estimator, name)(X)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)
    check_is_fitted(estimator.fit(X, y))


@check("check_n_features_in", "check_n_features_in_after_fitting")
def the_size_of_matrices_is_kept(estimator, X, y):
    assert not hasattr(estimator, "n_features_in_")
    assert estimator.fit(X, y).n_features_in_ == 3
    name = type(estimator).__name__
    for use in uses(estimator).values():
        with pytest.raises(ValueError, match=rf"X has .*4 .*, but {name} was fitted on 3\b"):
            use(data(d=4)[0])


@check("check_estimators_partial_fit_n_features")
def batches_have_one_size(estimator, X, y):
    if hasattr(estimator, "partial_fit"):
        estimator.partial_fit(X, y, classes=[0, 1])
        with pytest.raises(ValueError, match="X has 4 x 4 matrices"):
            estimator.partial_fit(*data(d=4))
        assert estimator.n_features_in_ == 3


@check("check_transformer_n_iter", "check_non_transformer_estimators_n_iter")
def iterations_are_counted(estimator, X, y):
    if "max_iter" in estimator.get_params():
        assert estimator.fit(X, y).n_iter_ == int(estimator.n_iter_) >= 0


@check("check_estimators_pickle")
def a_pickle_is_the_same(estimator, X, y):
    estimator.fit(X, y)
    same(outputs(estimator, X), outputs(pickle.loads(pickle.dumps(estimator)), X))


@check("check_pipeline_consistency")
def in_a_pipeline_it_is_the_same(estimator, X, y):
    pipe = make_pipeline(clone(estimator)).fit(X, y)
    same(outputs(estimator.fit(X, y), X), outputs(pipe, X))


# -- Kinds of X ------------------------------------------------------------------------


@check("check_estimators_dtypes")
def all_kinds_of_numbers(estimator, X, y):
    whole = np.round(100 * X + 300 * np.eye(3))
    whole = (whole + whole.transpose(0, 2, 1)) // 2
    expected = outputs(clone(estimator).fit(whole, y), whole)
    for dtype in (np.int32, np.int64, np.float32, np.longdouble, ">f8"):
        found = outputs(clone(estimator).fit(whole.astype(dtype), y), whole.astype(dtype))
        same(expected, found, atol=1e-4)


@check("check_transformer_preserve_dtypes")
def float32_stays_float32(estimator, X, y):
    for dtype in (
        get_tags(estimator).transformer_tags.preserves_dtype if hasattr(estimator, "transform") else ()
    ):
        vectors = clone(estimator).fit(X.astype(dtype), y).transform(X.astype(dtype))
        assert vectors.dtype == dtype


@check("check_dtype_object")
def objects_that_are_numbers(estimator, X, y):
    expected = outputs(clone(estimator).fit(X, y), X)
    odd = X.astype(object)
    same(expected, outputs(estimator.fit(odd, y), odd))
    odd[2, 0, 1] = {"foo": "bar"}
    for use in (lambda X: estimator.fit(X, y), *uses(estimator).values()):
        with pytest.raises(TypeError, match=r"X\[2, 0, 1\] is of type dict: .* argument must be a number"):
            use(odd)


@check("check_complex_data")
def hermitian_matrices_are_taken(estimator, X, y):
    """In both precisions, however they lie in memory; signals are real."""
    H = X + 0.1j * (np.triu(X, 1) - np.tril(X, -1))
    if isinstance(estimator, FilterBankCovariances):
        with pytest.raises(ValueError, match="complex data not supported"):
            estimator.fit(H, y)
        return
    expected = outputs(clone(estimator).fit(H, y), H)
    assert all(np.isfinite(found).all() for found in expected.values())
    frozen = np.asfortranarray(H)
    frozen.flags.writeable = False
    for name, found in outputs(clone(estimator).fit(frozen, y), frozen).items():
        np.testing.assert_allclose(found, expected[name], atol=1e-8)
    single = clone(estimator).fit(H.astype(np.complex64), y)
    if hasattr(single, "transform"):
        assert single.transform(H.astype(np.complex64)).dtype in (np.float32, np.complex64)
    with pytest.raises(ValueError, match=r"X\[1\] is not Hermitian"):
        estimator.fit(H + 0.1j * (np.arange(len(H)) == 1)[:, None, None], y)


@check("check_estimators_nan_inf")
def numbers_that_are_none_are_named(estimator, X, y):
    calls = [lambda X: clone(estimator).fit(X, y), *uses(clone(estimator).fit(X, y)).values()]
    if hasattr(estimator, "partial_fit"):
        calls.append(lambda X: clone(estimator).partial_fit(X, y, classes=[0, 1]))
    for bad, word in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        spoiled = X.copy()
        spoiled[7, 1, 2] = spoiled[7, 2, 1] = bad
        for call in calls:
            with pytest.raises(ValueError, match=rf"X\[7\] contains {word}"):
                call(spoiled)


@check("check_estimators_empty_data_messages")
def no_matrices_and_matrices_of_no_size(estimator, X, y):
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        clone(estimator).fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="is empty"):
        clone(estimator).fit(X[:, :0, :0], y)


@check("check_estimator_sparse_tag", "check_estimator_sparse_array", "check_estimator_sparse_matrix")
def sparse_is_refused(estimator, X, y):
    assert not get_tags(estimator).input_tags.sparse
    sparse = [scipy.sparse.csr_matrix(x) for x in X]
    stacks = (sparse, [scipy.sparse.csr_array(x) for x in X], sparse[0], scipy.sparse.coo_array(X[0]))
    for stack in stacks:
        with pytest.raises(TypeError, match=r"csr|coo|[Ss]parse"):
            clone(estimator).fit(stack, y)


@check("check_readonly_memmap_input", "check_f_contiguous_array_estimator")
def memory_in_any_order(estimator, X, y):
    expected = outputs(clone(estimator).fit(X, y), X)
    frozen = X.copy()
    frozen.setflags(write=False)
    for other in (frozen, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        same(expected, outputs(clone(estimator).fit(other, y), other), atol=1e-3)


@check("check_transformer_data_not_an_array", "check_classifier_data_not_an_array")
def what_numpy_can_read(estimator, X, y):
    expected = outputs(clone(estimator).fit(X, y), X)
    for stack, labels in ((X.tolist(), y.tolist()), (list(X), tuple(y)), (NotAnArray(X), NotAnArray(y))):
        same(expected, outputs(clone(estimator).fit(stack, labels), stack))


@check("check_fit1d", "check_fit2d_predict1d")
def one_matrix_is_no_stack(estimator, X, y):
    for stack in (X[0], X[0, 0], X[None, None]):
        with pytest.raises(ValueError, match=r"Expected X of shape \(n_"):
            clone(estimator).fit(stack, y)
    estimator.fit(X, y)
    for use in uses(estimator).values():
        with pytest.raises(ValueError, match="Reshape your data"):
            use(X[0])


@check("check_fit2d_1sample", of=OF_LABELS)
def one_matrix_is_refused(estimator, X, y):
    with pytest.raises(ValueError, match=r"1 class|1 sample|y is constant"):
        estimator.fit(X[:1], y[:1])


@check("check_fit2d_1feature")
def matrices_of_one_entry(estimator, X, y):
    X = X[:, :1, :1]
    if estimator.get_params().get("rank") == 2:
        with pytest.raises(ValueError, match="rank=2 is more than the size"):
            estimator.fit(X, y)
    else:
        estimator.fit(X, y)
        assert all(
            np.isfinite(values).all() for values in outputs(estimator, X).values() if values.dtype.kind == "f"
        )


@check("check_positive_only_tag_during_fit")
def negative_entries_are_welcome(estimator, X, y):
    assert X.min() < 0
    assert not get_tags(estimator).input_tags.positive_only
    estimator.fit(X, y)


@check("check_methods_subset_invariance", "check_methods_sample_order_invariance")
def each_matrix_is_on_its_own(estimator, X, y):
    whole = outputs(estimator.fit(X, y), X)
    pieces = [outputs(estimator, X[k : k + 3]) for k in range(0, 24, 3)]
    order = np.random.default_rng(1).permutation(24)
    shuffled = outputs(estimator, X[order])
    for name, values in whole.items():
        joined = np.concatenate([piece[name] for piece in pieces])
        if values.dtype.kind == "f":
            np.testing.assert_allclose(joined, values, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(shuffled[name], values[order], rtol=1e-10, atol=1e-10)
        else:
            np.testing.assert_array_equal(joined, values)
            np.testing.assert_array_equal(shuffled[name], values[order])


@check("check_transformer_general")
def fit_transform_is_both(estimator, X, y):
    if hasattr(estimator, "transform"):
        together, apart = clone(estimator).fit_transform(X, y), clone(estimator).fit(X, y).transform(X)
        np.testing.assert_array_equal(together, apart)


# -- Labels ----------------------------------------------------------------------------


@check("check_requires_y_none", of=OF_LABELS)
def y_is_needed(estimator, X, y):
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        estimator.fit(X, None)


@check("check_supervised_y_no_nan", of=OF_CLASSES)
def labels_that_are_none_are_named(estimator, X, y):
    words = np.array(["a", "b"], dtype=object)[y]
    hostile = {"nan": np.nan, "inf": np.inf, "None": None, "NaT": pd.NaT, "<NA>": pd.NA}
    for shown, bad in hostile.items():
        spoiled = words.copy()
        spoiled[3] = bad
        with pytest.raises(ValueError, match=rf"y\[3\] is {shown}.*Input y contains NaN, None or infinity"):
            clone(estimator).fit(X, spoiled)
    numbers = y.astype(float)
    numbers[3] = np.nan
    for spoiled in (
        numbers,
        pd.Series(numbers),
        pd.Series(words).where(y < 9, None).mask(np.arange(24) == 3),
    ):
        with pytest.raises(ValueError, match=r"y\[3\] is "):
            clone(estimator).fit(X, spoiled)


@check("check_supervised_y_2d", of=OF_CLASSES)
def a_column_of_labels_is_taken_with_a_warning(estimator, X, y):
    expected = outputs(clone(estimator).fit(X, y), X)
    for column in (y[:, None], pd.DataFrame({"label": y})):
        with pytest.warns(DataConversionWarning, match="1d array was expected"):
            same(expected, outputs(clone(estimator).fit(X, column), X))
    with pytest.raises(ValueError, match="should be a 1d array"):
        clone(estimator).fit(X, np.eye(2)[y])


@check("check_classifiers_one_label", "check_classifiers_one_label_sample_weights", of=OF_CLASSES)
def one_class_is_refused(estimator, X, y):
    """Also one that counts alone."""
    with pytest.raises(ValueError, match="y has 1 class, 0: expected at least two"):
        estimator.fit(X, 0 * y)
    with pytest.raises(ValueError, match="zero for all matrices of class 1"):
        estimator.fit(X, y, sample_weight=(y == 0).astype(float))


@check("check_classifiers_classes", of=OF_CLASSES)
def labels_of_many_kinds(estimator, X, y):
    expected = outputs(clone(estimator).fit(X, y), X)
    words = np.array(["left", "right"])
    kinds = (words, words.astype(object), np.array([-1, 7]), np.array([False, True]), np.array([1.0, 2.0]))
    for names in (*kinds, np.array([2, 9], dtype=object), np.array([3, 2**63], dtype=np.uint64)):
        fitted = clone(estimator).fit(X, pd.Series(names[y]) if names is words else names[y])
        np.testing.assert_array_equal(fitted.classes_, names)
        found = outputs(fitted, X)
        if "predict" in found:
            np.testing.assert_array_equal(found.pop("predict"), names[expected["predict"]])
        same({name: expected[name] for name in found}, found)


@check("check_classifiers_train", of=OF_LABELS)
def something_is_learned(estimator, X, y):
    X, y = data(n=40)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(estimator).fit(X, y[:-1])
    estimator.fit(X, y)
    if hasattr(estimator, "predict"):
        assert estimator.score(X, y) > 0.83
    if hasattr(estimator, "alignment_"):
        assert estimator.alignment_ > 0.5


@check("check_decision_proba_consistency")
def decisions_and_probabilities_agree(estimator, X, y):
    found = outputs(estimator.fit(X, y), X)
    if {"decision_function", "predict_proba"} <= found.keys():
        np.testing.assert_allclose(found["predict_proba"].sum(axis=1), 1)
        order = np.argsort(found["decision_function"], kind="stable")
        assert (np.diff(found["predict_proba"][order, 1]) >= 0).all()
        np.testing.assert_array_equal(found["decision_function"] > 0, found["predict"] == 1)


@check("check_classifiers_regression_target", of=OF_CLASSES)
def a_continuous_target_is_refused(estimator, X, y):
    """By classifiers, and by metrics that are told that y names classes."""
    set_nested(estimator, "task", "classification")
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        estimator.fit(X, y + np.random.default_rng(0).uniform(size=24))


@check("check_class_weight_classifiers", of=OF_CLASSES)
def class_weights_are_sample_weights(estimator, X, y):
    by_class = clone(estimator)
    set_nested(by_class, "class_weight", {0: 4.0, 1: 1.0})
    by_class.fit(X, y)
    by_matrix = clone(estimator).fit(X, y, sample_weight=np.where(y == 0, 4.0, 1.0))
    same(outputs(by_matrix, X), outputs(by_class, X), atol=1e-9)


# -- Weights ---------------------------------------------------------------------------


@check(
    *("check_sample_weights_pandas_series", "check_sample_weights_list"),
    *("check_sample_weights_not_an_array", "check_sample_weights_not_overwritten"),
    of=OF_LABELS,
)
def weights_of_many_kinds(estimator, X, y):
    """Taken, and left as they are."""
    w = np.arange(1, 25)
    expected = outputs(clone(estimator).fit(X, y, sample_weight=w.astype(float)), X)
    for weight in (w, w.tolist(), pd.Series(w), NotAnArray(w), w.astype(np.float32), w.astype(object)):
        same(expected, outputs(clone(estimator).fit(X, y, sample_weight=weight), X))
    np.testing.assert_array_equal(w, np.arange(1, 25))


@check("check_sample_weights_shape", "check_all_zero_sample_weights_error", of=OF_LABELS)
def weights_that_are_none_are_refused(estimator, X, y):
    bad = {
        "sample_weight.shape": (np.ones(23), np.ones((24, 2)), np.ones((24, 1))),
        "zero for every matrix": (np.zeros(24),),
        r"sample_weight\[5\] is ": tuple(np.where(np.arange(24) == 5, v, 1.0) for v in (-1, np.nan, np.inf)),
        r"ratio of at most 1e\+12": (np.where(np.arange(24) == 5, 1e13, 1.0),),
        "expected real numbers": (["1"] * 24, np.full(24, "2026-01-01", dtype="M8[D]")),
        "complex": (1j * np.ones(24),),
        r"sample_weight\[5\] is masked": (np.ma.masked_array(np.ones(24), np.arange(24) == 5),),
    }
    for sentence, weights in bad.items():
        for weight in weights:
            with pytest.raises(ValueError, match=sentence):
                clone(estimator).fit(X, y, sample_weight=weight)
    with pytest.raises(TypeError, match=r"sample_weight\[5\] is of type NoneType"):
        clone(estimator).fit(X, y, sample_weight=[1.0] * 5 + [None] * 19)


@check("check_sample_weight_equivalence_on_dense_data", of=OF_LABELS)
def a_weight_of_two_is_twice(estimator, X, y):
    """Without a choice: in cross-validation, repeated matrices are in other folds."""
    w = np.arange(24) % 3  # 0, 1, 2
    candidates = {"radii": (2,), "ranks": (None,)}
    estimator.set_params(**{k: v for k, v in candidates.items() if k in estimator.get_params()})
    weighted = clone(estimator).fit(X, y, sample_weight=w)
    repeated = clone(estimator).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    one, other = outputs(repeated, X), outputs(weighted, X)
    folds = ("predict_proba", "decision_function")  # their temperature is that of the folds
    same(*({name: v for name, v in found.items() if name not in folds} for found in (one, other)), atol=1e-2)


# For metrics of every kernel, weighting and solver, which need not run through all of the checks.
OF_ANY_METRIC = (
    *(fit_keeps_parameters_and_returns_self, fit_twice_is_fit_once, unfitted_says_so, fit_transform_is_both),
    *(the_size_of_matrices_is_kept, a_pickle_is_the_same, float32_stays_float32, memory_in_any_order),
    each_matrix_is_on_its_own,
)
