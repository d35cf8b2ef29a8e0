"""Hostile input and broken machines: a sentence of a known type before work is done, or a right result.

What each check says of each kind of input is in `estimator_checks`, the properties in
`test_properties_public`; here is what whole estimators do with them.
"""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

import spdmetric
from random_matrices import labeled, spd
from spdmetric import LogEuclideanClassifier, LogEuclideanMetric, LogEuclideanMetricCV, Shrinkage


@pytest.fixture
def data(rng):
    return labeled(rng, 24, 3)


# -- weights --------------------------------------------------------------------------


def test_weights_of_any_scale_in_streams_and_sessions(data, batches_of):
    batches_of(8)
    X, y = data
    metric = LogEuclideanMetric(2.0).fit(X, y)
    w = np.linspace(1, 2, 24)
    streams, sessions = [], []
    for power in (0, -992, 992):
        weight = np.ldexp(w, power)
        stream = LogEuclideanMetric(2.0, random_state=0)
        for k in (0, 8, 16):
            rows = slice(k, k + 8)
            stream.partial_fit(X[rows], y[rows], classes=[0, 1], sample_weight=weight[rows])
        streams.append(stream.transform(X))
        session = metric.partial_adapt(X[:9], weight[:9]).partial_adapt(X[9:], weight[9:])
        sessions.append(session.transform(X))
    for found in (streams, sessions):
        np.testing.assert_allclose(found[1], found[0], atol=1e-12)
        np.testing.assert_allclose(found[2], found[0], atol=1e-12)
    with pytest.raises(ValueError, match=r"from 4.19e\+285 to 8.37e\+298: .*at most 1e\+12"):
        stream.partial_fit(X, y, sample_weight=np.ldexp(1e-13 * w, 992))


@pytest.mark.parametrize("scale", [1e308, 5e-324])
def test_weights_that_cannot_be_added_up(scale, data):
    X, y = data
    metric, classifier = (
        LogEuclideanMetric(2.0).fit(X, y),
        LogEuclideanClassifier(LogEuclideanMetricCV(radii=(0,)), cv=2).fit(X, y),
    )
    w = np.full(24, scale)
    for use in (
        lambda: LogEuclideanMetric(2.0).fit(X, y, w),
        lambda: LogEuclideanMetric(2.0).partial_fit(X, y, classes=[0, 1], sample_weight=w),
        lambda: metric.adapt(X, w),
        lambda: metric.partial_adapt(X, w),
        lambda: classifier.adapt(X, y, w),
        lambda: classifier.score(X, y, w),
    ):
        with pytest.raises(
            ValueError, match=r"sample_weight\[0\] is .*: expected a number between 1e-307 and"
        ):
            use()


# -- streams ----------------------------------------------------------------------------


def refuses(record):
    raise KeyError("the user's own")


def broken_calls(X, y):
    """Calls of partial_fit that raise, each in another place."""
    nan = np.where(np.arange(8) == 3, np.nan, 1.0)
    good = {"X": X[:8], "y": y[:8], "classes": [0, 1]}
    return {
        "matrices": ({"X": X[:8] * nan[:, None, None]}, {}),
        "size": ({"X": np.ones((8, 1, 1)) * np.eye(4)}, {}),
        "labels": ({"y": [0, 1, 7, 0, 1, 0, 1, 0]}, {}),
        "classes": ({"classes": [0, 1, 2]}, {}),
        "weights": ({"sample_weight": nan}, {}),
        "ratio to earlier weights": ({"sample_weight": np.full(8, 1e-13)}, {}),
        "too far": ({}, {"radius": 1e6}),
        "callback": ({}, {"callback": refuses}),
    }, good


@pytest.mark.parametrize("case", broken_calls(*labeled(np.random.default_rng(0), 8, 3))[0])
def test_a_call_of_partial_fit_that_raises_leaves_the_estimator_as_it_was(case, data, batches_of):
    batches_of(4)
    X, y = data
    calls, good = broken_calls(X, y)
    arguments, parameters = calls[case]
    models = [
        LogEuclideanMetric(2.0, weighting="discriminant", random_state=np.random.RandomState(5))
        for _ in range(2)
    ]
    for rows in (slice(0, 8), slice(8, 16), slice(16, 24)):
        for model in models:
            model.partial_fit(X[rows], y[rows], classes=[0, 1])
        before = dict(vars(models[0]))
        with pytest.raises((ValueError, KeyError)):
            models[0].set_params(**parameters).partial_fit(**(good | arguments))
        models[0].set_params(**{name: before[name] for name in parameters})
        assert {name: id(value) for name, value in vars(models[0]).items()} == {
            name: id(value) for name, value in before.items()
        }
    assert models[0]._stream.counts.tolist() == [12, 12]
    np.testing.assert_array_equal(models[0].transform(X), models[1].transform(X))


