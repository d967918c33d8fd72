"""The README of an export to C."""

from __future__ import annotations

import re
from typing import Any

from rdeepsense.data.columns import CLOCK
from rdeepsense.deploy.c.emit import Source, renamed
from rdeepsense.deploy.c.inputs import CModel, labelled, remark
from rdeepsense.deploy.quantise import HALF_CHANGE
from rdeepsense.guard import EMBEDDING_REACH

# --------------------------------------------------------------------------------------------------
# README section on streams of samples
# --------------------------------------------------------------------------------------------------

SAMPLES_EXAMPLE = """    static model_stream stream; /* yours: keep it in RAM */
    model_decision decision;
    model_begin_stream(&stream);
    /* for each sample, with its time in microseconds; NaN where a channel has no value now */
    model_push(&stream, microseconds, sample, scratch);
    while (model_decide(&stream, &decision, scratch)) {
        if (decision.status == MODEL_OK) { /* %s */ }
    }
"""
CLASSES = "decision.label, -1 where none is probable; decision.probability"
NUMBERS = "decision.mean, decision.low, decision.high"


def samples(source: Source, report: dict[str, Any]) -> list[str]:
    """How samples go in, what is decided when, and what that costs."""
    if "samples" not in report:
        return []
    found, name = report["samples"], source.name.upper()
    what = CLASSES if source.model.is_classifier else NUMBERS
    gap, hop = found["gap_in_microseconds"] / 1e6, found["hop"] / found["rate"]
    lines = [
        "## A stream of samples",
        "",
        *renamed(SAMPLES_EXAMPLE % what, source.name).splitlines(),
        "",
        f"Samples of any rate become points at {found['rate']:g} a second, each sensor by itself; "
        f"windows of {found['samples']} points",
        f"are decided every {hop:g} s. A sensor without a value for more than {gap:g} s ends the "
        "window, which",
        f"{name}_NOT_ENOUGH_DATA tells once. Samples before the last one are dropped and counted "
        "in `late`.",
        "",
        "| way | multiply-adds a decision | stream (bytes of RAM) |",
        "|---|---|---|",
    ]
    for way, work in found["multiply_adds"].items():
        chosen = " (this one)" if way == found["way"] else ""
        lines.append(f"| {way}{chosen} | {work:,} | {found['ram_stream'][way]:,} |")
    if found["advice"] is not None:
        lines += ["", f"`{found['advice']}`"]
    return [*lines, "", *_smoothing(found), ""]


def _smoothing(found: dict[str, Any]) -> list[str]:
    own = found["smoothing"]
    if own is None:
        return []
    lines = [
        f"A label comes with a probability of {own['at']:g}, and goes where it is wrong with that. "
        f"A window counts as {own['evidence']:.3g}",
        f"of an independent one, and another class may have begun since the window before with "
        f"the probability {own['change']:.3g}.",
    ]
    judged = found["decided"]
    if judged is None:
        return [*lines, "Not judged: there were no labelled streams."]
    alone, both = judged["alone"], judged["together"]
    return [
        *lines,
        f"On {judged['windows']:,} windows that did not choose them: accuracy "
        f"{alone['accuracy']:.4f} alone and {both['accuracy']:.4f} together, NLL",
        f"{alone['nll']:.4f} and {both['nll']:.4f}, ECE {alone['ece']:.4f} and {both['ece']:.4f}. "
        f"{judged['labelled']:.1%} have a label, of which {judged['right']:.1%} are",
        f"right; {judged['stated']:.1%} was stated.",
    ]


# --------------------------------------------------------------------------------------------------
# README section on windows
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# The README of an export
# --------------------------------------------------------------------------------------------------

EXAMPLE = """    float x[MODEL_INPUTS] = { /* sensor values */ };
    float %s;
    static float scratch[(MODEL_SCRATCH_BYTES + 3) / 4];
    int status = model_predict(x, %s, scratch);
"""


LEARNING = """## Learning on

    static model_state state; /* yours: store it as it is, and go on */
    model_row row;            /* keep it until the label comes; rows may wait in a ring */
    float low[MODEL_OUTPUTS], high[MODEL_OUTPUTS];
    model_begin(&state);
    status = model_live(&state, x, &row, mean, std, low, high, scratch);
    model_observe(&state, &row, y); /* late, in any order, or never */

"""


