"""A stream of samples on a Cortex-M4: instructions of a decision with all its pushes, and RAM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.targets.machines import HERE, M4
from deploy.targets.test_machines import sizes

import rdeepsense as rds

SENSORS = {"accelerometer": ["ax", "ay", "az"], "gyroscope": ["gx", "gy", "gz"]}


@pytest.fixture(scope="module")
def watch() -> Any:
    """The default network on 4.8 s of two sensors at 50 Hz, decided every 0.96 s."""
    rng, t = np.random.default_rng(0), np.arange(3_600) / 50
    log: dict[str, Any] = {"t": t, "what": np.arange(3_600) // 1_200}
    log |= {name: rng.normal(size=len(t)) for own in SENSORS.values() for name in own}
    cut = rds.windows(log, "t", SENSORS, 4.8, 0.96, rate=50, label="what")
    return rds.RDeepSenseClassifier(
        network=rds.networks.DeepSense(), epochs=1, random_state=0, verbose=False, effort="quick",
        device="cpu",
    ).fit(cut, cut.y)  # fmt: skip


def test_a_decision_costs_little_on_a_microcontroller(
    watch: Any, tmp_path: Path, plugin: Path, record_property: Callable[[str, Any], None]
) -> None:
    found = {}
    for way in ("window", "exact", "running"):
        folder = tmp_path / way
        report: Any = rds.export(
            watch, folder, to="c99", dtype="int8", max_nll_change=1, stream=way
        )
        (folder / "samples.c").write_text((HERE / "samples.c").read_text())
        M4.build(folder, "-c", "model.c", "weights.c")
        sections = sizes(M4, folder, "model.o")
        own = len(sections)
        sections += sizes(M4, folder, "weights.o")
        once, twice = (_executed(folder, plugin, decisions) for decisions in (2, 4))
        found[way] = (twice - once) // 2
        measured = {
            "machine": M4.name,
            "flags": " ".join(M4.flags),
            "model": f"DeepSense samples {way}",
            "dtype": "int8",
            "flash": sum(size for _, size in sections),
            "code": sum(size for n, size in sections[:own] if n.startswith(".text")),
            "ram": report.bytes.ram_scratch + report.samples.ram_stream[way],
            "stack": 0,
            "instructions": found[way],
        }
        record_property("measured", measured)
    assert found["exact"] < found["window"] / 2
    assert found["running"] < found["window"] / 4
    # Pushing, resampling and smoothing are nothing beside the network.
    assert found["window"] < 20_000_000


def _executed(folder: Path, plugin: Path, decisions: int) -> int:
    program = ("samples.c", "model.o", "weights.o", *M4.link, "-o", "samples")
    M4.build(folder, f"-DDECISIONS={decisions}", *program)
    M4.run(folder, "./samples", "-plugin", str(plugin), "-d", "plugin", "-D", "count.log")
    return int((folder / "count.log").read_text().removeprefix("instructions "))