def test_a_first_call_that_raises_leaves_nothing(data):
    X, y = data
    model = LogEuclideanMetric(2.0, random_state=np.random.RandomState(5), callback=refuses)
    before, state = dict(vars(model)), model.random_state.get_state()[2]
    with pytest.raises(KeyError, match="the user's own"):
        model.partial_fit(X, y, classes=[0, 1])
    assert vars(model) == before
    assert model.random_state.get_state()[2] == state
    # A warning made an error comes as late as that.
    model.set_params(callback=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=r"there is none of \[2\]"):
            model.partial_fit(X, y, classes=[0, 1, 2])
    assert not hasattr(model, "n_features_in_")


# -- matrices ---------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-200, 1e200, 1e300, 1e307])
@pytest.mark.parametrize("d", [1, 3, 8])
def test_matrices_past_what_float64_can_square(scale, d, rng):
    X, y = labeled(rng, 24, d)
    metric = LogEuclideanMetric(2.0).fit(X, y)
    X[5] *= scale
    for use in (
        lambda X: LogEuclideanMetric(2.0).fit(X, y),
        metric.transform,
        metric.adapt,
        metric.pairwise_kernel,
    ):
        with pytest.raises(ValueError, match=r"X\[5\] has .* for its largest entry: .*Choose other units"):
            use(X)


@pytest.mark.parametrize("solver", ["trust-region", "gradient"])
@pytest.mark.parametrize("d", [3, 8])
@pytest.mark.parametrize("compiled", ["0", "1"])
def test_the_largest_radius(solver, d, compiled, rng, monkeypatch):
    """No raw error of LAPACK, whatever comes of it."""
    monkeypatch.setenv("SPDMETRIC_COMPILED", compiled)
    X, y = labeled(rng, 40, d)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metric = LogEuclideanMetric(300.0, solver=solver, max_iter=10).fit(X, y)
    assert np.isfinite(metric.alignment_)


@pytest.mark.parametrize("solver", ["trust-region", "gradient"])
def test_labels_that_tell_nothing_at_all(solver):
    """Each matrix comes with both labels, and the gradient is zero to the last bit."""
    X = np.stack([np.diag([2.0, 1.0, 1.0]), np.diag([0.5, 1.0, 1.0])] * 6)
    metric = LogEuclideanMetric(2.0, solver=solver).fit(X, np.array([0, 0, 1, 1] * 3))
    assert (metric.alignment_, metric.solution_.converged) == (0.0, True)


@pytest.mark.parametrize("parameters", [{}, {"rank": 2}, {"rank": 2, "weighting": "discriminant"}], ids=str)
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_matrices_that_are_all_the_same(parameters, scale, data):
    with pytest.raises(ValueError, match="All matrices to learn from are the same"):
        LogEuclideanMetric(2.0, **parameters).fit(np.tile(scale * np.eye(3), (24, 1, 1)), data[1])


def test_a_session_that_is_singular_where_training_was_not(data):
    X, y = data
    X_new = X * np.array([1.0, 1.0, 0.0])[:, None] * np.array([1.0, 1.0, 0.0])
    with pytest.raises(ValueError, match=r"X\[0\] is not positive definite"):
        LogEuclideanMetric(2.0, rank=2).fit(X, y).adapt(X_new)