def readme(source: Source, report: dict[str, Any]) -> str:
    """What the folder holds, how to call it, what it costs and how good it is."""
    model, size = source.model, report["bytes"]
    what = "x" if model.window == 1 else "channel"
    rooms = ", ".join(f"{result}[MODEL_OUTPUTS]" for result in model.results)
    example = renamed(EXAMPLE % (rooms, ", ".join(model.results)), source.name)
    lines = [
        f"# {source.name}",
        "",
        f"A {shown(model.head)} network, {source.values['widths']}, weights in "
        f"{source.values['dtype']}, exported by rdeepsense {shown(model.version)}. Plain C99; "
        "needs no library.",
        *_kept(model, report),
        "",
        *example.splitlines(),
        "",
        "Build it with `model.c` and `weights.c`. Optimise: `-O2` on Cortex-M, `-O3` elsewhere, on",
        "a PC also `-march=native`; wide instructions are used where the compiler knows of them.",
        *(
            ["On 32-bit ARM add `-mfp16-format=ieee`, so that the processor converts half floats."]
            if source.network.dtype == "float16"
            else []
        ),
        "Check it on the device itself:",
        "",
        "    cc -std=c99 -O2 selftest.c model.c weights.c -o selftest && ./selftest",
        "",
        "`exp`, `log1p`, `sqrt` and softplus are its own, with a relative error of at most 6e-7.",
        *_embedding(report),
        "",
        *_epistemic(source, report),
        *_watch(source, report),
        *_live(source, report),
        *windows(source, report),
        *samples(source, report),
        "## Inputs",
        "",
        *_ranges(source),
        (
            "An input that is NaN counts as its mean; one that never was NaN in the training rows "
            "also has a status."
            if model.missing == "mean"
            else "An input that is NaN is missing, which the model was trained for where training "
            "rows lacked it; otherwise it counts as its mean and has a status."
            if model.missing == "indicator"
            else "An input that is NaN is refused."
        ),
        "",
        f"| {what} | name [unit] | mean | standard deviation | range |",
        "|---|---|---|---|---|",
    ]
    ranges = [""] * model.channels
    if (guard := model.guard) is not None:
        ends = zip(guard.low, guard.high, strict=True)
        ranges = [f"{low:.6g} to {high:.6g}" for low, high in ends]
    inputs = labelled(model.features, model.feature_units, model.channels, shown)
    numbers = range(model.channels) if model.encoding is None else model.encoding.numbers
    for k, mean, std in zip(numbers, model.centre, model.scale, strict=False):
        inputs[k] = f"{inputs[k]} | {mean:.6g} | {std:.6g} | {ranges[k]}"
    for category in () if model.encoding is None else model.encoding.categories:
        k = category.column
        inputs[k] = f"{inputs[k]} | | | {len(category.levels)} levels, named in model.h"
    lines += [f"| {k} | {text} |" for k, text in enumerate(inputs)]
    if formulas := model.formulas:
        lines += ["", f"Inputs made of dates. {CLOCK}", ""]
        lines += [f"- x[{k}] = {text}" for k, text in formulas.items()]
    lines += [
        *_outputs(model),
        "",
        "## Cost",
        "",
        f"- {report['multiply_adds']:,} multiply-adds",
        f"- {size['tables_in_flash']:,} bytes of tables (flash)",
        f"- {size['ram_scratch']:,} bytes of scratch (RAM), the caller's",
    ]
    if size["code_in_flash"] is not None:
        lines.append(
            f"- {size['code_in_flash']:,} bytes of code, {size['stack']:,} bytes of stack "
            f"({size['measured_with']})"
        )
    lines += ["", "## Quality", ""]
    quality = report["quality"]
    if quality is None:
        lines.append("Not measured: the model file carries no rows and none were given.")
    else:
        lines += [f"On {quality['rows']} rows ({quality['rows_from']})."]
        if quality["rows_from"] == "model file":
            lines += [
                "They are validation rows, which the model was also chosen on: metrics of new",
                "rows may be worse, and `--data FILE` judges on rows of your own.",
            ]
        lines += [
            "",
            "| | trained | exported |",
        ]
        lines.append("|---|---|---|")
        for key, value in quality["before"].items():
            lines.append(f"| {key} | {value:.4f} | {quality['after'][key]:.4f} |")
        if made := quality.get("fine_tuned"):
            lines += [
                "",
                f"The weights were fine-tuned for int8 on {made['rows']} other rows; without that "
                f"the NLL rises by {made['nll_change_without']:.4f}.",
            ]
    return "\n".join(lines) + "\n"


def _ranges(source: Source) -> list[str]:
    """What the status of a row means."""
    name, reach = source.name.upper(), f"{source.network.reach:g} standard deviations"
    if source.model.guard is None:
        return [f"An input further than {reach} from the training mean is out of range."]
    wide = "the probabilities are mixed half and half with the training frequencies"
    if not source.model.is_classifier:
        wide = "the mean stays and std is at least that of the training targets"
    return [
        f"Where an input lies outside its range, the status is {name}_OUT_OF_RANGE,",
        f"`{source.name}_flagged_input(x)` says which input it is, and {wide}.",
        f"Values beyond {reach} from the training mean are clipped there.",
    ]


