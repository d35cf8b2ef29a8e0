"""Model files: what was fitted comes back bit for bit, every other file gets its sentence."""

from __future__ import annotations

import io
import json
import pickle
import re
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.covariance import LedoitWolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import spdmetric
from random_matrices import labeled, spd
from spdmetric import CommonRange, LogEuclideanMetric, LogEuclideanMetricCV, Shrinkage
from spdmetric.comparison.folds import steps_of
from spdmetric.comparison.methods import METHODS, Sizes
from spdmetric.estimators.embedding import Embedding
from spdmetric.io import atomic, models, npy
from spdmetric.io.models import input_of, load_recipe
from spdmetric.io.signals import Recipe
from spdmetric.manifolds import BallPoint, RankPoint
from spdmetric.solvers import Solution

QUICK_CV = {"radii": (0.0, 1.0), "ranks": [None, 2], "cv": 2, "max_iter": 5}


def fitted(metric, rng, n=16, d=4, classes=2):
    X, y = labeled(rng, n, d, classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations on purpose
        return metric.fit(X, y)


def there_and_back(model, tmp_path):
    path = tmp_path / "model.npz"
    spdmetric.save(model, path)
    return spdmetric.load(path)


# What follows from the rest and is computed when it is asked for; and streams, which are not kept.
COMPUTED = ("S", "_sinhc", "_acceleration", "whitening", "components", "reference", "_stream")


def same(a, b) -> bool:
    """Equality to the last bit, memory order included, of all that an estimator holds."""
    if isinstance(a, float) and isinstance(b, float):  # NumPy's among them
        return a == b or (a != a and b != b)
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        layout = a.dtype == b.dtype and a.shape == b.shape
        return layout and (a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes())
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(
        a, LogEuclideanMetric | LogEuclideanMetricCV | Embedding | Solution | BallPoint | RankPoint
    ):
        return same(*({k: v for k, v in sorted(vars(x).items()) if k not in COMPUTED} for x in (a, b)))
    return a == b


METRICS = {
    "full": LogEuclideanMetric(2.0),
    "no learning": LogEuclideanMetric(0),
    "low rank": LogEuclideanMetric(2.0, rank=2),
    "gaussian": LogEuclideanMetric(2.0, kernel="rbf", max_iter=20),
    "given init": LogEuclideanMetric(1.0, init=np.diag([1.0, 2.0, 3.0, 4.0])),
    "shape": LogEuclideanMetric(2.0, weighting="discriminant"),
    "shape at low rank": LogEuclideanMetric(2.0, rank=3, weighting="discriminant"),
    "one iteration": LogEuclideanMetric(np.float64(5.0), max_iter=1),
    "CV": LogEuclideanMetricCV(**QUICK_CV),
    "CV at low rank": LogEuclideanMetricCV(**QUICK_CV | {"ranks": (2, 3)}),
}


@pytest.mark.parametrize("case", METRICS)
def test_a_metric_comes_back_bit_for_bit(case, rng, tmp_path):
    metric = fitted(clone(METRICS[case]), rng)
    loaded = there_and_back(metric, tmp_path)
    assert same(metric, loaded)
    X = spd(rng, 9, 4)
    for form in (X, X.astype(np.float32)):
        assert same(metric.transform(form), loaded.transform(form))
    if metric.weighting_ is None:
        vectors = metric.transform(X)
        assert same(metric.inverse_transform(vectors), loaded.inverse_transform(vectors))
    assert metric.get_metric()(X[0], X[1]) == loaded.get_metric()(X[0], X[1])
    if case != "given init":
        assert same(metric.adapt(X).transform(X), loaded.adapt(X).transform(X))
    assert same(metric.solution_.point.S, loaded.solution_.point.S)


@pytest.mark.parametrize("d", [1, 5, 9, 24])
def test_transform_is_the_same_at_every_size(d, rng, tmp_path):
    metric = fitted(LogEuclideanMetric(3.0, max_iter=10), rng, n=20, d=d)
    loaded, X = there_and_back(metric, tmp_path), spd(rng, 40, d)
    assert same(metric.transform(X), loaded.transform(X))


def test_what_is_loaded_is_a_normal_estimator(rng, tmp_path):
    metric = fitted(LogEuclideanMetricCV(**QUICK_CV), rng)
    loaded = there_and_back(metric, tmp_path)
    assert loaded.get_params() == metric.get_params()
    assert clone(loaded).get_params() == metric.get_params()
    assert loaded.n_features_in_ == 4
    assert loaded.classes_.tolist() == [0, 1]
    assert loaded.best_params_ == metric.best_params_
    assert list(loaded.get_feature_names_out()) == list(metric.get_feature_names_out())
    assert loaded.solution_.status is metric.solution_.status
    fitted(loaded, rng)  # and it can be fitted again
    with pytest.raises(ValueError, match="features"):
        loaded.transform(spd(rng, 2, 3))


def test_output_in_pandas_is_remembered(rng, tmp_path):
    pd = pytest.importorskip("pandas")
    model = make_pipeline(LogEuclideanMetric(1.0), KNeighborsClassifier(1)).set_output(transform="pandas")
    X, y = labeled(rng, 12, 3)
    loaded = there_and_back(model.fit(X, y), tmp_path)
    assert isinstance(loaded[0].transform(X), pd.DataFrame)
    assert same(loaded.predict(X), model.predict(X))


LABELS = {
    "whole numbers": np.array([3, -1]),
    "small numbers": np.array([1, 2], dtype=np.uint8),
    "strings": np.array(["left hand", "Füße"]),
    "booleans": np.array([True, False]),
    "floats": np.array([1.0, 2.0]),
    "objects": np.array(["left", "right"], dtype=object),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("metric", [LogEuclideanMetric(1.0), LogEuclideanMetricCV(**QUICK_CV)])
def test_a_pipeline_predicts_the_same(kind, metric, rng, tmp_path):
    X, codes = labeled(rng, 20, 3)
    model = make_pipeline(clone(metric), KNeighborsClassifier(1)).fit(X, LABELS[kind][codes])
    loaded, new = there_and_back(model, tmp_path), spd(rng, 50, 3)
    assert list(loaded.named_steps) == list(model.named_steps)
    assert same(loaded.predict(new), model.predict(new))
    assert same(loaded.predict_proba(new), model.predict_proba(new))
    assert same(loaded.classes_, model.classes_)
    assert loaded.score(X, LABELS[kind][codes]) == 1.0


@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree", "auto"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbors_are_the_same_in_every_way_to_find_them(algorithm, dtype, rng, tmp_path):
    X, y = labeled(rng, 60, 3, classes=3)
    judge = KNeighborsClassifier(4, weights="distance", algorithm=algorithm, metric_params=None)
    model = make_pipeline(LogEuclideanMetric(1.0), judge).fit(X.astype(dtype), y)
    loaded, new = there_and_back(model, tmp_path), spd(rng, 50, 3)
    assert same(loaded.predict_proba(new), model.predict_proba(new))
    for one, other in zip(*(m[-1].kneighbors(m[0].transform(new)) for m in (loaded, model)), strict=True):
        assert same(one, other)


# ---------------------------------------------------------------------------
# The registry


QUICK = {"radii": (0.0, 1.0), "ranks": (None,), "cv": 2}


def made(name, X, y, *before):
    """A method of the registry, quick, after some steps."""
    steps = steps_of(METHODS[name].make(Sizes.from_data(X, y)))
    for step in steps:
        step.set_params(**{k: v for k, v in QUICK.items() if METHODS[name].sweeps and k in step.get_params()})
    return make_pipeline(*before, *steps) if before or len(steps) > 1 else steps[0]


def answers(model, X):
    """All that a classifier says."""
    ways = ("predict", "predict_proba", "decision_function")
    return {way: getattr(model, way)(X) for way in ways if hasattr(model, way)}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_predicts_the_same(name, classes, rng, tmp_path):
    if METHODS[name].extra:
        pytest.importorskip("pyriemann")
    X, codes = labeled(rng, 60, 4, classes)
    y = np.array(["left", "right", "Füße"])[codes]
    model = made(name, X, y).fit(X, y)
    loaded, new = there_and_back(model, tmp_path), spd(rng, 30, 4)
    assert same(answers(loaded, new), answers(model, new))
    assert same(loaded.classes_, model.classes_)
    assert repr(loaded) == repr(model)
    assert input_of(loaded) == ("matrices", 4)
    spdmetric.save(loaded, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "model.npz").read_bytes()


@pytest.mark.parametrize(
    "name", ["logeuclid-mean-lda", "svm", "mdm", "fgmdm", "csp-lda", "euclid", "spdmetric"]
)
def test_steps_before_a_method_are_kept(name, rng, tmp_path):
    estimation = pytest.importorskip("pyriemann.estimation")
    signals = rng.standard_normal((40, 5, 60)) * (1 + np.arange(40)[:, None, None] % 2)
    signals -= signals.mean(axis=1, keepdims=True)  # an average reference
    y = np.arange(40) % 2
    covariances = estimation.Covariances("lwf")
    X = covariances.transform(signals)
    for step in (CommonRange(), Shrinkage(0.2), Shrinkage("oas", n_samples=60)):
        model = made(name, np.ones((40, 4, 4)), y, covariances, step).fit(signals, y)
        loaded = there_and_back(model, tmp_path)
        assert same(answers(loaded, signals), answers(model, signals))
        assert loaded.predict(signals).shape == y.shape
        assert input_of(loaded) == ("signals", 5)
        assert same(answers(loaded[1:], X), answers(model[1:], X))


def test_estimators_that_are_parameters_come_back(rng, tmp_path):
    X, y = labeled(rng, 20, 3)
    model = made("logeuclid-mean-lda", X, y)
    loaded = there_and_back(model.fit(X, y), tmp_path)
    assert isinstance(loaded[-1].covariance_estimator, LedoitWolf)
    assert same(clone(loaded).fit(X, y).predict_proba(X), model.predict_proba(X))


def test_without_pyriemann_the_extra_is_named(rng, tmp_path, monkeypatch):
    pytest.importorskip("pyriemann")
    X, y = labeled(rng, 12, 3)
    path = tmp_path / "model.npz"
    spdmetric.save(made("mdm", X, y).fit(X, y), path)
    monkeypatch.setitem(sys.modules, "pyriemann.classification", None)
    with pytest.raises(ImportError, match=r"MDM needs pyRiemann: pip install 'spdmetric\[compare\]'"):
        spdmetric.load(path)


RECIPE = Recipe("recording", "T1=left,T2=right", (8.0, 30.0), (0.5, 2.5), ("C3", "C4"))


@pytest.mark.parametrize("recipe", [None, Recipe("array"), RECIPE])
def test_a_recipe_is_kept(recipe, rng, tmp_path):
    path = tmp_path / "model.npz"
    spdmetric.save(fitted(LogEuclideanMetric(0.0), rng), path, recipe=recipe)
    assert load_recipe(path) == recipe
    assert spdmetric.load(path).radius == 0.0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "pipe"}, "kind of the recipe is 'pipe'"),
        ({"band": [8.0]}, r"band of the recipe is \[8.0\]"),
        ({"window": ["a", 1]}, "window of the recipe"),
        ({"channels": [3]}, "channels of the recipe"),
        ({"path": "/etc"}, "a recipe has the fields"),
    ],
)
def test_a_forged_recipe_is_refused(change, sentence, rng, tmp_path):
    path = tmp_path / "model.npz"
    spdmetric.save(fitted(LogEuclideanMetric(0.0), rng), path, recipe=RECIPE)
    forged(lambda m, a: m["recipe"].update(change))(path)
    with pytest.raises(ValueError, match=sentence) as caught:
        load_recipe(path)
    assert str(path) in str(caught.value)


