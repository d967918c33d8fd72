"""Choosing among candidates in one of two ways: on validation rows, or by cross-validation.

With validation rows in plenty, every candidate is trained once and judged on them. With few, the
grid is cross-validated in one bank (a member sees the rows of its folds through weights of 0 and
1), every candidate is judged at the one step that is best for its folds together, and the winner is
trained once more on all rows, up to that step.

Either way the first head spans the whole grid and a further one only the leader's drop
probability, and the winner is then tried at other lengths of training (`length_search`). Where the
network is open too, it is chosen first (`architecture_search`), and the grid is what that leaves;
of few rows, one small bank of the smallest network is the whole search. Networks for windows are
judged on validation rows, however few: folds would cost too much. Where windows have groups, folds
of groups judge, at a bounded cost (`group_choice`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rdeepsense.arrays import Integers
from rdeepsense.data.scaling import Scaler
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.fitting.architecture_search import (
    choose_architecture,
    coarse_grid,
    short,
    tried_as,
)
from rdeepsense.fitting.budget_ladder import ladder_within
from rdeepsense.fitting.candidates import FEW_VALIDATION_ROWS, FOLDS
from rdeepsense.fitting.few_rows import Shrinkage, freedom, shrunk_folds
from rdeepsense.fitting.folds import fold_weights, out_of_fold
from rdeepsense.fitting.group_choice import can_choose, choose_by_groups
from rdeepsense.fitting.ladder import FEW_ROWS, ladder
from rdeepsense.fitting.leaderboard import Leaderboard
from rdeepsense.fitting.length_search import LengthSearch
from rdeepsense.fitting.records import LAST_ROWS, THEN_ALL_ROWS, TriedArchitecture
from rdeepsense.fitting.trainer import HeldOutPredictions, Length, TrainedModel, Trainer
from rdeepsense.fitting.window_ladder import is_dear
from rdeepsense.networks import Architecture
from rdeepsense.training import Schedule

# Of the rows: with a fifth held out, training on them too gains 0.01 nats; with a tenth, nothing.
MANY_HELD_OUT = 0.15

Networks = list[StochasticNetwork]


def select(trainer: Trainer) -> TrainedModel:
    """Train the grid of the specification and return the best candidate's networks."""
    grid, criterion = trainer.spec.grid, trainer.spec.criterion
    few = len(trainer.rows.validation) < FEW_VALIDATION_ROWS and trainer.rows.split_off
    few = few and not trainer.rows.in_time  # folds would judge rows by those after them
    alone = len(grid) == 1 and not trainer.spec.open_architecture
    is_open = trainer.spec.open_architecture
    architectures = _offered(trainer) if is_open else ()
    fold = (not alone or trainer.is_of_few_rows) and few and criterion == "nll"
    fold = fold and trainer.can_fold
    judged = (trainer.spec.architecture,) if alone else architectures
    fold = fold and not any(map(is_dear, judged)) and trainer.rows.rows.blocks >= FOLDS
    by_groups = is_open and can_choose(trainer, architectures)
    fold = fold or by_groups
    if fold:
        trainer.on_all_rows()
    tried, length = None, None
    if by_groups:
        tried, length = choose_by_groups(trainer, architectures)
    elif is_open and fold and trainer.row_count < FEW_ROWS and trainer.spec.budget is None:
        trainer.spec = replace(trainer.spec, architecture=architectures[0], grid=coarse_grid(grid))
        length = short(trainer, trainer.row_count)
    elif fold and alone:
        length = short(trainer, trainer.row_count)
    elif is_open:
        tried = choose_architecture(trainer, architectures, fold)
    trained = _cross_validated(trainer, length) if fold else _held_out(trainer)
    if is_open and tried is None:
        tried = (_the_only_one(trainer, trained),)
    if alone and fold:
        trained = replace(trained, selection=None)
    if trained.selection is not None:
        selection = replace(trained.selection, architectures=tried, cut=trainer.cut)
        trained = replace(trained, selection=selection)
    # A winner that was trained to its end may have won only because the others were not.
    details = {**trained.training.details, "interrupted": trainer.interrupted}
    return replace(trained, training=replace(trained.training, details=details))


def _offered(trainer: Trainer) -> tuple[Architecture, ...]:
    """Return the architectures to choose among."""
    spec, rows, shape = trainer.spec, trainer.row_count, trainer.rows.network_shape
    if spec.budget is None:
        return ladder(rows, shape, trainer.rows.recipe)
    return ladder_within(spec, rows, shape, trainer.target.outputs, trainer.rows.encoding)


def _the_only_one(trainer: Trainer, trained: TrainedModel) -> TriedArchitecture:
    """Record the network of a search that had but one."""
    size = sum(value.numel() for value in trained.networks[0].parameters())
    assert trained.selection is not None
    nll = trained.selection.trials[trained.selection.chosen].nll
    return tried_as(trainer.spec.architecture, size, nll, chosen=True)


