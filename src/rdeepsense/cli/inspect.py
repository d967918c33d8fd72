"""`rdeepsense inspect`: what a model file or an export contains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdeepsense.cli.columns import some
from rdeepsense.cli.export import export_sizes
from rdeepsense.cli.inference import load_model
from rdeepsense.cli.options import JsonFile, Overwrite, Quiet
from rdeepsense.cli.scores import NAMES
from rdeepsense.cli.terminal import STDOUT, Terminal, check_outputs, new_table, write_json
from rdeepsense.errors import InputError, require

if TYPE_CHECKING:
    from rdeepsense.fitting.fitted import Fitted


# --------------------------------------------------------------------------------------------------
# `rdeepsense inspect` of exports: folded files, ONNX, folders of C
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# `rdeepsense inspect` of a model file
# --------------------------------------------------------------------------------------------------

SHOWN = 40  # inputs


def inspect(
    model: Annotated[Path, typer.Argument(help="Model file written by fit, or what export wrote.")],
    quiet: Quiet = False,
    overwrite: Overwrite = False,
    json: JsonFile = None,
) -> None:
    """Show a model file: inputs, targets, metrics, settings, calibration, versions and sizes."""
    from rdeepsense.modelfile import tensors as model_file

    terminal = Terminal(quiet, json)
    check_outputs({"--json": json}, inputs=(model,), overwrite=overwrite)
    exported = export_facts(model) if model.exists() else None
    if exported is not None:
        if json is not None:
            write_json(json, {"export": str(model), **exported})
        if json != STDOUT:
            tell_export(terminal, model, exported)
        return
    fitted = load_model(model).fitted_
    header, _ = model_file.read(model)
    facts = _facts(fitted, header)
    facts["bytes"] = {"file": model.stat().st_size, **export_sizes(fitted)}
    if json is not None:
        write_json(json, {"model": str(model), **facts})
    if json != STDOUT:
        _tell(terminal, model, facts)


def _facts(fitted: Fitted, header: Facts) -> Facts:
    """Return everything as plain values."""
    target, calibration = fitted.target, fitted.calibration
    training = fitted.training.to_json()
    return {
        "estimator": fitted.method,
        "inputs": _inputs(fitted),
        "missing": fitted.inputs.missing,
        "target": {
            "names": list(target.names or ()),
            "units": list(target.units or ()),
            "classes": None if target.classes is None else target.classes.tolist(),
        },
        "network": header.get("architecture"),
        "choice": None if fitted.selection is None else _choice(fitted.selection.to_json()),
        "calibration": {
            "kind": header["calibration"],
            "factor": None if calibration is None else float(calibration.summary()),
            "conformal": fitted.conformal is not None,
        },
        "novelty": fitted.novelty is not None,
        "windows": None if fitted.recipe is None else fitted.recipe.to_json(),
        "adapted": header.get("adapted"),
        "training": {
            key: training[key]
            for key in ("rows", "validation_rows", "validated", "seed", "steps", "interrupted")
            if key in training
        },
        "validation": dict(header["validation_scores"]),
        "peers": None if fitted.peers is None else fitted.peers.to_json(),
        "kept_rows": len(fitted.kept_rows[0]),
        "versions": header.get("versions", {}),
    }


def _inputs(fitted: Fitted) -> list[Facts]:
    """Return name, unit, training mean and the accepted range of each input, or its levels."""
    inputs, guard, encoding = fitted.inputs, fitted.guard, fitted.inputs.encoding
    numbers = range(inputs.shape[-1]) if encoding is None else encoding.numbers
    place = {column: k for k, column in enumerate(numbers)}  # among what networks read
    levels = {} if encoding is None else {c.column: list(c.levels) for c in encoding.categories}
    return [
        {
            "name": inputs.names[k] if inputs.names else str(k),
            "unit": inputs.units[k] if inputs.units else "",
            "mean": float(inputs.scaler.shift[place[k]]) if k in place else None,
            "low": float(guard.low[k]) if guard is not None and k in place else None,
            "high": float(guard.high[k]) if guard is not None and k in place else None,
            "levels": levels.get(k),
        }
        for k in range(inputs.shape[-1])
    ]


def _choice(selection: Facts) -> Facts:
    """Return among what the model was chosen, and how."""
    tried = selection.get("architectures") or []
    return {
        "by": selection["by"],
        "how": selection["how"],
        "heads": len(selection["trials"]),
        "networks": len(tried),
    }


def _tell(terminal: Terminal, path: Path, facts: Facts) -> None:
    terminal.line(f"model     {path}: {facts['estimator']}")
    _tell_target(terminal, facts["target"])
    if recipe := facts["windows"]:
        sensors = [f"{name} ({', '.join(own)})" for name, own in recipe["sensors"].items()]
        terminal.line(
            f"windows   {recipe['window']:g} s every {recipe['hop']:g} s at {recipe['rate']:g} a "
            f"second, by {recipe['time']}: {some(sensors)}"
        )
    terminal.line(f"network   {_network(facts['network'])}")
    if choice := facts["choice"]:
        networks = f"of {choice['networks']} networks and " if choice["networks"] else "of "
        terminal.line(f"chosen    {networks}{choice['heads']} heads, by {choice['how']}")
    terminal.line(f"calibrated by {_calibration(facts['calibration'])}")
    used = facts["training"]
    stopped = "; stopped early by Ctrl-C" if used.get("interrupted") else ""
    terminal.line(
        f"trained   on {used['rows']:,} rows, validated on {used['validation_rows']:,} "
        f"({used['validated']}), seed {used['seed']}{stopped}"
    )
    if adapted := facts["adapted"]:
        of = f"{adapted['source'][:12]}...: the networks are as they were trained"
        terminal.line(f"adapted   by {adapted['labels']:,} labels, from {of}")
    terminal.line(f"missing   inputs: {facts['missing']}")
    kept = facts["kept_rows"]
    terminal.line(f"keeps     {kept:,} validation rows, readable" if kept else "keeps     no rows")
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    terminal.line(f"versions  {versions or 'not noted'}")
    sizes = ", ".join(
        f"{name} {size:,}" if isinstance(size, int) else f"{name}: {size}"
        for name, size in facts["bytes"].items()
    )
    terminal.line(f"bytes     {sizes}")
    table = new_table(
        f"{len(facts['inputs'])} inputs",
        ["input", "unit", "mean", "from", "to"],
        "mean of the training rows; values beyond from and to are flagged as out of range",
    )
    for one in facts["inputs"][:SHOWN]:
        # What is left of a mean of 0 after rounding is not shown.
        least = 1e-12 * max(abs(one["low"] or 0.0), abs(one["high"] or 0.0))
        numbers = [
            "" if one[key] is None else f"{one[key] if abs(one[key]) > least else 0.0:.4g}"
            for key in ("mean", "low", "high")
        ]
        table.add_row(one["name"], one["unit"], *numbers)
    terminal.table(table)
    for one in facts["inputs"][:SHOWN]:
        if one["levels"] is not None:
            terminal.line(f"{one['name']} is one of {len(one['levels']):,}: {some(one['levels'])}")
    if len(facts["inputs"]) > SHOWN:
        rest = [one["name"] for one in facts["inputs"][SHOWN:]]
        terminal.line(f"and {len(rest):,} inputs more: {some(rest)}; --json - has all")
    figures = new_table("Validation figures, which had a part in the choices", ["figure", "value"])
    for key, name in NAMES.items():
        if facts["validation"].get(key) is not None:
            figures.add_row(name, f"{facts['validation'][key]:.4g}")
    terminal.table(figures)


def _tell_target(terminal: Terminal, target: Facts) -> None:
    units = target["units"] or [""] * len(target["names"])
    named = [
        f"{name} [{unit}]" if unit else name
        for name, unit in zip(target["names"], units, strict=True)
    ]
    classes = target["classes"]
    of = f", {len(classes)} classes: {some([str(one) for one in classes])}" if classes else ""
    terminal.line(f"target    {some(named) or 'without a name'}{of}")


def _network(network: Facts | None) -> str:
    if network is None:
        return "none: a Gaussian process"
    known = network.get("arguments") or {}  # none of a network of the user's own
    arguments = ", ".join(f"{key} {value}" for key, value in known.items())
    members = f"{network['members']} of " if network.get("members", 1) > 1 else ""
    return (
        f"{members}{network['class']}{f' ({arguments})' if arguments else ''}, "
        f"{network['likelihood']} head, "
        f"alpha {network['alpha']}, drop probability {network['drop_prob']}"
    )


def _calibration(calibration: Facts) -> str:
    if calibration["kind"] is None:
        return "nothing"
    more = "; conformal thresholds" if calibration["conformal"] else ""
    return f"{calibration['kind']}, factor {calibration['factor']:.4g}{more}"
