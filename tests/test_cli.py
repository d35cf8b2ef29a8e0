"""The command line: what it imports, what its help says, how it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import warnings

import pytest

from spdmetric import cli

COMMANDS = ("toy", "fit", "predict", "show", "methods", "compare")


def run(*arguments, **options):
    command = [sys.executable, "-m", "spdmetric", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


HELP = ("--help", "--version", *(f"{name} --help" for name in COMMANDS))
WRONG = (
    "fit a.npz -o m.skops --folds 1",
    "fit a.npz -o m.skops --shrink much",
    "fit a.npz -o m.pkl",
    "nothing",
)


@pytest.mark.parametrize("command", [*HELP, *WRONG])
def test_help_and_wrong_commands_import_the_standard_library_alone(command):
    code = f"""
import sys
from spdmetric.cli import main
try:
    found = main({command.split()})
except SystemExit as stop:
    found = stop.code
assert found == {2 if command in WRONG else 0}
loaded = {{name.partition(".")[0] for name in sys.modules}}
assert not loaded & {{"numpy", "scipy", "sklearn", "tqdm", "jinja2", "matplotlib"}}, loaded
assert not [n for n in sys.modules if n.startswith("spdmetric.comparison")]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "required: COMMAND"),
        (["compare"], "required: DATA"),
        (["tables"], "invalid choice: 'tables'"),
        (["compare", "a.npz", "--jobs", "0"], "expected a whole number >= 1, got '0'"),
        (["compare", "a.npz", "--methods", "mdm,"], "expected names, separated by commas, got 'mdm,'"),
        (["toy", "--seed", "-1"], "expected a whole number >= 0, got '-1'"),
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
    monkeypatch.setattr(cli.compare, "run", swallow_interruption)
    # What runs in the background ignores ^C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert cli.main(["compare", "a.npz"]) == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err.endswith("same command again to resume.\n")
