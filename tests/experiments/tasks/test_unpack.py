"""Unpacking: wanted files only, archives in archives, nothing outside the folder."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from rdeepsense.errors import InputError
from rdeepsense.experiments.tasks.unpack import unpack


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def test_wanted_files_also_of_archives_inside(tmp_path: Path, folder: Path) -> None:
    inner = zipped(**{"exp/Phones_a.csv": b"phones", "__MACOSX/exp/._Phones_a.csv": b"no"})
    still = zipped(**{"still/Phones_a.csv": b"other"})
    archive = tmp_path / "a.zip"
    archive.write_bytes(zipped(**{"exp.zip": inner, "still.zip": still, "readme.txt": b"no"}))
    assert unpack(archive, folder, ["exp/Phones_*.csv"]) == [folder / "Phones_a.csv"]
    assert (folder / "Phones_a.csv").read_bytes() == b"phones"
    assert [path.name for path in folder.iterdir()] == ["Phones_a.csv"]


@pytest.mark.parametrize(
    "name", ["../a.txt", "/etc/a.txt", "x/../../a.txt", "..\\a.txt", "C:/a.txt"]
)
def test_paths_that_lead_out_are_refused(tmp_path: Path, folder: Path, name: str) -> None:
    archive = tmp_path / "a.zip"
    archive.write_bytes(zipped(**{"a.txt": b"good", name: b"evil"}))
    with pytest.raises(InputError, match=r"a.zip: its member .* leads out of the folder"):
        unpack(archive, folder, ["a.txt"])
    assert list(folder.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "out"]


def test_two_files_of_one_name_are_refused(tmp_path: Path, folder: Path) -> None:
    archive = tmp_path / "a.zip"
    archive.write_bytes(zipped(**{"x/a.txt": b"1", "y/a.txt": b"2"}))
    with pytest.raises(InputError, match="holds two files named a.txt"):
        unpack(archive, folder, ["a.txt"])


def test_damaged_archives_leave_nothing(tmp_path: Path, folder: Path) -> None:
    archive = tmp_path / "a.zip"
    content = bytearray(zipped(**{"a.txt": b"good " * 1000}))
    content[45] ^= 0xFF  # in the compressed data
    archive.write_bytes(content)
    with pytest.raises(InputError, match="a.zip: cannot be unpacked"):
        unpack(archive, folder, ["a.txt"])
    archive.write_bytes(b"<html>not found</html>")
    with pytest.raises(InputError, match="a.zip: cannot be unpacked"):
        unpack(archive, folder, ["a.txt"])
    assert list(folder.iterdir()) == []
