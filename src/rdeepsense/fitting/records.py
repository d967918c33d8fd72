"""Candidates of a search, and the records of what was trained and chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any, Literal

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.data.findings import Finding
from rdeepsense.errors import InputError
from rdeepsense.heads import head_named
from rdeepsense.modelfile.layout import COUNT, FIGURE, OBJECT, SHORT, TEXTS
from rdeepsense.modelfile.schema import (
    FLAG,
    Kind,
    check_fields,
    choice,
    either,
    maybe,
    several,
    whole,
)
from rdeepsense.modelfile.tensors import Header

# --------------------------------------------------------------------------------------------------
# Candidates of a search: heads, alphas and drop probabilities
#
# The judge is the validation NLL after calibration, in the target's own units; the deviation area
# is reported and never judges, because a badly fitting model can have a small one (reading: section
# 4.6). `alpha="paper"` does what the paper does instead: the least deviation area on its grid.
# --------------------------------------------------------------------------------------------------

DROPS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
ALPHAS = (0.0, 0.5)
PAPER_ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)
FOLDS = 5
FEW_VALIDATION_ROWS = 500
CLEARLY = 2.0  # standard errors

Drop = float | tuple[float, ...]
Criterion = Literal["nll", "deviation_area"]


@dataclass(frozen=True)
class Candidate:
    """One point of the grid."""

    likelihood: str
    alpha: float
    drop_prob: Drop


@dataclass(frozen=True)
class Trial:
    """A candidate and its results on rows it was not trained on, calibrated there."""

    candidate: Candidate
    nll: float
    deviation_area: float | None  # None for classes
    calibration: float | None
    best_step: int

    def to_json(self) -> dict[str, Any]:
        """Return one flat dictionary."""
        values = asdict(self)
        return {**values.pop("candidate"), **values}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Trial:
        values = dict(value)
        drop_prob = values.pop("drop_prob")
        drop = tuple(drop_prob) if isinstance(drop_prob, list) else drop_prob
        candidate = Candidate(values.pop("likelihood"), values.pop("alpha"), drop)
        return cls(candidate, **values)


def candidates(
    likelihoods: Sequence[str], alpha: float | str, drop_prob: float | Sequence[float] | str
) -> tuple[Candidate, ...]:
    """Return the grid that the arguments span; a single candidate when none is left open."""
    alphas: Sequence[float]
    if alpha == "auto":
        alphas = ALPHAS
    elif alpha == "paper":
        alphas = PAPER_ALPHAS
    elif isinstance(alpha, str):
        raise InputError(f"alpha = {alpha!r} is unknown; accepted: a number in [0, 1), auto, paper")
    else:
        alphas = (alpha,)
    if isinstance(drop_prob, str) and drop_prob != "auto":
        raise InputError(f"drop_prob = {drop_prob!r} is unknown; accepted: numbers in [0, 1), auto")
    drops: Sequence[Any] = DROPS if drop_prob == "auto" else (drop_prob,)
    return tuple(Candidate(*point) for point in product(likelihoods, alphas, drops))


def best(trials: Sequence[Trial], by: Criterion, losses: Sequence[Floats]) -> int:
    """Return the number of the trial with the least `by`, "nll" or "deviation_area".

    A head with light tails must win by more than two standard errors of the paired difference of
    `losses` (the NLL of each judged row): a Student-t can become a Gaussian, and one surprise in a
    thousand rows can cost a Gaussian more than it gained on the others.
    """
    winner = min(range(len(trials)), key=lambda i: getattr(trials[i], by))
    heavy = [i for i, trial in enumerate(trials) if _is_heavy(trial)]
    if by == "nll" and heavy and not _is_heavy(trials[winner]):
        rival = min(heavy, key=lambda i: trials[i].nll)
        difference = losses[rival] - losses[winner]
        if difference.mean() < CLEARLY * difference.std() / np.sqrt(len(difference)):
            return rival
    return winner


def _is_heavy(trial: Trial) -> bool:
    return head_named(trial.candidate.likelihood).heavy_tailed


# --------------------------------------------------------------------------------------------------
# Resources that a network needs on its device
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeviceCost:
    """Bytes, and the multiply-adds of one prediction."""

    flash: int
    ram: int
    multiply_adds: int

    def to_json(self) -> dict[str, int]:
        return asdict(self)


# --------------------------------------------------------------------------------------------------
# The Pareto front of trained networks
# --------------------------------------------------------------------------------------------------


def front(points: Sequence[Sequence[float]]) -> list[int]:
    """Return the numbers of the points, less is better, that no other one dominates.

    p dominates q where p <= q in every coordinate and p < q in one; of equal points all stay.
    """
    return [
        k
        for k, own in enumerate(points)
        if not any(
            all(a <= b for a, b in zip(other, own, strict=True)) and tuple(other) != tuple(own)
            for other in points
        )
    ]


# --------------------------------------------------------------------------------------------------
# Records of training and selection in a model
# --------------------------------------------------------------------------------------------------

Json = dict[str, Any]  # Any: whatever JSON holds


@dataclass(frozen=True)
class TrainingReport:
    """The report of a training: facts that the library itself reads, and further details."""

    seed: int
    rows: int
    validation_rows: int
    validated: str  # on what: "validation rows", those given, or cross-validation
    details: Mapping[str, Any] = field(default_factory=dict)
    teacher: str | None = None  # of a distilled model
    constant_inputs: tuple[str, ...] = ()  # those that float32 cannot tell from a constant
    findings: tuple[Finding, ...] = ()  # of the check of the data

    def to_json(self) -> Json:
        known = {
            "rows": self.rows,
            "validation_rows": self.validation_rows,
            "validated": self.validated,
            "seed": self.seed,
        }
        more: Json = {} if self.teacher is None else {"teacher": self.teacher}
        if self.constant_inputs:
            more["constant_inputs"] = list(self.constant_inputs)
        if self.findings:
            more["findings"] = [one.to_json() for one in self.findings]
        return {**known, **self.details, **more}

    @classmethod
    def from_json(cls, value: Json) -> TrainingReport:
        details = dict(value)
        known = {name: details.pop(name) for name in _KNOWN}
        teacher, constant = details.pop("teacher", None), details.pop("constant_inputs", ())
        findings = tuple(Finding.from_json(one) for one in details.pop("findings", ()))
        return cls(
            **known,
            details=details,
            teacher=teacher,
            constant_inputs=tuple(constant),
            findings=findings,
        )


LAST_ROWS = "the last rows in time"
THEN_ALL_ROWS = "validation rows, then trained on all rows"
_KNOWN = ("seed", "rows", "validation_rows", "validated")


@dataclass(frozen=True)
class TriedLength:
    """A length of training that was tried for the winner."""

    steps: int
    nll: float

    def to_json(self) -> Json:
        return {"steps": self.steps, "nll": self.nll}


@dataclass(frozen=True)
class Gap:
    """The figure that is worse than the chosen one's, with the error of that difference."""

    difference: float  # mean over the judged rows
    standard_error: float | None  # None where it is not a mean over rows

    def to_json(self) -> Json:
        return asdict(self)

    @classmethod
    def of(cls, losses: Floats, chosen: Floats) -> Gap:
        """Compare the NLL of the same rows, pair by pair."""
        difference = losses - chosen
        error = difference.std() / np.sqrt(len(difference))
        return cls(float(difference.mean()), float(error))


