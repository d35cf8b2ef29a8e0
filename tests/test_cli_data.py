"""fit and predict on every kind of data that people have, and the sentences about what they cannot do."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import mne
import numpy as np
import pytest
from scipy.io import savemat

import spdmetric
from formats import write_edf
from random_matrices import labeled, spd
from spdmetric.cli import main
from spdmetric.comparison import run as work
from spdmetric.comparison.folds import steps_of
from spdmetric.comparison.methods import METHODS, Sizes
from spdmetric.comparison.page import Origin, write_program
from spdmetric.io.matrices import read_matrices
from spdmetric.io.signals import read_signals

WORDS = np.array(["left", "right", "both feet"])


@pytest.fixture
def here(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return rng


def rows_of(name="labels.csv"):
    return list(csv.DictReader(Path(name).read_text().splitlines()))


def averaged(rng):
    X, y = labeled(rng, 40, 5)
    C = np.eye(5) - 0.2
    np.savez("data.npz", X=C @ X @ C, y=y)


def ranks_differ(rng):
    X, y = signals(rng, 40, 5, 3)
    np.savez("data.npz", X=X @ X.transpose(0, 2, 1), y=y)


def imbalanced(rng):
    X, _ = labeled(rng, 84, 3, classes=1)
    y = np.arange(84) % 21 == 0
    X[y] *= 4
    np.savez("data.npz", X=X, y=WORDS[y.astype(int)])


def words(rng):
    X, codes = labeled(rng, 42, 3, classes=3)
    np.savez("data.npz", X=X, y=WORDS[codes])


def image_sets(rng):
    """Four classes of five sets of fewer images than pixels, with a ridge: larger than there are matrices."""
    y = np.repeat([1, 2, 3, 4], 5)
    pixels = rng.standard_normal((4, 8, 8))[y - 1] + 0.3 * rng.standard_normal((20, 8, 8))
    S = np.array([np.cov(A @ rng.standard_normal((8, 6))) for A in pixels])
    np.savez("data.npz", X=S + 1e-3 * np.trace(S, axis1=1, axis2=2)[:, None, None] * np.eye(8), y=y)


def holes(rng):
    X, y = labeled(rng, 40, 3)
    X[3, 0, 1] = np.nan
    X[38] = -X[38]
    np.savez("data.npz", X=X, y=y)


def folder(rng):
    X, y = labeled(rng, 30, 3)
    for k, (matrix, code) in enumerate(zip(X, y, strict=True)):
        place = Path("data.npz", WORDS[code])  # the name is not what counts
        place.mkdir(parents=True, exist_ok=True)
        np.save(place / f"trial{k}.npy", matrix)


def sessions(rng):
    X, y = labeled(rng, 40, 3)
    days = np.repeat(["Monday", "Tuesday"], 20)
    A = spd(rng, 3)
    X[20:] = A @ X[20:] @ A
    np.savez("data.npz", X=X, y=y, groups=days)


def signals(rng, n=40, channels=3, times=60):
    y = np.arange(n) % 2
    X = rng.standard_normal((n, channels, times))
    X[y == 1, 0] *= 2
    return X, y


def recordings(rng):
    """A folder of two EDF files."""
    Path("data.npz").mkdir()
    for run in range(2):
        X, y = signals(rng, 12, 3, 200)
        marks = [(2.0 * k, ("T1", "T2")[code]) for k, code in enumerate(y)]
        write_edf(Path("data.npz", f"run{run}.edf"), 100 * np.concatenate(X, axis=1), 100, marks)


def trials(rng):
    X, y = signals(rng)
    np.savez("data.npz", X=X, y=y)


KINDS = {
    "average reference": (averaged, [], "brought to their common range, 4 of 5 dimensions"),
    "ranks differ": (ranks_differ, [], "the lowest rank is 3 of 5: a metric of low rank"),
    "ranks differ, shrunk": (ranks_differ, ["--shrink", "0.1", "--method", "svm"], "Shrinkage()"),
    "ranks differ, oas": (ranks_differ, ["--shrink", "oas"], "Shrinkage(shrinkage='oas')"),
    "imbalanced": (imbalanced, ["--class-weight", "balanced", "--scoring", "balanced"], "balanced_accuracy"),
    "words": (words, ["--scoring", "auc"], "roc_auc_ovr"),
    "image sets": (image_sets, [], "20 matrices 8 x 8, 4 classes"),
    "holes": (holes, ["--skip-bad"], "Left out by --skip-bad, 2 of 40: X[3] (contains NaN"),
    "folder": (folder, [], "left (15), right (15)"),
    "groups": (sessions, [], "kept whole by the folds: Monday (20), Tuesday (20); --domains groups would"),
    "recordings": (recordings, ["--events", "T1=left,T2", "--window", "0", "1"], "T2 (12), left (12)"),
    "domains": (sessions, ["--domains", "groups"], "by its own mean: Monday (20), Tuesday (20)"),
    "signals": (trials, ["--estimator", "lwf"], "first step: Covariances(estimator='lwf')"),
    "signals, shrunk": (trials, ["--shrink", "oas", "--estimator", "oas"], "40 signals, 3 channels, 60"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_file_is_learned_from_and_labeled(kind, here, capsys):
    write, options, said = KINDS[kind]
    write(here)
    assert main(["fit", "data.npz", "-o", "model.skops", *options]) == 0
    out = capsys.readouterr().out
    assert said in out
    assert "np." not in out
    again = [option for option in options if option == "--skip-bad"] + options[:2] * ("--domains" in options)
    assert main(["predict", "model.skops", "data.npz", "-o", "labels.csv", "--proba", *again]) == (
        0 if hasattr(spdmetric.load("model.skops"), "predict_proba") else 2
    )
    assert main(["predict", "model.skops", "data.npz", "-o", "labels.csv", *again]) == 0
    out = capsys.readouterr().out
    right = float(out.partition("accuracy: ")[2].split()[0])
    assert right > 60
    rows = rows_of()
    n = int(out.partition("written: labels.csv, ")[2].split()[0])
    assert len(rows) == n + 2 * (kind == "holes")
    assert np.mean([row["label"] == row["true"] for row in rows]) > 0.6
    assert main(["show", "model.skops"]) == 0
    out = capsys.readouterr().out
    assert "scikit-learn" in out
    assert re.search(r"^takes: +(matrices, (\d+) x \2|signals of \d+ channels)$", out, re.MULTILINE)
    assert "np." not in out


COMPARED = {
    **{kind: KINDS[kind][1] for kind in ("average reference", "ranks differ", "imbalanced", "holes")},
    **{kind: KINDS[kind][1] for kind in ("folder", "signals", "recordings", "groups")},
    "ranks differ, shrunk": ["--shrink", "0.1"],
}


@pytest.mark.parametrize("kind", COMPARED)
def test_any_file_is_compared_and_its_winner_labels_it(kind, here, capsys):
    options = COMPARED[kind]
    KINDS[kind][0](here)
    few = ["--methods", "euclid,svm,logeuclid-kta-rank", "--repeats", "1", "--jobs", "1"]
    assert main(["compare", "data.npz", "--out", "page.html", "--save", "model.skops", *few, *options]) == 0
    assert "written: model.skops" in capsys.readouterr().out
    assert Path("page.html").read_text().startswith("<!DOCTYPE html>")
    again = ["--skip-bad"] if kind == "holes" else []
    assert main(["predict", "model.skops", "data.npz", "-o", "labels.csv", *again]) == 0
    assert np.mean([row["label"] == row["true"] for row in rows_of()]) > 0.6


def test_bad_matrices_have_empty_labels(here):
    holes(here)
    assert (
        main(["fit", "data.npz", "-o", "model.skops", "--skip-bad", "--radius", "0", "--rank", "full"]) == 0
    )
    assert main(["predict", "model.skops", "data.npz", "-o", "labels.csv", "--skip-bad", "--proba"]) == 0
    empty = [row["index"] for row in rows_of() if row["label"] == ""]
    assert empty == ["3", "38"]
    found, y = read_matrices("data.npz"), [row["p(0)"] for row in rows_of()]
    kept = np.setdiff1d(np.arange(40), [3, 38])
    proba = spdmetric.load("model.skops").predict_proba(found.X[kept])
    assert [y[k] for k in kept] == [f"{p:.6g}" for p in proba[:, 0]]


def test_rows_of_a_folder_are_named_after_its_files_on_the_terminal_too(here, capsys):
    folder(here)
    assert main(["fit", "data.npz", "-o", "model.skops", "--method", "mdm"]) == 0
    capsys.readouterr()
    assert main(["predict", "model.skops", "data.npz", "-o", "-"]) == 0
    out, err = capsys.readouterr()
    assert main(["predict", "model.skops", "data.npz", "-o", "labels.csv"]) == 0
    assert out == Path("labels.csv").read_text()
    assert err.startswith("accuracy: ")
    assert list(rows_of()[0]) == ["file", "label", "true"]
    assert rows_of()[1]["file"] == "left/trial2.npy"


def test_groups_decide_the_folds_inside(here):
    sessions(here)
    assert main(["fit", "data.npz", "-o", "model.skops"]) == 0
    found = read_matrices("data.npz")
    expected = spdmetric.LogEuclideanClassifier().fit(found.X, found.y, groups=found.groups)
    plain = spdmetric.LogEuclideanClassifier().fit(found.X, found.y)
    results = spdmetric.load("model.skops").metric_.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(results, expected.metric_.cv_results_["mean_test_score"])
    assert not np.array_equal(results, plain.metric_.cv_results_["mean_test_score"])


def test_domains_of_predict(here, capsys):
    """A known domain is recentered by its mean of training, a new one from its own; both as in Python."""
    sessions(here)
    found = read_matrices("data.npz")
    Path("days.csv").write_text("session\n" + "\n".join(["Monday"] * 20 + ["Friday"] * 20))
    assert main(["fit", "data.npz", "-o", "model.skops", "--domains", "groups"]) == 0
    model = spdmetric.LogEuclideanClassifier()
    model.fit(found.X, found.y, sample_domain=found.groups)
    for options, domains, said in (
        (["--domains", "days.csv"], ["Monday"] * 20 + ["Friday"] * 20, "depend on each other): Friday (20)"),
        ([], ["new"] * 40, "own mean (transductive: labels depend on each other): all 40 matrices"),
    ):
        assert main(["predict", "model.skops", "data.npz", "-o", "labels.csv", *options]) == 0
        assert said in capsys.readouterr().out
        expected = model.predict(found.X, sample_domain=np.array(domains))
        assert [row["label"] for row in rows_of()] == [str(label) for label in expected]
    np.savez("one.npz", X=found.X[:1])
    assert main(["predict", "model.skops", "one.npz"]) == 2
    assert "Domain 'new' of sample_domain: expected two or more" in capsys.readouterr().err


def test_numbers_and_words_for_one_domain(here, capsys):
    X, y = labeled(here, 24, 3)
    np.savez("data.npz", X=X, y=y, day=np.array(["1", "2"])[np.arange(24) // 12])
    Path("days.csv").write_text("session\n" + "\n".join("1" for _ in y))
    assert main(["fit", "data.npz", "-o", "model.skops", "--domains", "day", "--radius", "0"]) == 0
    assert main(["predict", "model.skops", "data.npz", "-o", "labels.csv", "--domains", "days.csv"]) == 0
    assert "new domain" not in capsys.readouterr().out


def test_folds_that_are_asked_for_are_of_matrices(here, capsys):
    sessions(here)
    assert main(["fit", "data.npz", "-o", "model.skops", "--folds", "3"]) == 0
    assert "--folds: of matrices, so that the groups are not kept whole" in capsys.readouterr().out
    assert spdmetric.load("model.skops").cv == 3


# -- code to copy -------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_a_saved_model_gives_the_labels_of_the_code_to_copy(name, here, capsys):
    """For matrices that share a null space, so that the common range is saved with every method."""
    n = 30
    X, codes = labeled(here, n + 12, 5, classes=3)
    C = np.eye(5) - 0.2
    X, y = C @ X @ C, WORDS[codes]
    np.savez("known.npz", X=X[:n], y=y[:n])
    np.savez("new.npz", X=X[n:])
    assert main(["fit", "known.npz", "-o", "model.skops", "--method", name]) == 0
    assert main(["predict", "model.skops", "new.npz", "-o", "labels.csv"]) == 0
    known = read_matrices("known.npz")
    made = METHODS[name].make(Sizes.from_data(known.X, known.y))
    capsys.readouterr()
    names: dict[str, object] = {}
    exec(write_program(made, Origin("known.npz")), names)
    labels = [row["label"] for row in rows_of()]
    assert labels == names["model"].predict(X[n:]).tolist()
    assert capsys.readouterr().out == f"{np.array(labels)}\n"


@pytest.mark.parametrize("name", ["spdmetric", "mdm", "svm"])
def test_code_to_copy_for_signals_and_shrinkage(name, here):
    X, y = signals(here, n=60)
    np.savez("known.npz", X=X[:40], y=y[:40], groups=np.arange(40) // 10)
    np.savez("new.npz", X=X[40:])
    options = ["--estimator", "scm", "--shrink", "0.2"]
    assert main(["fit", "known.npz", "-o", "model.skops", "--method", name, *options]) == 0
    assert main(["predict", "model.skops", "new.npz", "-o", "labels.csv"]) == 0
    model = spdmetric.load("model.skops")
    assert [type(step).__name__ for step in steps_of(model)[:2]] == ["Covariances", "Shrinkage"]
    code = write_program(model, Origin("known.npz", signals=True), groups=True)
    names: dict[str, object] = {}
    exec(code, names)
    assert [row["label"] for row in rows_of()] == [str(k) for k in names["model"].predict(X[40:])]


# -- recordings ---------------------------------------------------------------------------


def write_runs(rng, suffix, folder="runs", runs=(1, 2)):
    """Recordings in which the class decides which channel is loud, as MNE exports them."""
    Path(folder).mkdir()
    for run in runs:
        signal = 1e-5 * rng.standard_normal((3, 50 * 100))
        marks = mne.Annotations(1.0 + 2 * np.arange(24), 0.5, ["T1", "T2"] * 12)
        for k in range(24):
            signal[k % 2, 100 + 200 * k : 250 + 200 * k] *= 4
        raw = mne.io.RawArray(signal, mne.create_info(["C3", "C4", "Cz"], 100.0, "eeg"), verbose="ERROR")
        raw.set_annotations(marks)
        path = Path(folder) / f"sub-1_run-{run}_raw{suffix}"
        if suffix == ".fif":
            raw.save(path, verbose="ERROR")
        else:
            mne.export.export_raw(path, raw, verbose="ERROR")
    return path


@pytest.mark.filterwarnings(
    "ignore:Encountered data in", "ignore:.*meas_date", "ignore:Converting data files"
)
@pytest.mark.parametrize("suffix", [".vhdr", ".set", ".bdf", ".edf", ".fif"])
def test_recordings_of_every_format_are_learned_from_and_labeled(suffix, here, capsys):
    last = write_runs(here, suffix)
    names = "Comment/T1=left,Comment/T2=right" if suffix == ".vhdr" else "T1=left,T2=right"
    options = ["--events", names, "--window", "0", "1", "--groups", "run", "--method", "mdm"]
    assert main(["fit", "runs", "-o", "model.skops", *options]) == 0
    assert "groups, kept whole by the folds: 1 (24), 2 (24)" in capsys.readouterr().out
    assert main(["predict", "model.skops", str(last), "-o", "labels.csv"]) == 0
    rows = rows_of()
    assert list(rows[0]) == ["index", "file", "onset", "label", "true"]
    assert [row["label"] for row in rows] == ["left", "right"] * 12
    assert {row["file"] for row in rows} == {last.name}
    np.testing.assert_allclose([float(row["onset"]) for row in rows], 1 + 2 * np.arange(24))


def test_codes_of_a_stimulus_channel_are_events(rng, tmp_path):
    """Where there are no annotations, as in recordings of MEG and of BioSemi."""
    signal = 1e-5 * rng.standard_normal((3, 1000))
    signal[2] = 0
    signal[2, [100, 500]], signal[2, [300]] = 1, 2
    raw = mne.io.RawArray(
        signal, mne.create_info(["C3", "C4", "S"], 100, ["eeg", "eeg", "stim"]), verbose="ERROR"
    )
    found = read_signals(raw, events="1=left,2=right", window=(0, 1))
    assert found.y.tolist() == ["left", "right", "left"]
    np.testing.assert_allclose(found.X[1], 1e6 * signal[:2, 300:401])


@pytest.mark.parametrize("name", ["DataFile", "MarkerFile"])
@pytest.mark.parametrize("elsewhere", ["../other.eeg", "/etc/passwd", "..\\\\other.eeg"])
def test_a_header_names_files_of_its_own_folder_alone(name, elsewhere, here):
    path = write_runs(here, ".vhdr", runs=(1,))
    path.write_text(re.sub(rf"(?m)^{name}=.*$", f"{name}={elsewhere}", path.read_text()))
    with pytest.raises(ValueError, match="expected a file in its own folder"):
        read_signals(path, events="Comment/T1", window=(0, 1))


@pytest.mark.parametrize("data", ["../other.fdt", "/tmp/other.fdt"])
@pytest.mark.parametrize("trials", [1, 5])
def test_eeglab_data_are_in_the_same_folder(data, trials, tmp_path):
    content = {"data": data, "trials": trials, "nbchan": 2, "pnts": 10, "srate": 100.0, "chanlocs": []}
    savemat(tmp_path / "a.set", {"EEG": content})
    with pytest.raises(ValueError, match=r"names the file .*other\.fdt; expected a file in its own folder"):
        read_signals(tmp_path / "a.set", events="T1", window=(0, 1))


# -- sentences ----------------------------------------------------------------------------


def holds(**arrays):
    """A writer of ten matrices and other arrays."""
    return lambda rng: np.savez("data.npz", **{"X": spd(rng, 10, 3)} | arrays)


no_labels, one_class, all_alone = holds(), holds(y=["left"] * 10), holds(y=range(10))
one_alone, one_group = holds(y=["left"] * 9 + ["right"]), holds(y=[0, 1] * 5, groups=["monday"] * 10)
still = holds(X=np.ones((6, 3, 50)), y=["left", "right"] * 3)


def test_one_group_of_the_file_is_no_group(here, capsys):
    one_group(here)
    assert main([*COMPARE, "--methods", "mdm,euclid", "--repeats", "1", "--jobs", "1"]) == 0
    assert "all matrices are in one group, monday: not used" in capsys.readouterr().err


def several_subjects(rng):
    X, y = labeled(rng, 8, 3)
    np.savez("data.npz", X1=X, y1=y, X2=X, y2=y)


def metric_alone(rng):
    words(rng)
    metric = spdmetric.LogEuclideanMetric(0.0).fit(*labeled(rng, 12, 3))
    spdmetric.save(metric, "metric.skops")


FIT = ["fit", "data.npz", "-o", "model.skops"]
COMPARE = ["compare", "data.npz", "--out", "page.html"]
SENTENCES = {
    "folder for a model": (words, ["predict", ".", "data.npz"], "There is no file .: it is a folder"),
    "folder to write": (words, ["fit", "data.npz", "-o", "."], "--out . is a folder: expected the name of a"),
    "no subject": (several_subjects, FIT, "several subjects: pass --subject, one of 1, 2"),
    "subject": (words, [*FIT, "--subject", "3"], "it holds one subject: leave out --subject."),
    "one class": (one_class, FIT, "data.npz has one class, left: expected two or more"),
    "signals": (trials, FIT, "holds signals, (n, channels, times), no square matrices: give --est"),
    "neighbors": (words, [*FIT, "--neighbors", "500"], "--neighbors 500: there are 42 matrices; expected at"),
    "neighbors of folds": (words, [*FIT, "--neighbors", "40"], "--neighbors 40: expected at most 33"),
    "pickle": (words, ["fit", "data.npz", "-o", "m.pkl"], "--out m.pkl: expected a name that ends in .skops"),
    "bad": (holes, FIT, "2 of 40 cannot be used, X[3] (contains NaN in 1 of 9 entries), X[38] (negative"),
    "no method": (words, [*FIT, "--method", "best"], "No method best; there are "),
    "ranks": (ranks_differ, [*FIT, "--method", "svm"], "the lowest here is 3 of 5; --shrink 0.1, or another"),
    "lwf": (ranks_differ, [*FIT, "--shrink", "lwf"], "--shrink lwf needs signals: give those, or --shrink"),
    "rank of mdm": (words, [*FIT, "--method", "mdm", "--rank", "2"], "no meaning for --method mdm"),
    "domains of mdm": (sessions, [*FIT, "--method", "mdm", "--domains", "groups"], "use --method auto."),
    "no groups": (words, [*FIT, "--domains", "groups"], "--domains groups: data.npz has no groups; give a"),
    "two words": (trials, [*FIT, "--shrink", "oas", "--estimator", "lwf"], "is --estimator oas: give one"),
    "window": (trials, [*FIT, "--window", "0", "1"], "--window"),
    "matrices as signals": (words, [*FIT, "--estimator", "oas"], "symmetric matrices, no signals (n, ch"),
    "folder for --csv": (words, [*COMPARE, "--csv", "."], "--csv . is a folder: expected the name of a file"),
    "data to save to": (words, [*COMPARE, "--save", "data.npz"], "expected a name that ends in .skops"),
    "one file twice": (words, [*COMPARE, "--csv", "page.html"], "would replace the file of --out"),
    "data to replace": (words, [*COMPARE, "--csv", "data.npz"], "would replace data.npz, which is read"),
    "nothing to save": (words, [*COMPARE, "--method", "svm"], "--method is what --save trains"),
    "table in .npz": (words, ["predict", "m.skops", "data.npz", "-o", "y.npz"], "ends in .csv"),
    "no labels": (
        no_labels,
        COMPARE,
        "data has no labels: store them as y, or give --labels.",
    ),
    "channels": (words, [*COMPARE, "--channels", "C3,C4"], "channels has 2 names: expected 3"),
    "group asked for": (one_group, [*COMPARE, "--groups", "groups"], "in the group monday: expected at"),
    "each of a class": (all_alone, [*FIT, "--method", "mdm"], "10 classes of one matrix each: give --regr"),
    "other arrays": (words, [*FIT, "--matrices", "C"], "C: expected the name of an array; it has X, y"),
    "state": (words, [*COMPARE, "--csv", "page.state"], "would replace the file of --out, its state: name"),
    "one of a class": (one_alone, FIT, "Only one matrix has the label right: expected two or"),
    "folds": (words, [*FIT, "--folds", "41"], "--folds 41: the largest class has 14 matrices; expected"),
    "radius": (words, [*FIT, "--radius", "nan"], "--radius nan: expected a finite number >= 0"),
    "still signals": (still, [*FIT, "--estimator", "oas"], "data.npz: X[0] is not positive semi-definite"),
    "rank": (words, [*FIT, "--rank", "9"], "--rank 9 is more than the size of the matrices"),
    "recenter": (words, [*COMPARE, "--recenter"], "recenter: expected groups, sessions or subjects"),
    "page": (words, ["compare", "data.npz", "--out", "page.txt"], "ends in .html"),
    "labels elsewhere": (words, [*COMPARE, "--labels", "absent.csv"], "There is no file absent.csv"),
    "no labels to fit": (no_labels, FIT, "data has no labels: store them as y, or give --labels"),
    "no folder": (words, ["fit", "data.npz", "-o", "data.npz/m.skops"], "cannot write to --out"),
    "no file": (words, ["fit", "none.npz", "-o", "m.skops"], "There is no file"),
    "not a model": (words, ["predict", "data.npz", "data.npz"], "but no skops file: it has X.npy"),
    "metric alone": (metric_alone, ["predict", "metric.skops", "data.npz"], "a metric without a classifier"),
    "regression": (words, [*FIT, "--regression", "--class-weight", "balanced"], "is for classes: leave it"),
}


@pytest.mark.parametrize("words", [["fit", "", "-o", "m.skops"], ["predict", "m.skops", ""], ["compare", ""]])
def test_no_name_is_not_this_folder(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert "argument DATA: expected a name, got nothing" in capsys.readouterr().err


def test_other_data_than_the_model_takes(here, capsys):
    trials(here)
    assert main([*FIT, "--estimator", "oas", "--method", "mdm"]) == 0
    np.savez("new.npz", X=signals(here, channels=2)[0])
    assert main(["predict", "model.skops", "new.npz"]) == 2
    assert "new.npz has 2 channels; the model was trained on 3 channels." in capsys.readouterr().err
    assert main(["predict", "model.skops", "model.skops"]) == 2
    assert "model.skops: it is a model; expected a file with the arrays X and y" in capsys.readouterr().err


@pytest.mark.parametrize("case", SENTENCES)
def test_what_cannot_be_done_gets_one_sentence(case, here, capsys, monkeypatch):
    """Before the work."""
    monkeypatch.setattr(work, "run_tasks", None)
    write, arguments, sentence = SENTENCES[case]
    write(here)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert "np." not in error
    assert "=" not in error.replace("'", "").replace(">=", "")  # no keyword of Python
    assert not [*Path().glob("model*"), *Path().glob("*.pkl")]


def test_signals_for_a_model_of_matrices(here, capsys):
    words(here)
    assert main([*FIT, "--radius", "0"]) == 0
    trials(here)
    assert main(["predict", "model.skops", "data.npz"]) == 2
    Path("run.edf").write_bytes(b"0" * 300)
    assert main(["predict", "model.skops", "run.edf"]) == 2
    for line in capsys.readouterr().err.splitlines():
        assert "no square matrices: the model takes matrices, fit one on signals." in line


def test_methods_are_listed(capsys):
    assert main(["methods"]) == 0
    out = capsys.readouterr().out
    for name, method in METHODS.items():
        assert f"{name}\n" in out or f"{name} (auto)\n" in out
        assert method.takes in out
