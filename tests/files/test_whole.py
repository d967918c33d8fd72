"""One file: old or new, never half; links kept, errors that name it, nothing left over."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from rdeepsense._files import replacing, write_whole


def test_content_and_permissions_as_the_mask_says(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        write_whole(tmp_path / "text", "é\n")
        write_whole(str(tmp_path / "bytes"), b"\x00\xff")
    finally:
        os.umask(mask)
    assert (tmp_path / "text").read_bytes() == "é\n".encode()
    assert (tmp_path / "bytes").read_bytes() == b"\x00\xff"
    assert stat.S_IMODE((tmp_path / "text").stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["bytes", "text"]


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "model").write_text("old")
    (tmp_path / "first").symlink_to("store/model")
    (tmp_path / "second").symlink_to(tmp_path / "first")
    (tmp_path / "dangling").symlink_to("store/other")
    write_whole(tmp_path / "second", "new")
    write_whole(tmp_path / "dangling", "other")
    assert all((tmp_path / name).is_symlink() for name in ("first", "second", "dangling"))
    assert {p.name: p.read_text() for p in store.iterdir()} == {"model": "new", "other": "other"}
    assert sorted(os.listdir(tmp_path)) == ["dangling", "first", "second", "store"]


def test_a_link_to_itself_is_an_error_and_stays(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match="loop") as caught:
        write_whole(loop, "x")
    assert (caught.value.errno, caught.value.filename) == (errno.ELOOP, str(loop))
    assert loop.is_symlink()


def test_devices_and_pipes_are_written_to_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, "hello")
        assert os.read(reader, 10) == b"hello"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_errors_of_the_system_name_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    path = tmp_path / "model"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="model") as caught:
        write_whole(path, "new")
    assert (caught.value.errno, caught.value.filename) == (code, str(path))
    assert os.listdir(tmp_path) == ["model"]
    assert path.read_text() == "old"


def test_a_missing_or_impossible_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path, kind in (
        (tmp_path / "nowhere" / "m", FileNotFoundError),
        (tmp_path / "folder", IsADirectoryError),
        (tmp_path / ("n" * 300), OSError),
    ):
        with pytest.raises(kind) as caught:
            write_whole(path, "x")
        assert caught.value.filename == str(path)
    assert os.listdir(tmp_path) == ["folder"]


def test_the_longest_name_that_a_file_system_takes(tmp_path: Path) -> None:
    for name in ("n" * 255, "é" * 127):
        write_whole(tmp_path / name, "x")
        assert (tmp_path / name).read_text() == "x"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ValueError])
def test_a_block_that_is_not_finished_changes_nothing(
    tmp_path: Path, stop: type[BaseException]
) -> None:
    path = tmp_path / "model"
    path.write_text("old")

    def half() -> None:
        with replacing(path) as file:
            file.write(b"half")
            raise stop

    with pytest.raises(stop):
        half()
    assert os.listdir(tmp_path) == ["model"]
    assert path.read_text() == "old"
