"""Fits of the command line, each in a child that can be stopped at any moment and called again.

The threads of polars do not outlive a fork: the parent itself must not use it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import rdeepsense.cli.app  # noqa: F401  here once, not in each child
from rdeepsense import load
from rdeepsense.cli import main
from rdeepsense.modelfile import tensors as model_file

OUTPUT, PARTIAL, STATE = "model.safetensors", "model.partial.safetensors", "run.ckpt"
KEPT = re.compile(rf"{OUTPUT}|{re.escape(PARTIAL)}|{STATE}([.-]\d+)*|said")
COMMANDS = {
    "regression": ("table.csv", "--quick", "--epochs", "60"),
    "classes": ("classes.csv", "--quick", "--epochs", "60"),
    "auto": ("table.csv", "--hidden", "64,64", "--drop-prob", "0.05", "--epochs", "6"),
    "streamed": ("folder", "--quick", "--epochs", "2", "--memory", "1"),
}


def write_tables(folder: Path) -> None:
    """Write the tables that the commands name."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30_000, 4))
    y = np.sin(2 * x[:, 0]) + 0.3 * x[:, 1] * rng.normal(size=len(x))
    frame = pl.DataFrame({**{f"x{i}": column for i, column in enumerate(x.T)}, "y": y})
    frame.head(600).write_csv(folder / "table.csv")
    classes = pl.when(pl.col("y") > 0).then(pl.lit("high")).otherwise(pl.lit("low"))
    frame.head(600).with_columns(classes.alias("y")).write_csv(folder / "classes.csv")
    (folder / "folder").mkdir()
    for part in range(3):
        frame[part::3].write_parquet(folder / "folder" / f"{part}.parquet", row_group_size=1_000)


@dataclass
class Fit:
    """One command, and the model of a run that nobody disturbed."""

    name: str
    tables: Path
    work: Path
    finished: bytes = b""  # a model of another seed, which no partial one may replace
    seconds: float = 0.0
    whole: Any = None
    predicted: bytes = b""

    def _prepare(self) -> None:
        """Run to the end twice, with another seed and with the one that counts."""
        self._clear()
        assert self.end(self.start(seed=8)) == 0, self.said()
        finished = (self.work / OUTPUT).read_bytes()
        self._clear()
        begin = time.monotonic()
        assert self.end(self.start()) == 0, self.said()
        self.seconds = time.monotonic() - begin
        self.whole, self.predicted = self.model()
        self.finished = finished

    def begin(self) -> None:
        """Begin in a folder with nothing but the finished model of another seed."""
        if not self.finished:
            self._prepare()
        self._clear()
        (self.work / OUTPUT).write_bytes(self.finished)

    def _clear(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()

    def start(self, seed: int = 7) -> int:
        """Start the command in a child process."""
        table, *options = COMMANDS[self.name]
        # A signal between the fork and the child's `try` would let it run on as a second parent.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        child = os.fork()
        if child:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            return child
        code = 130  # where Ctrl-C comes before or after all that the command can answer for
        try:
            said = os.open(self.work / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for stream in (1, 2):
                os.dup2(said, stream)
            os.chdir(self.work)
            common = ["--target", "y", "--seed", str(seed), "--checkpoint", STATE, "-o", OUTPUT]
            common.append("--overwrite")
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            main(["fit", str(self.tables / table), *options, *common])
        except SystemExit as end:
            code = int(end.code or 0)
        except Exception:
            traceback.print_exc()
            code = 1
        finally:
            os._exit(code)

    def end(self, child: int) -> int:
        """Wait for a child; its exit code, or minus the signal that ended it."""
        status = os.waitpid(child, 0)[1]
        return os.waitstatus_to_exitcode(status)

    def said(self) -> str:
        return (self.work / "said").read_text() if (self.work / "said").exists() else ""

    def model(self) -> tuple[Any, bytes]:
        """Return all that the written model holds but times, and what it predicts."""
        header, tensors = model_file.read(self.work / OUTPUT)
        for changing in ("seconds", "resumed_at"):
            header["training"].pop(changing, None)
        del header["sha256"]
        X = np.random.default_rng(1).normal(size=(50, 4))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # these inputs have no names
            predicted = load(self.work / OUTPUT).predict(X)
        bits = {name: tensor.tobytes() for name, tensor in tensors.items()}
        return (header, bits), np.asarray(predicted).astype(str).tobytes()

    def differences(self) -> list[str]:
        """Go on to the end and say what is not as in the run that nobody disturbed."""
        if self.end(self.start()) != 0:
            return [f"going on failed: {self.said()[-300:]}"]
        found, predicted = self.model()
        wrong = [] if found == self.whole else ["another model"]
        wrong += [] if predicted == self.predicted else ["other predictions"]
        names = sorted(path.name for path in self.work.iterdir() if not KEPT.fullmatch(path.name))
        return wrong + [f"left over: {name}" for name in names]


def stop_after(child: int, seconds: float, number: int) -> None:
    """Send a signal after that time, or at once where the child has ended by then."""
    signal.sigtimedwait({signal.SIGCHLD}, seconds)
    os.kill(child, number)  # not yet waited for, so its number is still its own
