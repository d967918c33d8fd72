"""`export(to='web')`: a folder of static files that predicts in the browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from importlib.util import find_spec
from math import pi
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense._files import write_folder
from rdeepsense._progress import Progress
from rdeepsense.adaptation.corrections import ClassPrior
from rdeepsense.arrays import Floats
from rdeepsense.calibration import Isotonic
from rdeepsense.data.columns import formula
from rdeepsense.deploy.c.emit import Assembly
from rdeepsense.deploy.c.export import C99, C99Report, check_folder, export_c99, export_graph_c99
from rdeepsense.deploy.fold import has_graph
from rdeepsense.deploy.folded.model import Facts
from rdeepsense.deploy.options import LabelledRows, Options
from rdeepsense.deploy.quality import ExportReport
from rdeepsense.distributions import LocationScale, Recalibrated
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.fitting.passes import LastHidden, hidden_size
from rdeepsense.windowing.recipe import Recipe

# --------------------------------------------------------------------------------------------------
# Files of a page: one script, one HTML file, manifest and service worker
#
# A script's `import` lines say what it needs; here the files stand below each other in that order,
# and the lines are left out. Names are thus unique over all files, which a browser checks: twice
# the same name in a module is an error.
# --------------------------------------------------------------------------------------------------

PAGE = Path(__file__).parent / "page"
PUBLIC = "model.js"  # whose names others import
IMPORT = re.compile(r'^import (?:[^;]*? from )?"([^"]+)";\n', re.M)
COMMENT = re.compile(r"^\s*//.*\n", re.M)
INDENT = re.compile(r"^ +(?=\S)", re.M)  # no text of these scripts runs over lines
POLICY = (
    "default-src 'none'",
    "script-src 'self' 'wasm-unsafe-eval'",
    "style-src '{style}'",
    "connect-src 'self'",
    "img-src 'self'",
    "manifest-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
)
COLOUR = "#0072b2"


def packed(face: str, title: str, wasm: bytes, more: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a page by name; those of `more` are kept for offline as well."""
    style = (PAGE / "style.css").read_text()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = "; ".join(POLICY).replace("{style}", f"sha256-{digest}")
    html = (PAGE / "index.html").read_text()
    for mark, text in (("@policy", policy), ("@title", escape(title)), ("@style", style)):
        html = html.replace(mark, text)
    files = {
        "index.html": html.encode(),
        "rdeepsense.js": script([f"faces/{face}.js", "start.js"]).encode(),
        "model.wasm": wasm,
        "manifest.webmanifest": _manifest(title).encode(),
        "icon.svg": (PAGE / "icon.svg").read_bytes(),
        **more,
    }
    return files | {"worker.js": _worker(files, title).encode()}


def script(entries: list[str]) -> str:
    """Return these files and all that they import as one module."""
    order: list[Path] = []
    for entry in entries:
        _gather(PAGE / entry, order)
    return "".join(_plain(path) for path in order)


def _gather(path: Path, order: list[Path]) -> None:
    path = path.resolve()
    if path in order:
        return
    for needed in IMPORT.findall(path.read_text()):
        _gather(path.parent / needed, order)
    order.append(path)


def _plain(path: Path) -> str:
    text = COMMENT.sub("", IMPORT.sub("", path.read_text()))
    if path.name == PUBLIC:
        return text
    return re.sub(r"^export ", "", INDENT.sub("", text), flags=re.M)


def _manifest(title: str) -> str:
    icon = {"src": "icon.svg", "sizes": "any", "type": "image/svg+xml", "purpose": "any"}
    content = {
        "name": title,
        "short_name": title[:12],
        "start_url": "./",
        "scope": "./",
        "display": "standalone",
        "background_color": COLOUR,
        "theme_color": COLOUR,
        "icons": [icon],
    }
    return json.dumps(content, indent=1) + "\n"


