"""The report of `rdeepsense reproduce`: figures as PNG and SVG, one page, one Markdown file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from rdeepsense._files import write_whole
from rdeepsense.experiments.code_digest import code_digest
from rdeepsense.experiments.paper import published
from rdeepsense.experiments.paper.results import StudyResults
from rdeepsense.experiments.report.document import sections
from rdeepsense.experiments.report.finding import finding
from rdeepsense.experiments.report.markdown import markdown
from rdeepsense.experiments.report.page import report_page
from rdeepsense.experiments.report.pictures import Picture, whole
from rdeepsense.experiments.report.saving import save

STAMP = ".report.json"  # of what results and code the report is
TITLE = "RDeepSense, reproduced"


def write(results: StudyResults, out: Path) -> list[Path]:
    """Write figures/*.png and *.svg, report.html and report.md under `out`; return their names.

    What is there of the same results and the same code is left alone.
    """
    digest = hashlib.sha256((json.dumps(results.to_json()) + code_digest()).encode()).hexdigest()
    stamp = out / STAMP
    found = _written(stamp, digest)
    if found:
        return found
    stamp.unlink(missing_ok=True)  # until all of the report is of these results
    parts = sections(results)
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for part in parts:
        for block in part.blocks:
            if isinstance(block, Picture):
                written += save(whole(block), folder / block.name)
    opening = _opening(results)
    texts = {
        "report.html": report_page(TITLE, opening, parts),
        "report.md": markdown(TITLE, opening, parts),
    }
    for name, text in texts.items():
        write_whole(out / name, text)
        written.append(out / name)
    names = [file.relative_to(out).as_posix() for file in written]
    write_whole(stamp, json.dumps({"digest": digest, "files": names}))
    return written


def _written(stamp: Path, digest: str) -> list[Path]:
    """Return the files of the report with this digest, where all are there."""
    try:
        known = json.loads(stamp.read_text())
        files = [stamp.parent / name for name in known["files"]]
        return files if known["digest"] == digest and all(map(Path.is_file, files)) else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _opening(results: StudyResults) -> str:
    """Return what was found, and what the report is of, on what data, and at what preset."""
    simulated = [name for name, task in results.tasks.items() if task.simulated]
    real = [name for name, task in results.tasks.items() if not task.simulated]
    words = [
        *filter(None, [finding(results)]),
        f"The evaluation of the paper ({published.SOURCE}), run again: its tables and figures, "
        "ours beside the paper's, and what the paper does not report.",
    ]
    if simulated:
        words.append(
            f"Simulated data: {', '.join(simulated)}. What is simulated shows how the methods "
            "compare, not what real sensors would give."
        )
    if real:
        words.append(f"Real data: {', '.join(real)}.")
    words.append(f"Preset {results.preset}, {results.date}.")
    return " ".join(words)
