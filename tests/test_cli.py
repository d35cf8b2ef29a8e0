"""The command line: what it imports, what its help says, how it ends."""

import os
import shlex
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

from python_process import run_python
from spdmetric import cli

COMMANDS = ("toy", "fit", "predict", "show", "methods", "compare")


HELP = ("--help", "--version", *(f"{name} --help" for name in COMMANDS))
WRONG = (
    "fit a.npz -o m.skops --folds 1",
    "fit a.npz -o m.skops --shrink much",
    "fit a.npz -o m.pkl",
    "nothing",
)


def test_help_and_wrong_commands_import_the_standard_library_alone():
    code = """
import sys
from spdmetric.cli import main

for line in sys.argv[1:]:
    try:
        print(main(line.split()), line)
    except SystemExit as stop:
        print(stop.code, line)
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert not loaded & {"numpy", "scipy", "sklearn", "tqdm", "jinja2", "matplotlib"}, (line, loaded)
    assert not [name for name in sys.modules if name.startswith("spdmetric.comparison")], line
"""
    said = run_python(code, *HELP, *WRONG).stdout.splitlines()
    assert {f"0 {line}" for line in HELP} | {f"2 {line}" for line in WRONG} <= set(said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "required: COMMAND"),
        (["compare"], "required: DATA"),
        (["tables"], "invalid choice: 'tables'"),
        (["compare", "a.npz", "--jobs", "0"], "expected a whole number >= 1, got '0'"),
        (["compare", "a.npz", "--methods", "mdm,"], "expected names, separated by commas, got 'mdm,'"),
        (["toy", "--seed", "-1"], "expected a whole number >= 0, got '-1'"),
        (["fit", "a.npz", "-o", "b.skops", "--rank", "²"], "a whole number >= 1 or \"full\", got '²'"),
        (["toy", "--seed", "9" * 400], "expected a whole number >= 0, got '9999"),
        (["fit", "a.npz", "-o", "b.skops", "--labels", ""], "--labels: expected a name, got nothing"),
        (["fit", "a.npz", "-o", "b.skops", "--rank", "half"], "a whole number >= 1 or \"full\", got 'half'"),
    ],
)
def test_wrong_words_exit_with_2(arguments, said, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert "usage: spdmetric" in error
    assert said in error


def test_warnings_are_shown_in_a_line_and_the_hook_is_given_back(tmp_path, monkeypatch, capsys):
    from spdmetric.cli import toy

    def warns(arguments):
        warnings.warn("not so fast", UserWarning, stacklevel=1)

    before = warnings.showwarning
    monkeypatch.setattr(toy, "run", warns)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert cli.main(["toy"]) == 0
    assert capsys.readouterr().err == "spdmetric: UserWarning: not so fast\n"
    assert warnings.showwarning is before


def swallow_interruption(arguments):
    """As compiled modules do, which turn a ^C while they are loaded into an error of their own."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("extensions cannot be imported") from None


def test_an_interruption_says_how_to_go_on_even_where_a_module_swallows_it(capsys, monkeypatch):
    monkeypatch.setattr("spdmetric.cli.compare.run", swallow_interruption)
    # What runs in the background ignores ^C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert cli.main(["compare", "a.npz"]) == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err.endswith("same command again to resume.\n")


FIT = "fit {}/toy-train.npz --method euclid -o {}/m.skops"
COMPARE = "compare {}/toy-train.npz --methods euclid,mdm --repeats 1 --out {}/p.html --csv {}/p.csv"
PREDICT = "predict {}/m.skops {}/toy-new.npz"

# One process for several commands, each of which finds the streams as the first did.
ONE_AFTER_ANOTHER = """
import os, sys
from spdmetric.cli import main

state, *lines = sys.argv[1:]
codes = []
for line in lines:
    codes.append(main(line.split()))
    if state == "ended":  # whoever reads
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, sys.stdout.fileno())
    if state == "closed":
        for name in ("stdout", "stderr"):
            getattr(sys, name).close()
            setattr(sys, name, None)
sys.exit(int("".join(map(str, codes))))
"""


@pytest.mark.parametrize(
    ("state", "streams", "lines", "codes"),
    [
        (
            "ended",
            "| true",
            ["toy --out {}", FIT, "show {}/m.skops", "methods", PREDICT, f"{COMPARE} --jobs 1"],
            0,
        ),
        ("closed", ">&- 2>&-", [f"{PREDICT} -o {{}}/y.csv", PREDICT, f"{COMPARE} --jobs 2"], 20),
    ],
)
def test_outputs_are_whole_whoever_listens(state, streams, lines, codes, tmp_path):
    """A reader that ends early, and streams that are closed, stop nothing; labels have to go somewhere."""
    if state == "closed":
        for line in ("toy --out {}", FIT):
            assert cli.main(line.replace("{}", str(tmp_path)).split()) == 0
    words = [sys.executable, "-W", "ignore", "-c", ONE_AFTER_ANOTHER, state]
    command = shlex.join([*words, *(line.replace("{}", str(tmp_path)) for line in lines)])
    shown = ["bash", "-c", f"set -o pipefail; {command} {streams}"]
    done = subprocess.run(shown, capture_output=True, text=True, check=False)
    assert done.returncode == codes, done.stderr
    assert "Traceback" not in done.stderr
    names = {path.name for path in tmp_path.iterdir()} - {"y.csv"}
    assert names == {"toy-train.npz", "toy-new.npz", "m.skops", "p.html", "p.csv", "p.state"}
    assert (tmp_path / "y.csv").exists() is (state == "closed")


def test_letters_that_the_terminal_does_not_have(tmp_path):
    """Neither those of labels nor those of names of files stop a command after its work."""
    X = np.stack([np.eye(3) * k for k in range(1, 9)])
    names = [b"set", "漢".encode(), b"\xff"]
    for name in names[1:]:
        folder = os.path.join(os.fsencode(tmp_path), names[0], name)
        os.makedirs(folder)
        for k, A in enumerate(X):
            with open(os.path.join(folder, b"%d" % k + name + b".npy"), "wb") as file:
                np.save(file, A * 10 ** names.index(name))
    (tmp_path / "labels.csv").write_text("\n".join(f"{k}漢,漢\n{k}\\udcff,right" for k in range(8)))
    lines = [
        "fit set --labels labels.csv --method euclid -o 漢.skops",
        "predict 漢.skops set -o y.csv",
        "predict 漢.skops set --labels y.csv",
    ]
    plain = {"PYTHONIOENCODING": "ascii", "PYTHONWARNINGS": "ignore"}
    done = run_python(ONE_AFTER_ANOTHER, "open", *lines, cwd=tmp_path, **plain)
    assert "2 classes: right (8), \\u6f22 (8)" in done.stdout
    assert "\\udcff/0\\udcff.npy,right," in (tmp_path / "y.csv").read_text()
    assert done.stderr.startswith("accuracy: ")
