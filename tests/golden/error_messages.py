"""The record of error messages: bad input at the command line, with exit codes, and in Python."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from golden.fits import MODELS
from golden.tables import table

import rdeepsense as rds
from rdeepsense.cli import main
from rdeepsense.modelfile import tensors as model_file

# Models of the record of fits by the names that they have here.
MODEL_FILES = {
    "tank": "gaussian",
    "gait": "classes-conformal",
    "sampled": "mcdrop",
    "files": "files",
}
NAMES = ("x0", "x1", "x2", "x3", "y")

COMMANDS = """
rdeepsense unknown
rdeepsense fit
rdeepsense fit data.csv
rdeepsense fit data.csv --target y --speed 3
rdeepsense fit data.csv --target y --epochs 0
rdeepsense fit data.csv --target y --hidden 64,x
rdeepsense fit data.csv --target y --alpha 1
rdeepsense fit data.csv --target y --drop-prob 1.5
rdeepsense fit data.csv --target y --calibrate best
rdeepsense fit data.csv --target y --test-fraction 1
rdeepsense fit data.csv --target y --budget flash=many
rdeepsense fit data.csv --target y --window 1s
rdeepsense fit data.csv --target y --groups y
rdeepsense fit data.csv --target y -o nowhere/new.safetensors
rdeepsense fit data.csv --target y -o data.csv
rdeepsense fit data.csv --target y -o tank.safetensors
rdeepsense fit data.csv --target speed
rdeepsense fit missing.csv --target y
rdeepsense fit empty.csv --target y
rdeepsense fit ragged.csv --target y
rdeepsense fit twice.csv --target y
rdeepsense fit few.csv --target y
rdeepsense fit holes.csv --target y
rdeepsense fit infinite.csv --target y
rdeepsense fit words.csv --target y --task regression
rdeepsense fit constant.csv --target y
rdeepsense fit tank.safetensors --target y
rdeepsense predict missing.safetensors data.csv
rdeepsense predict data.csv data.csv
rdeepsense predict damaged.safetensors data.csv
rdeepsense predict cut.safetensors data.csv
rdeepsense predict tank.safetensors narrow.csv
rdeepsense predict files.safetensors text.csv
rdeepsense predict tank.safetensors data.csv --coverage 1
rdeepsense predict tank.safetensors data.csv -o out.xlsx
rdeepsense predict tank.safetensors data.csv --with speed
rdeepsense evaluate tank.safetensors narrow.csv
rdeepsense evaluate tank.safetensors data.csv --target speed
rdeepsense export tank.safetensors --to rust -o out
rdeepsense export tank.safetensors --to onnx -o out.onnx --dtype float16
rdeepsense export tank.safetensors --to onnx -o out.onnx --live
rdeepsense export tank.safetensors --to c99 -o taken
rdeepsense export sampled.safetensors --to c99 -o out
rdeepsense adapt gait.safetensors words.csv --target y -o out.safetensors
rdeepsense replay tank.safetensors data.csv --label-every 0
rdeepsense profile tank.safetensors --against rust
rdeepsense inspect data.csv
rdeepsense compare data.csv --target y --methods Magic
rdeepsense reproduce Weather
rdeepsense data fetch Weather
rdeepsense benchmark uci --data nowhere
"""

EXPRESSIONS = """
rds.RDeepSenseRegressor(hidden=(0,)).fit(X, y)
rds.RDeepSenseRegressor(hidden="big").fit(X, y)
rds.RDeepSenseRegressor(alpha=1.0).fit(X, y)
rds.RDeepSenseRegressor(drop_prob=(0.1, 0.2, 0.3), hidden=(8,)).fit(X, y)
rds.RDeepSenseRegressor(likelihood="cauchy").fit(X, y)
rds.RDeepSenseRegressor(calibrate="best").fit(X, y)
rds.RDeepSenseRegressor(effort="some").fit(X, y)
rds.RDeepSenseRegressor(missing="zero").fit(X, y)
rds.RDeepSenseRegressor(device="tpu").fit(X, y)
rds.RDeepSenseRegressor(network="Dense").fit(X, y)
rds.RDeepSenseRegressor(categorical=["color"]).fit(X, y)
rds.RDeepSenseRegressor().fit(X[:30], y)
rds.RDeepSenseRegressor().fit(X, np.where(y > 50, np.nan, y))
rds.RDeepSenseRegressor().fit(np.where(X > 0, np.inf, X), y)
rds.RDeepSenseRegressor().fit(X, np.ones(len(y)))
rds.RDeepSenseRegressor().fit(X, y, sample_weight=-np.ones(len(y)))
rds.RDeepSenseRegressor().fit(X, y, groups=np.zeros(3))
rds.RDeepSenseRegressor().fit(X, y, validation=(X[:, :2], y))
rds.RDeepSenseRegressor().fit("nowhere", "y")
rds.GPRegressor(method="exactly").fit(X, y)
rds.MCDropRegressor(samples=0).fit(X, y)
rds.SSPRegressor(members=0).fit(X, y)
rds.RDeepSenseRegressor().predict(X)
tank.predict(X[:, :2])
tank.predict_dist(X, samples=0)
tank.predict_dist(X, epistemic="magic")
tank.predict_interval(X, coverage=90)
tank.predict_interval(X, method="conformal")
tank.epistemic_std(X, method="magic")
tank.novelty(X)
tank.evaluate(X, y[:5])
tank.live(coverage=2)
tank.describe(target_units=["m", "s"])
rds.load("missing.safetensors")
rds.load("damaged.safetensors")
rds.load("data.csv")
rds.load("newer.safetensors")
rds.deploy.load("tank.safetensors")
rds.export(tank, "out", to="rust")
rds.export(tank, "out", to="c99", dtype="int4")
rds.export(tank, "out", to="onnx", live=True)
rds.export(sampled, "out", to="c99")
rds.windows({"t": X[:, 0], "a": y}, "t", {"s": ["b"]}, "1s")
rds.windows({"t": np.arange(100.0), "a": y[:100]}, "t", {"s": ["a"]}, "one second")
rds.Stream(tank)
rds.convert(torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Softplus()))
rds.wrap(torch.nn.Linear(4, 1), X, y, method="magic")
rds.Gaussian([0.0], [-1.0])
rds.StudentT([0.0], [1.0], [-1.0])
rds.Categorical([[0.5, 0.6]])
rds.metrics.nll(rds.Gaussian([0.0, 1.0], [1.0, 1.0]), [0.0])
rds.metrics.accuracy(rds.Gaussian([0.0], [1.0]), [0.0])
rds.Budget(flash="64 parsecs")
rds.ScoringRule(alpha=2.0)
rds.RejectOption(target_risk=0.1, target_coverage=0.9).fit(tank, X, y)
rds.networks.DeepSense(sensors=(3,), interval=0)
rds.compare(X, y, methods=["Magic"])
"""


def recorded() -> str:
    """Return each command with its exit code, and each expression, with what they say."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            _write_files()
            blocks = [_of_command(line) for line in COMMANDS.split("\n") if line]
            blocks += [_of_expression(line) for line in EXPRESSIONS.split("\n") if line]
        finally:
            os.chdir(before)
    return "\n".join(blocks)


