"""The displays: what they hold is right, they draw where they are told, and say what is missing."""

from dataclasses import fields

import matplotlib.pyplot as plt
import mne
import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from random_matrices import labeled, rotation, spd
from spdmetric import LogEuclideanClassifier, LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.geometry import (
    distance_logeuclid,
    distance_riemann,
    mean_euclid,
    mean_riemann,
    pairwise_distance,
)
from spdmetric.linalg.symmetric import congruence
from spdmetric.plots import (
    ChoiceDisplay,
    EmbeddingDisplay,
    PairDistanceDisplay,
    PatternsDisplay,
    RadiusPathDisplay,
    ReferenceSpectrumDisplay,
)
from spdmetric.plots.patterns import patterns_of

plt.switch_backend("Agg")
RNG = np.random.default_rng(20150206)
X, Y = labeled(RNG, 24, 4)
LABELS = np.array(["left", "right"])[Y]
METRIC = LogEuclideanMetric(2.0).fit(X, LABELS)
CHOSEN = LogEuclideanMetricCV(
    radii=(0, 1, 2), ranks=(None, 2), weightings=(None,), n_neighbors=1, scoring="accuracy", cv=3
).fit(X, LABELS)


def head(names=("C3", "Cz", "C4", "Fz")):
    info = mne.create_info(list(names), 100.0, "eeg")
    known = mne.channels.get_builtin_montages()  # MNE 1.13 gave the montage its new name
    info.set_montage("colin27_1005" if "colin27_1005" in known else "standard_1005")
    return info


# How to draw each display, but for the estimator.
WAYS = {
    RadiusPathDisplay: lambda metric, **kw: RadiusPathDisplay.from_estimator(
        metric, X, LABELS, radii=(0, 1), **kw
    ),
    ReferenceSpectrumDisplay: lambda metric, **kw: ReferenceSpectrumDisplay.from_estimator(metric, **kw),
    EmbeddingDisplay: lambda metric, **kw: EmbeddingDisplay.from_estimator(metric, X, LABELS, **kw),
    PairDistanceDisplay: lambda metric, **kw: PairDistanceDisplay.from_estimator(metric, X, LABELS, **kw),
    PatternsDisplay: lambda metric, **kw: PatternsDisplay.from_estimator(
        metric, X, LABELS, head(), **{"n_components": 1, **kw}
    ),
}
displays = pytest.mark.parametrize("Display", WAYS, ids=lambda c: c.__name__)


@pytest.fixture(autouse=True)
def _closed_figures():
    plt.close("all")  # whatever examples in docstrings have left open
    yield
    plt.close("all")


# -- what all have in common ------------------------------------------------------


@displays
def test_draws_in_the_given_axes_and_returns_itself(Display):
    figure, ax = plt.subplots()
    display = WAYS[Display](METRIC, ax=ax)
    assert isinstance(display, Display)
    assert np.ravel(display.ax_)[0] is ax
    assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    figure.draw_without_rendering()
    assert ax.has_data()
    options = {"n_components": 1} if Display is PatternsDisplay else {}
    assert display.plot(**options) is display
    assert display.figure_ is not figure  # its own, where no axes are given
    display.figure_.draw_without_rendering()
    with pytest.raises(TypeError, match="ax='axes': expected matplotlib Axes to draw in, or None"):
        display.plot(ax="axes", **options)


@displays
def test_wrong_estimators(Display):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        WAYS[Display](LogEuclideanMetric())
    with pytest.raises(TypeError, match=r"KNeighborsClassifier has no .*pipeline that holds"):
        WAYS[Display](KNeighborsClassifier().fit(X.reshape(24, -1), LABELS))


@displays
def test_metrics_are_found_in_pipelines_and_classifiers(Display):
    """The same picture, and it says which step was drawn."""
    model = LogEuclideanClassifier(LogEuclideanMetric(1.0, tol=3e-2), cv=2).fit(X, LABELS)
    inside = make_pipeline("passthrough", model)  # fitted already
    directly, *others = (WAYS[Display](one) for one in (model.metric_, model, inside))
    assert directly.estimator_name == "LogEuclideanMetricCV"
    names = ["LogEuclideanClassifier", "step 'logeuclideanclassifier' of a pipeline"]
    for display, name in zip(others, names, strict=True):
        assert display.estimator_name == f"metric_ of {name}"
        for field in fields(display):
            one, other = getattr(directly, field.name), getattr(display, field.name)
            assert field.name == "info" or repr(one) == repr(other)


def test_steps_before_the_metric_prepare_the_matrices():
    from pyriemann.estimation import Covariances

    signals = RNG.standard_normal((24, 4, 30)) * (1 + Y[:, None, None])
    pipe = make_pipeline(Covariances("oas"), LogEuclideanMetric(1.0), KNeighborsClassifier(1))
    pipe.fit(signals, LABELS)
    display = PairDistanceDisplay.from_estimator(pipe, signals, LABELS)
    matrices = pipe[0].transform(signals)
    assert EmbeddingDisplay.from_estimator(pipe[:-1], signals, LABELS).points.shape == (24, 2)
    directly = PairDistanceDisplay.from_estimator(pipe[1], matrices, LABELS)
    np.testing.assert_array_equal(display.after, directly.after)
    np.testing.assert_array_equal(display.before, directly.before)


