"""`rdeepsense inspect` of what a model was exported as: a folded file, ONNX, a folder of C."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdeepsense.cli.columns import some
from rdeepsense.errors import InputError, require

if TYPE_CHECKING:
    from rdeepsense.cli.terminal import Terminal

Facts = dict[str, Any]  # Any: whatever JSON holds
SAID = ("head", "calibration", "features", "feature_units", "targets", "target_units", "classes",
        "missing", "dtype", "quality")  # fmt: skip
MOST_BYTES = 1 << 24  # of a report


def export_facts(path: Path) -> Facts | None:
    """Return what an export says of itself; None for a model file, which says more."""
    if path.is_dir():
        return _c99(path)
    with path.open("rb") as file:
        start = file.read(16)
    if start[8:9] == b"{":  # safetensors: the length of a header, and the header
        return _folded(path)
    return _onnx(path)


def tell_export(terminal: Terminal, path: Path, facts: Facts) -> None:
    """Print an export's facts, a line each."""
    terminal.line(f"export    {path}: {facts['format']}, {facts.get('head') or 'unknown'} head")
    units = facts.get("target_units") or [""] * len(facts.get("targets") or ())
    named = [
        f"{name} [{unit}]" if unit else name
        for name, unit in zip(facts.get("targets") or (), units, strict=True)
    ]
    classes = facts.get("classes")
    of = f", {len(classes)} classes: {some([str(one) for one in classes])}" if classes else ""
    terminal.line(f"target    {some(named) or 'without a name'}{of}")
    features = facts.get("features")
    inputs = facts.get("inputs")
    terminal.line(f"inputs    {some(list(features)) if features else inputs}")
    terminal.line(f"missing   inputs: {facts.get('missing')}")
    terminal.line(f"calibrated by {facts.get('calibration') or 'nothing'}")
    if facts.get("dtype"):
        terminal.line(f"stored as {facts['dtype']}")
    if sizes := facts.get("bytes"):
        terminal.line("bytes     " + ", ".join(f"{name} {size}" for name, size in sizes.items()))
    if quality := facts.get("quality"):
        terminal.line(
            f"quality   NLL changed by {quality['nll_change']:+.4f} on {quality['rows']:,} rows"
        )
    terminal.line(f"versions  rdeepsense {facts.get('version') or 'not noted'}")
    if facts.get("source"):
        terminal.line(f"model     SHA-256 {facts['source'][:12]}...")


def _folded(path: Path) -> Facts | None:
    from rdeepsense.modelfile import container

    header, _ = container.read(path)
    if header.get("kind") != "folded":
        return None
    from rdeepsense.deploy import load

    facts = load(path).facts  # what a damaged file says is refused here
    said = {name: header.get(name) for name in SAID if name in header}
    return {
        "format": "folded",
        **said,
        "inputs": facts.inputs,
        "version": facts.version,
        "source": facts.source,
        "bytes": {"file": path.stat().st_size},
    }


def _onnx(path: Path) -> Facts | None:
    if path.suffix != ".onnx":
        return None
    onnx = require("onnx", "export")
    try:
        proto = onnx.load(str(path))
    except Exception as error:  # of protobuf, by any name
        raise InputError(f"{path}: is no ONNX file: {error!s:.200}") from error
    if proto.producer_name != "rdeepsense":
        raise InputError(f"{path}: was not written by rdeepsense export")
    props = {prop.key: prop.value for prop in proto.metadata_props}
    return {
        "format": "onnx",
        **{name: _value(props[name]) for name in SAID if name in props},
        "inputs": _value(props.get("input_shape", "")),
        "version": props.get("rdeepsense_version"),
        "source": props.get("model_sha256"),
        "bytes": {"file": path.stat().st_size},
    }


def _c99(path: Path) -> Facts:
    report = path / "report.json"
    if not report.is_file() or report.stat().st_size > MOST_BYTES:
        raise InputError(f"{path}: is a folder without the report.json that export --to c99 writes")
    try:
        found = json.loads(report.read_text())
        return {
            "format": "c99",
            **{name: found.get(name) for name in SAID},
            "inputs": len(found["features"] or ()) or None,
            "version": found["rdeepsense"],
            "source": found["model_sha256"],
            "bytes": found["bytes"],
            "multiply_adds": found["multiply_adds"],
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{report}: is no report of export: {error!r:.200}") from error


def _value(text: str) -> Any:
    """Return what a text of the metadata holds: JSON, or the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text
