"""Choosing among candidates in one of two ways: on validation rows, or by cross-validation.

With validation rows in plenty, every candidate is trained once and judged on them. With few, the
grid is cross-validated in one bank (a member sees the rows of its folds through weights of 0 and
1), every candidate is judged at the one step that is best for its folds together, and the winner is
trained once more on all rows, up to that step.

Either way the first head spans the whole grid and a further one only the leader's drop
probability. A winner whose best step came late is trained for three times the epochs, and again,
while that pays: targets with little noise need it. One whose best step came early is trained for
half of them, on validation rows in plenty (cross-validation gained 0.003 nats by it). The allowance
for this is counted in networks, so an ensemble of five gets no more training for it than a single
network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rdeepsense.data.scaling import Scaler
from rdeepsense.data.splits import Part
from rdeepsense.distributions import concatenate
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.fitting.candidates import (
    FEW_VALIDATION_ROWS,
    FOLDS,
    Candidate,
    Criterion,
    Trial,
    best,
)
from rdeepsense.fitting.records import Selection, TriedLength
from rdeepsense.fitting.trainer import (
    HeldOutPredictions,
    Judgement,
    Length,
    TrainedModel,
    Trainer,
)
from rdeepsense.training import Rows, Schedule

WORTH = 0.01  # nats that a longer training must gain
# Of the schedule: a best step after it says that the network was still learning, and one before it
# that its learning rate fell too late.
HALFWAY = 1 / 2
LONGER, SHORTER = 3.0, 0.5  # times the epochs; longer ones in batches of twice the size
ALLOWANCE = 40  # trainings of one network, of the first length, that may go into longer ones


def select(trainer: Trainer) -> TrainedModel:
    """Train the grid of the specification and return the best candidate's networks."""
    grid, criterion = trainer.spec.grid, trainer.spec.criterion
    few = len(trainer.rows.validation) < FEW_VALIDATION_ROWS and trainer.rows.split_off
    if len(grid) > 1 and few and criterion == "nll" and trainer.can_fold:
        return _cross_validated(trainer)
    return _held_out(trainer)


@dataclass
class Leaderboard:
    """The candidates tried so far, each with how it did."""

    by: Criterion
    judged: list[Judgement] = field(default_factory=list)

    @property
    def trials(self) -> list[Trial]:
        return [judgement.trial for judgement in self.judged]

    @property
    def leader(self) -> int:
        return best(self.trials, self.by, [judgement.losses for judgement in self.judged])

    def groups(self, grid: Sequence[Candidate]) -> Iterator[list[Candidate]]:
        """Yield, head by head, the candidates that are still worth a trial."""
        for likelihood in dict.fromkeys(candidate.likelihood for candidate in grid):
            group = [candidate for candidate in grid if candidate.likelihood == likelihood]
            if self.judged and self.by == "nll":
                drop_prob = self.judged[self.leader].trial.candidate.drop_prob
                group = [c for c in group if c.drop_prob == drop_prob]
            yield group

    def selection(self, how: str) -> Selection:
        """Return what the model and its file keep."""
        return Selection(self.by, how, self.leader, tuple(self.trials))


