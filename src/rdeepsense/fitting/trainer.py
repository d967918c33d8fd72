"""The trainer: banks of networks on the rows of a fit, cross-validation and calibration."""

from __future__ import annotations

import copy
import math
import os
import time
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.modules.conv import _ConvNd

from rdeepsense import calibration, metrics
from rdeepsense._progress import Lines, Progress, progress_for
from rdeepsense.arrays import Booleans, Floats, Integers
from rdeepsense.calibration import Calibration
from rdeepsense.data.level_vectors import scaled_targets
from rdeepsense.data.rows import FitRows
from rdeepsense.data.scaling import Scaler
from rdeepsense.data.splits import Part
from rdeepsense.distributions import AnyDistribution, concatenate
from rdeepsense.dropout import StochasticNetwork, convert
from rdeepsense.engines import Engine, Failure, Ray
from rdeepsense.errors import InputError, InterruptedTraining, RDeepSenseError
from rdeepsense.fitting.ladder import FEW_ROWS
from rdeepsense.fitting.passes import Forward
from rdeepsense.fitting.records import FOLDS, LAST_ROWS, Candidate, Selection, TrainingReport, Trial
from rdeepsense.fitting.spec import FitSpec, TrainedNetwork
from rdeepsense.fitting.target import Target
from rdeepsense.heads import head_named
from rdeepsense.networks.base import built, set_input_units
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Rows, Schedule, TrainingRecord, train_networks

# --------------------------------------------------------------------------------------------------
# Additional missing values in training rows
#
# A column that lacks a value in a few rows teaches a network little of what that means, and its
# intervals are too narrow there. So each row is also trained on with holes drawn anew, at the rate
# of the column's own, in as many copies as make 2,000 holes of the rarest column; at most 7. It
# takes no longer: an epoch is as many steps as without them.
#
# Not where a hole tells something of the target: a sensor may fail because of what it should
# measure, and drawn holes would water that down. That is where mean or square of the targets with
# and without the hole are more than 3 standard errors apart.
# --------------------------------------------------------------------------------------------------