@dataclass(frozen=True)
class TriedArchitecture:
    """An architecture on a few steps: its best candidate's calibrated NLL."""

    name: str
    arguments: Json
    parameters: int
    nll: float
    chosen: bool = False
    behind: Gap | None = None  # None for the chosen one
    need: DeviceCost | None = None  # on the device, where there is a budget

    def to_json(self) -> Json:
        value = asdict(self)
        if self.need is None:
            del value["need"]
        return value

    @classmethod
    def from_json(cls, value: Json) -> TriedArchitecture:
        behind, need = value.get("behind"), value.get("need")
        parts = {
            "behind": None if behind is None else Gap(**behind),
            "need": None if need is None else DeviceCost(**need),
        }
        return cls(**{**value, **parts})


@dataclass(frozen=True)
class RunnerUp:
    """The trial that came second, and by how much."""

    trial: int
    behind: Gap

    def to_json(self) -> Json:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Json) -> RunnerUp:
        return cls(value["trial"], Gap(**value["behind"]))


@dataclass(frozen=True)
class Selection:
    """The trials among which a candidate was chosen."""

    by: Criterion
    how: str
    chosen: int
    trials: tuple[Trial, ...]
    lengths: tuple[TriedLength, ...] | None = None  # None where no other length was an option
    architectures: tuple[TriedArchitecture, ...] | None = None  # None where it was given
    second: RunnerUp | None = None  # None where there was one trial alone
    cut: bool = False  # whether the clock ended the search, so that another run may choose another

    def to_json(self) -> Json:
        value: Json = {
            "by": self.by,
            "how": self.how,
            "chosen": self.chosen,
            "trials": [trial.to_json() for trial in self.trials],
        }
        if self.lengths is not None:
            value["lengths"] = [length.to_json() for length in self.lengths]
        if self.architectures is not None:
            value["architectures"] = [tried.to_json() for tried in self.architectures]
        if self.second is not None:
            value["second"] = self.second.to_json()
        if self.cut:
            value["cut"] = True
        if found := self.front():
            value["front"] = [tried.to_json() for tried in found]
        return value

    def front(self) -> list[TriedArchitecture]:
        """Return the architectures that none other beats in NLL, flash and multiply-adds at once.

        Smaller ones come first; there are none where there was no budget.
        """
        tried = [
            (one, (one.nll, one.need.flash, one.need.multiply_adds))
            for one in self.architectures or ()
            # A file has null for an NLL that was not finite.
            if one.need is not None and one.nll is not None and math.isfinite(one.nll)
        ]
        points = [point for _, point in tried]
        return [tried[k][0] for k in sorted(front(points), key=lambda k: points[k][1:])]

    @classmethod
    def from_json(cls, value: Json) -> Selection:
        lengths, tried = value.get("lengths"), value.get("architectures")
        second = value.get("second")
        return cls(
            by=value["by"],
            how=value["how"],
            chosen=value["chosen"],
            trials=tuple(Trial.from_json(trial) for trial in value["trials"]),
            lengths=None if lengths is None else tuple(TriedLength(**length) for length in lengths),
            architectures=None
            if tried is None
            else tuple(TriedArchitecture.from_json(one) for one in tried),
            second=None if second is None else RunnerUp.from_json(second),
            cut=value.get("cut", False),
        )


