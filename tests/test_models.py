"""Model files: what was fitted comes back bit for bit, every other file gets its sentence."""

from __future__ import annotations

import json
import os
import pickle
import re
import warnings
import zipfile
from io import BytesIO

import numpy as np
import pytest
import skops.io
from pyriemann.estimation import Covariances
from sklearn import config_context
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline

import spdmetric
from python_process import run_python
from random_matrices import labeled, spd
from spdmetric import CommonRange, LogEuclideanClassifier, LogEuclideanMetric, LogEuclideanMetricCV, Shrinkage
from spdmetric.comparison.folds import steps_of
from spdmetric.comparison.methods import METHODS, Sizes, set_where_known
from spdmetric.estimators.transfer import TransferClassifier
from spdmetric.io.models import TRUSTED, input_of, load_recipe
from spdmetric.io.signals import Recipe

QUICK_CV = {"radii": (0, 1), "ranks": (None, 2), "cv": 2}


def fitted(metric, rng, n=16, d=4, classes=2):
    X, y = labeled(rng, n, d, classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations on purpose
        return metric.fit(X, y)


def there_and_back(model, tmp_path):
    path = tmp_path / "model.skops"
    spdmetric.save(model, path)
    return spdmetric.load(path)


def same(a, b) -> bool:
    """Equality to the last bit."""
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
    return a == b


METRICS = {
    "full": LogEuclideanMetric(2.0),
    "no learning": LogEuclideanMetric(0),
    "low rank": LogEuclideanMetric(2.0, rank=2),
    "gaussian": LogEuclideanMetric(2.0, kernel="rbf", max_iter=20),
    "given init": LogEuclideanMetric(1.0, init=np.diag([1.0, 2.0, 3.0, 4.0])),
    "weighting": LogEuclideanMetric(2.0, weighting="discriminant"),
    "weighting at low rank": LogEuclideanMetric(2.0, rank=3, weighting="discriminant"),
    "one iteration": LogEuclideanMetric(np.float64(5.0), max_iter=1),
    "CV": LogEuclideanMetricCV(**QUICK_CV),
    "CV at low rank": LogEuclideanMetricCV(**QUICK_CV | {"ranks": (2, 3)}),
}


@pytest.mark.parametrize("case", METRICS)
def test_a_metric_comes_back_bit_for_bit(case, rng, tmp_path):
    metric = fitted(clone(METRICS[case]), rng)
    loaded = there_and_back(metric, tmp_path)
    hidden = ("embedding_", "solution_", "path_", "_stream", "metric")  # records of arrays, seen below
    assert same(*({k: v for k, v in vars(one).items() if k not in hidden} for one in (metric, loaded)))
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


@pytest.mark.parametrize(
    ("labels", "algorithm"),
    [(np.array([1, 2], "u1"), "brute"), (np.array([True, False]), "kd_tree"), (["a", "Füße"], "ball_tree")],
)
def test_a_pipeline_predicts_the_same(labels, algorithm, rng, tmp_path):
    X, codes = labeled(rng, 20, 3)
    neighbors = KNeighborsClassifier(1, algorithm=algorithm)
    model = make_pipeline(LogEuclideanMetric(1.0), neighbors).fit(X, np.array(labels)[codes])
    loaded, new = there_and_back(model, tmp_path), spd(rng, 50, 3)
    assert list(loaded.named_steps) == list(model.named_steps)
    assert same(loaded.predict(new), model.predict(new))
    assert same(loaded.predict_proba(new), model.predict_proba(new))
    assert same(loaded.classes_, model.classes_)


# -- The registry ----------------------------------------------------------------------


QUICK = {"radii": (0.0, 1.0), "ranks": (None,), "cv": 2}


def made(name, X, y, *before):
    """A method of the registry, quick, after some steps."""
    estimator = METHODS[name].make(Sizes.from_data(X, y))
    if METHODS[name].chooses:
        set_where_known(estimator, **QUICK)
    steps = steps_of(estimator)
    return make_pipeline(*before, *steps) if before or len(steps) > 1 else steps[0]


def answers(model, X):
    """All that a classifier says."""
    ways = ("predict", "predict_proba", "decision_function")
    return {way: getattr(model, way)(X) for way in ways if hasattr(model, way)}


# What a fresh process does: load every model of a folder, and keep what it says of the same matrices.
ELSEWHERE = """
import pickle, sys, warnings
from pathlib import Path
import numpy as np
import spdmetric

warnings.simplefilter("ignore")
folder, ways = Path(sys.argv[1]), ("predict", "predict_proba", "decision_function")
X, own, labels = (np.load(folder / f"{name}.npy") for name in ("X", "own", "labels"))
said = {}
for path in folder.glob("*.skops"):
    model = spdmetric.load(path)
    said[path.stem] = {way: getattr(model, way)(X) for way in ways if hasattr(model, way)}
    if hasattr(model, "adapt"):
        said[path.stem]["adapted"] = model.adapt(own, labels).predict_proba(X)
(folder / "said.pkl").write_bytes(pickle.dumps(said))
"""


def test_every_method_predicts_the_same_in_a_fresh_process(rng, tmp_path):
    """A type that the list lacks is refused by `save`, with its name."""
    X, codes = labeled(rng, 60, 4, classes=3)
    y, new, own = np.array(["left", "right", "Füße"])[codes], spd(rng, 30, 4), X[:6] * 1.1
    expected = {}
    for name in METHODS:
        model = made(name, X, y).fit(X, y)
        spdmetric.save(model, tmp_path / f"{name}.skops")
        expected[name] = answers(model, new)
        if hasattr(model, "adapt"):
            expected[name]["adapted"] = model.adapt(own, y[:6]).predict_proba(new)
    for name, array in (("X", new), ("own", own), ("labels", y[:6])):
        np.save(tmp_path / f"{name}.npy", array)
    run_python(ELSEWHERE, tmp_path)
    said = pickle.loads((tmp_path / "said.pkl").read_bytes())
    assert set(said) == set(METHODS)
    assert [name for name in METHODS if not same(said[name], expected[name])] == []
    assert sum("adapted" in found for found in said.values()) >= 2


def test_every_estimator_of_the_package(rng, tmp_path):
    X, y = labeled(rng, 30, 3)
    signals = rng.standard_normal((30, 3, 40)) * (1 + y[:, None, None])
    public = [getattr(spdmetric, name) for name in spdmetric.__all__]
    made_of = [each for each in public if isinstance(each, type) and issubclass(each, BaseEstimator)]
    assert len(made_of) >= 5
    for model in (TransferClassifier(), *(each() for each in made_of)):
        data = signals if isinstance(model, TransferClassifier) else X
        model.fit(data, np.log(np.arange(2, 32)) if is_regressor(model) else y)
        loaded = there_and_back(model, tmp_path)
        way = "predict" if hasattr(model, "predict") else "transform"
        assert same(getattr(loaded, way)(data), getattr(model, way)(data))


def test_every_trusted_type_is_there():
    """A name that no module has any more would be dead weight, and a gap for whoever takes it."""
    for name in TRUSTED:
        module, _, made_of = name.rpartition(".")
        assert isinstance(getattr(__import__(module, fromlist=[made_of]), made_of), type), name


@pytest.mark.parametrize("name", ["svm", "csp-lda", "spdmetric"])
def test_steps_before_a_method_are_kept(name, rng, tmp_path):
    signals = rng.standard_normal((40, 5, 60)) * (1 + np.arange(40)[:, None, None] % 2)
    signals -= signals.mean(axis=1, keepdims=True)  # an average reference
    y = np.arange(40) % 2
    covariances = Covariances("lwf")
    X = covariances.transform(signals)
    for step in (CommonRange(), Shrinkage(0.2), Shrinkage("oas", n_samples=60)):
        model = made(name, np.ones((40, 4, 4)), y, covariances, step).fit(signals, y)
        loaded = there_and_back(model, tmp_path)
        assert same(answers(loaded, signals), answers(model, signals))
        assert loaded.predict(signals).shape == y.shape
        assert input_of(loaded) == ("signals", 5)
        assert same(answers(loaded[1:], X), answers(model[1:], X))


RECIPE = Recipe("recording", "T1=left,T2=right", (8.0, 30.0), (0.5, 2.5), ("C3", "C4"))


@pytest.mark.parametrize("recipe", [None, Recipe("array"), RECIPE])
def test_a_recipe_is_kept(recipe, rng, tmp_path):
    path = tmp_path / "model.skops"
    spdmetric.save(fitted(LogEuclideanMetric(0.0), rng), path, recipe=recipe)
    assert load_recipe(path) == recipe
    assert spdmetric.load(path).radius == 0.0


# -- The file --------------------------------------------------------------------------


def test_a_file_tells_the_versions_that_wrote_it(rng, tmp_path):
    spdmetric.save(fitted(LogEuclideanMetric(1.0), rng), tmp_path / "model.skops")
    content = skops.io.load(tmp_path / "model.skops", trusted=sorted(TRUSTED))
    assert (content["format"], content["version"]) == ("spdmetric model", 1)
    assert content["versions"]["spdmetric"] == spdmetric.__version__
    assert {"numpy", "scikit-learn", "skops"} <= set(content["versions"])
    with zipfile.ZipFile(tmp_path / "model.skops") as archive:
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())


