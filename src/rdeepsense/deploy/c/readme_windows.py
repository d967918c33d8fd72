"""What the README says of windows: how they go in, at once or interval by interval."""

from __future__ import annotations

from typing import Any

from rdeepsense.deploy.c.assemble import renamed
from rdeepsense.deploy.c.source import Source

STREAMING = """    static model_window window; /* exact: what predict says of the last window */
    model_begin_window(&window);
    status = model_push_interval(&window, x, %s, scratch);

    static model_running running; /* running: cheapest, and another function */
    model_begin_run(&running);
    status = model_run_interval(&running, x, %s, scratch);
"""


def windows(source: Source, report: dict[str, Any]) -> list[str]:
    """How a window goes in, at once or interval by interval."""
    if source.model.window == 1:
        return []
    name, results = source.name.upper(), ", ".join(source.model.results)
    lines = [
        "## Windows",
        "",
        f"x holds {source.model.window} times, one after the other, each {source.model.channels} "
        "channels in the order below.",
        "",
    ]
    if "stream" not in report:
        return lines
    found = report["stream"]
    lines += [
        f"In a stream it takes intervals of {name}_INTERVAL times, one after the other:",
        "",
        *renamed(STREAMING.replace("%s", results), source.name).splitlines(),
        "",
        "| way | multiply-adds | of a window | state (bytes) |",
        "|---|---|---|---|",
    ]
    for way in ("window", "exact", "running"):
        cost, state = found["multiply_adds"][way], found["state_bytes"][way]
        share = cost / found["multiply_adds"]["window"]
        lines.append(f"| {way} | {cost:,} | {share:.3f} | {state:,} |")
    lines += ["", *_running(found["running"]), ""]
    return lines


def _running(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return ["The running way was not calibrated: there were no labelled windows."]
    figures = ", ".join(f"{key} {value:.4f}" for key, value in found["after"].items())
    return [
        f"The running way is another function than the trained one, with a factor of its own, "
        f"{found['factor']:.4f}. On {found['rows']} windows that did not choose it, each played "
        f"after itself: {figures}."
    ]
