"""Many rows in C against torch and ONNX Runtime, on one thread.

    OMP_NUM_THREADS=1 python benchmarks/latency_many.py [--rows 4096] [--rounds 20] [--like avx2]

Net A of `latency.py`, 16-500-500-500-4. All forms take turns in every round, and of each the best
round counts, so a busy machine slows all alike. Rows lie in no order; the peers get them
scaled already. With --like avx2 all run as on a core with AVX2 and nothing later, see
`older_core.py`.
"""

from __future__ import annotations

import argparse
import copy
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import latency
import latency_peers
import latency_profile
import numpy as np
import older_core
import torch

from rdeepsense.deploy.c.build import CompiledRunner, compiled_source
from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.profile.forms import ProfiledModel, machine
from rdeepsense.deploy.quantise import prepare, standardised

# (slower, faster): the least ratio.
AIMS = {
    ("torch", "c-float32"): 1.3,
    ("onnxruntime", "c-float32"): 1.3,
    ("onnxruntime-int8", "c-int8"): 2.0,
}


def in_c(profiled: ProfiledModel, dtype: str) -> CompiledRunner:
    """A library for many rows, with weights of this type."""
    folded = profiled.folded
    assert isinstance(folded, Folded)
    return compiled_source(Source(folded, prepare(folded, dtype, profiled.rows), many=True))


def session(file: Path, rows: Any) -> Callable[[], Any]:
    """A call of ONNX Runtime on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    made = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return lambda: made.run(None, {"x": rows})


def forms(profiled: ProfiledModel, X: Any) -> dict[str, Callable[[], Any]]:
    """What takes turns."""
    ready = standardised(profiled.folded.layers)
    rows = ((X - ready.centre) * ready.per_scale).astype(np.float32)
    latency_peers.onnxruntime_candidates(profiled)  # writes the graphs
    network = copy.deepcopy(profiled.fitted.network).eval().float()
    given = torch.from_numpy(rows)

    def through_torch() -> Any:
        with torch.inference_mode():
            return network(given)

    single, whole = in_c(profiled, "float32"), in_c(profiled, "int8")
    return {
        "torch": through_torch,
        "onnxruntime": session(profiled.folder / "lean.onnx", rows),
        "onnxruntime-int8": session(profiled.folder / "onnxruntime-int8.onnx", rows),
        "c-float32": lambda: single.run(X),
        "c-int8": lambda: whole.run(X),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_096)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--like", choices=("avx2",), help="without AVX-512")
    arguments = parser.parse_args()
    if arguments.like and older_core.FOLDER not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            older_core.restart(Path(folder), arguments.like)
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    print(f"{machine()}; int8 with {latency_profile.instruction_set()}")
    with tempfile.TemporaryDirectory() as folder:
        profiled = latency.trained(latency.NETS["A"], 250, Path(folder))
        X = np.resize(profiled.rows, (arguments.rows, profiled.rows.shape[1])).astype(np.float32)
        calls = forms(profiled, X)
        best = dict.fromkeys(calls, np.inf)
        for _ in range(arguments.rounds):
            for name, call in calls.items():
                begin = time.perf_counter()
                call()
                best[name] = min(best[name], time.perf_counter() - begin)
    for name, seconds in best.items():
        print(f"{name:18} {1e6 * seconds / arguments.rows:8.3f} µs a row")
    for (slow, fast), aim in AIMS.items():
        ratio = best[slow] / best[fast]
        word = "met" if ratio >= aim else "NOT met"
        print(f"  {slow} / {fast:12} {ratio:6.2f}  aim: at least {aim:g}, {word}")


if __name__ == "__main__":
    main()