@pytest.mark.parametrize("name", ["model.pkl", "model.JSON"])
def test_a_name_of_another_format_is_refused(name, rng, tmp_path):
    with pytest.raises(ValueError, match=rf"{name}: expected a name that ends in \.skops"):
        spdmetric.save(fitted(LogEuclideanMetric(1.0), rng), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_what_load_would_refuse_is_not_saved(rng, tmp_path):
    path = tmp_path / "model.skops"
    watched = fitted(LogEuclideanMetric(1.0, callback=lambda record: None), rng)
    with pytest.raises(ValueError, match=r"test_models.*lambda.*set_params\(callback=None\)"):
        spdmetric.save(watched, path)
    mine = type("Mine", (LogEuclideanMetric,), {"__module__": __name__})
    with pytest.raises(ValueError, match=r"The model holds .*Mine"):
        spdmetric.save(fitted(mine(0.0), rng), path)
    X, y = labeled(rng, 12, 3)
    kept = make_pipeline(LogEuclideanMetric(0.0), KNeighborsClassifier(1), memory=str(tmp_path / "m"))
    with pytest.raises(ValueError, match=r"memory=None"):
        spdmetric.save(kept.fit(X, y), path)
    for model in (LogEuclideanMetric(), make_pipeline(LogEuclideanMetric(), KNeighborsClassifier())):
        with pytest.raises(ValueError, match="not fitted"):
            spdmetric.save(model, path)
    assert not path.exists()


# -- Files that are not models of ours -------------------------------------------------


def rewritten(path, change=lambda name, content: content, *, compress=zipfile.ZIP_STORED, more=()):
    """Write the members of an archive again, changed by a function of (name, bytes)."""
    with zipfile.ZipFile(path) as source:
        members = [(i.filename, source.read(i)) for i in source.infolist()]
    with zipfile.ZipFile(path, "w", compress) as target:
        for name, content in [*members, *more]:
            target.writestr(name, change(name, content))


def in_schema(change):
    """Change the tree of a file, as someone with bad intent would."""

    def edit(name, content):
        if name != "schema.json":
            return content
        schema = json.loads(content)
        change(schema)
        return json.dumps(schema).encode()

    return lambda path: rewritten(path, edit)


def parameter(node):
    """Put a node in the place of the metric's parameter ``callback``."""
    return in_schema(lambda s: s["content"]["model"]["content"]["content"].update(callback=node))


def node(loader, module, name, **more):
    return {"__loader__": loader, "__module__": module, "__class__": name, "__id__": 1, **more}


EMPTY = node("TupleNode", "builtins", "tuple", content=[])
FUNCTION = {"module_path": "os", "function": "system"}
PLANTED = {
    "function": (node("FunctionNode", "os", "system", content=FUNCTION), "os.system"),
    "type": (node("TypeNode", "subprocess", "Popen"), "subprocess.Popen"),
    "constructor": (
        node("ConstructorFromReduceNode", "test_models", "Planted", content=EMPTY),
        "test_models.Planted",
    ),
    "object": (node("ObjectNode", "test_models", "Planted"), "test_models.Planted"),
}


class Planted:
    """A class of another package: whoever makes one is told on."""

    made = 0

    def __new__(cls, *_):
        cls.made += 1
        return super().__new__(cls)


@pytest.mark.parametrize("case", PLANTED)
def test_a_planted_type_is_refused_by_name_and_nothing_is_made(case, rng, tmp_path, monkeypatch):
    path, (planted, name) = tmp_path / "model.skops", PLANTED[case]
    spdmetric.save(fitted(LogEuclideanMetric(1.0), rng), path)
    parameter(planted)(path)
    ran = []
    monkeypatch.setattr(os, "system", ran.append)
    monkeypatch.setattr(LogEuclideanMetric, "__setstate__", ran.append)
    with pytest.raises(ValueError, match=rf"it holds .*{re.escape(name)}, which is not a type") as raised:
        spdmetric.load(path)
    assert str(path) in str(raised.value)
    assert Planted.made == 0
    assert ran == []


def bomb(path):
    rewritten(path, lambda name, content: content + bytes(10**7), compress=zipfile.ZIP_DEFLATED)


def many_times(path):
    """One array of a megabyte, named a thousand times."""
    rewritten(path, more=[("big.npy", npy_bytes(np.zeros(2**17)))])
    one = node("NdArrayNode", "numpy", "ndarray", type="numpy", file="big.npy")
    nodes = [one | {"__id__": 10**6 + k} for k in range(1000)]
    parameter(node("ListNode", "builtins", "list", content=nodes))(path)


def npy_bytes(array, declared=None):
    file = BytesIO()
    np.save(file, array)
    content = file.getvalue()
    return content if declared is None else content.replace(str(array.shape).encode(), declared)


def too_large(path):
    forged = npy_bytes(np.zeros(1234567), b"(9234567,)")
    rewritten(path, lambda name, content: forged if name.endswith(".npy") else content)


NPZ = BytesIO()
np.savez(NPZ, X=np.eye(2))


def in_content(**changes):
    """Change what is beside the model."""

    def spoil(path):
        content = skops.io.load(path, trusted=sorted(TRUSTED))
        skops.io.dump(content | changes, path)

    return spoil


BAD_FILES = {
    "text": (lambda p: p.write_text("index,label\n"), "cannot be read: it is corrupt, .*not a zip file"),
    "pickle": (lambda p: p.write_bytes(pickle.dumps([1])), "holds pickled Python objects"),
    "truncated": (lambda p: p.write_bytes(p.read_bytes()[:-200]), "corrupt, truncated"),
    "damaged": (
        lambda p: p.write_bytes(p.read_bytes().replace(b'"alignment_"', b'"alignment-"')),
        "cannot be read: it is corrupt",
    ),
    "other arrays": (lambda p: p.write_bytes(NPZ.getvalue()), "zip archive, but no skops file: it has"),
    "other skops file": (lambda p: skops.io.dump(GaussianNB(), p), "skops file but not a spdmetric model"),
    "newer": (
        in_content(version=2, versions="9.1"),
        "of version 2, not 1: load it with what wrote it, 9.1",
    ),
    "no estimator": (in_content(model=[1.0]), "holds a list; expected an estimator"),
    "newer skops": (in_schema(lambda s: s.update(protocol=99)), "skops protocol 99"),
    "unknown node": (parameter(node("NoSuchNode", "os", "system")), "Can't find loader NoSuchNode"),
    "without an end": (
        lambda p: rewritten(p, lambda n, c: b"[" * 10**6 if n == "schema.json" else c),
        "cannot be read: it is corrupt",
    ),
    "zip bomb": (bomb, "unpacks to .* bytes, more than its own"),
    "one array many times": (many_times, "the model declares 1000 MB, more than 100 times"),
    "array too large": (too_large, "declares 73876664 bytes.*but has"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_every_bad_file_gets_its_sentence(case, rng, tmp_path):
    path = tmp_path / "model.skops"
    spdmetric.save(fitted(LogEuclideanMetric(1.0), rng), path)
    spoil, sentence = BAD_FILES[case]
    spoil(path)
    with pytest.raises(ValueError, match=sentence) as raised:
        spdmetric.load(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_model_that_refers_to_itself_is_refused(rng, tmp_path):
    """From scikit-learn 1.9 on its requests hold the estimator itself, and skops knows no cycles."""
    with config_context(enable_metadata_routing=True):
        metric = LogEuclideanMetric(0.0).set_fit_request(sample_weight=True)
    metric.itself = metric
    with pytest.raises(ValueError, match=r"cannot be stored .*After set_fit_request"):
        spdmetric.save(fitted(metric, rng), tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


def forge(**changes):
    """What a model file holds, with parts that do not belong together."""
    model = LogEuclideanClassifier()
    model.metric_, model.classes_ = LogEuclideanMetric(), np.array([1, 2])
    model.metric_.best_params_ = {}
    good = {"format": "spdmetric model", "version": 1, "versions": {}, "recipe": None, "model": model}
    return {name: value for name, value in (good | changes).items() if value is not ...}


FORGED = {
    "no model": forge(model=...),
    "no recipe": forge(recipe=...),
    "no steps": forge(model=Pipeline([])),
    "no choice": forge(),
    "versions": forge(versions=3),
    "kind": forge(recipe=Recipe(3)),
    "events": forge(recipe=Recipe("recording", ("T1",))),
    "band": forge(recipe=Recipe("recording", "T1", (1.0,), (0.0, 1.0))),
    "channels": forge(recipe=Recipe("array", channels=3)),
}


@pytest.mark.parametrize("case", FORGED)
def test_forged_models_get_a_sentence_from_the_commands(case, rng, tmp_path, capsys):
    from spdmetric.cli import main

    path = tmp_path / "model.skops"
    skops.io.dump(FORGED[case], path)
    np.savez(tmp_path / "new.npz", X=spd(rng, 4, 3))
    for words in (["show", str(path)], ["predict", str(path), str(tmp_path / "new.npz")]):
        assert main(words) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"spdmetric: error: {path}")
        assert error.count("\n") == 1
