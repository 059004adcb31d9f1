"""A private folder can be removed whatever was made in it, and measured however it is hidden."""

from __future__ import annotations

import os
from pathlib import Path

from whet.sandbox import scratch


def test_a_folder_far_deeper_than_a_path_may_be_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    place = os.open(top, os.O_RDONLY)
    for _ in range(250):
        os.mkdir("a-folder-with-a-long-name", dir_fd=place)
        inner = os.open("a-folder-with-a-long-name", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
    scratch.remove(top)
    assert not top.exists()


def test_modes_and_odd_names_do_not_keep_a_folder(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "locked" / "inner" / "most").mkdir(parents=True)
    (top / ".moved-1").mkdir()
    (top / "locked" / ".moved-1").write_text("x")
    (top / "locked" / "inner").chmod(0)
    (top / "locked").chmod(0)
    scratch.remove(top)
    assert not top.exists()
    scratch.remove(top)


def test_a_link_is_removed_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o750)
    (outside / "kept.txt").write_text("kept")
    top = tmp_path / "top"
    (top / "folder").mkdir(parents=True)
    (top / "link").symlink_to(outside)
    (top / "folder" / "link").symlink_to(outside)
    scratch.remove(top)
    assert not top.exists()
    assert (outside / "kept.txt").read_text() == "kept"
    assert outside.stat().st_mode & 0o777 == 0o750


def test_what_is_held_counts_files_names_and_what_has_no_name(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "link").symlink_to("/usr")
    held = scratch.bytes_held(str(tmp_path), 1 << 30)
    assert 100_000 <= held <= 200_000
    with (tmp_path / "nameless").open("wb") as nameless:
        (tmp_path / "nameless").unlink()
        nameless.write(b"x" * 500_000)
        nameless.flush()
        assert scratch.bytes_held(str(tmp_path), 1 << 30) == held
        assert scratch.bytes_held(str(tmp_path), 1 << 30, [os.getpid()]) >= held + 500_000
    for number in range(50):
        (tmp_path / f"empty-{number}").touch()
    assert scratch.bytes_held(str(tmp_path), 1 << 30) >= held + 50 * 4096
    assert scratch.bytes_held(str(tmp_path), 10_000) < held