def shown(text: str) -> str:
    """Text that is no link in Markdown: brackets that another kind follows are marked as text."""
    return re.sub(r"\](?=[(\[:])", r"\\]", remark(text))


def _kept(model: CModel, report: dict[str, Any]) -> list[str]:
    """Which layers of a float16 export are not."""
    if not report["kept_float32"]:
        return []
    kept = ", ".join(map(str, report["kept_float32"]))
    what = "a probability" if model.is_classifier else "a mean or std"
    unit = "" if model.is_classifier else " of the std"
    return [
        f"Of its {len(report['layers'])} layers, from 0 on, kept in float32: {kept}. With all in "
        f"float16 {what} would move by more than {HALF_CHANGE:g}{unit}."
    ]


def _embedding(report: dict[str, Any]) -> list[str]:
    """What stands between the inputs and the first layer."""
    if "embedding" not in report:
        return []
    found = report["embedding"]
    return [
        f"Its first layer reads the inputs, and of each {found['width']} numbers more, made of "
        f"{found['frequencies']} sines and cosines:",
        f"{found['bytes_in_flash']:,} bytes of float32. Sine and cosine have an absolute error of "
        "at most 3e-7, and read an",
        f"input up to {EMBEDDING_REACH:g} standard deviations from its mean.",
    ]


def _outputs(model: CModel) -> list[str]:
    """What the numbers that come out are, as far as that is known."""
    if model.classes is not None:
        texts = [shown(str(label)) for label in model.classes]
        what = f"class of {shown(model.targets[0])}" if model.targets else "class"
    else:
        texts = labelled(model.targets, model.target_units, model.outputs, shown)
        what = "name [unit]"
    if not any(texts):
        return []
    name = "probs" if model.is_classifier else "mean, std"
    lines = ["", "## Outputs", "", f"| {name} | {what} |", "|---|---|"]
    return lines + [f"| {k} | {text} |" for k, text in enumerate(texts)]


def _epistemic(source: Source, report: dict[str, Any]) -> list[str]:
    if source.model.laplace is None:
        return []
    matrix = report["epistemic"]["matrix"]
    what = '`std` is that of `predict_dist(X, epistemic="laplace")`; `epistemic` is the part of it'
    if source.model.is_classifier:
        what = '`probs` are those of `predict_dist(X, epistemic="laplace")`; `epistemic` is the std'
    return [
        "## Inputs unlike the training rows",
        "",
        what + (" of each logit" if source.model.is_classifier else "") + " that is",
        "doubt about what was learnt, as `epistemic_std(X)` gives it: the Laplace approximation of",
        f"the last layer, the upper triangle of a matrix of {matrix} x {matrix} in float32, "
        f"{report['epistemic']['bytes_in_flash']:,} bytes.",
        "",
    ]


def _watch(source: Source, report: dict[str, Any]) -> list[str]:
    """What else the status may say of a row."""
    name, lines = source.name.upper(), []
    if source.model.refusal is not None:
        lines += [
            f"The status has {name}_UNSURE where the prediction is less sure than the threshold of "
            "the reject option."
        ]
    if "novelty" in report:
        found = report["novelty"]
        lines += [
            f"It has {name}_UNLIKE where `{source.name}_surprise(x)`, which tells how unlike the "
            f"training rows x is, is above {name}_UNLIKE_ABOVE:",
            f"{found['false_alarms']:.1%} of {found['rows']} healthy rows. "
            f"{found['bytes_in_flash']:,} bytes of tables, {found['multiply_adds']:,} "
            "multiply-adds.",
            "",
            "| AUROC | here | full novelty |",
            "|---|---|---|",
            *(
                f"| {fault} | {value:.3f} | {found['full_auroc'][fault]:.3f} |"
                for fault, value in found["auroc"].items()
            ),
        ]
    return ["## Rows to refuse", "", *lines, ""] if lines else []


def _live(source: Source, report: dict[str, Any]) -> list[str]:
    """What learns on, and what that takes."""
    if "live" not in report:
        return []
    found = report["live"]
    intervals = []
    if source.switches["STREAMS"]:
        intervals = [
            f"Intervals learn on as windows do: `{source.name}_live_interval(&state, &window, "
            "x, ...)`. The running way does not",
            "learn: its last layer reads other numbers than the trained one.",
        ]
    return [
        *renamed(LEARNING, source.name).splitlines(),
        *intervals,
        f"The interval is of {100 * found['coverage']:g} %, and follows how often it held. A label "
        "that is NaN or infinite is refused.",
        "",
        f"- {found['state_bytes']:,} bytes of state (RAM), {found['row_bytes']:,} of each row that "
        "waits for its label",
        f"- {found['multiply_adds_of_a_label']:,} multiply-adds a label",
        "",
    ]
