"""Where the time goes on a GPU: the kernels of a compiled step, and the parts of a whole fit."""

from __future__ import annotations

import cProfile
import pstats
import re
import tempfile
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity
from training_cases import PAPER, WEIGHT_DECAY, Case, synchronise

from rdeepsense import RDeepSenseRegressor
from rdeepsense.training import Rows, stack
from rdeepsense.training.step import Step, accelerate

# The first pattern that a kernel's name has says what it is; torch names a fused kernel after all
# that was fused in it.
GROUPS = (
    ("matrix products", r"gemm|cutlass|cublas|nvjet|xmma|wgmma|aten::(add|b|badd)?mm|splitk"),
    ("optimiser", r"adam|lerp|multi_tensor|sqrt|norm|pow"),
    ("gather", r"index|gather"),
    ("copies", r"memcpy|memset|copy"),
    ("elementwise", r""),
)
PROFILED, LARGEST = 20, 12
PART = 0.01  # of the fit: smaller parts are not listed


def profile(case: Case, device: str) -> dict[str, Any]:
    """Kernel times of 20 compiled steps, by kind, with the largest kernels by name."""
    case = replace(case, rows=64 * case.batch)
    rows = case.draw(case.rows, device)
    rows = Rows(rows.x.to(device), rows.y.to(device))
    bank = stack([case.network(member) for member in range(case.members)]).to(device)
    schedule = case.schedule(epochs=1, evaluate_every=1)
    decay = [WEIGHT_DECAY] * case.members
    step = Step(bank, case.rule().to(torch.device(device)), decay, rows, schedule)
    take = accelerate(step, schedule.steps, "compiled")
    step.shuffle(0, 0)
    for _ in range(10):
        take()
    synchronise(device)
    kind = ProfilerActivity.CUDA if device == "cuda" else ProfilerActivity.CPU
    with torch.profiler.profile(activities=[kind]) as seen:
        begin = time.perf_counter()
        for _ in range(PROFILED):
            take()
        synchronise(device)
        wall = time.perf_counter() - begin
    kernels = {
        event.key: (event.self_device_time_total if device == "cuda" else event.self_cpu_time_total)
        for event in seen.key_averages()
    }
    groups: defaultdict[str, float] = defaultdict(float)
    for name, microseconds in kernels.items():
        groups[_kind(name)] += microseconds / PROFILED
    total = sum(groups.values())
    print(f"\n{case.name}: {total:.1f} µs of kernels a step, {1e6 * wall / PROFILED:.1f} µs by the "
          "clock (with the profiler on)")  # fmt: skip
    for name, microseconds in sorted(groups.items(), key=lambda item: -item[1]):
        print(f"  {name:16} {microseconds:8.1f} µs {microseconds / max(total, 1e-9):6.1%}")
    for name, microseconds in sorted(kernels.items(), key=lambda item: -item[1])[:LARGEST]:
        print(f"    {microseconds / PROFILED:8.1f} µs  {_kind(name):16} {name[:100]}", flush=True)
    return {"case": case.name, "microseconds": dict(groups), "wall": 1e6 * wall / PROFILED}


def _kind(name: str) -> str:
    return next(kind for kind, pattern in GROUPS if re.search(pattern, name.lower()))


def fit(case: Case, device: str) -> dict[str, Any]:
    """From arrays in host memory to a saved model: 10 epochs at batch 4,096, with a checkpoint.

    The parts come from Python's profiler, whose cost is in the total.
    """
    rows = case.draw(case.rows)  # on the CPU: that the GPU has to start is part of the fit
    X, y = rows.x.numpy(), rows.y[:, 0].numpy()
    print(f"fit of {X.shape[0]:,} x {X.shape[1]} rows, 10 epochs at batch 4,096", flush=True)
    with tempfile.TemporaryDirectory() as folder, cProfile.Profile() as calls:
        begin = time.perf_counter()
        model = RDeepSenseRegressor(
            hidden=PAPER,
            epochs=10,
            batch_size=4_096,
            checkpoint=Path(folder) / "checkpoint",
            device=device,
            random_state=0,
            verbose=False,
            effort="quick",
            likelihood="gaussian",
        )
        model.fit(X, y)
        fitted = time.perf_counter()
        model.save(Path(folder) / "model")
        saved = time.perf_counter()
    found = {
        "seconds": saved - begin,
        "training_seconds": model.training_["seconds"],
        "save_seconds": saved - fitted,
        "steps": model.training_["steps"],
        "parts": _parts(calls, saved - begin),
    }
    print(f"{found['seconds']:.1f} s in all (aim: under 30): {found['training_seconds']:.1f} s in "
          f"the training loop ({found['steps']:,} steps), {found['save_seconds']:.2f} s to save; "
          "parts (the larger ones contain the smaller):")  # fmt: skip
    for name, seconds in found["parts"].items():
        print(f"  {seconds:7.2f} s  {name}")
    return found


def _parts(calls: cProfile.Profile, total: float) -> dict[str, float]:
    """Cumulative seconds of the library's functions."""
    stats: Any = pstats.Stats(calls)
    parts = {
        f"{Path(file).parent.name}/{Path(file).name}: {function}": cumulative
        for (file, _, function), (_, _, _, cumulative, _) in stats.stats.items()
        if "rdeepsense" in Path(file).parts and cumulative >= PART * total
    }
    return dict(sorted(parts.items(), key=lambda item: -item[1]))
