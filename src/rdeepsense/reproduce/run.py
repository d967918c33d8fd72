"""Running a study: finished cells are read, the others run, and the results and report written."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdeepsense.benchmark.cells import code_digest
from rdeepsense.errors import RDeepSenseError
from rdeepsense.files import write_whole
from rdeepsense.methods import parse_all
from rdeepsense.reproduce.cells import Cell, cells_of
from rdeepsense.reproduce.presets import METHODS, Preset
from rdeepsense.reproduce.results import results_of
from rdeepsense.reproduce.study import Study

if TYPE_CHECKING:
    from rdeepsense.training.progress import Progress

MOST_JOBS = 4  # by default: each has its own torch and its own rows


@dataclass(frozen=True)
class Outcome:
    """What came out: the results, the files written, and how many cells ran now."""

    results: dict[str, Any]
    files: list[Path]
    cells: int
    ran: int
    failed: list[tuple[str, str]]  # a cell's label and what went wrong


def run(
    tasks: Sequence[str],
    preset: Preset,
    out: Path,
    data: Path | None = None,
    methods: Sequence[str] | None = None,
    seed: int = 0,
    jobs: int | None = None,
    quiet: bool = False,
) -> Outcome:
    """Run what is not finished yet under `out`; write results.json and the report there.

    A cell that fails does not stop the others; it leaves no file and is tried again next time.
    """
    chosen = parse_all(methods or default_methods())
    study = Study(preset, data, seed)
    cells = cells_of(study, tasks, chosen)
    folder = out / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    done = {cell: found for cell in cells if (found := cell.read(folder)) is not None}
    pending = [cell for cell in cells if cell not in done]
    failed: list[tuple[str, str]] = []
    if pending:
        progress = _progress(quiet)
        total = sum(cell.weight for cell in cells)
        finished = sum(cell.weight for cell in done)
        progress.start("reproduce", total, finished)
        try:
            for cell, result in _results(pending, jobs or min(MOST_JOBS, os.cpu_count() or 1)):
                if isinstance(result, str):
                    failed.append((cell.label, result))
                else:
                    cell.write(folder, result)
                    done[cell] = result
                finished += cell.weight
                count = len(done) + len(failed)
                progress.update(finished, f"{count} of {len(cells)} cells, last {cell.label}")
        finally:
            progress.close()
    results = results_of(study, tasks, chosen, {cell: done[cell] for cell in cells if cell in done})
    ran = len(pending) - len(failed)
    return Outcome(results, _write(results, out), len(cells), ran, failed)


def default_methods() -> tuple[str, ...]:
    """Every method of the paper; GP only where its library is installed."""
    return tuple(name for name in METHODS if name != "GP" or find_spec("gpytorch"))


def _results(pending: Sequence[Cell], jobs: int) -> Iterator[tuple[Cell, dict[str, Any] | str]]:
    """Each cell with its result, or with what went wrong, as they finish.

    First the data, here: what is wrong with it should be said at once. Last the timing, alone.
    """
    for cell in (cell for cell in pending if cell.kind == "task"):
        yield cell, cell.run()
    fits = [cell for cell in pending if cell.kind in ("family", "alpha")]
    if jobs == 1 or len(fits) < 2:
        for cell in fits:
            yield cell, _attempt(cell)
    else:
        yield from _in_processes(fits, jobs)
    for cell in (cell for cell in pending if cell.kind == "cost"):
        yield cell, _attempt(cell)


def _in_processes(cells: Sequence[Cell], jobs: int) -> Iterator[tuple[Cell, dict[str, Any] | str]]:
    # spawn: a forked child of a process with threads, as torch has them, may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(cells)), context, initializer=_prepare_worker)
    try:
        futures: dict[Future[dict[str, Any] | str], Cell] = {
            pool.submit(_attempt, cell): cell for cell in cells
        }
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool as error:
        raise RDeepSenseError(
            "a process of --jobs ended before its time (out of memory?); finished cells are kept, "
            "run the same command again to go on"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _attempt(cell: Cell) -> dict[str, Any] | str:
    try:
        return cell.run()
    except (RDeepSenseError, ValueError, ArithmeticError) as error:
        return " ".join(str(error).split()) or type(error).__name__


def _prepare_worker() -> None:
    """One thread, and no life after the parent: a pool's worker would outlast a killed one."""
    import torch

    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _progress(quiet: bool) -> Progress:
    from rdeepsense.training.progress import Bar, Lines, Silent

    if quiet:
        return Silent()
    return Bar(sys.stderr) if sys.stderr.isatty() else Lines(sys.stderr)


def _write(results: dict[str, Any], out: Path) -> list[Path]:
    """results.json and the report; what is there of the same results and code is left alone."""
    text = json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    stamp = out / "cells" / "report.json"
    digest = hashlib.sha256((text + code_digest(())).encode()).hexdigest()
    try:
        known = json.loads(stamp.read_text())
        files = [out / name for name in known["files"]]
        if known["digest"] == digest and all(file.is_file() for file in files):
            return files
    except (OSError, ValueError, KeyError, TypeError):
        pass
    from rdeepsense.report import reproduction

    write_whole(out / "results.json", text)
    files = [out / "results.json", *reproduction.write(results, out)]
    names = [file.relative_to(out).as_posix() for file in files]
    write_whole(stamp, json.dumps({"digest": digest, "files": names}))
    return files