def _worker(files: Mapping[str, bytes], title: str) -> str:
    """Return the worker; its version is that of the files, its name that of the page."""
    digest = hashlib.sha256(b"".join(files.values())).hexdigest()[:16]
    page = hashlib.sha256(title.encode()).hexdigest()[:8]
    text = COMMENT.sub("", (PAGE / "worker.js").read_text())
    text = text.replace("@version", f"rdeepsense-{page}-{digest}")
    return text.replace("@files", " ".join(["./", *files]))


# --------------------------------------------------------------------------------------------------
# The shape of a predicted density, without location and width
#
# A head's distribution is one of location and scale, calibrated by a factor or by a map of its
# probabilities, so that with z = (y - mean) / std the density of z is a curve of the output alone.
# A page has it as numbers on a grid and needs no formula of any head.
# --------------------------------------------------------------------------------------------------

REACH, POINTS = 4.0, 81


def standard_curve(fitted: Fitted, epistemic: str | None = None) -> Floats | None:
    """Return densities (outputs, points) of z from -REACH to REACH; None for classes."""
    if fitted.target.is_classes:
        return None
    calibration = fitted.calibration
    if epistemic is not None and fitted.epistemic is not None:
        calibration = fitted.epistemic.calibration_of(epistemic)
    plain = fitted.network.head.unit()
    unit: LocationScale | Recalibrated = plain
    if isinstance(calibration, Isotonic):
        unit = Recalibrated(plain, calibration.stated, calibration.actual)
    # A map's density jumps at each knot; means over steps of the grid are what can be drawn.
    step = 2 * REACH / (POINTS - 1)
    edges = (np.arange(POINTS + 1) - POINTS / 2) * step
    below = np.array([unit.cdf(unit.mean + z * unit.std) for z in edges])
    density: Floats = np.diff(below, axis=0).T / step
    return np.atleast_2d(density)


# --------------------------------------------------------------------------------------------------
# Motion sensor of each channel, from its name and values
#
# A browser gives acceleration with gravity and without it, in m/s2, and rotation in degrees a
# second. A channel that is none of these is not read from the phone: recordings can still be
# replayed.
# --------------------------------------------------------------------------------------------------

GRAVITY = 9.80665  # m/s2
AXES = "xyz"
KINDS = (
    ("acceleration", re.compile(r"lin|user|body|without|motion", re.I)),
    ("rotation", re.compile(r"gyr|rot|angular|omega", re.I)),
    ("gravity", re.compile(r"acc|grav", re.I)),
)
IN_G = re.compile(r"^\s*\[?g\]?\s*$")
IN_DEGREES = re.compile(r"deg|°", re.I)


@dataclass(frozen=True)
class Channel:
    """A value of a motion event, and what it is multiplied by; no source: not read."""

    source: str | None
    axis: int = 0
    factor: float = 1.0


def phone_channels(
    recipe: Recipe, units: tuple[str, ...] | None, size: Floats | None
) -> list[Channel]:
    """Return the channels of a recipe; `size` is how large the values of each are, typically."""
    found: list[Channel] = []
    for sensor, columns in recipe.sensors.items():
        for place, column in enumerate(columns):
            k = len(found)
            found.append(
                _channel(
                    sensor,
                    column,
                    place if len(columns) == len(AXES) else None,
                    units[k] if units else "",
                    None if size is None else float(size[k]),
                )
            )
    return _same_unit(found, size, units)


def _channel(sensor: str, column: str, place: int | None, unit: str, size: float | None) -> Channel:
    ends = re.search(r"([xyz])[^a-z]*$", column.lower())
    axis = AXES.index(ends[1]) if ends else place
    said = next((name for name, known in KINDS if known.search(sensor)), None)
    said = said or next((name for name, known in KINDS if known.search(column)), None)
    if said is None or axis is None:
        return Channel(None)
    if said == "rotation":
        return Channel(said, axis, 1.0 if IN_DEGREES.search(unit) else pi / 180)
    return Channel(said, axis, 1 / GRAVITY if IN_G.match(unit) else 1.0)


