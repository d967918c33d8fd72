"""What a fit chose, what came second and by how much, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]  # Any: whatever JSON holds
KNOBS = {"likelihood": "{} head", "alpha": "alpha {:g}", "drop_prob": "drop probability {}"}


def choice_lines(selection: Json | None) -> list[str]:
    """Return a line for the network, one for its head and knobs; none where nothing was open."""
    if selection is None:
        return []
    lines = []
    if tried := selection.get("architectures"):
        (own,) = (one for one in tried if one["chosen"])
        said = f"network   {network_words(own)}"
        others = [one for one in tried if one is not own and one["nll"] is not None]
        if others:
            second = min(others, key=lambda one: one["nll"])
            said += f", of {len(tried)} tried; next: {network_words(second)}{_behind(second)}"
        lines.append(said)
    trials = selection["trials"]
    chosen = trials[selection["chosen"]]
    said = ", ".join(words.format(chosen[name]) for name, words in KNOBS.items())
    said = f"chosen    {said}: best of {len(trials)} by {selection['how']}"
    if second := selection.get("second"):
        other = trials[second["trial"]]
        differing = [
            words.format(other[name])
            for name, words in KNOBS.items()
            if other[name] != chosen[name]
        ]
        said += f"; next: {', '.join(differing)}{_behind(second)}"
    lines.append(said)
    if selection.get("cut"):
        lines.append("cut       the clock ended the search: another run may choose otherwise")
    return lines


def network_words(tried: Json) -> str:
    """Return what a tried network is."""
    arguments = tried["arguments"]
    widths = arguments.get("hidden")
    if tried["name"] not in ("Dense", "Periodic") or not isinstance(widths, list):
        inside = ", ".join(f"{name} {value}" for name, value in arguments.items())
        return f"{tried['name']} ({inside})"
    said = f"layers of {'-'.join(map(str, widths))}"
    if tried["name"] == "Periodic":
        said += f" on periodic embeddings (spread {arguments.get('std')})"
    return said


def _behind(other: Json) -> str:
    """Return how much worse, or better where that is within the error and the other smaller."""
    behind = other.get("behind")
    if not behind or behind["difference"] is None:
        return ""
    difference, error = behind["difference"], behind["standard_error"]
    spread = "" if error is None else f" ± {error:.3f}"
    side = "behind" if difference >= 0 else "better (not significant)"
    return f", {abs(difference):.3f}{spread} {side}"