ENOUGH = 2_000  # holes of a column
MOST_COPIES = 7
MOST_ROWS = 400_000  # of all copies together
TELLING = 3.0  # standard errors
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class MissingValueAugmentation:
    """Columns that lack values by chance, how often, and how many copies of a row have new ones."""

    columns: tuple[int, ...]
    rates: Floats
    copies: int
    seed: int

    @classmethod
    def of(cls, rows: FitRows, classes: int | None) -> MissingValueAugmentation | None:
        """Find the columns among those with a flag; None where there is nothing to draw."""
        if rows.encoding is None or not rows.encoding.flagged:
            return None
        part, y = rows.rows, scaled_targets(rows.y[rows.rows.index], classes)
        told = np.hstack([y, y**2])
        columns, counts = [], []
        for column in rows.encoding.flagged:
            lacking = np.isnan(rows.X[part.index, column])
            if lacking.any() and not _tells(lacking, told):
                columns.append(column)
                counts.append(int(lacking.sum()))
        if not columns:
            return None
        copies = min(MOST_COPIES, -(-ENOUGH // min(counts)) - 1, MOST_ROWS // len(part))
        rates = np.array(counts, np.float64) / len(part)
        return cls(tuple(columns), rates, copies, rows.seed) if copies else None

    def drawn(self, x: torch.Tensor, scaler: Scaler) -> torch.Tensor:
        """Return scaled rows, and below them their copies with further holes."""
        encoding = scaler.encoding
        assert encoding is not None
        numbers = [encoding.numbers.index(column) for column in self.columns]
        flags = [len(encoding.numbers) + encoding.flagged.index(k) for k in self.columns]
        on = torch.from_numpy((1 - scaler.shift[flags]) / scaler.scale[flags]).to(x)
        rng, parts = np.random.default_rng(self.seed), [x]
        for _ in range(self.copies):
            hole = torch.from_numpy(rng.random((len(x), len(numbers))) < self.rates).to(x.device)
            copy = x.clone()
            copy[:, numbers] = torch.where(hole, 0.0, copy[:, numbers])
            copy[:, flags] = torch.where(hole, on, copy[:, flags])
            parts.append(copy)
        return torch.cat(parts)


def _tells(lacking: Booleans, values: Floats) -> bool:
    """Tell whether values with a hole differ from the others by more than chance would have it."""
    with_hole, without = values[lacking], values[~lacking]
    if len(with_hole) < 2 or len(without) < 2:
        return False
    error = np.sqrt(with_hole.var(0) / len(with_hole) + without.var(0) / len(without))
    apart = np.abs(with_hole.mean(0) - without.mean(0)) / np.maximum(error, TINY)
    return bool(apart.max() > TELLING)


# --------------------------------------------------------------------------------------------------
# Predictions of networks for held-out groups
#
# A new person or a new sensor is unlike all rows that were trained on, but it is like a group that
# was left out of a training. So whatever is to be true of a new group is learnt from these rows:
# calibration now, and how fast a model may adapt.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LeftOutFold:
    """A network, the rows that it was trained on, and those of the groups hidden from it.

    Hidden rows stand in the order of the table, which within a group may be that of time.
    """

    network: StochasticNetwork
    trained_on: Part
    hidden: Part
    dist: AnyDistribution  # of the hidden rows, in units, uncalibrated
    X: NDArray[Any]
    y: NDArray[Any]  # encoded: numbers in units, or numbers of classes
    group: NDArray[Any]  # the label of each hidden row


@dataclass(frozen=True)
class LeftOut:
    """All groups, each predicted by a network that did not see it."""

    folds: tuple[LeftOutFold, ...]
    forward: Forward  # how rows reach the networks
    target_scaler: Scaler | None  # from the networks' scale to units; None for classes

    def joined(self, name: str) -> NDArray[Any]:
        """Return an array of all folds, one after the other."""
        return np.concatenate([getattr(fold, name) for fold in self.folds])

    @property
    def dist(self) -> AnyDistribution:
        """The predictions of all rows, fold after fold."""
        return concatenate([fold.dist for fold in self.folds])

    @property
    def weight(self) -> Floats:
        """Weights by which each group counts alike (`alike`)."""
        weight = np.concatenate([fold.hidden.weight for fold in self.folds])
        return alike(weight, self.joined("group"))


def alike(weight: Floats, group: NDArray[Any]) -> Floats:
    """Return weights, of mean 1, by which each group counts alike: w_i / sum of w in i's group.

    A new group is a draw of a group, not of a row. A mean over groups of each group's own mean
    estimates what such a draw is like, and a long recording does not outvote the short ones.
    """
    number = np.unique(group, return_inverse=True)[1]
    own = weight / np.bincount(number, weight)[number]
    relative: Floats = own / own.mean()
    return relative


# --------------------------------------------------------------------------------------------------
# The trainer
# --------------------------------------------------------------------------------------------------

ROWS_AN_INPUT, MOST_FEW_ROWS = 20, 1_000  # fewer are few for so many inputs
ROUNDING_ROWS = 512  # to choose the rounding of an exported network on


@dataclass(frozen=True)
class HeldOutPredictions:
    """Predictions, not yet calibrated, of rows that the predicting networks were not trained on."""

    dist: AnyDistribution
    X: NDArray[Any]
    y: NDArray[Any]
    weight: Floats | None
    freedom: float | None = None  # degrees of freedom of their scale, where rows are few


@dataclass(frozen=True)
class Judgement:
    """A candidate's results on held-out rows: its trial, its calibration, the NLL of each row."""

    trial: Trial
    calibration: Calibration | None
    losses: Floats


@dataclass(frozen=True)
class Length:
    """The length of a training."""

    epochs: int
    batch_size: int

    @classmethod
    def of(cls, schedule: Schedule, rows: int) -> Length:
        """Return the length of a schedule for so many rows."""
        return cls(schedule.steps // max(1, rows // schedule.batch_size), schedule.batch_size)


@dataclass(frozen=True)
class TrainedModel:
    """The chosen networks, the scale of their targets, their held-out predictions, the record."""

    candidate: Candidate
    networks: tuple[StochasticNetwork, ...]
    target_scaler: Scaler | None
    trained_on: Part
    held_out: HeldOutPredictions
    calibration: Calibration | None
    training: TrainingReport
    length: Length
    selection: Selection | None = None  # None where there was nothing to choose
    # The fold of each row that may be learnt from, and the networks that did not see it.
    by_fold: tuple[Integers, tuple[StochasticNetwork, ...]] | None = None
    left_out: LeftOut | None = None  # None where no groups were left out


class Trainer:
    """The training of a specification's candidates on the rows of a fit, and their comparison."""

    can_fold = True  # whether its rows can be cross-validated
    can_travel = True  # whether other processes can take it, with its rows

    def __init__(self, spec: FitSpec, rows: FitRows, target: Target) -> None:
        self.spec, self.rows, self.target = spec, rows, target
        self.input_scaler = self._input_scaler(rows.train)
        self.holes = MissingValueAugmentation.of(
            rows, target.outputs if target.is_classes else None
        )
        self.interrupted = False  # then no further bank is begun, and the trained ones compete
        self.cut = False  # the same, by the clock
        self.about = ""  # said before what is shown of the progress
        self._is_first = True  # whether no bank was trained yet
        self._began = time.monotonic()
        self._display: Progress | None = None  # one for all banks, so that lines come seldom

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_display": None}  # which has a thread

    @property
    def is_of_few_rows(self) -> bool:
        """Whether the fit has so few rows that it must allow for it (`fitting.few_rows`)."""
        spec, rows = self.spec, self.rows
        wanted = spec.allows_for_few_rows and spec.criterion == "nll" and spec.after.calibration
        if not (wanted and rows.split_off and self.can_fold):
            return False
        inputs = math.prod(rows.network_shape) if len(rows.network_shape) == 1 else 0
        return len(rows.rows) < max(FEW_ROWS, min(ROWS_AN_INPUT * inputs, MOST_FEW_ROWS))

    @property
    def row_count(self) -> int:
        """How many rows there are to learn from."""
        return len(self.rows.rows)

    def has_time(self) -> bool:
        """Tell whether the search has seconds left for a further training; remember if not."""
        most = self.spec.max_seconds
        if most is not None and time.monotonic() - self._began > most:
            self.cut = True
        return not self.cut

    def goes_on(self) -> bool:
        """Tell whether to train further; otherwise to choose among what is trained so far."""
        return not self.interrupted and self.has_time()

    def on_all_rows(self) -> None:
        """Scale inputs by all rows, as for a network that is trained on all of them."""
        self.input_scaler = self._input_scaler(self.rows.rows)

    def close(self) -> None:
        """Let go of what the rows were read with."""

    def target_scaler(self, part: Part, likelihood: str) -> Scaler | None:
        """Fit the scale on which the head of a likelihood sees the targets."""
        return self.target.scaler(self.rows.y, part, head_named(likelihood).scaling)

    @property
    def copies(self) -> int:
        """How many copies with further holes follow the rows of a part that are trained on."""
        return 0 if self.holes is None else self.holes.copies

    def training_rows(self, part: Part, scaler: Scaler | None) -> Rows:
        """Scale the rows of a part, on the device, and their copies with further holes."""
        rows = self._rows(self.rows.X, self.rows.y, part, scaler)
        if self.holes is None:
            return rows
        times, weight = 1 + self.copies, rows.weight
        return Rows(
            self.holes.drawn(rows.x, self.input_scaler),
            rows.y.repeat(times, *[1] * (rows.y.ndim - 1)),
            None if weight is None else weight.repeat(times),
            self.copies,
        )

    def validation_rows(self, scaler: Scaler | None) -> Rows:
        """Scale the validation rows, on the device."""
        return self._rows(self.rows.X_val, self.rows.y_val, self.rows.validation, scaler)

    def train(
        self,
        group: Sequence[Candidate],
        folds: int,
        rows: Rows,
        held: Rows,
        length: Length | None = None,
        stop_at: int | None = None,
    ) -> tuple[list[StochasticNetwork], TrainingRecord, Schedule]:
        """Return each candidate's networks at their best step, `folds` times `members` of them."""
        spec = self.spec
        networks = [
            self.network(candidate, member)
            for candidate in group
            for _ in range(folds)
            for member in range(spec.members)
        ]
        schedule = replace(
            Schedule.of(
                rows=rows.total,
                validation_rows=len(held),
                learning_rate=spec.learning_rate or default_learning_rate(networks[0]),
                seed=self.rows.seed,
                epochs=spec.epochs if length is None else length.epochs,
                batch_size=spec.batch_size or (None if length is None else length.batch_size),
                most_steps=spec.most_steps,
            ),
            stop_at=stop_at,
            together=folds * spec.members if folds > 1 else 1,
            adversarial=spec.adversarial_step,
        )
        if stop_at is not None:  # nothing is chosen along the way
            schedule = replace(schedule, evaluate_every=stop_at)
        alphas = [c.alpha for c in group for _ in range(folds * spec.members)]
        done, record = self._train(
            networks,
            spec.scoring_rule(alphas),
            rows,
            held=held,
            schedule=schedule,
            checkpoint=self._checkpoint(group, folds, schedule),
            title=f"{self.about}training"
            if len(networks) == 1
            else f"{self.about}training {len(networks)} networks",
        )
        if record.interrupted:
            if len(done) < folds * spec.members:
                raise KeyboardInterrupt
            self.interrupted = True
            warnings.warn(
                f"training was interrupted at step {record.steps} of {schedule.last_step}; the "
                f"best step so far ({record.best_step[0]}) is kept",
                InterruptedTraining,
                stacklevel=2,
            )
        return done, record, schedule

    def _train(
        self,
        networks: Sequence[StochasticNetwork],
        rule: ScoringRule,
        rows: Rows,
        held: Rows,
        schedule: Schedule,
        checkpoint: str | os.PathLike[str] | None,
        title: str,
    ) -> tuple[list[StochasticNetwork], TrainingRecord]:
        """Train networks where this trainer trains."""
        if not isinstance(self._display, Lines):  # a bar serves one run
            self._display = progress_for(self.spec.verbose)
        decay, display = self.spec.weight_decay, self._display
        return train_networks(
            networks,
            rule,
            decay,
            rows=rows,
            validation=held,
            schedule=schedule,
            checkpoint=checkpoint,
            title=title,
            display=display,
        )

    def _checkpoint(
        self, group: Sequence[Candidate], folds: int, schedule: Schedule
    ) -> str | os.PathLike[str] | None:
        """Return where the state of a bank is kept, after the first by what the bank is.

        A number in their order would not do: the clock may end a search that is taken up elsewhere.
        """
        path, is_first = self.spec.checkpoint, self._is_first
        self._is_first = False
        # After an interrupt this is a bank that the run itself may never come to.
        if path is None or self.interrupted:
            return None
        what = repr((self.spec.architecture, tuple(group), folds, schedule))
        return path if is_first else f"{os.fspath(path)}.{zlib.crc32(what.encode())}"

    def network(self, candidate: Candidate, member: int) -> StochasticNetwork:
        """Build and convert a network, its layers drawn from the seed."""
        shape, outputs = self.rows.network_shape, self.target.outputs
        network = built(self.spec.architecture, shape, outputs, member, self.rows.seed)
        converted = convert(
            network,
            likelihood=candidate.likelihood,
            drop_prob=candidate.drop_prob,
            input_drop_prob=self.spec.input_drop_prob,
            example=torch.zeros(2, *shape).to(next(network.parameters())),
        )
        if converted.head.outputs != outputs:
            raise InputError(
                f"the network's last layer has {converted.head.outputs} outputs, "
                f"the targets need {outputs}"
            )
        set_input_units(converted, self.input_scaler.shift, self.input_scaler.scale)
        return converted

    def predict(
        self, networks: Sequence[StochasticNetwork], X: NDArray[Any], scaler: Scaler | None
    ) -> AnyDistribution:
        """Predict with some networks, uncalibrated, in the target's units.

        Under a budget that is what the exported network says.
        """
        forward = Forward(self.input_scaler, self.spec.device, self.rows.seed)
        dist = self.target.in_units(self.spec.passes.run(networks, X, forward), scaler)
        if self.spec.budget is None:
            return dist
        index = self.rows.train.index
        rows = self.rows.X[index[:: -(-len(index) // ROUNDING_ROWS)]]
        trained = TrainedNetwork(networks[0], self.input_scaler, self.target, scaler, rows)
        return self.spec.budget.as_exported(dist, X, trained)

    def judge(
        self, candidate: Candidate, held_out: HeldOutPredictions, steps: list[int]
    ) -> Judgement:
        """Calibrate held-out predictions and score them."""
        dist, fitted = held_out.dist, None
        if self.spec.after.calibration is not None:
            kind = self.spec.after.calibration
            freedom = held_out.freedom
            fitted = calibration.fit(kind, dist, held_out.y, held_out.weight, freedom=freedom)
            dist = fitted.apply(dist)
        area = None if dist.is_categorical else metrics.deviation_area(dist, held_out.y)
        trial = Trial(
            candidate,
            nll=calibration.weighted_nll(dist, held_out.y, held_out.weight),
            deviation_area=area,
            calibration=None if fitted is None else fitted.summary(),
            best_step=max(1, round(float(np.mean(steps)))),
        )
        losses = -dist.log_prob(held_out.y).reshape(len(held_out.y), -1).mean(1)
        return Judgement(trial, fitted, losses)

    def report(
        self, record: TrainingRecord, schedule: Schedule, own: slice, rows: int, held: int
    ) -> TrainingReport:
        """Record what concerns the chosen networks."""
        details = {
            "planned_steps": schedule.last_step,
            **asdict(schedule),
            **asdict(record),
            "best_nll": record.best_nll[own],
            "best_step": record.best_step[own],
            "history": [nll[own] for nll in record.history],
        }
        seed = details.pop("seed")
        validated = "validation rows" if self.rows.split_off else "validation rows given"
        if self.rows.in_time:
            validated = LAST_ROWS
        if self.copies:
            details["copies_with_holes"] = self.copies
        return TrainingReport(seed, rows, held, validated, details)

    def _input_scaler(self, part: Part) -> Scaler:
        return Scaler.of_table(self.rows.X, part.index, part.weight, self.rows.encoding)

    def _rows(self, X: NDArray[Any], y: NDArray[Any], part: Part, scaler: Scaler | None) -> Rows:
        device = self.spec.device
        x = self.input_scaler.gather(X, part.index).to(device)
        if scaler is None:
            target = torch.from_numpy(y[part.index])
        else:
            target = scaler.gather(y.reshape(len(y), -1), part.index)
        weight = part.relative_weight
        scaled = None if weight is None else torch.from_numpy(weight).float().to(device)
        return Rows(x, target.to(device), scaled)


def default_learning_rate(network: nn.Module) -> float:
    """Return 5e-3 for layers of up to 100 units, falling to 1e-3 at the paper's 500.

    It is 2e-3 at most where there are convolutions or recurrent layers.
    """
    if any(isinstance(m, _ConvNd | nn.RNNBase) for m in network.modules()):
        return 2e-3
    widths = [m.out_features for m in network.modules() if isinstance(m, nn.Linear)][:-1]
    return 5e-3 * min(1.0, 100 / max(widths, default=1))


# --------------------------------------------------------------------------------------------------
# Independent banks, distributed by an engine
#
# A piece of work is a trainer on rows in memory and what to do with it. It comes to the same bits
# wherever it runs: seeds are in the specification, and the number of threads does not enter.
# --------------------------------------------------------------------------------------------------

Result = TypeVar("Result")


@dataclass(frozen=True)
class Piece(Generic[Result]):
    """A part of a search, for any process."""

    trainer: Trainer
    spec: FitSpec
    task: Callable[[Trainer, FitSpec], Result]

    def run(self) -> Result:
        return self.task(self.trainer, self.spec)


def engine_for(trainer: Trainer, pieces: int) -> Engine | None:
    """Return what so many pieces of the trainer's work are given to; None is this process.

    One piece alone stays here, and so do files, which the engine's workers read together, and what
    is to run on a GPU where the engine's workers have none.
    """
    engine = trainer.spec.engine
    if engine is None or pieces < 2 or not trainer.can_travel:
        return None
    has_gpu = isinstance(engine, Ray) and engine.use_gpu
    return engine if trainer.spec.device.type == "cpu" or has_gpu else None


def train_banks(
    engine: Engine, trainer: Trainer, tasks: Sequence[Callable[[Trainer, FitSpec], Result]]
) -> list[Result]:
    """Return the results in the order of the tasks; the first that fails ends all.

    Elsewhere nothing is shown, and no state is saved: a search that was broken off begins again.
    """
    own = copy.copy(trainer)
    spec = replace(trainer.spec, engine=None, checkpoint=None, verbose=False, max_seconds=None)
    own.spec = spec
    found: dict[int, Result] = {}
    for number, result in engine.run_each([Piece(own, spec, task) for task in tasks]):
        if isinstance(result, Failure):
            raise RDeepSenseError(result.reason)
        found[number] = result
    return [found[number] for number in range(len(tasks))]


# --------------------------------------------------------------------------------------------------
# Cross-validation in one bank, by weights of 0 and 1
# --------------------------------------------------------------------------------------------------


def fold_weights(
    rows: Rows, fold: NDArray[Any], members: int, candidates: int, folds: int = FOLDS
) -> tuple[Rows, Rows]:
    """Return rows with weights that hide from each network what it is judged on, and the reverse.

    Networks come in the order candidate, fold, member of the ensemble.
    """
    weight = torch.ones(len(rows)) if rows.weight is None else rows.weight.cpu()
    held = torch.from_numpy(fold == np.arange(folds)[:, None])
    held = held.repeat_interleave(members, 0).repeat(candidates, 1 + rows.copies)
    inside = (weight * ~held).to(rows.x)
    outside = (weight * held).to(rows.x)
    own = slice(len(fold))  # nobody is judged by copies
    return (
        replace(rows, weight=inside / inside.mean(1, keepdim=True)),
        replace(rows, x=rows.x[own], y=rows.y[own], weight=outside[:, own], copies=0),
    )


def out_of_fold(
    trainer: Trainer,
    networks: list[StochasticNetwork],
    fold: NDArray[Any],
    scaler: Scaler | None,
) -> HeldOutPredictions:
    """Predict every row by the networks that did not see it."""
    data, part, members = trainer.rows, trainer.rows.rows, trainer.spec.members
    order = [np.flatnonzero(fold == f) for f in range(FOLDS)]
    dists = [
        trainer.predict(
            networks[f * members : (f + 1) * members], data.X[part.index[order[f]]], scaler
        )
        for f in range(FOLDS)
    ]
    joined: Part = part[np.concatenate(order)]
    X, y = data.X[joined.index], data.y[joined.index]
    return HeldOutPredictions(concatenate(dists), X, y, joined.relative_weight)
