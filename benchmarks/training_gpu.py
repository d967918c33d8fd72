"""Training on a GPU: seconds per epoch on the shapes of the paper's tasks, a DataLoader beside it.

    PYTHONPATH=src python3 benchmarks/training_gpu.py [--out FILE] [--plot FILE] [--only NAME ...]
    PYTHONPATH=src python3 benchmarks/training_gpu.py --profile      where a compiled step's time is
    PYTHONPATH=src python3 benchmarks/training_gpu.py --fit          a whole fit to a saved model

Rows are simulated, float32, in host memory; ours puts them on the GPU once (`upload`). `compiled`
and `captured` are epochs of `train` after the first, with validation on 5 % of the rows at the end
of each; what the first took longer is `setup`. `eager` and the DataLoader (4 workers, pinned
memory, eager steps in TF32, no validation) are taken for some hundred steps and EXTRAPOLATED to the
epoch. A bank is compared with as many runs of the DataLoader. Compiling starts from empty caches.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
import traceback
from dataclasses import replace
from typing import Any

import training_gpu_fit
from training_cases import (
    BPEST,
    GASSEN,
    HHAR,
    NYCOMMUTE,
    SIX_ALPHAS,
    WEIGHT_DECAY,
    Case,
    Stamps,
    copy_bandwidth,
    flops,
    machine,
    matmul_peak,
    step_bytes,
    synchronise,
)
from training_peers import loader_seconds_per_step
from training_report import plot, verdict, write

from rdeepsense.training import Rows, stack, train

CASES = (
    replace(NYCOMMUTE, name="NYCommute, batch 1,024"),
    replace(NYCOMMUTE, name="NYCommute, batch 4,096", batch=4_096),
    replace(NYCOMMUTE, name="NYCommute, six alphas", alphas=SIX_ALPHAS),
    GASSEN,
    BPEST,
    HHAR,
    Case("20 times 50, batch 128", 16, 1, 10_000, 128, (50,), alphas=(0.5,) * 20),
)
MOST_SECONDS = {CASES[0].name: 2.2, CASES[1].name: 0.9}  # per epoch
LEAST_RATIO = {GASSEN.name: 20.0, BPEST.name: 20.0}  # to the DataLoader
MOST_FOR_SIX = 2.2  # networks' time for a bank of six
LEAST_STEPS, EAGER_STEPS = 2_000, 300  # of a run: short epochs are timed over many steps


def epochs_of(case: Case, mode: str, rows: Rows, held: Rows, scale: float) -> dict[str, Any]:
    """Seconds of an epoch after the first, and what the first took longer."""
    per_epoch, device = case.steps_per_epoch, rows.x.device.type
    epochs = max(2, math.ceil(scale * LEAST_STEPS / per_epoch))
    schedule = case.schedule(epochs, evaluate_every=per_epoch)
    third = max(1, round(scale * EAGER_STEPS / 3))
    if mode == "eager":  # evaluated on few rows, after each third, only to be told the time
        schedule = replace(schedule, stop_at=3 * third, evaluate_every=third)
        held = Rows(held.x[:256], held.y[:256])
    bank = stack([case.network(member) for member in range(case.members)])
    stamps = Stamps(device)
    decay = [WEIGHT_DECAY] * case.members
    train(bank, case.rule(), decay, rows, held, schedule, progress=stamps, mode=mode)
    first, rest = stamps.times[1] - stamps.times[0], stamps.times[-1] - stamps.times[1]
    if mode == "eager":
        seconds = rest / (2 * third) * per_epoch
        return {"seconds_per_epoch": seconds, "extrapolated_from_steps": 2 * third}
    seconds = rest / (epochs - 1)
    return {"seconds_per_epoch": seconds, "epochs": epochs, "setup_seconds": first - seconds}


def measure(case: Case, arguments: argparse.Namespace, found: dict[str, Any]) -> dict[str, Any]:
    """All ways on one case; one that fails is told and left out."""
    device = arguments.device
    host, validation = case.draw(case.rows, device), case.draw(case.rows // 20, device, seed=1)
    begin = time.perf_counter()
    rows, held = (Rows(r.x.to(device), r.y.to(device)) for r in (host, validation))
    synchronise(device)
    row: dict[str, Any] = {
        "case": case.name,
        "rows": case.rows,
        "batch": case.batch,
        "members": case.members,
        "upload_seconds": time.perf_counter() - begin,
        "flops_per_epoch": case.members * case.rows * flops(case),
        "bytes_per_step": step_bytes(case),
        "ways": {},
    }
    print(
        f"\n{case.name}: {case.rows:,} rows, {case.members} of {'-'.join(map(str, case.widths))}, "
        f"batch {case.batch:,}; upload {row['upload_seconds']:.2f} s"
    )
    for way in ("compiled", "captured", "eager", "DataLoader"):
        try:
            if way == "DataLoader":
                taken = loader_seconds_per_step(case, host, device, arguments.peer_seconds)
                seconds = case.members * case.steps_per_epoch * taken["seconds_per_step"]
                one = {"seconds_per_epoch": seconds, "extrapolated_from_steps": taken["steps"]}
            else:
                one = epochs_of(case, way, rows, held, arguments.rows_scale)
        except Exception as error:
            traceback.print_exc(limit=-2)
            row["ways"][way] = {"error": str(error)}
            continue
        seconds = one["seconds_per_epoch"]
        per_step = row["bytes_per_step"] * case.steps_per_epoch / seconds
        one["samples_per_second"] = case.members * case.rows / seconds
        one["share_of_peak"] = row["flops_per_epoch"] / seconds / found["matmul_peak"]
        one["share_of_bandwidth"] = per_step / found["copy_bandwidth"]
        row["ways"][way] = one
        tell(way, one)
    return row


def tell(way: str, one: dict[str, Any]) -> None:
    note = f"setup {one['setup_seconds']:.1f} s" if "setup_seconds" in one else (
        f"EXTRAPOLATED from {one['extrapolated_from_steps']} steps"
    )  # fmt: skip
    print(
        f"  {way:10} {one['seconds_per_epoch']:9.3f} s an epoch {one['samples_per_second']:13,.0f} "
        f"samples/s  {one['share_of_peak']:6.1%} of the peak  {one['share_of_bandwidth']:6.1%} of "
        f"the bandwidth  {note}",
        flush=True,
    )


def judge(row: dict[str, Any], found: dict[str, Any]) -> None:
    """The aims, and the bars of the picture."""
    ways = {w: one for w, one in row["ways"].items() if "error" not in one}
    ours = {w: ways[w]["seconds_per_epoch"] for w in ("compiled", "captured") if w in ways}
    if not ours:
        return
    name, best = row["case"], min(ours.values())
    if "DataLoader" in ways:
        peer = ways["DataLoader"]["seconds_per_epoch"]
        aim = LEAST_RATIO.get(name)
        row["ratio"] = peer / best
        print(f"  DataLoader / ours {peer / best:.1f} {verdict(peer / best, 'at least', aim)}")
        found["bars"] += [
            {"label": f"{name}, {way}", "value": peer / seconds, "aim": aim}
            for way, seconds in ours.items()
        ]
    if name in MOST_SECONDS:
        print(f"  seconds per epoch {best:.3f} {verdict(best, 'at most', MOST_SECONDS[name])}")
    single = [r["best"] for r in found["results"] if r["case"] == CASES[0].name and "best" in r]
    if name == CASES[2].name and single:
        times = best / single[0]
        print(f"  six networks / one {times:.2f} {verdict(times, 'at most', MOST_FOR_SIX)}")
    row["best"] = best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", help="also write the figures to this JSON file, case by case")
    parser.add_argument("--plot", help="also draw them, as this name with .png and .svg")
    parser.add_argument("--only", nargs="+", help="cases whose names begin so")
    parser.add_argument("--peer-seconds", type=float, default=5.0)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--rows-scale", type=float, default=1.0, help="fewer, to try it out")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--fit", action="store_true")
    arguments = parser.parse_args()
    device, cases = arguments.device, [case.scaled(arguments.rows_scale) for case in CASES]
    if arguments.only:
        cases = [case for case in cases if case.name.startswith(tuple(arguments.only))]
    found: dict[str, Any] = {
        "title": "Training on a GPU, seconds per epoch",
        "peer": "a DataLoader with 4 workers and an eager loop (extrapolated)",
        "machine": machine(device),
        "bars": [],
        "results": [],
    }
    print(found["machine"], flush=True)
    with tempfile.TemporaryDirectory() as empty:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = empty
        if arguments.fit:
            found["fit"] = training_gpu_fit.fit(cases[0], device)
        elif arguments.profile:
            found["profile"] = [training_gpu_fit.profile(case, device) for case in cases[:3]]
        else:
            found |= {
                "matmul_peak": matmul_peak(device, 10),
                "copy_bandwidth": copy_bandwidth(device),
            }
            print(f"matmul peak {found['matmul_peak'] / 1e12:.1f} TFLOP/s, copy bandwidth "
                  f"{found['copy_bandwidth'] / 1e9:.0f} GB/s", flush=True)  # fmt: skip
            for case in cases:
                try:
                    row = measure(case, arguments, found)
                except Exception:  # too little memory, say; the other cases still count
                    traceback.print_exc(limit=-2)
                    continue
                judge(row, found)
                found["results"].append(row)
                write(arguments.out, found)
        write(arguments.out, found)
    if arguments.plot:
        plot(found, arguments.plot)


if __name__ == "__main__":
    main()