def test_vectors_of_one_entry_are_drawn_on_a_line():
    metric = LogEuclideanMetric(0.0, weighting="discriminant").fit(X, LABELS)
    display = EmbeddingDisplay.from_estimator(metric, X, LABELS)
    assert display.points.shape == (24, 1)
    assert sum(bar.get_height() for bar in display.ax_.patches) == 24
    assert display.ax_.get_ylabel() == "matrices"
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["left", "right"]
    values = Y + 0.1 * RNG.standard_normal(24)
    metric = LogEuclideanMetric(0.0, weighting="discriminant").fit(X, values)
    display = EmbeddingDisplay.from_estimator(metric, X, values)
    np.testing.assert_allclose(display.ax_.collections[0].get_offsets()[:, 1], values)


# -- the radius path --------------------------------------------------------------


def test_path_of_a_chosen_metric():
    display = RadiusPathDisplay.from_estimator(CHOSEN, score_name="accuracy")
    np.testing.assert_array_equal(display.radius, [0, 1, 2])
    assert np.all(np.diff(display.alignment) > 0)
    assert display.chosen == CHOSEN.best_params_["radius"]
    at = list(display.radius).index(display.chosen)
    assert display.score[at] == CHOSEN.best_score_
    splits = [CHOSEN.cv_results_[f"split{k}_test_score"][CHOSEN.best_index_] for k in range(3)]
    assert display.score_error[at] == pytest.approx(np.std(splits, ddof=1) / np.sqrt(3))
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "accuracy" in labels
    assert display.ax_.get_ylim()[0] == 0


def test_path_of_a_plain_metric_is_learned_anew():
    display = RadiusPathDisplay.from_estimator(METRIC, X, LABELS, radii=(2, 0))
    np.testing.assert_array_equal(display.radius, [0, 2])
    assert display.alignment[1] == METRIC.alignment_
    assert METRIC.radius == 2.0
    with pytest.raises(ValueError, match="knows its own radius only: pass X and y"):
        RadiusPathDisplay.from_estimator(METRIC)


# -- the spectrum -----------------------------------------------------------------


