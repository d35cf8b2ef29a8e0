"""The benchmark runs, keeps what it finds and names what is missing; no time is asserted."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks import count_functions, count_lines, picture, processes, run, sessions, store, table
from benchmarks import task as tasks
from benchmarks.cases import Case, all_cases, default, evaluate, fit, neighbors, search, session
from benchmarks.data import covariances, toy, whitened
from benchmarks.outcomes import Outcome, Setting, lead, share
from benchmarks.peers import load_peer, peers_of
from spdmetric.geometry import mean_riemann

ROOT = Path(__file__).parents[1]
TINY = Setting(quick=True, rounds=1, patience=0.0, draws=1, seconds=20.0, evaluations=300)

pytestmark = pytest.mark.filterwarnings(
    # SciPy's trust-constr says when it adapts to a singular Jacobian, as at the center of the ball.
    "ignore:Singular Jacobian matrix:UserWarning",
    # torch, where it is installed, calls what newer Python deprecates.
    "ignore::DeprecationWarning:torch",
)


@pytest.fixture(scope="module")
def fit_record():
    case = fit.case("tiny", lambda seed: toy(4, 10, seed))
    return run.run_case(case, TINY)


def test_keys_are_distinct_and_every_group_is_there():
    keys = [case.key for case in all_cases()]
    assert len(keys) == len(set(keys))
    kinds = {case.key.split("/")[0]: case.kind for case in all_cases()}
    assert kinds == {
        **dict.fromkeys(("session", "process", "classifier", "large"), "user"),
        **dict.fromkeys(("evaluate", "iterate", "fit", "knn", "pairwise", "cv", "growth"), "kernel"),
        **dict.fromkeys(("mean", "tolerance"), "result"),  # the last of mean counts passes
    }


def test_fit_case(fit_record):
    assert fit_record["status"] == "ok", fit_record.get("traceback")
    assert (fit_record["draws"], fit_record["seed"]) == (1, TINY.seed)
    assert {"cpu", "numpy", "spdmetric", "blas_threads"} <= set(fit_record["environment"])
    ours = fit_record["contestants"]["ours"]
    assert ours["best_in_ball"][0] * fit.SHARE >= fit_record["targets"][0] - 1e-12
    assert 1 <= ours["evaluations"] <= TINY.evaluations
    against = [line["against"] for line in fit_record["lines"]]
    assert against[0] == "evaluations to target"
    assert {peer.title for peer in peers_of("fit")} - {"spdmetric"} <= set(against)
    assert "extrapolated" in fit_record["lines"][-1]["note"]


def test_small_cases_of_every_kind():
    data = covariances(20, 4, 0)
    cases = [
        evaluate.case(6, 3, 1.0),
        default.case("tiny", lambda seed: toy(4, 10, seed)),
        neighbors.knn(8, 3),
        neighbors.pairwise(5, 3),
        evaluate.low_rank(6, 5, 2),
        Case("cv", lambda setting: search.cross_validation(data, setting, (0.0, 1.0), (None, 2))),
    ]
    for case in cases:
        record = run.run_case(case, TINY)
        assert record["status"] == "ok", record.get("traceback")
        assert record["lines"][0]["ratio"] > 0
        assert all(line["ours"] > 0 for line in record["lines"])
        assert record["contestants"]["ours"]["repeats"] == 1
        if case.key.startswith("knn/"):
            assert record["lines"][0]["note"] == "predictions agree on 100.0%"
    record = run.run_case(neighbors.mean(6, 3, most=1e9), TINY)
    assert max(record["residuals"].values()) <= neighbors.MEAN_TOL
    assert [line["holds"] for line in record["lines"]] == [True, True]


def test_a_session_times_itself(tmp_path):
    X, codes = covariances(20, 4, 0)
    np.savez(tmp_path / "data.npz", X=X, y=codes)
    path = str(tmp_path / "data.npz")
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    environment = {**processes.UNTOUCHED, "PYTHONPATH": paths}
    times = json.loads(processes.run_python(session._SESSION, "fits", path, "fresh", environment=environment))
    assert len(times) == 10
    assert min(times) > 0
    for name, work in sessions.SESSIONS.items():
        if name not in ("grid", "same fits", "cv"):
            assert all(seconds > 0 for seconds in work(X, codes))


@pytest.mark.parametrize(
    "name", ["ours", "slsqp", "trust_constr", "projected_gradient", "pymanopt_cg", "pymanopt_tr"]
)
def test_peers_arrive(name):
    peer = load_peer(name)
    if peer.missing:
        pytest.skip(peer.missing)
    trace = tasks.run_peer(peer.module, whitened(toy(4, 10, 1)), 2.0, tasks.Budget(60.0, 3000))
    # Whoever knows no constraint may leave the ball for good, but begins in it.
    assert trace.ended == "" or not peer.module.CONSTRAINED
    assert trace.best > 1.05 * trace.alignment[0] or not peer.module.CONSTRAINED
    assert trace.best >= trace.alignment[0]


def test_functions_of_the_package_are_counted():
    X, _ = count_functions.labeled()
    found = count_functions.functions_of(lambda: [mean_riemann(X) for _ in range(2)])
    assert "mean_riemann" in found.get("geometry.py", []) + found.get("means.py", [])
    assert not any(name.endswith(">") for names in found.values() for name in names)


def test_lines_of_code_are_counted():
    source = (
        '"""Module."""\n\nN = 1\n\n\nclass A:\n    """One.\n\n    Two.\n    """\n    # why\n    x = "text"\n'
    )
    assert count_lines.count(source) == {"lines": 12, "code": 3, "classes": 1, "constants": 1}


def case_of(key, result):
    def compute(setting):
        if isinstance(result, Exception):
            raise result
        return Outcome([lead("a peer", 1.0, result, least=5.0)], {"ours": {"seconds": 1.0}})

    return Case(key, compute)


def test_results_are_kept_case_by_case_and_merged(tmp_path):
    out = tmp_path / "new folder" / "results.json"
    order = ["a/first", "b/second", "c/third"]
    run.run_cases([case_of("b/second", 2.0), case_of("c/third", ZeroDivisionError("oh"))], TINY, out, order)
    records = run.run_cases([case_of("a/first", 7.0)], TINY, out, order)
    stored = json.loads(out.read_text())["cases"]
    assert list(stored) == order == list(records)
    assert stored["a/first"]["lines"][0]["ratio"] == 7.0
    assert stored["a/first"]["lines"][0]["holds"] is True
    assert stored["b/second"]["lines"][0]["holds"] is False
    assert stored["c/third"]["status"] == "failed"
    assert stored["c/third"]["message"] == "ZeroDivisionError: oh"
    run.run_cases([case_of("c/third", 5.0)], TINY, out, order)
    assert store.load(out)["c/third"]["status"] == "ok"
    assert [p.name for p in out.parent.iterdir()] == ["results.json"]


def test_table_and_picture(tmp_path, fit_record):
    failed = {"kind": "user", **store.record_without("failed", "ValueError: no", TINY, store.Span())}
    outcome = store.record_of(Outcome([share("eigh", 1e-3, 2e-3, most=1.0)]), TINY, store.Span())
    records = {"fit/tiny": fit_record, "broken": failed, "evaluate/tiny": {"kind": "kernel", **outcome}}
    text = table.text(records)
    assert all(part in text for part in ("0.5", "1 ms", "failed: ValueError: no"))
    assert len(table.markdown(records).splitlines()) == 2 + len(table.rows(records))
    assert "without numbers: broken" in table.verdict(records)
    picture.draw(records, tmp_path / "results.png")
    assert (tmp_path / "results.png").stat().st_size > 1000


def test_the_page_of_speed_shows_the_stored_results():
    document = (ROOT / "docs" / "speed.md").read_text()
    assert table.with_tables(document, store.load(run.DEFAULT_OUT)) == document, (
        "run: python benchmarks/run.py --into docs/speed.md"
    )
