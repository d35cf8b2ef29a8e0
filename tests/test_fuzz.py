"""Damaged and hostile files: a sentence or a right read; never a traceback, a hang, or memory past a bound.

In all some 120 files of matrices, labels and EEG, and 120 model files, by damage, and 40
files made from parts; with ``SPDMETRIC_NIGHTLY=1``, 2,000, 1,000 and 1,400, of a seed that is the day.
"""

import datetime
import json
import subprocess
import sys
from pathlib import Path

import pytest

from nightly import NIGHTLY, share_of

WORKER = Path(__file__).with_name("fuzz_worker.py")
SEED = datetime.date.today().toordinal() if NIGHTLY else 0

# Kinds that share a process, and how many files of each: in CI, and in a nightly run.
GROUPS = {
    "matrices": {"npz": (20, 300), "npy": (15, 200), "csv": (15, 200), "mat": (30, 300)},
    "mat73": {"mat73": (10, 100)},
    "edf": {"edf-signals": (12, 600), "fif": (20, 300)},
    "model": {"model": (120, 1000)},
    "hostile": {"hostile.npz": (20, 800), "hostile73.mat": (20, 600)},
}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the bound on memory is Linux's")
@pytest.mark.parametrize("group", GROUPS)
def test_damaged_files_get_a_sentence_or_are_read_right(group, tmp_path, record_property):
    wanted = {kind: share_of(counts[1]) if NIGHTLY else counts[0] for kind, counts in GROUPS[group].items()}
    wishes = [f"{kind}={count}" for kind, count in wanted.items()]
    command = [sys.executable, str(WORKER), str(tmp_path), str(SEED), *wishes]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600 if NIGHTLY else 600)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    if NIGHTLY:
        said = ", ".join(f"{k} {r['read']} read, {r['sentence']} sentences" for k, r in found.items())
        record_property(f"files, {group}, seed {SEED}", said)
        record_property("files tried", sum(wanted.values()))
        for what, name in (("read", "read"), ("sentence", "refused with a sentence")):
            record_property(name, sum(result[what] for result in found.values()))
    for kind, result in found.items():
        assert not result["wrong"], f"{kind}, seed {SEED}:\n" + "\n".join(result["wrong"])
        assert result["read"] + result["sentence"] == wanted[kind]
