"""`rdeepsense inspect`: what a model file is, without any table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdeepsense.cli.columns import some
from rdeepsense.cli.export_sizes import export_sizes
from rdeepsense.cli.inference import load_model
from rdeepsense.cli.inspect_export import export_facts, tell_export
from rdeepsense.cli.options import JsonFile, Overwrite, Quiet
from rdeepsense.cli.scores import NAMES
from rdeepsense.cli.terminal import STDOUT, Terminal, check_outputs, new_table, write_json

if TYPE_CHECKING:
    from rdeepsense.fitting.fitted import Fitted

Facts = dict[str, Any]  # Any: whatever JSON holds
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
