"""Result cells, data sets of benchmarks, archives and tables."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from fuzz.hostile_files import NUMBERS, VALUES, pick
from fuzz.subject import Edit, Rng, Subject

from rdeepsense.cli.columns import inputs_of, inspect
from rdeepsense.cli.reading.table import read_table
from rdeepsense.comparison.statistics import REGRESSION, MethodScore
from rdeepsense.comparison.trial import FamilyTrial
from rdeepsense.data.parquet import NUMBER, ParquetTable, numbers
from rdeepsense.errors import InputError
from rdeepsense.paper.cells import read_cell, write_cell
from rdeepsense.paper.tasks.fetch import unpack
from rdeepsense.paper.uci import load

KEY = {"dataset": "yacht", "split": 3, "arguments": {"hidden": [50], "alpha": "auto"}}
TRIAL = FamilyTrial(
    1.25, {"alpha": 0.3}, ["few"], {"SSP-1": MethodScore(dict.fromkeys(REGRESSION, 0.1), [3], 0.5)}
)


def subjects(folder: Path) -> list[Subject]:
    """Return all kinds of files with data in them."""
    return [_cell(folder), _data_set(), _archive(), *_tables()]


def _cell(folder: Path) -> Subject:
    write_cell(folder / "cell", KEY, TRIAL.to_json())
    right = (folder / "cell").read_bytes()

    def use(path: Path, rng: Rng) -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = read_cell(path, KEY, FamilyTrial.from_json)
        for aside in path.parent.glob(f"{path.name}.damaged*"):
            aside.unlink()
        if found is None:
            raise InputError("set aside")
        return json.dumps(found.to_json(), allow_nan=False)

    def edit(rng: Rng) -> tuple[str, bytes]:
        content = json.loads(right)
        del content["sha256"]
        owner, name = content, pick(rng, sorted(content))
        while isinstance(owner[name], dict) and owner[name] and rng.random() < 0.8:
            owner = owner[name]
            name = pick(rng, sorted(owner))
        owner[name] = pick(rng, VALUES)
        content |= {"sha256": hashlib.sha256(_plain(content)).hexdigest()}
        return f"{name} = {owner[name]!r:.40}", json.dumps(content).encode()

    return Subject("result cell", right, use, edit)


def _plain(content: object) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _data_set() -> Subject:
    rng = np.random.default_rng(0)
    test = np.zeros((2, 20), bool)
    test[:, :4] = True
    arrays = {
        "x": rng.normal(size=(20, 3)),
        "y": rng.normal(size=20),
        "test_mask": np.packbits(test, axis=1),
    }

    def use(path: Path, rng: Rng) -> object:
        found = load(path)
        assert np.isfinite(found.x).all()
        assert np.isfinite(found.y).all()
        assert found.test.shape == (found.splits, len(found.x)) == (found.splits, len(found.y))
        return found.digest

    def edit(rng: Rng) -> tuple[str, bytes]:
        changed = {name: np.array(array) for name, array in arrays.items()}
        name = pick(rng, sorted(changed))
        array = changed[name]
        way = int(rng.integers(6))
        if way == 0:
            changed[name] = np.full(array.shape, pick(rng, NUMBERS))
        elif way == 1:
            changed[name] = pick(rng, [array[:0], array[:-1], array.ravel(), array[None], array.T])
        elif way == 2:
            kinds = ["<f2", "<c16", "<U3", "<M8[s]", "|b1", ">i4", "<u8", "|S4", "<f16"]
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                changed[name] = array.astype(pick(rng, kinds), casting="unsafe")
        elif way == 3:
            del changed[name]
        elif way == 4:
            changed[name] = np.array([None, "a"], dtype=object)
        else:
            return f"header of {name}", _npz_with_header(changed, name, rng)
        return f"{name}: {way}", _npz(changed, compressed=rng.random() < 0.5)

    return Subject("npz data", _npz(arrays, compressed=True), use, edit, file_name="file.npz")


def _npz(arrays: dict[str, Any], compressed: bool) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def _npz_with_header(arrays: dict[str, Any], name: str, rng: Rng) -> bytes:
    """Write an .npz in which one array's own header says anything."""
    shapes = ["(200000000, 30)", "(1e9,)", "(-1,)", "('a',)", "(2**70,)", "()", "None", "(0, 3)"]
    kinds = ["'<f8'", "'<U200000000'", "'|O'", "'|V100000000'", "[('a', '<f8')]", "3", "'<f8' * 9"]
    text = (
        f"{{'descr': {pick(rng, kinds)}, 'fortran_order': False, 'shape': {pick(rng, shapes)}, }}"
    )
    text = text.ljust(117) + "\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for own, array in arrays.items():
            part = io.BytesIO()
            np.save(part, array)
            data = part.getvalue()
            if own == name:
                data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + data
            file.writestr(f"{own}.npy", data)
    return buffer.getvalue()