def _write_files() -> None:
    """Write the tables and models that the commands and expressions name."""
    X, y = table(40)
    rows = [",".join(f"{value:g}" for value in row) for row in np.column_stack([X, y])]
    header = ",".join(NAMES)
    files = {
        "data.csv": [header, *rows],
        "empty.csv": [],
        "few.csv": [header, *rows[:3]],
        "ragged.csv": [header, *rows[:4], "1,2"],
        "twice.csv": ["x0,x0,y", "1,2,3"],
        "narrow.csv": ["x0,x1", *(f"{a:g},{b:g}" for a, b in X[:, :2])],
        "holes.csv": [header, *(row.rpartition(",")[0] + "," for row in rows)],
        "infinite.csv": [header, "inf,1,2,3,4", *rows],
        "text.csv": [header, *(f"word,{row.partition(',')[2]}" for row in rows)],
        "words.csv": [header, *(f"{row.rpartition(',')[0]},word" for row in rows)],
        "constant.csv": [header, *(f"{row.rpartition(',')[0]},1" for row in rows)],
    }
    for name, lines in files.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    for name, of in MODEL_FILES.items():
        shutil.copy(MODELS / f"{of}.safetensors", f"{name}.safetensors")
    header, tensors = model_file.read("tank.safetensors")
    with mock.patch.object(model_file, "FORMAT", 99):
        model_file.write("newer.safetensors", header, tensors)
    good = Path("tank.safetensors").read_bytes()
    Path("cut.safetensors").write_bytes(good[:-100])
    Path("damaged.safetensors").write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    Path("taken").mkdir()
    Path("taken/diary.txt").write_text("not ours\n")


def _of_command(line: str) -> str:
    said, code = io.StringIO(), 0
    plain = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    with (
        mock.patch.dict(os.environ, plain),
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        os.environ.pop("RDEEPSENSE_DEBUG", None)
        try:
            main(shlex.split(line)[1:])
        except SystemExit as end:
            code = int(end.code or 0)
    # How a command is called stands in the record of help texts.
    message = re.sub(r"\AUsage.* for help\.\n\n", "", said.getvalue(), flags=re.DOTALL)
    return _block(f"$ {line}", f"exit {code}\n{message}")


def _of_expression(line: str) -> str:
    X, y = table(40)
    names: dict[str, Any] = {"rds": rds, "np": np, "torch": torch, "X": X, "y": y}
    names |= {n: rds.load(f"{n}.safetensors") for n in ("tank", "sampled") if n in line}
    try:
        eval(line, names)
    except Exception as error:  # every kind is of interest
        return _block(f">>> {line}", f"{type(error).__name__}: {error}")
    return _block(f">>> {line}", "no error")


def _block(title: str, text: str) -> str:
    lines = [title, *(f"    {line}" for line in text.splitlines())]
    return "".join(f"{line.rstrip()}\n" for line in lines)
