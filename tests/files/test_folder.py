"""A folder: all files old or all new, at one stroke; what is not ours is never lost."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

import pytest

from rdeepsense import _files
from rdeepsense._files import write_folder
from rdeepsense.errors import InputError

OLD, NEW = {"a": "old a", "b": "old b", "gone": "old"}, {"a": "new a", "b": "new b"}
OWN = ("a", "b", "gone")


def held(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.fixture(params=["at once", "by two renames"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "by two renames":
        monkeypatch.setattr(_files, "exchanged_at_once", lambda a, b: False)
    return str(request.param)


@pytest.mark.usefixtures("way")
def test_a_folder_is_replaced_as_one(tmp_path: Path) -> None:
    folder = tmp_path / "firmware"
    write_folder(folder, OLD, OWN)
    assert held(folder) == OLD
    folder.chmod(0o750)
    write_folder(folder, NEW, OWN)
    assert held(folder) == NEW, "a file of the old export alone must go too"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750
    assert os.listdir(tmp_path) == ["firmware"]


@pytest.mark.usefixtures("way")
def test_folders_within_are_of_the_same_piece(tmp_path: Path) -> None:
    folder, own = tmp_path / "package", ("src/a", "src/deep/b", "c")
    write_folder(folder, {"src/a": "old", "src/deep/b": "old", "c": "old"}, own)
    assert (folder / "src/deep/b").read_text() == "old"
    write_folder(folder, {"src/a": "new"}, own)
    assert sorted(path.name for path in folder.rglob("*")) == ["a", "src"]
    for stranger in ("src/notes", "src/deep/notes", "c/notes"):
        write_folder(folder, {"src/a": "new"}, own)
        (folder / stranger).parent.mkdir(exist_ok=True)
        (folder / stranger).write_text("mine")
        with pytest.raises(InputError, match="holds '(notes|deep|c)', which is no part of an exp"):
            write_folder(folder, {"src/a": "newer"}, own if stranger != "c/notes" else own[:2])
        assert (folder / stranger).read_text() == "mine"
        assert (folder / "src/a").read_text() == "new"
        (folder / stranger).unlink()
    (tmp_path / "elsewhere").mkdir()
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "src").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="holds 'src'"):
        write_folder(folder, {"src/a": "newer"}, own)


def test_this_system_exchanges_at_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not _files.exchanged_at_once(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this file system cannot exchange two names")
    assert os.listdir(tmp_path / "a") == ["b"]
    assert os.listdir(tmp_path / "b") == ["a"]
    with pytest.raises(FileNotFoundError):
        _files.exchanged_at_once(tmp_path / "a", tmp_path / "nowhere")


@pytest.mark.usefixtures("way")
def test_a_file_that_comes_in_between_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "firmware"
    write_folder(folder, OLD, OWN)
    copymode = _files.shutil.copymode

    def slip_in(*args: Path) -> None:  # after the first look
        copymode(*args)
        (folder / "notes").write_text("mine")

    monkeypatch.setattr(_files.shutil, "copymode", slip_in)
    with pytest.raises(InputError, match="firmware: holds 'notes', which is no part of an export"):
        write_folder(folder, NEW, OWN)
    assert held(folder) == {**OLD, "notes": "mine"}
    assert os.listdir(tmp_path) == ["firmware"]


@pytest.mark.usefixtures("way")
def test_a_link_to_a_folder_stays(tmp_path: Path) -> None:
    write_folder(tmp_path / "real", OLD, OWN)
    (tmp_path / "link").symlink_to("real")
    write_folder(tmp_path / "link", NEW, OWN)
    assert (tmp_path / "link").is_symlink()
    assert held(tmp_path / "real") == NEW
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError(errno.ENOSPC, "No space left")])
@pytest.mark.parametrize("nth", range(1, 7))
def test_stopped_at_any_call_all_files_are_old_or_all_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: BaseException, nth: int
) -> None:
    """fsync of two files, of the folder; two of the three renames; fsync of the parent."""
    folder = tmp_path / "firmware"
    write_folder(folder, OLD, OWN)
    monkeypatch.setattr(_files, "exchanged_at_once", lambda a, b: False)
    calls = []

    def counted(name: str):
        call = getattr(os, name)

        def run(*args: object) -> object:
            calls.append(name)
            if len(calls) == nth:
                raise stop
            return call(*args)

        return run

    for name in ("fsync", "rename"):
        monkeypatch.setattr(os, name, counted(name))
    with pytest.raises((KeyboardInterrupt, OSError)) as caught:
        write_folder(folder, NEW, OWN)
    if isinstance(stop, OSError):
        assert caught.value.filename == str(folder)
    assert held(folder) in (OLD, NEW)
    assert held(folder) == OLD or nth == 6
    monkeypatch.undo()
    write_folder(folder, NEW, OWN)
    assert held(folder) == NEW
    assert os.listdir(tmp_path) == ["firmware"]
