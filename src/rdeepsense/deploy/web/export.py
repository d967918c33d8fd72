"""A fitted model as a folder of static files: a page that runs it where it is opened."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rdeepsense._files import write_folder
from rdeepsense._progress import Progress
from rdeepsense.deploy.c.export import C99, check_folder, export_c99
from rdeepsense.deploy.c.graph.export import export_graph_c99
from rdeepsense.deploy.c.report import C99Report
from rdeepsense.deploy.folded_form import has_graph
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.options import Options
from rdeepsense.deploy.web.about import about
from rdeepsense.deploy.web.pack import packed
from rdeepsense.deploy.web.personal import check_personal, personal
from rdeepsense.deploy.web.report import WebReport
from rdeepsense.deploy.web.section import with_section
from rdeepsense.deploy.web.wasm import build_wasm, wasm_compiler
from rdeepsense.fitting.fitted import Fitted

SECTION = "rdeepsense"
RECORDING = "recording.csv"
FILES = (
    "index.html",
    "rdeepsense.js",
    "model.wasm",
    "manifest.webmanifest",
    "icon.svg",
    "worker.js",
    "report.json",
    RECORDING,
)


def export_web(
    fitted: Fitted,
    folder: Path,
    options: Options,
    rows: LabelledRows,
    progress: Progress | None = None,
    recording: str | None = None,
    note: str = "",
) -> WebReport:
    """Write the page of a model; with a `recording`, a CSV, it can be replayed at once.

    A `note` stands below the title.
    """
    wasm_compiler()
    check_folder(folder, FILES)
    with tempfile.TemporaryDirectory() as name:
        c = Path(name) / "c"
        report = _made_c(fitted, c, options, rows, progress).write()
        header = (c / "model.h").read_text()
        switches = _switches(report, header)
        if switches["PERSONAL"]:
            check_personal(fitted, header)
        code = build_wasm(c, switches)
    facts = about(fitted, report, rows, options.epistemic, switches["SENSES"])
    facts["recording"], facts["note"] = recording is not None, note
    if switches["PERSONAL"]:
        facts["personal"] = personal(fitted)
    content = json.dumps(facts, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    more: Mapping[str, bytes] = {} if recording is None else {RECORDING: recording.encode()}
    title = ", ".join(facts["targets"][:3]) or "rdeepsense"
    wasm = with_section(code, SECTION, content.encode())
    files = packed(str(facts["face"]), title, wasm, more)
    sizes = {name: len(content) for name, content in files.items()}
    found = WebReport(
        "web", folder, report.quality, str(facts["face"]), sizes, replace(report, path=folder)
    )
    text = json.dumps(found.to_json(), indent=2, allow_nan=False) + "\n"
    write_folder(folder, files | {"report.json": text.encode()}, FILES)
    return found


def _made_c(
    fitted: Fitted, folder: Path, options: Options, rows: LabelledRows, progress: Progress | None
) -> C99:
    if has_graph(fitted):
        if options.live:
            check_personal(fitted)
        plain = replace(options, live=False)
        return export_graph_c99(fitted, folder, plain, rows, personal=options.live)
    return export_c99(fitted, folder, options, rows, progress)


def _switches(report: C99Report, header: str) -> dict[str, bool]:
    """Return what of page.c this model needs; its header says what its C has."""
    return {
        "CLASSES": report.facts.is_classifier,
        "LAPLACE": report.epistemic is not None,
        "GUARD": "model_flagged_input" in header,
        "LIVE": report.live is not None,
        "SENSES": "model_push(" in header,
        "PERSONAL": "model_personal;" in header,
    }
