"""One prediction in C against torch, ONNX Runtime and LiteRT; mean and std against the mean alone.

    python benchmarks/latency.py [--rounds 40] [--steps 250] [--json FILE] [--profile] [--like avx2]

One core, batch 1, one run: all forms of a network take turns in every round, and of each the round
with the smallest median counts, so a busy machine slows all alike. Net A is 16-500-500-500-4 (gas
sensors, mean and std of two gases), net B 250-500-500-500-500 (blood pressure, mean and std of a
curve of 250 points), trained for a few hundred steps on simulated data: enough for ReLU to be zero
as often as in use; the row that is predicted has the median number of zeros. C and baselines are
timed inside C, the others from Python. `off` is how far a form's mean is from the float64 model's.
With --profile nothing is timed: it prints in which functions of the C the instructions go.
With --like avx2 all forms run as on a core with AVX2 and nothing later, see `older_core.py`; with
--like here as always, and both count how many instructions of a call are of AVX-512 or VNNI.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import latency_peers
import latency_profile
import numpy as np
import older_core
import torch

import rdeepsense as rds
from rdeepsense._files import write_whole
from rdeepsense.deploy.profile import measure as energy
from rdeepsense.deploy.profile.forms import (
    ProfiledModel,
    ProfileReport,
    candidate,
    energy_label,
    machine,
)
from rdeepsense.deploy.profile.measure import DEFAULT, Missing, ProfileCandidate, measure
from rdeepsense.errors import MissingExtraError
from rdeepsense.paper.tasks import catalogue

NETS = {"A": "GasSen", "B": "BPEst"}
ROWS, BATCH, WIDTHS = 20_000, 128, (500, 500, 500)
FORMS = ("torch", "torch-mcdrop-10", "torch-ssp-5", "folded", "ctypes", "c-float32", "c-float16",
         "c-int8", "point", "mcdrop-10", "ssp-5")  # fmt: skip
STEPPED = ("onnxruntime", "litert", "c-")  # what can be counted in seconds
# (slower, faster, what is compared): the least ratio for each net, where one is aimed at.
RATIOS: dict[tuple[str, str, str], dict[str, float]] = {
    ("onnxruntime", "c-float32", "microseconds"): {"A": 2.5, "B": 2.0},
    ("onnxruntime-int8", "c-int8", "microseconds"): {"A": 4.0, "B": 2.5},
    ("onnxruntime-int8-pc", "c-int8", "microseconds"): {},
    ("litert", "c-float32", "microseconds"): {},
    ("litert-int8", "c-int8", "microseconds"): {"A": 1.5, "B": 1.5},
    ("torch", "c-float32", "microseconds"): {},
    ("mcdrop-10", "c-float32", "microseconds"): {},
    ("ssp-5", "c-float32", "microseconds"): {},
    ("mcdrop-10", "c-float32", "instructions"): {},
    ("ssp-5", "c-float32", "instructions"): {},
}
# What is aimed at where bytes are multiplied and added in one instruction.
WITH_VNNI = {
    "onnxruntime-int8": {"A": 5.0, "B": 3.5},
    "litert-int8": {"A": 2.0, "B": 2.0},
}
MOST_FOR_STD = {"A": 1.03}  # instructions of mean and std, over those of the mean alone
MOST_FOR_CTYPES = 2.0  # microseconds


def trained(task: str, steps: int, folder: Path) -> ProfiledModel:
    """A network trained on simulated rows."""
    data = catalogue.load(task, rows=ROWS)
    model = rds.RDeepSenseRegressor(
        hidden=WIDTHS,
        epochs=max(1, round(steps * BATCH / (0.9 * ROWS))),
        batch_size=BATCH,
        random_state=0,
        verbose=False,
        effort="quick",
        likelihood="gaussian",
    )
    return ProfiledModel.of(model.fit(data.X, data.y), folder)


def zeros(profiled: ProfiledModel) -> list[float]:
    """The share of each hidden layer's units that ReLU made zero."""
    layers = profiled.folded.layers
    h, shares = layers.read(profiled.rows), []
    for layer in layers.dense[:-1]:
        h = np.maximum(h @ layer.weight.T + layer.bias, 0.0)
        shares.append(float(np.mean(h == 0)))
    return shares


def candidates_of(profiled: ProfiledModel) -> list[ProfileCandidate | Missing]:
    """Peers first, then all forms of the library."""
    found: list[ProfileCandidate | Missing] = list(latency_peers.onnxruntime_candidates(profiled))
    try:
        found += latency_peers.litert_candidates(profiled)
    except MissingExtraError as error:
        found.append(Missing("litert-int8", str(error)))
    return found + [candidate(profiled, name) for name in FORMS]


def newer(forms: Sequence[ProfileCandidate | Missing]) -> dict[str, older_core.Instructions]:
    """Count instructions of one call of each peer and form of the library, and the newer ones."""
    return {
        one.name: older_core.counted(lambda one=one: one.seconds(1))  # type: ignore[misc]
        for one in forms
        if isinstance(one, ProfileCandidate) and one.name.startswith(STEPPED)
    }


