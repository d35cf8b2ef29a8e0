"""All results that the pages quote, computed again: ``python -m reproduction.recompute`` (``make results``).

Every table is a command; its finished tasks are kept in ``results/release/STAMP`` until it ends, so that an
interrupted run resumes.  A finished table goes to ``docs/results``, its time to ``times.json``
there, and the pages that quote it are written anew.  What the present code has computed is left alone.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

from moabb_format import write_moabb  # noqa: E402
from quotes import write_pages  # noqa: E402

from reproduction.__main__ import main as reproduce  # noqa: E402
from reproduction.stamps import Stamp, code_stamp  # noqa: E402
from reproduction.steps import STEPS, Step  # noqa: E402


def is_done(step: Step, now: str) -> bool:
    """Whether the present code has computed a table."""
    path = RESULTS / f"{step.target}.json"
    return path.exists() and Stamp.of(json.loads(path.read_text())).holds(now)


def run(step: Step, data: Path, jobs: int, now: str) -> float:
    """Compute a table, put its files into their place, and return the seconds that this took."""
    work = ROOT / "results" / "release" / now / step.target.replace("/", "-")
    # In the folder of data, so that what the files say of it is no path of this machine.
    words = step.command.replace("DATA/", "").replace("DATA", ".").split()
    began = time.monotonic()
    with contextlib.chdir(data), contextlib.redirect_stdout(io.StringIO()):
        failed = reproduce([*words, "--out", str(work), "--jobs", str(jobs)])
    if failed:
        raise SystemExit(failed)
    code_stamp.cache_clear()
    if code_stamp() != now:
        raise SystemExit("The sources were changed meanwhile: nothing of this table is kept.")
    target = RESULTS / step.target
    if words[0] == "figures":  # pictures alone, too large for the repository: what was drawn is noted
        drawn = sorted(path.name for path in (work / "figures").iterdir())
        target.with_suffix(".json").write_text(
            json.dumps({"files": drawn, "stamp": Stamp(now)._asdict()}, indent=1) + "\n"
        )
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        for suffix in (".csv", ".json", ".md", ".png"):
            shutil.copyfile(work / f"{words[0]}{suffix}", target.with_suffix(suffix))
    return time.monotonic() - began


def note_time(step: Step, seconds: float, jobs: int, now: str) -> None:
    """Add the time of a table to ``times.json``; an interrupted run adds to the time of its table."""
    path = RESULTS / "times.json"
    times = json.loads(path.read_text()) if path.exists() else {}
    before = times.get(step.target, {})
    seconds += before["seconds"] if before.get("code") == now and not before["finished"] else 0.0
    times[step.target] = {
        **{"command": f"python -m reproduction {step.command}", "seconds": round(seconds, 1)},
        **{"jobs": jobs, "code": now, "finished": is_done(step, now)},
    }
    path.write_text(json.dumps(times, indent=1) + "\n")


def draw_first_picture() -> None:
    """The picture of README and home page, which shows accuracies of the choice."""
    subprocess.run([sys.executable, "examples/first_steps/plot_learning.py"], check=True, cwd=ROOT)
    shutil.copyfile(ROOT / "results" / "learning.png", ROOT / "docs" / "images" / "learning.png")


def main() -> None:
    """Run what is left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with bci2a-a09, brodatz, eegmmi, ..."
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--only", nargs="+", metavar="TABLE", help=", ".join(step.target for step in STEPS))
    arguments = parser.parse_args()
    now = code_stamp()
    chosen = [step for step in STEPS if arguments.only is None or step.target in arguments.only]
    left = [step for step in chosen if not is_done(step, now)]
    print(f"stamp {now}: {len(left)} of {len(chosen)} tables, about {sum(s.minutes for s in left):g} minutes")
    for step in left:
        began, seconds = time.monotonic(), None
        print(f"{step.target} (about {step.minutes:g} minutes) ...", flush=True)
        try:
            seconds = run(step, arguments.data.resolve(), arguments.jobs, now)
        finally:
            note_time(step, seconds or time.monotonic() - began, arguments.jobs, now)
        print(f"{step.target}: {seconds:.0f} s", flush=True)
        if step.target == "beyond":
            draw_first_picture()
            write_moabb()
        write_pages()


if __name__ == "__main__":
    main()
