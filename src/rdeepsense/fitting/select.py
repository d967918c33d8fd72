"""The two ways to choose among candidates: on validation rows, or by cross-validation.

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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rdeepsense.data.scaling import Scaler
from rdeepsense.data.splits import Part
from rdeepsense.distributions import concatenate
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.estimators.base import Judged
from rdeepsense.fitting.candidates import FEW_VALIDATION_ROWS, FOLDS, Candidate, Trial, best
from rdeepsense.fitting.trainer import Learner, Learnt, Length
from rdeepsense.training import Rows, Schedule

WORTH = 0.01  # nats that a longer training must gain
# Of the schedule: a best step after it says that the network was still learning, and one before it
# that its learning rate fell too late.
HALFWAY = 1 / 2
LONGER, SHORTER = 3.0, 0.5  # times the epochs; longer ones in batches of twice the size
ALLOWANCE = 40  # trainings of one network, of the first length, that may go into longer ones

Floats = NDArray[np.float64]


def choose(learner: Learner, grid: Sequence[Candidate], by: str = "nll") -> Learnt:
    """The best candidate's networks; `by` is "nll" or "deviation_area"."""
    few = len(learner.data.validation) < FEW_VALIDATION_ROWS and learner.data.split_off
    if len(grid) > 1 and few and by == "nll" and learner.folds:
        return _cross_validated(learner, grid)
    return _held_out(learner, grid, by)


@dataclass
class Contest:
    """The trials so far, each with its NLL row by row."""

    by: str
    trials: list[Trial]
    losses: list[Floats]

    @property
    def leader(self) -> int:
        return best(self.trials, self.by, self.losses)

    def groups(self, grid: Sequence[Candidate]) -> Iterator[list[Candidate]]:
        """Head by head, the candidates that are still worth a trial."""
        for likelihood in dict.fromkeys(candidate.likelihood for candidate in grid):
            group = [candidate for candidate in grid if candidate.likelihood == likelihood]
            if self.trials and self.by == "nll":
                drop_prob = self.trials[self.leader].candidate.drop_prob
                group = [c for c in group if c.drop_prob == drop_prob]
            yield group

    def selection(self, how: str) -> dict[str, Any]:
        """What the estimator and its file keep."""
        return {
            "by": self.by,
            "how": how,
            "chosen": self.leader,
            "trials": [trial.plain() for trial in self.trials],
        }


class Lengths:
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
        self.tried = [{"steps": schedule.steps, "nll": trial.nll}]
        self.kept: Length | None = None
        self._ways = {LONGER, SHORTER} if shorter else {LONGER}
        self._paid = True

    def next(self) -> Length | None:
        """The length to try, or None where enough is enough."""
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

    def judge(self, trial: Trial, schedule: Schedule) -> bool:
        """Whether this training was worth it."""
        self.tried.append({"steps": schedule.steps, "nll": trial.nll})
        self._paid = trial.nll <= self.trial.nll - WORTH
        if self._paid:
            self.trial, self.kept = trial, self.length
            self.best_at = trial.best_step / schedule.steps
        return self._paid


