"""The figures of the training benchmarks as a picture: how many times as fast as the peer.

    python benchmarks/training_report.py RESULT.json --plot FILE

writes FILE.png and FILE.svg from what `training.py` or `training_gpu.py` wrote with --out.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rdeepsense._files import write_whole
from rdeepsense.errors import require

OURS, AIM = "#1f77b4", "#333333"


def write(path: str | None, found: dict[str, Any]) -> None:
    """Write the figures so far, if a path was given."""
    if path:
        write_whole(path, json.dumps(found, indent=1))


def verdict(value: float, bound: str, aim: float | None) -> str:
    """'at least 1.4, met', or nothing where nothing is aimed at."""
    if aim is None:
        return ""
    met = value >= aim if bound == "at least" else value <= aim
    return f"aim: {bound} {aim:g}, {'met' if met else 'NOT met'}"


def plot(found: dict[str, Any], path: str) -> None:
    """Horizontal bars on a logarithmic axis, the aims as marks."""
    pyplot = require("matplotlib.pyplot", "report")
    from rdeepsense.pages.pictures import save

    bars = found["bars"][::-1]
    figure, axes = pyplot.subplots(figsize=(8, 1.4 + 0.42 * len(bars)), layout="constrained")
    values = [bar["value"] for bar in bars]
    axes.barh(range(len(bars)), values, color=OURS, height=0.65)
    for number, bar in enumerate(bars):
        axes.text(bar["value"], number, f" {bar['value']:.3g}x", va="center", fontsize=9)
        if bar["aim"] is not None:
            axes.plot([bar["aim"]] * 2, [number - 0.42, number + 0.42], color=AIM, lw=2)
    axes.set_yticks(range(len(bars)), [bar["label"] for bar in bars], fontsize=9)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlim(min(0.8, *values), 1.6 * max(values))
    axes.axvline(1, color=AIM, lw=0.8, ls=":")
    axes.set_xlabel("times as fast (mark: what was aimed at)", fontsize=9)
    figure.suptitle(f"{found['title']}, against {found['peer']}", fontsize=10)
    figure.supxlabel(found["machine"], fontsize=6)
    save(figure, Path(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result")
    parser.add_argument("--plot", required=True)
    arguments = parser.parse_args()
    plot(json.loads(Path(arguments.result).read_text()), arguments.plot)


if __name__ == "__main__":
    main()