def _archive() -> Subject:
    inner = _zip({"deep.csv": b"a,b\n1,2\n" * 20})
    right = _zip({"data/one.csv": b"x,y\n1,2\n" * 50, "inner.zip": inner, "readme": b"no"})

    def use(path: Path, rng: Rng) -> object:
        with tempfile.TemporaryDirectory(dir=path.parent) as name:
            target = Path(name) / "into"
            target.mkdir()
            found = unpack(path, target, ["*.csv"])
            assert {own.name for own in target.iterdir()} == {own.name for own in found}
            assert [own.name for own in Path(name).iterdir()] == ["into"]
            return {own.name: own.read_bytes() for own in found}

    def edit(rng: Rng) -> tuple[str, bytes]:
        name = pick(rng, MEMBERS)
        way = int(rng.integers(3))
        if way == 0:
            return f"member {name!r:.40}", _zip({name: b"1", "a.csv": b"2"})
        if way == 1:
            nested = right
            for _ in range(int(rng.integers(1, 8))):
                nested = _zip({"n.zip": nested, name or "b.csv": b"x"})
            return "nested", nested
        return "large", _zip({"a.csv": bytes(int(rng.integers(1, 40)) << 20)})

    # A zip has no checksum of names: a member may lose the one by which it is wanted.
    return Subject("archive", right, use, edit, sealed=False)


MEMBERS = [
    "../x.csv", "/x.csv", ".", "a/.", "..", "C:\\x.csv", "\\\\a\\b.csv", "x.csv/", "a\0.csv",
    ".csv", "x" * 5_000 + ".csv", "\ud7ff.csv", "con.csv", "a/b/../c.csv", " ", "",
]  # fmt: skip


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        warnings.simplefilter("ignore")
        for name, data in files.items():
            file.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _tables() -> list[Subject]:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"a": rng.normal(size=30), "b": rng.integers(0, 9, 30), "c": ["x", "y", None] * 10}
    )
    parquet = io.BytesIO()
    frame.write_parquet(parquet)
    text = frame.write_csv().encode()

    def use(path: Path, rng: Rng) -> object:
        found = read_table(path)
        assert found.frame.height > 0
        columns = inspect(found.frame, [], comma_separated=found.comma_separated)
        numbers = inputs_of(columns.frame, columns.inputs, "mean", columns.categories)
        assert numbers.shape == (found.frame.height, len(columns.inputs))
        return None

    def stream(path: Path, rng: Rng) -> object:
        found = ParquetTable(path)
        names = [name for name, kind in found.columns.items() if kind == NUMBER]
        for part, group in enumerate(found.groups):
            read = found.read(part, names)
            assert all(len(numbers(read[name])) == group.rows for name in names)
        return None

    def edit(rng: Rng) -> tuple[str, bytes]:
        lines = text.decode().split("\n")
        words = ["", ",", '"', "nan", "inf", "1e999", "9" * 400, "\t", ";", "\r", "x" * 70_000, "ü"]
        for _ in range(int(rng.integers(1, 4))):
            lines[int(rng.integers(len(lines)))] = pick(rng, words) * int(rng.integers(1, 3))
        return "lines", "\n".join(lines).encode()

    def edit_parquet(rng: Rng) -> tuple[str, bytes]:
        buffer = io.BytesIO()
        pick(rng, COLUMNS)(frame).write_parquet(buffer)
        return "columns", buffer.getvalue()

    arrow, nested = io.BytesIO(), io.BytesIO()
    frame.write_ipc(arrow)
    frame.with_columns(
        pl.concat_list("c").alias("d"), pl.struct("a", "c").alias("e"), pl.col("c").cast(pl.Binary)
    ).with_columns(pl.Series("f", ["x", "y", None] * 10, pl.Categorical)).write_ipc(nested)
    commas = frame.write_csv(separator=";").replace(".", ",").encode("utf-16")
    others = {
        "CSV, UTF-16, decimal commas": commas,
        "CSV, gzip": gzip.compress(text, mtime=0),
        "CSV, zip": _zip({"t.csv": text}),
        "Arrow": arrow.getvalue(),
        "Arrow, nested": nested.getvalue(),
        "JSON lines": frame.write_ndjson().encode(),
    }
    return [
        *(Subject(f"table: {kind}", own, use, sealed=False) for kind, own in others.items()),
        Subject("table: CSV", text, use, edit, sealed=False, file_name="t.csv"),
        Subject("table: Parquet", parquet.getvalue(), use, edit_parquet, sealed=False),
        Subject("Parquet stream", parquet.getvalue(), stream, edit_parquet, sealed=False),
    ]


COLUMNS = [
    lambda frame: frame.with_columns(pl.concat_list("a", "b").alias("d")),
    lambda frame: frame.with_columns(pl.struct("a", "b").alias("d")),
    lambda frame: frame.with_columns(pl.duration(seconds="b").alias("d")),
    lambda frame: frame.with_columns(pl.col("c").cast(pl.Binary).alias("d")),
    lambda frame: frame.with_columns(pl.col("b").cast(pl.Decimal(20, 2)).alias("d")),
    lambda frame: frame.with_columns(pl.col("b").cast(pl.Datetime).alias("d")),
    lambda frame: frame.with_columns(pl.lit(None).alias("d")),
    lambda frame: frame.select(pl.lit(float("inf")).alias("a")),
    lambda frame: frame.head(0),
    lambda frame: frame.with_columns(pl.col("c").cast(pl.Categorical)),
    lambda frame: frame.select("c"),
]

__all__ = ["Edit", "subjects"]