def _same_unit(
    channels: list[Channel], size: Floats | None, units: tuple[str, ...] | None
) -> list[Channel]:
    """Take an acceleration without a unit for one in g where gravity is near 1 and not 10."""
    own = [k for k, one in enumerate(channels) if one.source == "gravity"]
    told = units is not None and any(units[k] for k in own)
    if told or size is None or not own or float((size[own] ** 2).sum()) ** 0.5 > GRAVITY / 3:
        return channels
    return [
        Channel(one.source, one.axis, 1 / GRAVITY) if one.source in ("gravity", "acceleration")
        else one for one in channels
    ]  # fmt: skip


# --------------------------------------------------------------------------------------------------
# Metadata of the model for a page: names, units, ranges, factors, curves
# --------------------------------------------------------------------------------------------------

MANY = 16  # outputs from which on they are a wave and no table
DIGITS, SHOWN = 6, 4


def face_of(fitted: Fitted, senses: bool) -> str:
    """Return what a page shows: "windows" of a stream of samples, a "table" or a "wave"."""
    if senses:
        return "windows"
    many = not fitted.target.is_classes and fitted.target.outputs >= MANY
    return "wave" if len(fitted.inputs.shape) > 1 or many else "table"


def about(
    fitted: Fitted, report: C99Report, rows: LabelledRows, epistemic: str | None, senses: bool
) -> dict[str, Any]:
    """Return plain values for JSON; `senses` says whether the C takes samples."""
    facts = report.facts
    ranges = _ranges(facts, rows.X)
    found: dict[str, Any] = {
        "face": face_of(fitted, senses),
        "dtype": report.dtype,
        "version": facts.version,
        "source": facts.source[:16],
        "head": facts.head,
        "window": list(facts.window),
        "inputs": [_input(facts, k, ranges) for k in range(facts.inputs)],
        "outputs": facts.outputs,
        "targets": list(facts.targets or (fitted.recipe.label if fitted.recipe else ())),
        "units": list(facts.target_units or ()),
        "classes": None if facts.classes is None else [str(c) for c in facts.classes],
        "missing": facts.missing,
        "epistemic": report.epistemic is not None,
        "live": None if report.live is None else report.live.coverage,
        "quality": None if report.quality is None else _figures(report.quality.after),
    }
    if len(rows.y) and facts.intervals is not None:
        y = np.asarray(rows.y, dtype=np.float64).reshape(len(rows.y), -1)
        found["range"] = [_rounded(ends) for ends in zip(y.min(0), y.max(0), strict=True)]
    if len(rows.X) and found["face"] == "wave":
        first = np.asarray(rows.X[0], dtype=np.float64).ravel()
        found["example"] = [None if np.isnan(v) else v for v in _rounded(first, 5)]
    if facts.intervals is not None:
        found["coverages"] = [float(c) for c in facts.intervals.coverages]
        # As many digits as there are: the page's ends are those of `predict_interval`.
        found["low"] = facts.intervals.low.tolist()
        found["high"] = facts.intervals.high.tolist()
    curve = standard_curve(fitted, epistemic)
    if curve is not None:
        shared = curve[:1] if np.allclose(curve, curve[:1]) else curve
        found["curve"] = {"reach": REACH, "density": [_rounded(own, 4) for own in shared]}
    if senses and fitted.recipe is not None:
        recipe = fitted.recipe
        typical = _typical(rows.X)
        found["recipe"] = {
            **recipe.to_json(),
            "length": recipe.length,
            "step": recipe.step,
            "phone": [vars(one) for one in phone_channels(recipe, facts.feature_units, typical)],
        }
    return found


def _input(facts: Facts, k: int, ranges: dict[str, Floats]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": facts.features[k] if facts.features else f"x{k}",
        "unit": (facts.feature_units[k] if facts.feature_units else "") or _computed(facts, k),
    }
    for category in () if facts.encoding is None else facts.encoding.categories:
        if category.column == k:
            return found | {"levels": list(category.levels), "typical": 0}
    if facts.missing == "mean" or (
        facts.missing == "indicator" and facts.guard is not None and facts.guard.missing[k] > 0
    ):
        found["missing"] = True
    # A page begins at the typical values, and computes with those that it shows.
    digits = {"typical": SHOWN}
    return found | {
        name: _rounded(values[k : k + 1], digits.get(name, DIGITS))[0]
        for name, values in ranges.items()
    }