STACKS = {
    "masked": (
        lambda X: np.ma.masked_array(X, np.arange(24)[:, None, None] * np.ones((3, 3)) == 5),
        r"X\[5, 0, 0\]",
    ),
    "None inside": (
        lambda X: np.where(np.arange(24)[:, None, None] == 5, None, X),
        r"X\[5, 0, 0\] is of type None",
    ),
    "text": (lambda X: X.astype(str), r"expected real numbers"),
    "ragged": (lambda X: [*X, np.eye(2)], r"all matrices must have one size"),
    "a number": (lambda X: 3.0, r"Expected X of shape"),
    "None": (lambda X: None, r"X is of type NoneType"),
    "a word": (lambda X: "abc", r"expected real numbers"),
    "dates": (lambda X: np.zeros((24, 3, 3), dtype="M8[D]"), r"expected real numbers"),
    "zero": (lambda X: X * (np.arange(24) != 5)[:, None, None], r"X\[5\] is not positive"),
}


@pytest.mark.parametrize("case", STACKS)
@pytest.mark.parametrize("rank", [None, 2])
def test_what_is_no_stack_of_matrices(case, rank, data, tmp_path):
    X, y = data
    spoil, sentence = STACKS[case]
    model = LogEuclideanMetric(2.0, rank=rank)
    metric = clone(model).fit(X, y)
    uses = [lambda X: clone(model).fit(X, y), lambda X: clone(model).partial_fit(X, y, classes=[0, 1])]
    uses += [metric.transform, metric.adapt, metric.pairwise_kernel]
    if case not in ("None", "a word", "a number"):
        uses.append(lambda X: metric.transform_to(X, tmp_path / "vectors.npy"))
    for use in uses:
        with pytest.raises((ValueError, TypeError), match=sentence):
            use(spoil(X))
    assert not list(tmp_path.iterdir())


def test_masked_arrays_with_nothing_masked(data):
    X, y = data
    plain = LogEuclideanMetric(2.0).fit(X, y)
    masked = LogEuclideanMetric(2.0).fit(np.ma.masked_array(X), np.ma.masked_array(y))
    np.testing.assert_array_equal(masked.transform(X), plain.transform(X))
    for k, arguments in enumerate(
        ((X, np.ma.masked_array(y, y == 1)), (X, y, np.ma.masked_array(y, y == 1)))
    ):
        with pytest.raises(ValueError, match=[r"y\[1\] is masked", r"sample_weight\[1\] is masked"][k]):
            LogEuclideanMetric(2.0).fit(*arguments)


def test_matrices_that_a_low_rank_metric_does_not_see(rng):
    X, y = labeled(rng, 24, 4)
    metric = LogEuclideanMetric(2.0, rank=2).fit(X, y)
    null = np.linalg.svd(metric.components_)[2][2:]
    X[7] = null.T @ spd(rng, 2) @ null
    for use in (
        metric.transform,
        metric.pairwise_kernel,
        lambda X: metric.pair_distance(X[:, None][:, [0, 0]]),
    ):
        with pytest.raises(
            ValueError, match=r"\[7\] is singular on the directions that this metric of rank 2 sees"
        ):
            use(X)
    # Where learning starts, too: here each class lives on axes of its own.
    halves = np.zeros((24, 4, 4))
    halves[y == 0, :2, :2], halves[y == 1, 2:, 2:] = spd(rng, 12, 2), spd(rng, 12, 2)
    with pytest.raises(
        ValueError, match=r"\d+ of 24 matrices of X cannot be compared with the start: .*smaller rank"
    ):
        LogEuclideanMetric(2.0, rank=2, init="euclid").fit(halves, y)


VECTORS = {
    "NaN": (np.full((2, 6), np.nan), r"vectors\[0\] contains NaN"),
    "too long": (np.full((2, 6), 1e3), r"vectors\[0\] is too long"),
    "complex": (np.full((2, 6), 1j), r"complex data not supported"),
    "text": (np.full((2, 6), "a"), r"expected real numbers"),
    "None": (None, r"vectors is of type NoneType"),
    "of another length": (np.zeros((2, 5)), r"Expected vectors of shape \(n_matrices, 6\)"),
}


