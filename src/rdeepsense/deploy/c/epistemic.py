"""What the templates say where a model carries its doubt, and that they say nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rdeepsense.deploy.c.text import fill, joined

if TYPE_CHECKING:
    from rdeepsense.deploy.c.source import Source

IN_CODE = (
    "doubt", "doubt_found", "doubt_hidden", "doubt_inputs", "doubt_out", "doubt_room", "epistemic",
    "nan_too",
)  # fmt: skip
IN_CHECK = ("epistemic_check", "epistemic_given", "epistemic_room")


def of_doubt(source: Source) -> dict[str, Any]:
    """What model.c's templates may name; all of it is empty for a model without a doubt."""
    folded = source.folded
    if folded.doubt is None:
        return dict.fromkeys(IN_CODE, "")
    doubts, hidden = len(folded.doubt.root), folded.hidden
    own = {**source.values, "hidden": hidden, "raw": "sum"}
    start = ["doubt_start"] + ["doubt_inputs"] * (hidden + 1 < doubts)
    values = {
        "doubts": doubts,
        "doubt_room": f"\n    float doubt[{doubts}];",
        "doubt_inputs": fill(joined(start), own),
        "doubt_hidden": joined(["doubt_hidden"]) if hidden else "",
        "epistemic": "float *epistemic, ",
        "nan_too": "epistemic[k] = ",
    }
    if folded.is_classifier:
        out = fill(joined(["doubt_classes"]), own)
        return {**values, "doubt": ", doubt, middle = 0.0f", "doubt_out": out}
    return {
        **values,
        "doubt": "    float doubt;\n",
        "doubt_found": "    doubt = doubt_of(w->doubt);\n",
        "doubt_out": fill("\n        epistemic[k] = @name@_doubt[k] * root(doubt);", own),
    }


def of_check(source: Source, values: dict[str, Any]) -> dict[str, str]:
    """The same for selftest.c."""
    if source.folded.doubt is None:
        return dict.fromkeys(IN_CHECK, "")
    return {
        "epistemic_room": fill(", epistemic[@NAME@_OUTPUTS]", values),
        "epistemic_given": "epistemic, ",
        "epistemic_check": fill(joined(["doubt_check"]), values),
    }
