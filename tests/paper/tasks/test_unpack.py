"""Unpacking: wanted files only, archives in archives, nothing outside the folder."""

from __future__ import annotations

import contextlib
import io
import os
import random
import zipfile
from pathlib import Path

import pytest

from rdeepsense.errors import InputError
from rdeepsense.paper.tasks import fetch
from rdeepsense.paper.tasks.fetch import unpack

LONG = bool(os.environ.get("RDEEPSENSE_LONG"))


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
    with pytest.raises(InputError, match=r"a.zip: cannot be unpacked: its member 'a.txt': "):
        unpack(archive, folder, ["a.txt"])
    archive.write_bytes(zipped(**{"in.zip": bytes(content)}))
    with pytest.raises(InputError, match=r"unpacked: its member 'in.zip/a.txt': "):
        unpack(archive, folder, ["a.txt"])
    archive.write_bytes(zipped(**{"in.zip": b"no archive"}))
    with pytest.raises(InputError, match=r"unpacked: its member 'in.zip': File is not a zip"):
        unpack(archive, folder, ["a.txt"])
    archive.write_bytes(b"<html>not found</html>")
    with pytest.raises(InputError, match="a.zip: cannot be unpacked"):
        unpack(archive, folder, ["a.txt"])
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_any_changed_byte_ends_well(tmp_path: Path, folder: Path, method: int) -> None:
    buffer, good = io.BytesIO(), b"good and bad " * 9
    with zipfile.ZipFile(buffer, "w", method) as made:
        made.writestr("a.txt", good)
    archive, sound, draw = tmp_path / "a.zip", buffer.getvalue(), random.Random(0)
    for _ in range(5_000 if LONG else 150):
        content = bytearray(sound)
        content[draw.randrange(len(content))] ^= draw.randrange(1, 256)
        archive.write_bytes(content)
        found: list[Path] = []
        with contextlib.suppress(InputError):
            found = unpack(archive, folder, ["a.txt"])
        for path in found:
            assert path.read_bytes() == good
            path.unlink()
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["x" * 260 + ".txt", "", ".", "./.", "x/."])
def test_names_that_no_file_has_are_refused(tmp_path: Path, folder: Path, name: str) -> None:
    archive = tmp_path / "a.zip"
    content = zipped(**{"a.txt": b"good", name or "EMPTY": b"evil"})
    archive.write_bytes(content.replace(b"EMPTY", b"\0MPTY"))  # a name ends at a zero
    with pytest.raises(InputError, match=f"its member '{name}' has no name that a file could have"):
        unpack(archive, folder, ["a.txt"])
    archive.write_bytes(zipped(**{"in.zip": archive.read_bytes()}))
    with pytest.raises(InputError, match=f"its member 'in.zip/{name}' has no name"):
        unpack(archive, folder, ["a.txt"])
    assert list(folder.iterdir()) == []


def test_folders_are_passed_over_and_refused_outside(tmp_path: Path, folder: Path) -> None:
    archive = tmp_path / "a.zip"
    archive.write_bytes(zipped(**{"./": b"", "x/": b"", "x/a.txt": b"good"}))
    assert unpack(archive, folder, ["a.txt"]) == [folder / "a.txt"]
    archive.write_bytes(zipped(**{"../x/": b""}))
    with pytest.raises(InputError, match="leads out of the folder"):
        unpack(archive, folder, ["a.txt"])


@pytest.mark.parametrize("inside", [False, True])
def test_bombs_are_refused_before_they_are_written(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    monkeypatch.setattr(fetch, "ALWAYS_BYTES", 1 << 16)
    bomb = zipped(**{"a.txt": bytes(1 << 22)})  # a thousand times its size
    archive = tmp_path / "a.zip"
    archive.write_bytes(zipped(**{"in.zip": bomb}) if inside else bomb)
    place = "in.zip/a.txt" if inside else "a.txt"
    with pytest.raises(InputError, match=rf"'{place}' brings .* to 4,\d+,\d+ bytes; at most \d+,"):
        unpack(archive, folder, ["a.txt"])
    assert list(folder.iterdir()) == []
    assert unpack(archive, folder, ["b.txt"]) == []  # what is not wanted is not unpacked
    monkeypatch.setattr(fetch, "ALWAYS_BYTES", 1 << 23)
    assert unpack(archive, folder, ["a.txt"])[0].stat().st_size == 1 << 22


def test_the_bytes_of_all_members_count(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "a.zip"
    archive.write_bytes(zipped(**{f"{n}.txt": bytes(100) for n in range(3)}))
    monkeypatch.setattr(fetch, "MOST_BYTES", 300)
    assert len(unpack(archive, folder, ["*.txt"])) == 3
    monkeypatch.setattr(fetch, "MOST_BYTES", 299)
    with pytest.raises(InputError, match=r"'2.txt' brings .* 300 bytes; at most 299 are accepted"):
        unpack(archive, folder, ["*.txt"])


def test_archives_in_archives_have_an_end(tmp_path: Path, folder: Path) -> None:
    archive, content = tmp_path / "a.zip", zipped(**{"a.txt": b"good"})
    for depth in range(1, 40):
        content = zipped(**{"in.zip": content})
        archive.write_bytes(content)
        if depth <= fetch.MOST_DEPTH:
            assert unpack(archive, folder, ["a.txt"])[0].read_bytes() == b"good"
            (folder / "a.txt").unlink()
        else:
            with pytest.raises(InputError, match="more than 3 archives inside one another"):
                unpack(archive, folder, ["a.txt"])
    empty = zipped()
    archive.write_bytes(zipped(**{f"{n}.zip": empty for n in range(fetch.MOST_ARCHIVES + 1)}))
    with pytest.raises(InputError, match="'100.zip' is one of more than 100 archives inside it"):
        unpack(archive, folder, ["a.txt"])
    assert list(folder.iterdir()) == []


def test_encrypted_members_are_refused(tmp_path: Path, folder: Path) -> None:
    content = bytearray(zipped(**{"a.txt": b"good"}))
    content[6] |= 1  # the flag in front of the member, and in the directory at the end
    content[content.index(b"PK\1\2") + 8] |= 1
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(InputError, match="its member 'a.txt': .* is encrypted"):
        unpack(tmp_path / "a.zip", folder, ["a.txt"])