@pytest.mark.parametrize("case", VECTORS)
def test_vectors_that_are_of_no_matrix(case, data):
    vectors, sentence = VECTORS[case]
    metric = LogEuclideanMetric(2.0).fit(*data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((ValueError, TypeError), match=sentence):
            metric.inverse_transform(vectors)


def test_pairs_that_are_none(data):
    metric = LogEuclideanMetric(2.0).fit(*data)
    with pytest.raises(ValueError, match=r"Expected pairs of shape \(n_pairs, 2, d, d\), got \(24, 3, 3\)"):
        metric.pair_distance(data[0])
    with pytest.raises(ValueError, match="one array: all matrices must have one size"):
        metric.pair_distance([[np.eye(3), np.eye(2)]])
    with pytest.raises(ValueError, match="must have the same shape"):
        metric.get_metric()(np.eye(3), np.eye(2))


# -- labels -----------------------------------------------------------------------------

LABELS = {
    "dates": (np.array(["2026-01-01", "2026-01-02"] * 12, dtype="M8[D]"), r"dtype datetime64.*astype\(str\)"),
    "spans of time": (np.arange(24).astype("m8[s]"), r"dtype timedelta64"),
    "dates as objects": (
        np.array(pd.date_range("2026-01-01", periods=24).to_pydatetime()),
        r"y\[0\] is datetime",
    ),
    "words and numbers": (
        np.array(["a", 3] * 12, dtype=object),
        r"y\[1\] is 3, of type int, and y\[0\] of type str",
    ),
    "complex": (1j * np.arange(24), r"dtype complex128: expected labels"),
    "records": (np.zeros(24, dtype=[("a", int)]), r"dtype \[\('a', '<i8'\)\]: expected labels"),
    "huge numbers": (np.array([2**80, 2**81] * 12, dtype=object), r"numbers that NumPy can hold"),
    "ragged": ([[1], [2, 3]] * 12, r"y cannot be read as one array"),
    "sparse": (scipy.sparse.csr_matrix(np.arange(24)), r"y is a sparse csr_matrix"),
    "bytes": (np.array([b"a", b"b"] * 12), r"y has dtype \|S1: expected labels.*pass np\.char\.decode\(y"),
    "bytes as objects": (np.array([b"a", b"b"] * 12, dtype=object), r"y\[0\] is b'a', of type bytes: expec"),
    "a number": (1, r"1d array"),
    "a word": ("abc", r"1d array"),
    "a set": ({1, 2}, r"1d array"),
}


@pytest.mark.parametrize("case", LABELS)
def test_labels_that_are_none(case, data):
    y, sentence = LABELS[case]
    calls = (
        lambda: LogEuclideanMetric(2.0).fit(data[0], y),
        lambda: LogEuclideanMetricCV(radii=(0,), ranks=(None,), cv=2).fit(data[0], y),
        lambda: LogEuclideanMetric(2.0).partial_fit(data[0], y, classes=[0, 1]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in calls:
            with pytest.raises((ValueError, TypeError), match=sentence):
                call()


# -- errors in general --------------------------------------------------------------------

BROAD = ["__init__.py", *["cache.py"] * 2, "files.py", "models.py", "data.py", "store.py"]


def test_no_more_broad_excepts_and_no_error_of_no_kind():
    """Where each decoder, compiler or method has errors of its own, or where errors wait for their turn."""
    broad, vague = [], []
    for path in Path(spdmetric.__file__).parent.rglob("*.py"):
        source = path.read_text()
        broad += [path.name] * len(re.findall(r"except Exception\b", source))
        vague += re.findall(
            r"raise (?:RuntimeError|Exception|KeyError|LookupError|AssertionError)\b.*", source
        )
    assert set(broad) <= set(BROAD)
    assert len(broad) <= len(BROAD)
    assert not vague, "raise an error that derives from ValueError, TypeError, OSError or MemoryError"


def test_whole_numbers_that_float64_cannot_hold(data):
    X, y = data
    huge, classifier = 10**400, LogEuclideanClassifier(cv=2)
    for call in (
        lambda: LogEuclideanMetric(huge).fit(X, y),
        lambda: LogEuclideanMetric(kernel="rbf", gamma=huge).fit(X, y),
        lambda: LogEuclideanMetric(class_weight={y[0]: huge}).fit(X, y),
        lambda: LogEuclideanMetric().fit(X, y, [huge] * len(X)),
        lambda: LogEuclideanMetric().fit([[[huge]]] * len(X), y),
        lambda: Shrinkage("oas", n_samples=huge).fit(X),
        lambda: clone(classifier).fit(X, y).adapt(X, y, weight=huge),
    ):
        with pytest.raises(ValueError, match="expected"):
            call()
    with pytest.raises(TypeError, match="numbers that NumPy can hold"):
        classifier.fit(X, [huge + k % 2 for k in range(len(X))])