def _computed(facts: Facts, k: int) -> str:
    """Say how an input is computed of a date; nothing of another."""
    said = formula(facts.features[k], facts.dated) if facts.features else None
    return f"= {said}" if said else ""


def _ranges(facts: Facts, X: NDArray[Any]) -> dict[str, Floats]:
    """Return of each input what it reached in the rows at hand, its median, and its guard."""
    found: dict[str, Floats] = {}
    rows = np.asarray(X, dtype=np.float64).reshape(-1, facts.inputs)
    if len(rows):
        kept = np.where(np.isnan(rows).all(0), 0.0, rows)
        found["least"], found["most"] = np.nanmin(kept, 0), np.nanmax(kept, 0)
        found["typical"] = np.nanmedian(kept, 0)
    if facts.guard is not None:
        found["low"], found["high"] = facts.guard.low, facts.guard.high
    return found


def _typical(X: NDArray[Any]) -> Floats | None:
    """Return how large the values of each channel are, the median of their sizes."""
    if not len(X):
        return None
    flat = np.abs(np.asarray(X, dtype=np.float64)).reshape(-1, X.shape[-1])
    return np.asarray(np.nanmedian(flat, axis=0))


def _rounded(values: Any, digits: int = DIGITS) -> list[float]:
    return [float(f"{v:.{digits}g}") for v in values]