# ---------------------------------------------------------------------------
# The file


def test_the_file_is_a_plain_npz_and_always_the_same_bytes(rng, tmp_path):
    metric = fitted(LogEuclideanMetric(1.0), rng)
    for name in ("one.npz", "two.npz"):
        spdmetric.save(metric, tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.npz", "two.npz"]
    with np.load(tmp_path / "one.npz", allow_pickle=False) as content:
        metadata = json.loads(content["metadata"].item())
        assert same(content["metric.components_"], metric.components_)
        assert all(content[name].dtype != object for name in content)
    assert metadata["format"] == "spdmetric model"
    assert metadata["version"] == 1
    assert metadata["spdmetric"] == spdmetric.__version__
    assert metadata["model"]["parameters"]["radius"] == 1.0
    assert len(metadata["sha256"]) == 64


@pytest.mark.parametrize("name", ["model.pkl", "model.joblib", "model.JSON", "model.v2"])
def test_a_name_of_another_format_is_refused(name, rng, tmp_path):
    with pytest.raises(ValueError, match=rf"{name}: expected a name that ends in \.npz"):
        spdmetric.save(fitted(LogEuclideanMetric(1.0), rng), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_former_model(rng, tmp_path, monkeypatch):
    path, metric = tmp_path / "model.npz", fitted(LogEuclideanMetric(1.0), rng)
    spdmetric.save(metric, path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        spdmetric.save(metric, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


CANNOT = {
    "callback": (
        LogEuclideanMetric(1.0, callback=lambda record: None),
        r"callback=.*set_params\(callback=\.\.\.\)",
    ),
    "splitter": (LogEuclideanMetricCV(**QUICK_CV | {"cv": StratifiedKFold(2)}), r"cv=StratifiedKFold.*skops"),
}


@pytest.mark.parametrize("case", CANNOT)
def test_what_cannot_be_stored_is_named(case, rng, tmp_path):
    metric, sentence = CANNOT[case]
    with pytest.raises(ValueError, match=sentence):
        spdmetric.save(fitted(clone(metric), rng), tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


def test_other_models_are_refused(rng, tmp_path):
    X, y = labeled(rng, 12, 3)
    metric, svc = LogEuclideanMetric(0.0).fit(X, y), SVC(probability=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # it is on its way out
        svc.fit(metric.transform(X), y)
    others = {
        "got GaussianNB.*skops": make_pipeline(metric, GaussianNB()).fit(X, y),
        "got Mine.*skops": type("Mine", (LogEuclideanMetric,), {})(),
        "KNeighborsClassifier takes vectors": KNeighborsClassifier(1).fit(X[:, 0], y),
        "takes matrices, and cannot follow where vectors": make_pipeline(metric, metric),
        "it is made of Pipeline": make_pipeline(make_pipeline(metric, KNeighborsClassifier(1))).fit(X, y),
        "probability=True": make_pipeline(metric, svc),
    }
    for sentence, model in others.items():
        with pytest.raises(ValueError, match=sentence):
            spdmetric.save(model, tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())
    for model in (LogEuclideanMetric(), make_pipeline(LogEuclideanMetric(), KNeighborsClassifier())):
        with pytest.raises(ValueError, match="not fitted"):
            spdmetric.save(model, tmp_path / "model.npz")
    dates = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")
    metric = LogEuclideanMetric(1.0).fit(X, y)
    metric.classes_ = dates
    with pytest.raises(ValueError, match=r"classes_ has dtype datetime64"):
        spdmetric.save(metric, tmp_path / "model.npz")


# ---------------------------------------------------------------------------
# Files that are not models of ours


def rewritten(path, change, *, compress=zipfile.ZIP_STORED):
    """Write the members of an archive again, changed by a function of (name, bytes)."""
    with zipfile.ZipFile(path) as source:
        members = [(i.filename, source.read(i)) for i in source.infolist()]
    with zipfile.ZipFile(path, "w", compress) as target:
        for name, content in members:
            target.writestr(name, change(name, content))


def in_metadata(change):
    """Change the metadata of a model and leave the digest as it is."""

    def edit(name, content):
        if name != "metadata.npy":
            return content
        metadata = json.loads(np.load(io.BytesIO(content)).item())
        change(metadata)
        return b"".join(npy.npy_parts(np.array(json.dumps(metadata).encode())))

    return lambda path: rewritten(path, edit)


def forged(change):
    """Change metadata and arrays and compute the digest anew, as someone with bad intent would."""

    def edit(path):
        metadata, arrays = models.read_model_file(path)
        change(metadata, arrays)
        models.write_model_file(path, metadata, arrays)

    return edit


def with_shape(shape):
    def edit(name, content):
        if name != "metric.components_.npy":
            return content
        return content.replace(b"'shape': (4, 4)", b"'shape': " + shape + b" " * (6 - len(shape)))

    return lambda path: rewritten(path, edit)


def bomb(path):
    rewritten(path, lambda name, content: content + bytes(10**7), compress=zipfile.ZIP_DEFLATED)


BAD_FILES = {
    "empty": (lambda p: p.write_bytes(b""), "is not an .npz archive"),
    "text": (lambda p: p.write_text("index,label\n"), "is not an .npz archive"),
    "pickle": (lambda p: p.write_bytes(pickle.dumps([1])), "holds pickled Python objects"),
    "truncated": (lambda p: p.write_bytes(p.read_bytes()[:-200]), "corrupt, truncated"),
    "other arrays": (lambda p: np.savez(p, X=np.eye(2)), "is an .npz file but not a spdmetric model"),
    "other format": (in_metadata(lambda m: m.update(format="x")), "its metadata say 'x'"),
    "newer": (
        in_metadata(lambda m: m.update(version=2, spdmetric="9.1")),
        "of format 2, written by spdmetric 9.1; this spdmetric reads formats up to 1: upgrade",
    ),
    "no version": (in_metadata(lambda m: m.pop("version")), "its format has version 'None'"),
    "parameter altered": (
        in_metadata(lambda m: m["model"]["parameters"].update(radius=3.0)),
        "was altered after it was saved",
    ),
    "array altered": (
        lambda p: rewritten(p, lambda n, c: c[:-1] + b"\x01" if n.startswith("metric.comp") else c),
        "was altered after it was saved",
    ),
    "array too large": (with_shape(b"(4,9e9)"), "cannot be read: it is corrupt"),
    "array of another shape": (with_shape(b"(9, 9)"), "components_ declares 776 bytes.*but has 256"),
    "zip bomb": (bomb, "declares .* bytes.*damaged"),
    "forged: unknown class": (
        forged(lambda m, a: m["model"].update({"class": "os.system"})),
        "its content is not one",
    ),
    "forged: other size": (
        forged(lambda m, a: a.update({"metric.coordinates": np.eye(3)})),
        r"its content is not one \(ValueError: coordinates has shape \(3, 3\)",
    ),
    "forged: a word for a number": (
        forged(lambda m, a: m["model"]["fitted"].update(value="high")),
        "value has shape .* and dtype <U4",
    ),
    "forged: not fitted": (forged(lambda m, a: m["model"].update(fitted={})), "its content is not one"),
    "forged: array missing": (forged(lambda m, a: a.pop("metric.components_")), "its content is not one"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_every_bad_file_gets_its_sentence(case, rng, tmp_path):
    path = tmp_path / "model.npz"
    spdmetric.save(fitted(LogEuclideanMetric(1.0), rng), path)
    spoil, sentence = BAD_FILES[case]
    spoil(path)
    with pytest.raises(ValueError, match=sentence) as raised:
        spdmetric.load(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_shape_that_does_not_go_with_the_factor(rng, tmp_path):
    path = tmp_path / "model.npz"
    spdmetric.save(fitted(LogEuclideanMetric(1.0, weighting="discriminant"), rng), path)
    forged(lambda m, a: a.update({"metric.shape": np.ones((4, 1))}))(path)
    with pytest.raises(ValueError, match=r"shape has shape \(4, 1\).*expected 'f\? p q', \(10, 1\)"):
        spdmetric.load(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nothing\.npz"):
        spdmetric.load(tmp_path / "nothing.npz")


def test_headers_that_ask_for_memory_are_refused_before_it_is_given(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (9000000000000,), }"
    header += b" " * (118 - 1 - len(header)) + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8)
    with zipfile.ZipFile(tmp_path / "model.npz", "w") as archive:
        archive.writestr("metadata.npy", content)
    with pytest.raises(ValueError, match=r"model\.npz: metadata declares 72000000000128 bytes"):
        spdmetric.load(tmp_path / "model.npz")


def test_the_schema_lists_what_is_stored(rng, tmp_path):
    """Whoever changes these names raises models.VERSION."""
    spdmetric.save(fitted(LogEuclideanMetricCV(**QUICK_CV), rng), tmp_path / "model.npz")
    metadata, _ = models.read_model_file(tmp_path / "model.npz")
    assert set(metadata["model"]["fitted"]) == {
        *("n_features_in_", "classes_", "best_index_", "best_params_", "best_score_", "cv_results_", "path_"),
        *("n_neighbors_", "temperature_"),
        *("basis", "center", "rotation", "factor", "frame", "low_rank", "distance", "session_weight"),
        *("shape", "weighting_penalty_", "weighting_score_", "domains_", "domain_means_", "domain_mean"),
        *("coordinates", "status", "value", "residual", "multiplier", "history"),
        *("components_", "alignment_", "gamma_", "radius_", "n_iter_"),
    }


@pytest.mark.parametrize("metric", [LogEuclideanMetric(1.0), LogEuclideanMetricCV(**QUICK_CV)])
def test_metadata_requests_are_kept(metric, rng, tmp_path):
    """`save` refused a metric after set_fit_request."""
    with config_context(enable_metadata_routing=True):
        metric = clone(metric).set_fit_request(sample_weight="weight")
        knn = KNeighborsClassifier(1).set_score_request(sample_weight=False)
        X, y = labeled(rng, 12, 3)
        pipeline = make_pipeline(metric, knn).fit(X, y)
    loaded = there_and_back(pipeline, tmp_path)
    assert loaded[0].get_metadata_routing().fit.requests["sample_weight"] == "weight"
    assert loaded[1].get_metadata_routing().score.requests == {"sample_weight": False}
    assert same(there_and_back(pipeline[0], tmp_path).transform(X), metric.transform(X))


# ---------------------------------------------------------------------------
# skops: pipelines of any parts

TRUSTED = [
    "spdmetric.estimators.metric.LogEuclideanMetric",
    "spdmetric.estimators.cv.LogEuclideanMetricCV",
    "spdmetric.estimators.cv.Path",
    "spdmetric.estimators.embedding.Embedding",
    "spdmetric.manifolds.BallPoint",
    "spdmetric.manifolds.RankPoint",
    "spdmetric.solvers.solution.Record",
    "spdmetric.solvers.solution.Solution",
]


@pytest.mark.parametrize("metric", [LogEuclideanMetric(1.0), LogEuclideanMetricCV(**QUICK_CV)])
def test_skops_keeps_whole_pipelines(metric, rng):
    sio = pytest.importorskip("skops.io")
    X, y = labeled(rng, 20, 3)
    model = make_pipeline(clone(metric), LinearDiscriminantAnalysis()).fit(X, y)
    stored = sio.dumps(model)
    unknown = sio.get_untrusted_types(data=stored)
    assert set(unknown) <= set(TRUSTED)
    loaded = sio.loads(stored, trusted=TRUSTED)
    assert same(loaded.predict(X), model.predict(X))
    assert same(loaded[0].transform(X), model[0].transform(X))


def documented_blocks():
    text = (Path(__file__).parents[1] / "docs" / "models.md").read_text()
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("block", documented_blocks(), ids=range(4))
def test_the_page_on_models_is_true(block, capsys):
    if "skops" in block:
        pytest.importorskip("skops")
        assert all(f'"{name}"' in block for name in TRUSTED)
    exec(compile(block, "docs/models.md", "exec"), {})