def compared(net: str, found: dict[str, Any]) -> list[dict[str, Any]]:
    """What was aimed at, and what came out."""
    by_name = {one["name"]: one for one in found["forms"] if one["available"]}
    lines = []
    for (slow, fast, key), least in RATIOS.items():
        if slow in by_name and fast in by_name and by_name[slow][key] and by_name[fast][key]:
            ratio = by_name[slow][key] / by_name[fast][key]
            if "VNNI" in found["instruction_set"]:
                least = WITH_VNNI.get(slow, least)
            aim = least.get(net)
            lines.append(_line(f"{slow} / {fast}, {key}", ratio, "at least", aim))
    both, mean = (by_name[name]["instructions"] for name in ("c-float32", "point"))
    if both and mean:
        aim = MOST_FOR_STD.get(net)
        lines.append(_line("c-float32 / point, instructions", both / mean, "at most", aim))
    added = by_name["ctypes"]["microseconds"] - by_name["c-float32"]["microseconds"]
    lines.append(_line("ctypes - c-float32, microseconds", added, "at most", MOST_FOR_CTYPES))
    return lines


def _line(what: str, value: float, bound: str, aim: float | None) -> dict[str, Any]:
    met = None if aim is None else (value >= aim if bound == "at least" else value <= aim)
    return {"what": what, "value": value, "bound": bound, "aim": aim, "met": met}


def tell(found: dict[str, Any]) -> None:
    """The table of one net, its ratios below."""
    shape = "-".join(map(str, found["layers"]))
    shares = ", ".join(f"{share:.0%}" for share in found["zeros"])
    print(f"\nnet {found['net']} {shape}, {found['data']}; zero after ReLU: {shares}")
    print(f"C int8 is built with {found['instruction_set']}")
    print(
        f"{'form':20} {'µs':>9} {'p99 µs':>9} {'instructions':>12} {'kB':>8} {'peak MB':>8} "
        f"{'off, stds':>9}"
    )
    for one in found["forms"]:
        if not one["available"]:
            print(f"{one['name']:20} not available: {one['reason']}")
            continue
        count = "-" if one["instructions"] is None else f"{one['instructions']:,}"
        peak = "-" if one["peak_bytes"] is None else f"{one['peak_bytes'] / 1e6:.1f}"
        off = "-" if one["off_by_stds"] is None else f"{one['off_by_stds']:.1e}"
        print(
            f"{one['name']:20} {one['microseconds']:9.2f} {one['p99_microseconds']:9.2f} "
            f"{count:>12} {one['weight_bytes'] / 1e3:8.0f} {peak:>8} {off:>9}"
        )
    for line in found["compared"]:
        aim = "" if line["aim"] is None else f"  aim: {line['bound']} {line['aim']:g}, "
        print(f"  {line['what']:48} {line['value']:7.3f}{aim}{_WORDS[line['met']]}")
    for name, (every, some) in found["newer"].items():
        print(f"  {name:20} {some:,} of {every:,} instructions of a call are of AVX-512 or VNNI")


_WORDS = {None: "", True: "met", False: "NOT met"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=250, help="of training")
    parser.add_argument("--nets", default="A,B")
    parser.add_argument("--profile", action="store_true", help="where the instructions go")
    parser.add_argument("--like", choices=("avx2", "here"), help="avx2: without AVX-512")
    parser.add_argument("--json", help="also write the figures to this file")
    arguments = parser.parse_args()
    if arguments.like and older_core.FOLDER not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            older_core.restart(Path(folder), arguments.like)
    torch.set_num_threads(1)
    print(machine())
    results = []
    for net in arguments.nets.split(","):
        with tempfile.TemporaryDirectory() as folder:
            profiled = trained(NETS[net], arguments.steps, Path(folder))
            if arguments.profile:
                print(f"net {net} {'-'.join(map(str, profiled.widths))}")
                latency_profile.tell(profiled)
                continue
            meter = energy.find()
            forms = candidates_of(profiled)
            report = ProfileReport(
                profiled.folded.layers.widths,
                machine(),
                arguments.rounds,
                energy_label(meter, DEFAULT),
                measure(forms, arguments.rounds, meter, DEFAULT),
            )
            found: dict[str, Any] = report.to_json()
            found |= {
                "net": net,
                "data": f"simulated {NETS[net]}",
                "zeros": zeros(profiled),
                "instruction_set": latency_profile.instruction_set(),
            }
            found["compared"] = compared(net, found)
            found["newer"] = newer(forms) if arguments.like else {}
        tell(found)
        results.append(found)
    if arguments.json:
        write_whole(arguments.json, json.dumps(results, indent=1, allow_nan=False))


if __name__ == "__main__":
    main()