def _figures(after: dict[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in after.items() if np.isfinite(value)}


# --------------------------------------------------------------------------------------------------
# The root of the prior, for adaptation in a page as by `model.adapt`
#
# As in `adaptation.corrections`, the change D of the last layer has the prior N(0, C0) for each
# class, and C0 = B B^T with B lower triangular: with psi = B^T phi of the labeled windows the page
# needs only their products psi_n^T psi_m, and D = B sum_n psi_n a_n^T.
# --------------------------------------------------------------------------------------------------


def personal(fitted: Fitted) -> dict[str, Any]:
    """Return the number of features and the triangle of B, row by row, in base64 of float32."""
    assert fitted.epistemic is not None
    layer = LastHidden.of(fitted.network, fitted.epistemic.laplace)
    prior = fitted.adaptation if isinstance(fitted.adaptation, ClassPrior) else ClassPrior()
    root = np.linalg.cholesky(prior.covariance(layer.information / fitted.training.rows))
    triangle = root[np.tril_indices(len(root))].astype("<f4")
    return {"features": len(root), "root": base64.b64encode(triangle.tobytes()).decode()}


def check_personal(fitted: Fitted, header: str | None = None) -> None:
    """Refuse live=True for a network of windows that cannot learn in a page.

    Once its C is known, `header` is its model.h.
    """
    if not fitted.target.is_classes:
        raise InputError("live=True is for windows of classes, and tables of numbers, in a page")
    if fitted.epistemic is None:
        raise InputError(
            "the model's file is older than what live=True needs, the information of its training "
            "rows; fit the model again"
        )
    hidden = hidden_size(fitted.network)
    layer = LastHidden.of(fitted.network, fitted.epistemic.laplace)
    if layer.projection is not None:
        raise InputError(
            f"live=True is for last layers that read 128 numbers at most; this one reads {hidden}"
        )
    if header is not None and f"#define MODEL_TOP {hidden}\n" not in header:
        raise InputError(
            "live=True needs a network whose last layer reads the states of a recurrent one, such "
            "as DeepSense; export this one without it"
        )


# --------------------------------------------------------------------------------------------------
# The report of a page
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WebReport(ExportReport):
    """The face of the page, the bytes of each file, and the report of the C in it."""

    face: str
    sizes: Mapping[str, int]
    c99: C99Report

    @property
    def bytes(self) -> int:
        """Of all files that a visitor loads."""
        return sum(self.sizes.values())

    def to_json(self) -> dict[str, object]:
        return {
            "face": self.face,
            "bytes": self.bytes,
            "files": dict(self.sizes),
            "c99": self.c99.to_json(),
        }


# --------------------------------------------------------------------------------------------------
# Custom sections of a WebAssembly file
#
# A section is a byte that says its kind, 0 for custom ones, its length, and here the length of its
# name, the name, and the content. Lengths are LEB128: seven bits a byte, the lowest first.
# --------------------------------------------------------------------------------------------------

HEADER = b"\0asm\1\0\0\0"


def with_section(module: bytes, name: str, content: bytes) -> bytes:
    """Return the module with one more section at its end."""
    if not module.startswith(HEADER):
        raise ValueError("this is no WebAssembly of version 1")
    named = name.encode()
    body = leb128(len(named)) + named + content
    return module + b"\0" + leb128(len(body)) + body


def leb128(value: int) -> bytes:
    """Write a number that is not negative."""
    found = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        found.append(low | 0x80 * (value > 0))
        if not value:
            return bytes(found)


# --------------------------------------------------------------------------------------------------
# Compilation to WebAssembly by clang or ziglang
# --------------------------------------------------------------------------------------------------

HERE = Path(__file__).parent / "c"
SOURCES = ("page.c", "model.c", "weights.c", "selftest.c")
# No contraction: every browser then has the numbers that the same C has elsewhere.
FLAGS = (
    "-std=c99",
    "-O2",
    "-mbulk-memory",
    "-ffp-contract=off",
    "-ffreestanding",
    "-nostdlib",
    "-Dmain=page_selftest",
    "-I.",
    "-Wl,--no-entry",
    "-Wl,--strip-all",
)
ALWAYS = ("page_selftest", "page_inputs", "page_outputs", "page_predict")
EXPORTS = {
    "GUARD": ("page_flagged",),
    "LIVE": ("page_begin", "page_live", "page_truth", "page_observe", "page_state",
             "page_state_bytes", "page_seal", "page_check"),
    "PERSONAL": ("page_personal",),
    "SENSES": ("page_begin_stream", "page_sample", "page_push", "page_times", "page_decide"),
}  # fmt: skip
OF_CLASSES = ("page_label", "page_probability")  # of a stream


def build_wasm(folder: Path, switches: Mapping[str, bool]) -> bytes:
    """Compile the C of a folder with what a page calls; its name there is `model`."""
    names = [*ALWAYS, *(name for key, own in EXPORTS.items() if switches[key] for name in own)]
    names += OF_CLASSES if switches["SENSES"] and switches["CLASSES"] else ()
    (folder / "page.c").write_text(Assembly("model", switches).text(HERE / "page.c"))
    (folder / "stdio.h").write_text((HERE / "stdio.h").read_text())
    exported = [f"-Wl,--export={name}" for name in names]
    command = [*wasm_compiler(), *FLAGS, *exported, *SOURCES, "-o", "model.wasm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"{command[0]} could not compile the page: {done.stderr.strip()[:300]}")
    return (folder / "model.wasm").read_bytes()


@cache
def wasm_compiler() -> tuple[str, ...]:
    """Return the command that compiles C to WebAssembly, or say how to get one."""
    clang = shutil.which("clang")
    if clang and shutil.which("wasm-ld") and "wasm32" in _targets(clang):
        return (clang, "--target=wasm32")
    if find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-freestanding")
    raise InputError(
        "to='web' needs a compiler for WebAssembly: install rdeepsense[web], which brings one, or "
        "clang with lld"
    )


def _targets(clang: str) -> str:
    done = subprocess.run([clang, "--print-targets"], capture_output=True, text=True)
    return done.stdout


# --------------------------------------------------------------------------------------------------
# Export of a fitted model to a page
# --------------------------------------------------------------------------------------------------

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
