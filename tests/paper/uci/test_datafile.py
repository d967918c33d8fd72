"""The npz layout: read as documented, refused by name and reason."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rdeepsense.errors import InputError
from rdeepsense.paper.uci import find, load


def test_layout(tmp_path: Path) -> None:
    is_test = np.zeros((2, 21), dtype=bool)
    is_test[0, [0, 20]] = is_test[1, 7] = True
    x, y = np.arange(42.0).reshape(21, 2), np.arange(21)
    np.savez(tmp_path / "a.npz", x=x, y=y, test_mask=np.packbits(is_test, axis=1))
    data = load(tmp_path / "a.npz")
    assert (data.name, data.splits) == ("a", 2)
    np.testing.assert_array_equal(data.test, is_test)
    np.testing.assert_array_equal(data.x, x)
    np.savez(tmp_path / "b.npz", x=x, y=y + 1, test_mask=np.packbits(is_test, axis=1))
    assert load(tmp_path / "b.npz").digest != data.digest


def test_names(data: Path) -> None:
    assert [path.stem for path in find(data)] == ["wine-small", "yacht"]
    assert [path.stem for path in find(data, ["Yacht", "wine"])] == ["yacht", "wine-small"]
    with pytest.raises(InputError, match="'kin8nm' is not there; there are wine-small, yacht"):
        find(data, ["kin8nm"])
    (data / "wine-large.npz").write_bytes(b"")
    with pytest.raises(InputError, match="'wine' begins several names"):
        find(data, ["wine"])
    with pytest.raises(InputError, match="no such folder"):
        find(data / "nowhere")
    (data / "empty").mkdir()
    with pytest.raises(InputError, match=r"has no .npz file"):
        find(data / "empty")


GOOD = {"x": np.ones((20, 2)), "y": np.arange(20.0), "test_mask": np.full((1, 3), 16, np.uint8)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "has no array 'y'"),
        ({"x": np.ones(20)}, r"x has shape \(20,\)"),
        ({"x": np.full((20, 2), "a")}, "x has shape .* type <U1"),
        ({"y": np.arange(19.0)}, "x has 20 rows, y has 19"),
        ({"y": np.full(20, np.nan)}, "y contains NaN"),
        ({"test_mask": np.ones((1, 2), np.uint8)}, r"needed are \(splits, 3\) packed bits"),
        ({"test_mask": np.zeros((1, 3), np.uint8)}, "split 0 has 0 test rows of 20"),
        ({"test_mask": np.full((1, 3), 255, np.uint8)}, "split 0 has 20 test rows of 20"),
        ({"y": np.array([{}] * 20, dtype=object)}, "no readable .npz file of plain arrays"),
    ],
)
def test_refusals_name_file_and_problem(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    arrays = {key: value for key, value in (GOOD | change).items() if value is not None}
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(InputError, match=f"bad.npz: .*{message}"):
        load(tmp_path / "bad.npz")


def test_no_npz_at_all(tmp_path: Path) -> None:
    for content in (b"", b"nonsense", b"PK\x03\x04broken"):
        (tmp_path / "bad.npz").write_bytes(content)
        with pytest.raises(InputError, match=r"bad.npz: is no readable .npz file"):
            load(tmp_path / "bad.npz")


def test_damage_and_growth_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, **GOOD)
    content = path.read_bytes()
    truth = load(path).digest
    for position in range(len(content)):
        path.write_bytes(
            content[:position] + bytes([content[position] ^ 0xFF]) + content[position + 1 :]
        )
        with contextlib.suppress(InputError):
            assert load(path).digest == truth  # a byte that nobody reads, as one of a date
    np.savez_compressed(path, **{**GOOD, "x": np.zeros((20, 10**6))})
    with pytest.raises(InputError, match=r"its arrays take 160,.* bytes; at most 16,777,216"):
        load(path)
