"""Rows a second of `rdeepsense predict FOLDER`, beside a plain torch loop and ONNX Runtime.

    python benchmarks/batch_predict.py [--rows 20000000] [--model FILE] [--rounds 3]

Simulated rows of 12 inputs in float32, in Parquet files of a million. Each way is a process of its
own with two threads, all of them by turns; a loop reads batches of 65,536 rows with pyarrow, runs
the network in float32, and writes mean, std, low and high with pyarrow as `predict` does. Seconds
are those of the whole process, its start included, and beside them without what a process for a
single file takes. Where other programs share the machine, CPU seconds say more than either.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from processes import Measured, measured

INPUTS, FILE, BATCH, THREADS = 12, 1_000_000, 65_536, 2
NAMES = [f"s{k}" for k in range(INPUTS)]
WAYS = ("rdeepsense", "torch", "onnxruntime")
LEVEL = 0.05  # of the interval's low end


def write_rows(folder: Path, rows: int) -> None:
    folder.mkdir()
    for number, first in enumerate(range(0, rows, FILE)):
        rng = np.random.default_rng(number)
        X = rng.standard_normal((min(FILE, rows - first), INPUTS), dtype=np.float32)
        table = pa.table({name: X[:, k] for k, name in enumerate(NAMES)})
        pq.write_table(table, folder / f"{number:04}.parquet", row_group_size=250_000)


def write_model(path: Path) -> None:
    import polars as pl

    import rdeepsense as rds

    rng = np.random.default_rng(99)
    X = rng.standard_normal((20_000, INPUTS))
    y = 2 * np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    y += 0.3 * rng.standard_normal(len(X)) * (1 + np.abs(X[:, 3]))
    model = rds.RDeepSenseRegressor(effort="quick", random_state=0, verbose=False)
    model.fit(pl.DataFrame(X, NAMES), pl.Series("y", y)).save(path)


Numbers = Callable[[np.ndarray[Any, Any]], tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]


def torch_numbers(path: Path) -> tuple[Numbers, float]:
    """Return what gives mean and std of rows, in float32, and the factor of the low end."""
    import torch

    import rdeepsense as rds

    torch.set_num_threads(THREADS)
    fitted = rds.load(path).fitted_
    shift = torch.tensor(fitted.inputs.scaler.shift, dtype=torch.float32)
    per_scale = torch.tensor(1 / fitted.inputs.scaler.scale, dtype=torch.float32)
    network = fitted.network.eval()
    # What scale and calibration make of a standard deviation is one number.
    row = fitted.inputs.scaler.rows_at(np.zeros((1, INPUTS)))
    said = fitted.calibrated(row)
    with torch.inference_mode():
        raw = network(torch.zeros(1, INPUTS))
    unit = float(said.std[0] / raw.spread().sqrt()[0, 0])
    scale, centre = float(fitted.target_scaler.scale[0]), float(fitted.target_scaler.shift[0])
    factor = float((said.quantile(LEVEL) - said.mean)[0] / said.std[0])

    def numbers(X: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        with torch.inference_mode():
            found = network((torch.from_numpy(X) - shift) * per_scale)
            mean, std = found[0] * scale + centre, found.spread().sqrt() * unit
        return mean[:, 0].numpy(), std[:, 0].numpy()

    return numbers, factor


def onnx_numbers(path: Path) -> tuple[Numbers, float]:
    import onnxruntime

    beside = json.loads(path.with_suffix(".json").read_text())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(beside["onnx"], options)

    def numbers(X: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        mean, std = session.run(["mean", "std"], {"x": X})
        return mean[:, 0], std[:, 0]

    return numbers, beside["factor"]


def prepare_onnx(path: Path) -> None:
    """Export once, so that the process that is measured needs no torch."""
    import rdeepsense as rds

    model = rds.load(path)
    onnx = path.with_suffix(".onnx")
    rds.export(model, onnx, to="onnx")
    fitted = model.fitted_
    said = fitted.calibrated(fitted.inputs.scaler.rows_at(np.zeros((1, INPUTS))))
    factor = float((said.quantile(LEVEL) - said.mean)[0] / said.std[0])
    path.with_suffix(".json").write_text(json.dumps({"onnx": str(onnx), "factor": factor}))


def batches(file: Path) -> Iterator[np.ndarray[Any, Any]]:
    with pq.ParquetFile(file) as opened:
        for batch in opened.iter_batches(BATCH):
            X = np.empty((batch.num_rows, INPUTS), np.float32)
            for k, name in enumerate(NAMES):
                X[:, k] = batch.column(name).to_numpy()
            yield X


def loop(way: str, model: Path, source: Path, target: Path) -> None:
    """Predict by a plain loop; called in a process of its own."""
    numbers, factor = (torch_numbers if way == "torch" else onnx_numbers)(model)
    target.mkdir()
    for file in sorted(source.glob("*.parquet")):
        writer = None
        for X in batches(file):
            mean, std = numbers(X)
            half = np.float32(-factor) * std
            table = pa.table(
                {"mean_y": mean, "std_y": std, "low_y": mean - half, "high_y": mean + half}
            )
            if writer is None:
                writer = pq.ParquetWriter(target / file.name, table.schema, use_dictionary=False)
            writer.write_table(table)
        assert writer is not None
        writer.close()


def command(way: str, model: Path, source: Path, target: Path) -> list[str]:
    if way == "rdeepsense":
        own = [
            "-m",
            "rdeepsense",
            "predict",
            model,
            source,
            "-o",
            target,
            "--with",
            "none",
            "--quiet",
        ]
    else:
        own = [__file__, "--loop", way, model, source, target]
    return [sys.executable, *map(str, own)]


def apart(folder: Path, ways: tuple[str, ...]) -> dict[str, float]:
    """Return how far the answers of each way are from torch's, in stds."""
    tables = {way: pq.read_table(folder / way / "0000.parquet") for way in ways}
    wanted, std = tables["torch"], tables["torch"].column(1).to_numpy()
    return {
        way: max(
            float(np.max(np.abs(table.column(k).to_numpy() - wanted.column(k).to_numpy()) / std))
            for k in range(wanted.num_columns)
        )
        for way, table in tables.items()
    }