def _held_out(learner: Learner, grid: Sequence[Candidate], by: str) -> Learnt:
    data, members = learner.data, learner.members
    X, y = data.X_val[data.validation.index], data.y_val[data.validation.index]
    contest, options = Contest(by, [], []), []
    for group in contest.groups(grid):
        if learner.interrupted:
            break
        scaler = learner.target_scaler(data.train, group[0].likelihood)
        rows, held = learner.training_rows(data.train, scaler), learner.validation_rows(scaler)
        networks, record, schedule = learner.train(group, 1, rows, held)
        for i, candidate in enumerate(group[: len(networks) // members]):
            own = slice(i * members, (i + 1) * members)
            judged = Judged(learner.predict(networks[own], X, scaler), X, y, data.validation.uneven)
            trial, loss = learner.trial(candidate, judged, record.best_step[own])
            contest.trials.append(trial)
            contest.losses.append(loss)
            training = learner.record(record, schedule, own, rows.total, len(held))
            options.append(
                (Learnt(candidate, networks[own], scaler, judged, training, {}), schedule)
            )
    if len(options) == 1:
        return options[0][0]
    learnt, schedule = options[contest.leader]
    selection = contest.selection("validation rows")
    learnt = replace(learnt, selection=selection)
    if by != "nll" or learner.estimator.epochs is not None:
        return learnt
    scaler = learnt.target_scaler
    rows, held = learner.training_rows(data.train, scaler), learner.validation_rows(scaler)
    lengths = Lengths(schedule, rows.total, members, contest.trials[contest.leader], shorter=True)
    while not learner.interrupted and (length := lengths.next()) is not None:
        networks, record, schedule = learner.train([learnt.candidate], 1, rows, held, length)
        judged = replace(learnt.judged, dist=learner.predict(networks, X, scaler))
        trial, _ = learner.trial(learnt.candidate, judged, record.best_step)
        if lengths.judge(trial, schedule):
            training = learner.record(record, schedule, slice(None), rows.total, len(held))
            learnt = replace(learnt, networks=networks, judged=judged, training=training)
    selection["lengths"] = lengths.tried
    return learnt


def _cross_validated(learner: Learner, grid: Sequence[Candidate]) -> Learnt:
    part = learner.data.rows
    learner.on_all_rows()
    fold = part.folds(FOLDS, learner.data.seed, learner.data.labels)
    size = FOLDS * learner.members
    contest, options = Contest("nll", [], []), []
    for group in contest.groups(grid):
        if learner.interrupted:
            break
        scaler = learner.target_scaler(part, group[0].likelihood)
        rows = learner.training_rows(part, scaler)
        inside, outside = _fold_weights(rows, fold, learner.members, len(group))
        networks, record, schedule = learner.train(group, FOLDS, inside, outside)
        for i, candidate in enumerate(group[: len(networks) // size]):
            own = slice(i * size, (i + 1) * size)
            judged = _out_of_fold(learner, networks[own], fold, scaler)
            trial, loss = learner.trial(candidate, judged, record.best_step[own])
            contest.trials.append(trial)
            contest.losses.append(loss)
            options.append((judged, scaler, schedule))
    leader = contest.trials[contest.leader]
    candidate = leader.candidate
    judged, scaler, schedule = options[contest.leader]
    rows = learner.training_rows(part, scaler)
    lengths = Lengths(schedule, len(rows), size, leader)
    may = learner.estimator.epochs is None
    while may and not learner.interrupted and (length := lengths.next()) is not None:
        inside, outside = _fold_weights(rows, fold, learner.members, 1)
        networks, record, schedule = learner.train([candidate], FOLDS, inside, outside, length)
        again = _out_of_fold(learner, networks, fold, scaler)
        trial, _ = learner.trial(candidate, again, record.best_step)
        if lengths.judge(trial, schedule):
            judged = again
    networks, record, schedule = learner.train(
        [candidate], 1, rows, rows, lengths.kept, stop_at=lengths.trial.best_step
    )
    how = f"{FOLDS}-fold cross-validation"
    training = learner.record(record, schedule, slice(None), len(rows), len(rows))
    selection = {**contest.selection(how), "lengths": lengths.tried}
    return Learnt(candidate, networks, scaler, judged, {**training, "validated": how}, selection)


def _fold_weights(
    rows: Rows, fold: NDArray[Any], members: int, candidates: int
) -> tuple[Rows, Rows]:
    """The rows with weights that hide from each network what it is judged on, and the reverse.

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
    learner: Learner,
    networks: list[StochasticNetwork],
    fold: NDArray[Any],
    scaler: Scaler | None,
) -> Judged:
    """Every row predicted by the networks that did not see it."""
    data, part, members = learner.data, learner.data.rows, learner.members
    order = [np.flatnonzero(fold == f) for f in range(FOLDS)]
    dists = [
        learner.predict(
            networks[f * members : (f + 1) * members], data.X[part.index[order[f]]], scaler
        )
        for f in range(FOLDS)
    ]
    joined: Part = part[np.concatenate(order)]
    return Judged(concatenate(dists), data.X[joined.index], data.y[joined.index], joined.uneven)