# --------------------------------------------------------------------------------------------------
# The records in a model file: training, validation_scores and selection
# --------------------------------------------------------------------------------------------------

SHARE = Kind(lambda value: type(value) in (int, float) and 0 <= value < 1, "a number in [0, 1)")
DROP_PROBS = either(SHARE, several(SHARE, 10_000))
TRAINING = {
    "seed": whole(0, 2**32 - 1),
    "rows": COUNT,
    "validation_rows": COUNT,
    "validated": SHORT,
}
TRAINING_OPTIONAL = {
    "teacher": SHORT,
    "constant_inputs": TEXTS,
    "budget": OBJECT,
    "findings": several(OBJECT, 10_000),
}
FINDING = {
    "code": SHORT,
    "severity": choice("info", "warning", "error"),
    "message": SHORT,
    "columns": TEXTS,
    "cure": SHORT,
    "option": SHORT,
}
SELECTION = {
    "by": choice("nll", "deviation_area"),
    "how": SHORT,
    "chosen": COUNT,
    "trials": several(OBJECT, 10_000, least=1),
}
SELECTION_OPTIONAL = {
    **dict.fromkeys(("lengths", "architectures"), maybe(several(OBJECT, 10_000))),
    "second": OBJECT,
    "cut": FLAG,
}
TRIAL = {
    "likelihood": SHORT,
    "alpha": SHARE,
    "drop_prob": DROP_PROBS,
    "nll": FIGURE,
    "deviation_area": FIGURE,
    "calibration": FIGURE,
    "best_step": COUNT,
}
LENGTH = {"steps": COUNT, "nll": FIGURE}
TRIED = {
    "name": SHORT,
    "arguments": OBJECT,
    "parameters": COUNT,
    "nll": FIGURE,
    "chosen": FLAG,
}
BEHIND = {"difference": FIGURE, "standard_error": FIGURE}
SECOND = {"trial": COUNT, "behind": OBJECT}
NEED = dict.fromkeys(("flash", "ram", "multiply_adds"), COUNT)
NEEDED = Kind(
    lambda value: (
        type(value) is dict
        and value.keys() == NEED.keys()
        and all(NEED[name].accepts(one) for name, one in value.items())
    ),
    f"an object of whole numbers: {', '.join(NEED)}",
)
RECORDS: dict[str, tuple[Mapping[str, Kind], Mapping[str, Kind]]] = {  # required and optional
    "trials": (TRIAL, {}),
    "lengths": (LENGTH, {}),
    "architectures": (TRIED, {"behind": maybe(OBJECT), "need": NEEDED}),
}


def check_records(header: Header) -> None:
    """Refuse records of training and selection that are garbled or contradict each other."""
    check_fields(header["training"], TRAINING, TRAINING_OPTIONAL, "training.")
    for place, finding in enumerate(header["training"].get("findings", ())):
        check_fields(finding, FINDING, at=f"training.findings[{place}].", closed=True)
    scores = header["validation_scores"]
    check_fields(scores, dict.fromkeys(scores, FIGURE), at="validation_scores.")
    selection = header["selection"]
    if selection is None:
        return
    check_fields(selection, SELECTION, SELECTION_OPTIONAL, "selection.")
    for name, (required, optional) in RECORDS.items():
        for number_of, record in enumerate(selection.get(name) or ()):
            at = f"selection.{name}[{number_of}]."
            check_fields(record, required, optional, at, closed=True)
            if record.get("behind") is not None:
                check_fields(record["behind"], BEHIND, at=f"{at}behind.", closed=True)
    tried = selection.get("architectures") or ()
    if len({"need" in one for one in tried}) > 1:
        raise InputError("selection.architectures has a need for some and not for all")
    numbers = {"chosen": selection["chosen"]}
    if "second" in selection:
        check_fields(selection["second"], SECOND, at="selection.second.")
        behind = selection["second"]["behind"]
        check_fields(behind, BEHIND, at="selection.second.behind.", closed=True)
        numbers["second.trial"] = selection["second"]["trial"]
    for name, value in numbers.items():
        if value >= len(selection["trials"]):
            raise InputError(
                f"selection.{name} = {value} is none of {len(selection['trials'])} trials"
            )
