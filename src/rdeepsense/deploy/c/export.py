"""A fitted estimator as a folder of C99, checked before anything is written."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.c.header import header
from rdeepsense.deploy.c.measure import code_and_stack
from rdeepsense.deploy.c.readme import readme
from rdeepsense.deploy.c.selftest import selftest
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.fine_tune import check_dtype, improved
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.folded.runtime import TEXTS
from rdeepsense.deploy.networks import FloatNetwork, as_float16, as_float32, standardised
from rdeepsense.deploy.quality import check_change, quality
from rdeepsense.deploy.quantise import Int8Network, quantise
from rdeepsense.errors import InputError
from rdeepsense.progress import Progress

DTYPES = ("float32", "float16", "int8")
FILES = ("model.h", "model.c", "weights.c", "selftest.c", "README.md", "report.json")
SURE_SHARE = 0.9


@dataclass(frozen=True)
class Options:
    """How to export."""

    dtype: str = "float32"
    name: str = "model"
    max_nll_change: float = 0.02
    sure_share: float = SURE_SHARE  # of the rows that shall count as sure
    epistemic: str | None = None  # "laplace" adds what the model does not know of a row
    fine_tune: bool = False  # an int8 network whose NLL moves by more than the bound


def export_c99(
    estimator: Any,
    folder: str | os.PathLike[str],
    options: Options,
    rows: tuple[NDArray[Any], NDArray[Any]] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the C of a model; returns the report. `rows` (X, y) replace those in the model file."""
    check_folder(Path(folder))
    if options.fine_tune:
        check_dtype(options.dtype)
    X, y = estimator.fitted_.kept_rows if rows is None else rows
    folded = fold(estimator, options.epistemic)
    int8 = options.dtype == "int8"
    network: FloatNetwork | Int8Network
    most = options.max_nll_change
    tuned: dict[str, Any] = {}
    # In int8 half of the rows to calibrate on, the other half to judge by.
    if options.fine_tune:
        network, tuned = improved(estimator, folded, (X, y), most, progress)
    else:
        network = prepare(folded, options.dtype, X[::2] if int8 else X)
    judged = (X[1::2], y[1::2]) if int8 else (X, y)
    found = quality(estimator, folded, network, *judged) if len(judged[1]) else None
    if found is not None:
        check_change(found, most, options.dtype, options.fine_tune)
        found = {"rows_from": "model file" if rows is None else "--data", **found, **tuned}
    source = Source(folded, network, options.name, _sure(folded, network, X, options.sure_share))
    files = {
        "model.h": header(source),
        "model.c": source.code(),
        "weights.c": source.weights(),
        "selftest.c": selftest(source, X),
    }
    report = _report(source, options.dtype, files, found)
    files["README.md"] = readme(source, report)
    files["report.json"] = json.dumps(report, indent=2, allow_nan=False) + "\n"
    write_folder(Path(folder), files)
    return report


def prepare(folded: Folded, dtype: str, X: NDArray[Any]) -> FloatNetwork | Int8Network:
    """The network in the type it will be stored in."""
    if dtype == "float32":
        return as_float32(folded)
    if dtype == "float16":
        return as_float16(folded, X)
    if dtype == "int8":
        return quantise(folded, X, standardised(folded))
    raise InputError(f"--dtype {dtype!r} is unknown; accepted: {', '.join(DTYPES)}")


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds anything but an earlier export."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; give the name of a folder")
    strange = [p.name for p in folder.iterdir() if p.name not in FILES] if folder.exists() else []
    if strange:
        raise InputError(f"{folder}: holds {strange[0]!r}, which is no part of an export")
    if not folder.resolve().parent.is_dir():
        raise InputError(f"{folder}: there is no folder {folder.parent}; create it first")


def write_folder(folder: Path, files: dict[str, str]) -> None:
    """All files or none, but for a stop in the middle of the last few renames."""
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.resolve().parent))
    try:
        for name, text in files.items():
            (beside / name).write_text(text)
        folder.mkdir(exist_ok=True)
        for name in files:
            os.replace(beside / name, folder / name)
    finally:
        shutil.rmtree(beside)


def _sure(
    folded: Folded, network: Any, X: NDArray[Any], share: float
) -> NDArray[np.float64] | None:
    """The threshold that this share of the rows meets; of several outputs, all at once."""
    if not 0 < share < 1:
        raise InputError(f"--sure {share}: must lie between 0 and 1")
    if not len(X):
        return None
    predicted = folded.finish(network.raw(np.asarray(X)))
    if folded.is_classifier:
        return np.atleast_1d(np.quantile(predicted.max(1), 1 - share))
    typical = np.median(predicted[1], axis=0)
    threshold: NDArray[np.float64] = typical * np.quantile((predicted[1] / typical).max(1), share)
    return threshold


def _report(
    source: Source, dtype: str, files: dict[str, str], found: dict[str, Any] | None
) -> dict[str, Any]:
    folded = source.folded
    stored = [str(w.weight.dtype) for w in source.network.layers]
    layers = [
        {
            "inputs": w.weight.shape[1],
            "outputs": w.weight.shape[0],
            "multiply_adds": w.weight.size,
            "dtype": kind,
        }
        for w, kind in zip(folded.layers, stored, strict=True)
    ]
    measured = code_and_stack(files)
    epistemic = _epistemic(folded)
    return {
        "name": source.name,
        "dtype": dtype,
        "head": folded.head,
        "calibration": folded.calibration,
        "rdeepsense": folded.version,
        "model_sha256": folded.source,
        **{key: getattr(folded, key) for key in TEXTS},
        "classes": None if folded.classes is None else [str(c) for c in folded.classes],
        "missing": folded.missing,
        "layers": layers,
        "kept_float32": [k for k, kind in enumerate(stored) if kind != dtype],
        **({} if epistemic is None else {"epistemic": epistemic}),
        "multiply_adds": sum(w.weight.size for w in folded.layers)
        + (0 if epistemic is None else epistemic["multiply_adds"]),
        "bytes": {
            "tables_in_flash": sum(t.bytes() for t in source.tables),
            "code_in_flash": None if measured is None else measured["code"],
            "ram_scratch": source.scratch_bytes(),
            "stack": None if measured is None else measured["stack"],
            "measured_with": None if measured is None else measured["compiler"],
        },
        "quality": found,
        "sure": None if source.sure is None else [float(v) for v in source.sure],
    }


def _epistemic(folded: Folded) -> dict[str, Any] | None:
    """The matrix of the doubt: its upper triangle is stored, and its sums are squared."""
    if folded.doubt is None:
        return None
    rows = len(folded.doubt.root)
    numbers = rows * (rows + 1) // 2
    return {
        "method": "laplace",
        "matrix": rows,
        "bytes_in_flash": 4 * (numbers + 2 * folded.outputs),
        "multiply_adds": numbers + rows,
    }
