"""Files appear whole or not at all, links stay links, and pipes stay pipes."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import spdmetric
from python_process import run_python
from random_matrices import labeled
from spdmetric.cli import main
from spdmetric.cli.options import make_folder
from spdmetric.io import atomic
from spdmetric.io.atomic import atomic_file, write_atomically


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "a.bin"
    with atomic_file(path) as file:
        file.write(b"half")
        assert not path.exists()
        file.write(b" and half")
    assert path.read_bytes() == b"half and half"
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    write_atomically(path, "old")
    with pytest.raises(ValueError, match="closed"), atomic_file(path) as file:
        file.close()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "a.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_permissions_are_kept_and_new_files_have_the_usual_ones(tmp_path):
    path, new = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_text("old")
    path.chmod(0o640)
    write_atomically(path, "new")
    assert path.stat().st_mode & 0o777 == 0o640
    (tmp_path / "c.txt").write_text("")
    write_atomically(new, "x")
    assert new.stat().st_mode == (tmp_path / "c.txt").stat().st_mode


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent.*cannot be written"):
        write_atomically(tmp_path / "absent" / "a.txt", "x")


def test_a_full_disk_says_so(tmp_path):
    full = pytest.raises(OSError, match=r"a\.txt could not be written to its end \(No space left")
    with full, atomic_file(tmp_path / "a.txt"):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_what_stdout_is_connected_to_is_written_through():
    """The resolved name of a pipe, /proc/1/fd/pipe:[2], is that of no file."""
    code = "from spdmetric.io.atomic import write_atomically; write_atomically('/dev/stdout', 'through')"
    assert run_python(code).stdout == "through"


def test_a_link_to_itself_and_a_folder_are_refused_and_left(tmp_path):
    loop, folder = tmp_path / "loop.npz", tmp_path / "folder.npz"
    loop.symlink_to(loop)
    folder.mkdir()
    for path in (loop, folder):
        with pytest.raises(OSError, match=rf"{path.name} cannot be written"):
            write_atomically(path, "x")
    assert loop.is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder.npz", "loop.npz"]


def test_the_temporary_file_cannot_be_foreseen_and_is_not_shared(tmp_path):
    """Another name each time, made by nobody else, and no more open than the file that it replaces."""
    path, names = tmp_path / "a.txt", []
    path.write_text("secret")
    path.chmod(0o600)
    for _ in range(2):
        with atomic_file(path) as file:
            part = next(p for p in tmp_path.iterdir() if p != path)
            assert part.stat().st_mode & 0o777 == 0o600
            names.append(part.name)
            file.write(b"x")
    assert len(set(names)) == 2
    assert all(len(name) > len("..part") + 12 for name in names)


def test_a_taken_temporary_name_is_an_error_not_a_target(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "token_hex", lambda n: "known")
    victim = tmp_path / "victim"
    victim.write_text("old")
    (tmp_path / ".known.part").symlink_to(victim)
    with pytest.raises(FileExistsError, match="cannot be written"):
        write_atomically(tmp_path / "a.txt", "x")
    assert victim.read_text() == "old"


def test_long_names(tmp_path):
    for name in ("a" * 250, "漢" * 80 + ".csv"):
        write_atomically(tmp_path / name, "x")
        assert (tmp_path / name).read_text() == "x"


def test_another_name_of_a_file_keeps_the_old_content(tmp_path):
    """What is replaced is the name: a second hard link stays with what it had."""
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_text("old")
    os.link(path, other)
    write_atomically(path, "new")
    assert (path.read_text(), other.read_text()) == ("new", "old")


# -- the commands -------------------------------------------------------------------------


@pytest.fixture
def trained(rng, tmp_path):
    X, y = labeled(rng, 12, 3)
    np.savez(tmp_path / "train.npz", X=X, y=y)
    return tmp_path / "train.npz"


FIT = ("--radius", "0", "--rank", "full")


def test_fit_through_a_link_and_a_pipe(trained, tmp_path):
    (tmp_path / "link.skops").symlink_to(tmp_path / "real.skops")
    assert main(["fit", str(trained), "-o", str(tmp_path / "link.skops"), *FIT]) == 0
    assert (tmp_path / "link.skops").is_symlink()
    os.mkfifo(tmp_path / "pipe.skops")
    seen: list[bytes] = []
    reader = threading.Thread(target=lambda: seen.append((tmp_path / "pipe.skops").read_bytes()), daemon=True)
    reader.start()
    assert main(["fit", str(trained), "-o", str(tmp_path / "pipe.skops"), *FIT]) == 0
    reader.join(5)
    assert (tmp_path / "pipe.skops").is_fifo()
    (tmp_path / "copy.skops").write_bytes(seen[0])
    spdmetric.load(tmp_path / "copy.skops")


def test_an_output_that_is_an_input_is_refused(trained, tmp_path, capsys):
    before = trained.read_bytes()
    (tmp_path / "link.skops").symlink_to(trained)
    os.link(trained, tmp_path / "hard.skops")
    for name in ("link.skops", "hard.skops"):
        assert main(["fit", str(trained), "-o", str(tmp_path / name), *FIT]) == 2
        assert "would replace" in capsys.readouterr().err
    assert trained.read_bytes() == before


def test_looking_whether_a_folder_can_be_written_follows_no_link(tmp_path):
    """The name of the file that was tried could be foreseen, and a link put there."""
    victim = tmp_path / "victim"
    (tmp_path / f".probe.{os.getpid()}").symlink_to(victim)
    make_folder(tmp_path)
    assert not victim.exists()
    assert (tmp_path / f".probe.{os.getpid()}").is_symlink()
