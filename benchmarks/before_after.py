"""The benchmark of two checkouts in turn, and how every line of it changed.

    git worktree add ../before COMMIT
    python benchmarks/before_after.py ../before . --rounds 7
    python benchmarks/before_after.py ../before . --python ../before/.venv/bin/python .venv/bin/python

Each checkout runs its own ``benchmarks/run.py``, with its own Python where two are given, and its ``src``
comes before what is installed there.  The order alternates, so that what disturbs the machine disturbs both.
A change above 1 is a loss: 1.05 is five per cent slower, or five per cent more evaluations.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

GROUPS = ("evaluate", "fit", "session", "process")  # the default fits are among those of fit
MOST = 1.05

Line = tuple[str, str]  # a case, and what it is compared with


def run_benchmark(checkout: Path, python: str, groups: Sequence[str], *, full: bool) -> dict[Line, float]:
    """Ratio of each line of the table, so that more is worse."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "results.json")
        command = [python, "benchmarks/run.py", "--only", *groups, "--out", str(out)]
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
        subprocess.run(
            command if full else [*command, "--quick"],
            cwd=checkout,
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        records = json.loads(out.read_text())["cases"]
    return {
        (key, line["against"]): 1 / line["ratio"] if line["meaning"] == "peer / ours" else line["ratio"]
        for key, record in records.items()
        for line in record["lines"]
        if line["ratio"]
    }


def compare(rounds: Sequence[dict[str, dict[Line, float]]]) -> list[tuple[Line, float, float, float]]:
    """Medians before and after, and their quotient, of every line that both have."""
    found = []
    for line in rounds[0]["before"]:
        before, after = ([one[name][line] for one in rounds if line in one[name]] for name in rounds[0])
        if before and after:
            found.append((line, median(before), median(after), median(after) / median(before)))
    return found


def show(rounds: Sequence[dict[str, dict[Line, float]]]) -> str:
    """The comparison as a table."""
    lines = [f"| case | against | before | after | change, median of {len(rounds)} | |", "|---" * 6 + "|"]
    for (key, against), before, after, change in compare(rounds):
        mark = "**worse**" if change > MOST else ""
        lines.append(f"| {key} | {against} | {before:.3g} | {after:.3g} | {change:.3f} | {mark} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("before", type=Path, help="checkout")
    parser.add_argument("after", type=Path, help="checkout")
    parser.add_argument("--python", nargs=2, default=[sys.executable] * 2, help="interpreters of the two")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="+", default=GROUPS, metavar="PATTERN", help="cases or groups")
    parser.add_argument("--full", action="store_true", help="larger budgets; quick by default")
    options = parser.parse_args()
    checkouts = {"before": options.before.resolve(), "after": options.after.resolve()}
    # An interpreter of an environment is a link, which says where its packages are: it is not resolved.
    pythons = dict(zip(checkouts, map(os.path.abspath, options.python), strict=True))
    rounds: list[dict[str, dict[Line, float]]] = []
    for k in range(options.rounds):
        ran = {
            name: run_benchmark(checkouts[name], pythons[name], options.only, full=options.full)
            for name in (list(checkouts) if k % 2 == 0 else list(checkouts)[::-1])
        }
        rounds.append({name: ran[name] for name in checkouts})
        print(f"round {k + 1} of {options.rounds}\n\n{show(rounds)}\n", flush=True)


if __name__ == "__main__":
    main()