class LengthSearch:
    """Other lengths of training for a winner, tried while each gains more than it must.

    Longer ones where the best step came late, and with `shorter` half the epochs where it came
    early, so that the learning rate has fallen by then.
    """

    def __init__(
        self, schedule: Schedule, rows: int, networks: int, trial: Trial, shorter: bool = False
    ) -> None:
        per_epoch = max(1, rows // schedule.batch_size)
        self.length = self.first = Length(schedule.steps // per_epoch, schedule.batch_size)
        self.rows, self.networks, self.spent = rows, networks, 0.0
        self.trial, self.best_at = trial, trial.best_step / schedule.steps
        self.tried = [TriedLength(schedule.steps, trial.nll)]
        self.kept: Length | None = None
        self._ways = {LONGER, SHORTER} if shorter else {LONGER}
        self._paid = True

    def next(self) -> Length | None:
        """Return the next length to try, or None when further ones would not pay."""
        way = LONGER if self.best_at >= HALFWAY else SHORTER
        if not self._paid or way not in self._ways:
            return None
        epochs = max(1, int(way * self.length.epochs))
        cost = self.networks * epochs / self.first.epochs
        if epochs == self.length.epochs or self.spent + cost > ALLOWANCE:
            return None
        self._ways = {way}  # never back again
        self.spent += cost
        batch_size = self.length.batch_size
        if way == LONGER:
            batch_size = min(2 * batch_size, max(batch_size, self.rows // 8))
        self.length = Length(epochs, batch_size)
        return self.length

    def accept(self, trial: Trial, schedule: Schedule) -> bool:
        """Tell whether this training was worth it, and remember it if so."""
        self.tried.append(TriedLength(schedule.steps, trial.nll))
        self._paid = trial.nll <= self.trial.nll - WORTH
        if self._paid:
            self.trial, self.kept = trial, self.length
            self.best_at = trial.best_step / schedule.steps
        return self._paid


def _held_out(trainer: Trainer) -> TrainedModel:
    rows, members, criterion = trainer.rows, trainer.spec.members, trainer.spec.criterion
    X, y = rows.held_out
    board = Leaderboard(criterion)
    options: list[tuple[TrainedModel, Schedule]] = []
    for group in board.groups(trainer.spec.grid):
        if trainer.interrupted:
            break
        scaler = trainer.target_scaler(rows.train, group[0].likelihood)
        train, held = trainer.training_rows(rows.train, scaler), trainer.validation_rows(scaler)
        networks, record, schedule = trainer.train(group, 1, train, held)
        for i, candidate in enumerate(group[: len(networks) // members]):
            own = slice(i * members, (i + 1) * members)
            dist = trainer.predict(networks[own], X, scaler)
            held_out = HeldOutPredictions(dist, X, y, rows.validation.relative_weight)
            judgement = trainer.judge(candidate, held_out, record.best_step[own])
            board.judged.append(judgement)
            report = trainer.report(record, schedule, own, train.total, len(held))
            trained = TrainedModel(
                candidate,
                tuple(networks[own]),
                scaler,
                rows.train,
                held_out,
                judgement.calibration,
                report,
            )
            options.append((trained, schedule))
    if len(options) == 1:
        return options[0][0]
    trained, schedule = options[board.leader]
    selection = board.selection("validation rows")
    if criterion != "nll" or trainer.spec.epochs is not None:
        return replace(trained, selection=selection)
    scaler = trained.target_scaler
    train, held = trainer.training_rows(rows.train, scaler), trainer.validation_rows(scaler)
    leader = board.judged[board.leader].trial
    lengths = LengthSearch(schedule, train.total, members, leader, shorter=True)
    while not trainer.interrupted and (length := lengths.next()) is not None:
        networks, record, schedule = trainer.train([trained.candidate], 1, train, held, length)
        again = replace(trained.held_out, dist=trainer.predict(networks, X, scaler))
        judgement = trainer.judge(trained.candidate, again, record.best_step)
        if lengths.accept(judgement.trial, schedule):
            trained = replace(
                trained,
                networks=tuple(networks),
                held_out=again,
                calibration=judgement.calibration,
                training=trainer.report(record, schedule, slice(None), train.total, len(held)),
            )
    return replace(trained, selection=replace(selection, lengths=tuple(lengths.tried)))


def _cross_validated(trainer: Trainer) -> TrainedModel:
    part, members = trainer.rows.rows, trainer.spec.members
    trainer.on_all_rows()
    fold = part.folds(FOLDS, trainer.rows.seed, trainer.rows.labels)
    size = FOLDS * members
    board = Leaderboard("nll")
    options: list[tuple[HeldOutPredictions, Scaler | None, Schedule]] = []
    for group in board.groups(trainer.spec.grid):
        if trainer.interrupted:
            break
        scaler = trainer.target_scaler(part, group[0].likelihood)
        rows = trainer.training_rows(part, scaler)
        inside, outside = _fold_weights(rows, fold, members, len(group))
        networks, record, schedule = trainer.train(group, FOLDS, inside, outside)
        for i, candidate in enumerate(group[: len(networks) // size]):
            own = slice(i * size, (i + 1) * size)
            held_out = _out_of_fold(trainer, networks[own], fold, scaler)
            board.judged.append(trainer.judge(candidate, held_out, record.best_step[own]))
            options.append((held_out, scaler, schedule))
    leader = board.judged[board.leader]
    candidate, calibration = leader.trial.candidate, leader.calibration
    held_out, scaler, schedule = options[board.leader]
    rows = trainer.training_rows(part, scaler)
    lengths = LengthSearch(schedule, len(rows), size, leader.trial)
    may = trainer.spec.epochs is None
    while may and not trainer.interrupted and (length := lengths.next()) is not None:
        inside, outside = _fold_weights(rows, fold, members, 1)
        networks, record, schedule = trainer.train([candidate], FOLDS, inside, outside, length)
        again = _out_of_fold(trainer, networks, fold, scaler)
        judgement = trainer.judge(candidate, again, record.best_step)
        if lengths.accept(judgement.trial, schedule):
            held_out, calibration = again, judgement.calibration
    networks, record, schedule = trainer.train(
        [candidate], 1, rows, rows, lengths.kept, stop_at=lengths.trial.best_step
    )
    how = f"{FOLDS}-fold cross-validation"
    report = trainer.report(record, schedule, slice(None), len(rows), len(rows))
    return TrainedModel(
        candidate,
        tuple(networks),
        scaler,
        part,
        held_out,
        calibration,
        replace(report, validated=how),
        replace(board.selection(how), lengths=tuple(lengths.tried)),
    )


def _fold_weights(
    rows: Rows, fold: NDArray[Any], members: int, candidates: int
) -> tuple[Rows, Rows]:
    """Return rows with weights that hide from each network what it is judged on, and the reverse.

    Networks come in the order candidate, fold, member of the ensemble.
    """
    weight = torch.ones(len(rows)) if rows.weight is None else rows.weight.cpu()
    held = torch.from_numpy(fold == np.arange(FOLDS)[:, None])
    held = held.repeat_interleave(members, 0).repeat(candidates, 1)
    inside = (weight * ~held).to(rows.x)
    outside = (weight * held).to(rows.x)
    return (
        replace(rows, weight=inside / inside.mean(1, keepdim=True)),
        replace(rows, weight=outside),
    )


def _out_of_fold(
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