def _held_out(trainer: Trainer) -> TrainedModel:
    rows, members, criterion = trainer.rows, trainer.spec.members, trainer.spec.criterion
    X, y = rows.held_out
    board = Leaderboard(criterion)
    options: list[tuple[TrainedModel, Schedule]] = []
    for group in board.groups(trainer.spec.grid):
        if options and not trainer.goes_on():
            break
        scaler = trainer.target_scaler(rows.train, group[0].likelihood)
        train, held = trainer.training_rows(rows.train, scaler), trainer.validation_rows(scaler)
        networks, record, schedule = trainer.train(group, 1, train, held)
        for i, candidate in enumerate(group[: len(networks) // members]):
            own = slice(i * members, (i + 1) * members)
            dist = trainer.predict(networks[own], X, scaler)
            free = freedom(rows.validation) if trainer.is_of_few_rows else None
            weight = rows.validation.relative_weight
            held_out = HeldOutPredictions(dist, X, y, weight, free)
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
                Length.of(schedule, train.total),
            )
            options.append((trained, schedule))
    if len(options) == 1 and not trainer.spec.open_architecture:
        return options[0][0]
    trained, schedule = options[board.leader]
    selection = board.selection("validation rows")
    if criterion != "nll" or trainer.spec.epochs is not None:
        return replace(trained, selection=selection)
    scaler = trained.target_scaler
    train, held = trainer.training_rows(rows.train, scaler), trainer.validation_rows(scaler)
    leader = board.judged[board.leader].trial
    lengths = LengthSearch(schedule, train.total, members, leader, shorter=True)
    while (length := lengths.next()) is not None and trainer.goes_on():
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
                length=lengths.best,
            )
    trained = replace(trained, selection=replace(selection, lengths=tuple(lengths.tried)))
    share = len(rows.validation) / max(1, len(rows.rows))
    may = trainer.can_fold and rows.split_off and not trainer.interrupted
    return _on_all_rows(trainer, trained, lengths) if may and share > MANY_HELD_OUT else trained


def _on_all_rows(trainer: Trainer, trained: TrainedModel, lengths: LengthSearch) -> TrainedModel:
    """Train the winner once more, on its validation rows too, up to the epoch that was best.

    The calibration remains that of the predictions for rows that had not been trained on.
    """
    part, held = trainer.rows.rows, trained.training.validation_rows
    rows = trainer.training_rows(part, trained.target_scaler)
    more = max(1, rows.total // lengths.best.batch_size) / lengths.per_epoch
    networks, record, schedule = trainer.train(
        [trained.candidate],
        1,
        rows,
        rows,
        lengths.best,
        stop_at=max(1, round(more * lengths.trial.best_step)),
    )
    if trainer.interrupted:
        return trained
    report = trainer.report(record, schedule, slice(None), len(part), held)
    how = f"{LAST_ROWS}, then trained on all rows" if trainer.rows.in_time else THEN_ALL_ROWS
    report = replace(report, validated=how)
    return replace(trained, networks=tuple(networks), trained_on=part, training=report)


def _cross_validated(trainer: Trainer, length: Length | None) -> TrainedModel:
    """Choose by folds; a length that is given is the only one."""
    part, members = trainer.rows.rows, trainer.spec.members
    fold = part.folds(FOLDS, trainer.rows.seed, trainer.rows.labels)
    size = FOLDS * members
    board = Leaderboard("nll")
    options: list[tuple[_Folds, Scaler | None, Schedule]] = []
    for group in board.groups(trainer.spec.grid):
        if options and not trainer.goes_on():
            break
        scaler = trainer.target_scaler(part, group[0].likelihood)
        rows = trainer.training_rows(part, scaler)
        inside, outside = fold_weights(rows, fold, members, len(group))
        networks, record, schedule = trainer.train(group, FOLDS, inside, outside, length)
        for i, candidate in enumerate(group[: len(networks) // size]):
            own = slice(i * size, (i + 1) * size)
            folds = _Folds.of(trainer, networks[own], fold, scaler)
            board.judged.append(trainer.judge(candidate, folds.held_out, record.best_step[own]))
            options.append((folds, scaler, schedule))
    leader = board.judged[board.leader]
    candidate, calibration = leader.trial.candidate, leader.calibration
    folds, scaler, schedule = options[board.leader]
    rows = trainer.training_rows(part, scaler)
    lengths = LengthSearch(schedule, rows.total, size, leader.trial)
    may = trainer.spec.epochs is None and length is None
    while may and (other := lengths.next()) is not None and trainer.goes_on():
        inside, outside = fold_weights(rows, fold, members, 1)
        networks, record, schedule = trainer.train([candidate], FOLDS, inside, outside, other)
        again = _Folds.of(trainer, networks, fold, scaler)
        judgement = trainer.judge(candidate, again.held_out, record.best_step)
        if lengths.accept(judgement.trial, schedule):
            folds, calibration = again, judgement.calibration
    networks, record, schedule = trainer.train(
        [candidate], 1, rows, rows, lengths.kept or length, stop_at=lengths.trial.best_step
    )
    how = f"{FOLDS}-fold cross-validation"
    if trainer.is_of_few_rows and trainer.rows.groups is not None:
        how = f"{how} by groups"
    report = trainer.report(record, schedule, slice(None), len(part), len(part))
    if folds.shrinkage is not None:
        networks = [folds.shrinkage.final(trainer, one, scaler) for one in networks]
        details = {**report.details, "few_rows": folds.shrinkage.to_json()}
        report = replace(report, details=details)
    return TrainedModel(
        candidate,
        tuple(networks),
        scaler,
        part,
        folds.held_out,
        calibration,
        replace(report, validated=how),
        lengths.best,
        replace(board.selection(how), lengths=tuple(lengths.tried)),
        by_fold=(fold, tuple(folds.networks)),
    )


@dataclass(frozen=True)
class _Folds:
    """The networks of all folds and what they predict out of fold, shrunk where rows are few."""

    networks: Networks
    held_out: HeldOutPredictions
    shrinkage: Shrinkage | None = None

    @classmethod
    def of(
        cls, trainer: Trainer, networks: Networks, fold: Integers, scaler: Scaler | None
    ) -> _Folds:
        if not trainer.is_of_few_rows:
            return cls(networks, out_of_fold(trainer, networks, fold, scaler))
        shrinkage, shrunk = shrunk_folds(trainer, networks, fold, scaler)
        held_out = out_of_fold(trainer, shrunk, fold, scaler)
        held_out = replace(held_out, freedom=freedom(trainer.rows.rows))
        return cls(shrunk, held_out, shrinkage)