def shares(model: Path, source: Path) -> dict[str, float]:
    """Time the parts of `predict` one after the other, in one thread, on the first file."""
    import io

    from rdeepsense.predict.columns import OutputColumns
    from rdeepsense.predict.folder import ParquetSink, as_table, batches_of, rows_of
    from rdeepsense.predict.plan import Preparation

    plan = Preparation(str(model), OutputColumns(further=()), "auto", 10**9).plan()
    answers, sink = plan.answers(), ParquetSink(io.BytesIO())
    seconds = {"reading": 0.0, "rows": 0.0, "arithmetic": 0.0, "writing": 0.0}
    with pq.ParquetFile(sorted(source.glob("*.parquet"))[0], pre_buffer=False) as file:
        read = batches_of(file, 32_768, NAMES)
        while True:
            marks = [time.perf_counter()]
            table = next(read, None)
            if table is None:
                break
            marks.append(time.perf_counter())
            X = rows_of(table, NAMES, plan.known)
            marks.append(time.perf_counter())
            answer = answers.of(X)
            marks.append(time.perf_counter())
            sink.write(as_table(answer, {}))
            marks.append(time.perf_counter())
            for name, a, b in zip(seconds, marks, marks[1:], strict=False):
                seconds[name] += b - a
    rows = file.metadata.num_rows
    return {"runs": plan.said, **{name: 1e9 * one / rows for name, one in seconds.items()}}


def run_all(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    model = folder / "model.safetensors"
    if args.model is None:
        write_model(model)
    else:
        model.write_bytes(Path(args.model).read_bytes())
    prepare_onnx(model)
    write_rows(folder / "in", args.rows)
    write_rows(folder / "one", min(args.rows, 1_000))
    found: dict[str, list[tuple[Measured, Measured]]] = {way: [] for way in WAYS}
    for number in range(args.rounds):
        for way in WAYS:
            places = [folder / way, folder / f"{way}-one"]
            for place in places:
                subprocess.run(["rm", "-rf", place], check=True)
            # Of few rows C would not be thought of, and its start is what is to be known.
            few = ["--runner", "C"] if way == "rdeepsense" else []
            pair = (
                measured(command(way, model, folder / "in", places[0])),
                measured([*command(way, model, folder / "one", places[1]), *few]),
            )
            found[way].append(pair)
            print(
                f"{number} {way}: {pair[0]}; of {min(args.rows, 1_000)} rows {pair[1]}", flush=True
            )
    return {
        "rows": args.rows,
        "apart": apart(folder, WAYS),
        "nanoseconds of a row, in one thread": shares(model, folder / "in"),
        "ways": {way: _summary(pairs, args.rows) for way, pairs in found.items()},
    }


def _summary(pairs: list[tuple[Measured, Measured]], rows: int) -> dict[str, float]:
    median = statistics.median
    return {
        "rows a second": rows / median(whole.seconds for whole, _ in pairs),
        "rows a second after the start": rows
        / max(1e-9, median(whole.seconds - few.seconds for whole, few in pairs)),
        "CPU microseconds a row": 1e6 * median(whole.cpu - few.cpu for whole, few in pairs) / rows,
        "peak MiB of a process": max(whole.peak for whole, _ in pairs),
        "peak MiB of all together": max(whole.together for whole, _ in pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument(
        "--model", help="a model of the inputs s0 to s11 and one target; else one is fitted"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loop", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.loop:
        way, model, source, target = args.loop
        loop(way, Path(model), Path(source), Path(target))
        return
    os.environ["OMP_NUM_THREADS"] = str(THREADS)
    with tempfile.TemporaryDirectory() as folder:
        found = run_all(args, Path(folder))
    print(json.dumps(found, indent=2))
    own = found["ways"]["rdeepsense"]
    for way in WAYS[1:]:
        for figure in ("rows a second", "rows a second after the start"):
            print(f"{figure}: {own[figure] / found['ways'][way][figure]:.2f} times {way}")
        cpu = "CPU microseconds a row"
        print(f"{cpu}: {way} takes {found['ways'][way][cpu] / own[cpu]:.2f} times as many")


if __name__ == "__main__":
    main()