def test_spectrum_is_that_of_the_reference_and_its_start():
    display = ReferenceSpectrumDisplay.from_estimator(METRIC)
    G, G0 = METRIC.reference_, mean_riemann(X)
    np.testing.assert_allclose(
        (display.vectors * display.values) @ display.vectors.T, G, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(display.start, np.linalg.eigvalsh(G0)[::-1], rtol=1e-6)
    assert np.linalg.norm(display.movement) == pytest.approx(METRIC.radius_, rel=1e-6)
    assert np.linalg.norm(display.movement) == pytest.approx(float(distance_riemann(G0, G)), rel=1e-6)
    moved = display.plot(kind="movement")
    heights = [bar.get_height() for bar in moved.ax_.patches]
    np.testing.assert_allclose(heights, display.movement)
    with pytest.raises(ValueError, match="kind='both': expected one of 'spectrum', 'movement'"):
        display.plot(kind="both")


def test_spectrum_at_low_rank_says_that_there_is_none():
    with pytest.raises(AttributeError, match="rank 2 on 4 x 4 matrices has no reference point"):
        ReferenceSpectrumDisplay.from_estimator(LogEuclideanMetric(1.0, rank=2, tol=1e-3).fit(X, LABELS))


# -- vectors ----------------------------------------------------------------------


def test_embedding_is_the_best_plane():
    display = EmbeddingDisplay.from_estimator(METRIC, X, LABELS)
    vectors = METRIC.transform(X)
    vectors = vectors - vectors.mean(axis=0)
    U, s, _ = np.linalg.svd(vectors, full_matrices=False)
    np.testing.assert_allclose(np.abs(display.points), np.abs(U[:, :2] * s[:2]), atol=1e-9)
    np.testing.assert_allclose(display.explained, s[:2] ** 2 / np.sum(s**2), rtol=1e-9)
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["left", "right"]
    assert [len(c.get_offsets()) for c in display.ax_.collections] == [12, 12]
    assert EmbeddingDisplay.from_estimator(METRIC, X).ax_.get_legend() is None


def test_embedding_of_pandas():
    frames = LogEuclideanMetric(1.0).set_output(transform="pandas").fit(X, LABELS)
    assert EmbeddingDisplay.from_estimator(frames, X, LABELS).points.shape == (24, 2)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        EmbeddingDisplay.from_estimator(METRIC, X, LABELS[:3])
    with pytest.raises(ValueError, match="X holds one matrix: expected two or more"):
        EmbeddingDisplay.from_estimator(METRIC, X[:1])


def test_pair_distances_before_and_after():
    display = PairDistanceDisplay.from_estimator(METRIC, X, LABELS)
    G0 = mean_riemann(X)
    assert display.before[3, 7] == pytest.approx(float(distance_logeuclid(X[3], X[7], G0)), rel=1e-9)
    assert display.after[3, 7] == pytest.approx(METRIC.get_metric()(X[3], X[7]), rel=1e-9)
    same = LABELS[:, None] == LABELS
    within = display.after[same & ~np.eye(24, dtype=bool)].mean()
    assert display.separation[1] == pytest.approx(display.after[~same].mean() / within)
    assert display.separation[1] > display.separation[0]
    shown = np.ma.filled(display.ax_.images[0].get_array(), np.nan)
    order = np.argsort(LABELS, kind="stable")
    off = ~np.eye(24, dtype=bool)
    assert shown[0, 5] == pytest.approx(display.after[order[0], order[5]] / display.after[off].mean())
    assert shown[5, 0] == pytest.approx(display.before[order[5], order[0]] / display.before[off].mean())
    assert np.isnan(np.diag(shown)).all()
    by_name = PairDistanceDisplay.from_estimator(METRIC, X, before="riemann", colorbar=False)
    np.testing.assert_allclose(by_name.before, pairwise_distance(X))
    start = LogEuclideanMetric(0.0).fit(X, LABELS)
    by_metric = PairDistanceDisplay.from_estimator(METRIC, X, LABELS, before=start)
    np.testing.assert_allclose(by_metric.before, display.before, atol=1e-7)


# -- patterns -----------------------------------------------------------------------


def sources_and_channels(rng, d=6):
    """Covariances of d channels, two of whose sources change power with the class."""
    mixing = rng.standard_normal((d, d))
    y = np.arange(40) % 2
    power = np.exp(0.1 * rng.standard_normal((40, d)))
    power[:, 0] *= np.where(y == 0, 3.0, 1 / 3)
    power[:, 1] *= np.where(y == 1, 2.0, 1 / 2)
    Q = rotation(rng, d)
    noise = np.stack([0.005 * congruence(Q, spd(rng, d)) for _ in y])
    return congruence(mixing, power[:, :, None] * np.eye(d)) + noise, y, mixing


def test_patterns_find_the_columns_of_the_mixing_matrix(rng):
    covariances, y, mixing = sources_and_channels(rng)
    metric = LogEuclideanMetric(3.0, rank=2, tol=3e-2).fit(covariances, y)
    found = patterns_of(metric, covariances, y)
    assert np.rad2deg(subspace_angles(found.patterns.T, mixing[:, :2])).max() < 10
    assert found.contrast[0, 0] == pytest.approx(-found.contrast[0, 1])
    cosine = (
        found.patterns[0] @ mixing[:, 0] / np.linalg.norm(found.patterns[0]) / np.linalg.norm(mixing[:, 0])
    )
    assert abs(cosine) > 0.95
    assert found.classes[found.contrast[0].argmax()] == 0
    assert found.classes[found.contrast[1].argmax()] == 1


def test_patterns_are_the_regression_on_the_components(rng):
    covariances, y, _ = sources_and_channels(rng)
    metric = LogEuclideanMetric(2.0, rank=3, tol=1e-3).fit(covariances, y)
    found = patterns_of(metric, covariances, y)
    C, W = mean_euclid(covariances), found.filters
    np.testing.assert_allclose(found.patterns.T, C @ W.T @ np.linalg.inv(W @ C @ W.T), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(W @ found.patterns.T, np.eye(3), atol=1e-9)
    # a rotation of the rows: the same metric
    np.testing.assert_allclose(W.T @ W, metric.components_.T @ metric.components_, rtol=1e-9, atol=1e-12)
    spread = (found.contrast**2).sum(axis=1)
    assert np.all(np.diff(spread) <= 1e-9 + 0.5 * spread[:-1])
    assert np.all(found.patterns.max(axis=1) == np.abs(found.patterns).max(axis=1))


def test_patterns_do_not_hang_on_a_shape(rng):
    covariances, y, _ = sources_and_channels(rng)
    plain = LogEuclideanMetric(0.0, rank=3).fit(covariances, y)
    shaped = LogEuclideanMetric(0.0, rank=3, weighting="discriminant").fit(covariances, y)
    for one, other in zip(*(patterns_of(m, covariances, y) for m in (plain, shaped)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert shaped.transform(covariances).shape[1] == 1


def test_choice():
    model = LogEuclideanClassifier(LogEuclideanMetricCV(radii=(0, 1), ranks=(None, 2)), cv=3).fit(X, LABELS)
    display = ChoiceDisplay.from_estimator(model)
    results = model.metric_.cv_results_
    assert len(display.names) == 8
    assert display.gain[display.chosen] == results["mean_gain"][model.metric_.best_index_]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == display.names
    with pytest.raises(TypeError, match="LogEuclideanMetric chooses nothing"):
        ChoiceDisplay.from_estimator(METRIC)
