"""Several trainings of one method: their mean, and errors that hold test rows and training both.

With S trainings judged on the same test rows, which fall into B blocks (`jackknife`),

    value = mean_s v_s,    se^2 = se_rows^2 + s^2 / S,    s^2 = sum_s (v_s - value)^2 / (S - 1),

se_rows from leaving one block at a time out of the mean over trainings. What a training does well
on these very rows is in both terms, so the error is a little too large rather than too small. With
one training s is not known, and the error is that of the rows alone.

A few trainings say little of s, so an interval takes the quantile of Student's t with the degrees
of freedom of Welch and Satterthwaite,

    nu = se^4 / (se_rows^4 / (B - 1) + (s^2 / S)^2 / (S - 1)).

The difference of two methods is treated alike, with the differences in place of the values: what
both have in common (rows, and the training where they share a model) drops out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, variance
from typing import Any

from rdeepsense.experiments.paper.jackknife import standard_error

Values = Sequence[float | None]


def combined(
    rows: float | None, by_seed: Values, blocks: float = math.inf
) -> tuple[float | None, float]:
    """The standard error of a mean over seeds, and its degrees of freedom.

    `rows` is the error over test rows, from so many blocks; None where it is not known.
    """
    known = [value for value in by_seed if value is not None]
    if rows is None or not known or len(known) < len(by_seed):
        return None, math.inf
    if len(known) == 1:
        return rows, blocks - 1
    seeds = variance(known) / len(known)
    error = math.sqrt(rows**2 + seeds)
    doubt = rows**4 / (blocks - 1) + seeds**2 / (len(known) - 1)
    return error, error**4 / doubt if doubt else math.inf


def over_seeds(trainings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One method from its trainings: means of figures, curves and leave-one-out values.

    A figure that one training has no finite value of has none. `by_seed` keeps them one by one.
    """
    first = trainings[0]
    given = [training["figures"] for training in trainings]
    names = [name for name in given[0] if not name.endswith("_se")]
    by_seed = {name: [figures.get(name) for figures in given] for name in names}
    jackknife = {
        name: means([training["jackknife"].get(name, ()) for training in trainings])
        for name in first["jackknife"]
    }
    figures: dict[str, Any] = {name: mean(values) for name, values in by_seed.items()}
    for name in names:
        if f"{name}_se" in given[0]:
            dropped = jackknife.get(name)
            # The KL has no leave-one-out values: the errors of its trainings, root mean square.
            rows = standard_error(dropped) if dropped else _rms([f[f"{name}_se"] for f in given])
            figures[f"{name}_se"] = combined(rows, by_seed[name])[0]
    warned = sorted({words for training in trainings for words in training["warnings"]})
    merged = dict(first) | {
        "seeds": len(trainings),
        "figures": figures,
        "by_seed": by_seed,
        "jackknife": jackknife,
        "warnings": warned,
    }
    for key, inner in (("calibration", "observed"), ("risk_coverage", "risk")):
        if first.get(key):
            values = means([training[key][inner] for training in trainings])
            merged[key] = first[key] | {inner: values}
    if first.get("group_coverage"):
        merged["group_coverage"] = means([one["group_coverage"] for one in trainings])
    if first.get("faults"):
        merged["faults"] = {
            kind: {name: mean([one["faults"][kind][name] for one in trainings]) for name in figures}
            for kind, figures in first["faults"].items()
        }
    if "fit_seconds" in first:
        merged["fit_seconds"] = mean([training["fit_seconds"] for training in trainings])
    if first.get("chosen"):
        merged["chosen"] = _chosen([training["chosen"] for training in trainings])
    return merged


def mean(values: Values) -> float | None:
    """None where one is missing."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def means(lists: Sequence[Values]) -> list[float | None]:
    """Place by place."""
    return [mean(values) for values in zip(*lists, strict=True)]


def _rms(values: Values) -> float | None:
    square = mean([None if value is None else value**2 for value in values])
    return None if square is None else math.sqrt(square)


def _chosen(choices: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A choice that all trainings made as it is, others as the list of them."""
    lists = {key: [own[key] for own in choices] for key in choices[0]}
    return {
        key: own[0] if all(value == own[0] for value in own) else own for key, own in lists.items()
    }
