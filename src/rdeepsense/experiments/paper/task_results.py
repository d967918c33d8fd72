"""Results of a study on one task: its methods over all trainings, and the alpha study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rdeepsense.experiments.paper.score import CalibrationCurve, Examples, RiskCurve, Values
from rdeepsense.experiments.paper.study import TaskFacts
from rdeepsense.experiments.paper.trainings import Faults, PredictionCost
from rdeepsense.experiments.records import LEFT_OUT, Record, mapping, plain

Figures = Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True)
class MethodResults(Record):
    """One method over all its trainings: means, and errors that hold rows and trainings both."""

    about: str
    fit_seconds: float | None
    chosen: Mapping[str, object] | None  # a list where the trainings chose differently
    figures: Figures
    calibration: CalibrationCurve | None
    risk_coverage: RiskCurve | None
    group_coverage: Values | None
    jackknife: Mapping[str, Values] = field(default_factory=dict)
    passes: int | None
    faults: Faults | None = field(default=None, metadata=LEFT_OUT)
    warnings: Sequence[str]
    seeds: int = 1
    by_seed: Mapping[str, Values] = field(default_factory=dict)
    cost: PredictionCost | None


@dataclass(frozen=True)
class AlphaPoint(Record):
    """One alpha of the study; in JSON its figures stand beside the rest."""

    alpha: float
    figures: Figures
    warnings: Sequence[str] = field(default_factory=list)
    jackknife: Mapping[str, Values] = field(default_factory=dict)
    seeds: int = 1
    by_seed: Mapping[str, Values] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return plain data, ready for `json.dumps`."""
        return {
            "alpha": self.alpha,
            **self.figures,
            "warnings": list(self.warnings),
            "jackknife": plain(self.jackknife),
            "seeds": self.seeds,
            "by_seed": plain(self.by_seed),
        }

    @classmethod
    def from_json(cls, content: object) -> AlphaPoint:
        """Read what `to_json` gave."""
        figures = dict(mapping(content, cls.__name__))
        own: dict[str, object] = {
            name: figures.pop(name)
            for name in ("alpha", "warnings", "jackknife", "seeds", "by_seed")
            if name in figures
        }
        return super().from_json({**own, "figures": figures})


@dataclass(frozen=True)
class TaskResults(TaskFacts):
    """A task with what was found on it."""

    methods: Mapping[str, MethodResults]
    alpha_study: Sequence[AlphaPoint]
    examples: Examples | None

    @property
    def is_classification(self) -> bool:
        """Whether the targets are classes."""
        return self.kind == "classification"
