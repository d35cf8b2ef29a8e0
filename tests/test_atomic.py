"""Files appear whole or not at all, links stay links, and pipes stay pipes."""

from __future__ import annotations

import os
import threading

import pytest

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


def test_a_pipe_is_written_through(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    seen: list[bytes] = []
    reader = threading.Thread(target=lambda: seen.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_atomically(pipe, "through")
    reader.join(5)
    assert seen == [b"through"]
    assert pipe.is_fifo()


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
