"""The contents of a study's cells: trainings of a family or of one alpha, and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rdeepsense.experiments.paper.score import CalibrationCurve, Examples, RiskCurve, Values
from rdeepsense.experiments.records import LEFT_OUT, Record, mapping, plain

Faults = Mapping[str, Mapping[str, float | None]]
"""Figures by fault, with those of healthy rows among them."""


@dataclass(frozen=True, kw_only=True)
class MethodTraining(Record):
    """One method of a family that was trained once, scored on the test rows."""

    about: str
    fit_seconds: float
    chosen: Mapping[str, object] | None
    figures: Mapping[str, float | None]
    calibration: CalibrationCurve | None
    risk_coverage: RiskCurve | None
    group_coverage: Values | None
    jackknife: Mapping[str, Values]  # leave-one-out values of figures
    passes: int | None
    faults: Faults | None = field(default=None, metadata=LEFT_OUT)
    warnings: Sequence[str]
    examples: Examples | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True)
class FamilyTraining(Record):
    """The methods of a family that was trained once, by name."""

    methods: Mapping[str, MethodTraining]

    def to_json(self) -> dict[str, object]:
        """Return plain data, ready for `json.dumps`."""
        return {name: plain(method) for name, method in self.methods.items()}

    @classmethod
    def from_json(cls, content: object) -> FamilyTraining:
        """Read what `to_json` gave."""
        found = mapping(content, cls.__name__)
        return cls({name: MethodTraining.from_json(own) for name, own in found.items()})


@dataclass(frozen=True)
class AlphaTraining(Record):
    """One training of the paper's model with a given alpha."""

    figures: Mapping[str, float | None]
    warnings: Sequence[str]
    jackknife: Mapping[str, Values]


@dataclass(frozen=True)
class EnergySource(Record):
    """The device that energy is of, whether it is estimated or measured, and how."""

    profile: str
    energy: str
    how: str


@dataclass(frozen=True, kw_only=True)
class PredictionCost(Record):
    """The cost of one prediction."""

    microseconds: float
    microseconds_batched: float | None = None  # with the passes as one batch
    multiply_adds: int
    bytes: int
    millijoules: float
    energy: str  # "estimated" or "measured"


@dataclass(frozen=True)
class Costs(Record):
    """The cost of one prediction by each method."""

    device: EnergySource
    methods: Mapping[str, PredictionCost]
