"""The search: which architecture, head, alpha, dropout and length of training to choose."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from rdeepsense.arrays import Floats, Integers
from rdeepsense.data.rows import FitRows, sampled
from rdeepsense.data.scaling import Scaler
from rdeepsense.data.splits import Part
from rdeepsense.distributions import concatenate
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.fitting.few_rows import Shrinkage, freedom, shrunk_folds
from rdeepsense.fitting.ladder import (
    FEW_ROWS,
    VERY_MANY_ROWS,
    is_expensive,
    ladder,
    ladder_within,
    need_of,
    rotated,
    turned,
    wider,
)
from rdeepsense.fitting.ladder import MANY_WINDOWS as MANY_ROWS
from rdeepsense.fitting.passes import Single
from rdeepsense.fitting.records import (
    FEW_VALIDATION_ROWS,
    FOLDS,
    LAST_ROWS,
    THEN_ALL_ROWS,
    Candidate,
    Criterion,
    Gap,
    RunnerUp,
    Selection,
    Trial,
    TriedArchitecture,
    TriedLength,
    best,
)
from rdeepsense.fitting.spec import FitSpec
from rdeepsense.fitting.stream_trainer import ParquetRows
from rdeepsense.fitting.target import Target
from rdeepsense.fitting.trainer import (
    HeldOutPredictions,
    Judgement,
    Length,
    TrainedModel,
    Trainer,
    alike,
    engine_for,
    fold_weights,
    out_of_fold,
    train_banks,
)
from rdeepsense.networks import Architecture, name_of
from rdeepsense.training import Schedule

# --------------------------------------------------------------------------------------------------
# Candidates so far, and the best of them
# --------------------------------------------------------------------------------------------------


@dataclass
class Leaderboard:
    """The candidates tried so far, with their results."""

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
        return Selection(self.by, how, self.leader, tuple(self.trials), second=self._second())

    def _second(self) -> RunnerUp | None:
        """Return what would have been chosen if the leader had not been there."""
        leader = self.leader
        others = [number for number in range(len(self.judged)) if number != leader]
        if not others:
            return None
        own = [self.judged[number] for number in others]
        number = others[best([one.trial for one in own], self.by, [one.losses for one in own])]
        first, second = self.judged[leader], self.judged[number]
        if self.by == "nll":
            return RunnerUp(number, Gap.of(second.losses, first.losses))
        first_area, area = first.trial.deviation_area, second.trial.deviation_area
        assert first_area is not None
        assert area is not None
        return RunnerUp(number, Gap(area - first_area, None))


# --------------------------------------------------------------------------------------------------
# Search for the length of training
#
# One whose best step came late is trained for three times the epochs, and again, while that pays:
# targets with little noise need it. One whose best step came early is trained for half of them, on
# validation rows in plenty (cross-validation gained 0.003 nats by it). The allowance for this is
# counted in networks, so an ensemble of five gets no more training for it than a single network.
# --------------------------------------------------------------------------------------------------

WORTH = 0.01  # nats that a longer training must gain
# Of the schedule: a best step after it says that the network was still learning, and one before it
# that its learning rate fell too late.
HALFWAY = 1 / 2
LONGER, SHORTER = 3.0, 0.5  # times the epochs; longer ones in batches of twice the size
ALLOWANCE = 40  # trainings of one network, of the first length, that may go into longer ones


class LengthSearch:
    """Other lengths of training for a winner, tried while each gains more than it must.

    Longer ones where the best step came late, and with `shorter` half the epochs where it came
    early, so that the learning rate has fallen by then.
    """

    def __init__(
        self, schedule: Schedule, rows: int, networks: int, trial: Trial, shorter: bool = False
    ) -> None:
        self.length = self.first = Length.of(schedule, rows)
        self.rows, self.networks, self.spent = rows, networks, 0.0
        self.trial, self.best_at = trial, trial.best_step / schedule.steps
        self.tried = [TriedLength(schedule.steps, trial.nll)]
        self.kept: Length | None = None
        self._ways = {LONGER, SHORTER} if shorter else {LONGER}
        self._paid = True

    @property
    def best(self) -> Length:
        """The length of the best training."""
        return self.kept or self.first

    @property
    def per_epoch(self) -> int:
        """The steps of an epoch of the best training."""
        return max(1, self.rows // self.best.batch_size)

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


# --------------------------------------------------------------------------------------------------
# Choice of the architecture, with few training steps each
#
# Each architecture of the ladder is trained as a small bank (three drop probabilities, the first
# head, one alpha) for a third of the usual length and judged as everything else is: by calibrated
# NLL on rows it was not trained on. A smaller network wins where the paired difference, row by row,
# is within one standard error. Large networks gain more from the steps that are left: on tables of
# many rows the winner and the best of those larger than it are compared once more after all steps;
# for a budget, where no rule prefers small ones, the best three. The grid of the second stage is
# what lies around the winner.
# --------------------------------------------------------------------------------------------------

SHARE_OF_LENGTH = 1 / 3
RIVALS = 3  # compared after all steps, for a budget


def choose_architecture(
    trainer: Trainer, architectures: Sequence[Architecture], folded: bool
) -> tuple[TriedArchitecture, ...]:
    """Leave the trainer with the best architecture and the grid around it; returns the trials."""
    spec = trainer.spec
    coarse = spec.first_look or coarse_grid(spec.grid)
    found = _all_tried(trainer, spec, architectures, coarse, folded)
    tried = list(architectures)
    # A budget says what may be spent: then the best is wanted, not the smallest of the good ones.
    chosen = (smallest_good if spec.budget is None else best_of)(found)
    more = wider(tried[chosen], trainer.row_count) if spec.budget is None else ()
    if more and trainer.has_time():
        found += (further := _all_tried(trainer, spec, more, coarse, folded))
        tried += more[: len(further)]
    if spec.budget is not None or trainer.row_count >= VERY_MANY_ROWS:
        chosen = _after_all_steps(trainer, tried, found, chosen, folded)
    for architecture in rotated(tried[chosen]):
        if trainer.has_time():
            found.append(_tried(trainer, spec, architecture, coarse, folded))
            tried.append(architecture)
            if found[-1][0].nll < found[chosen][0].nll:  # it is no larger
                chosen = len(found) - 1
    grid = spec.grid
    if not spec.first_look:
        grid = around(grid, found[chosen][1].trial.candidate)
    trainer.spec = replace(spec, architecture=tried[chosen], grid=grid)
    return tuple(
        replace(own, chosen=True)
        if number == chosen
        else replace(own, behind=Gap.of(judgement.losses, found[chosen][1].losses))
        for number, (own, judgement) in enumerate(found)
    )


def _all_tried(
    trainer: Trainer,
    spec: FitSpec,
    architectures: Sequence[Architecture],
    coarse: Sequence[Candidate],
    folded: bool,
) -> list[tuple[TriedArchitecture, Judgement]]:
    """Try architectures, where the engine puts them or one after the other while there is time."""
    trainer.spec = spec
    if (engine := engine_for(trainer, len(architectures))) is not None:
        tasks = [
            partial(_tried, architecture=architecture, coarse=coarse, folded=folded)
            for architecture in architectures
        ]
        elsewhere = train_banks(engine, trainer, tasks)
        trainer.spec = _looking(spec)
        return elsewhere
    found: list[tuple[TriedArchitecture, Judgement]] = []
    for architecture in architectures:
        if found and not trainer.has_time():
            break
        found.append(_tried(trainer, spec, architecture, coarse, folded))
    return found


def _tried(
    trainer: Trainer,
    spec: FitSpec,
    architecture: Architecture,
    coarse: Sequence[Candidate],
    folded: bool,
) -> tuple[TriedArchitecture, Judgement]:
    """Train an architecture on the coarse grid; returns its best candidate's results."""
    trainer.spec = replace(_looking(spec), architecture=architecture)
    judged, size = _judged(trainer, coarse, folded)
    if trainer.interrupted:
        raise KeyboardInterrupt  # nothing is trained yet that could be returned
    best = min(judged, key=lambda one: one.trial.nll)
    tried = tried_as(architecture, size, best.trial.nll)
    if spec.budget is not None:
        shape, outputs = trainer.rows.network_shape, trainer.target.outputs
        need = need_of(spec, architecture, shape, outputs, trainer.rows.encoding)
        tried = replace(tried, need=need)
    return tried, best


def _looking(spec: FitSpec) -> FitSpec:
    """Return the specification of a first look, which is at single networks."""
    if not spec.first_look:
        return spec
    return replace(spec, members=1, passes=Single(), adversarial_step=0.0)


def tried_as(
    architecture: Architecture, size: int, nll: float, chosen: bool = False
) -> TriedArchitecture:
    """Record an architecture by name, as JSON gives it back."""
    arguments = {name: _listed(value) for name, value in (architecture.arguments() or {}).items()}
    return TriedArchitecture(name_of(architecture), arguments, size, nll, chosen)


def coarse_grid(grid: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return every other drop probability of the grid, of its first head and its last alpha."""
    first, last = grid[0].likelihood, grid[-1].alpha
    own = tuple(c for c in grid if c.likelihood == first and c.alpha == last)
    return own if len(own) == 1 else own[1::2]


def around(grid: Sequence[Candidate], best: Candidate) -> tuple[Candidate, ...]:
    """Return what is left of the grid: the drop probabilities next to the best one.

    Other alphas are tried for the first head at the best drop probability alone.
    """
    drops = list(dict.fromkeys(c.drop_prob for c in grid))
    at = drops.index(best.drop_prob)
    near = drops[max(0, at - 1) : at + 2]
    first = grid[0].likelihood
    return tuple(
        c
        for c in grid
        if c.drop_prob in near
        and (c.likelihood != first or c.alpha == best.alpha or c.drop_prob == best.drop_prob)
    )


def _judged(
    trainer: Trainer, group: Sequence[Candidate], folded: bool, whole: bool = False
) -> tuple[list[Judgement], int]:
    """Train a small bank; returns each candidate's results, and the size of a network."""
    part = trainer.rows.rows if folded else trainer.rows.train
    members, folds = trainer.spec.members, FOLDS if folded else 1
    scaler = trainer.target_scaler(part, group[0].likelihood)
    rows = trainer.training_rows(part, scaler)
    length = None if whole else short(trainer, rows.total)
    fold = part.folds(FOLDS, trainer.rows.seed, trainer.rows.labels) if folded else None
    if fold is not None:
        inside, outside = fold_weights(rows, fold, members, len(group))
    else:
        inside, outside = rows, trainer.validation_rows(scaler)
    networks, record, _ = trainer.train(group, folds, inside, outside, length)
    size = sum(value.numel() for value in networks[0].parameters())
    judged = []
    for candidate, own in zip(group, _slices(len(networks), folds * members), strict=False):
        if fold is not None:
            held_out = out_of_fold(trainer, networks[own], fold, scaler)
        else:
            X, y = trainer.rows.held_out
            dist = trainer.predict(networks[own], X, scaler)
            held_out = HeldOutPredictions(dist, X, y, trainer.rows.validation.relative_weight)
        judged.append(trainer.judge(candidate, held_out, record.best_step[own]))
    return judged, size


def _listed(value: object) -> object:
    """Return a tuple as a list, as JSON gives it back."""
    return list(value) if isinstance(value, tuple) else value


def _slices(total: int, each: int) -> Iterator[slice]:
    return (slice(start, start + each) for start in range(0, total, each))


def short(trainer: Trainer, rows: int) -> Length | None:
    """Return a third of the usual length; None where the caller has fixed it."""
    spec = trainer.spec
    if spec.epochs is not None:
        return None
    usual = Schedule.of(rows, 1, 1.0, 0, batch_size=spec.batch_size)
    epochs = usual.steps // max(1, rows // usual.batch_size)
    return Length(max(1, round(SHARE_OF_LENGTH * epochs)), usual.batch_size)


def _after_all_steps(
    trainer: Trainer,
    architectures: Sequence[Architecture],
    found: Sequence[tuple[TriedArchitecture, Judgement]],
    leader: int,
    folded: bool,
) -> int:
    """Return the leader, or the best of those larger than it where all steps make that better.

    Better is beyond one standard error. For a budget it is the best of three, of whatever size: in
    few steps large networks may be ahead that lose in the end.
    """
    by_nll = sorted(range(len(found)), key=lambda k: found[k][0].nll)
    if trainer.spec.budget is not None:
        rivals = by_nll[:RIVALS]
    else:
        size = found[leader][0].parameters
        rivals = [leader, *[k for k in by_nll if found[k][0].parameters > size][:1]]
    if len(rivals) < 2 or trainer.spec.epochs is not None or not trainer.has_time():
        return leader
    tasks = [
        partial(
            _whole,
            architecture=architectures[k],
            candidate=found[k][1].trial.candidate,
            folded=folded,
        )
        for k in rivals
    ]
    if (engine := engine_for(trainer, len(tasks))) is not None:
        judged = train_banks(engine, trainer, tasks)
    else:
        judged = [task(trainer, trainer.spec) for task in tasks]
    after = [
        (replace(found[k][0], nll=own.trial.nll), own)
        for k, own in zip(rivals, judged, strict=True)
    ]
    choice = smallest_good if trainer.spec.budget is None else best_of
    return rivals[choice(after)]


def _whole(
    trainer: Trainer,
    spec: FitSpec,
    architecture: Architecture,
    candidate: Candidate,
    folded: bool,
) -> Judgement:
    """Train a candidate for all steps."""
    trainer.spec = replace(spec, architecture=architecture)
    (judged,), _ = _judged(trainer, [candidate], folded, whole=True)
    if trainer.interrupted:
        raise KeyboardInterrupt  # as above
    return judged


def smallest_good(found: Sequence[tuple[TriedArchitecture, Judgement]]) -> int:
    """Return the smallest architecture that is as good as the best one, as far as rows can tell."""
    best = best_of(found)
    losses = found[best][1].losses
    for k in sorted(range(len(found)), key=lambda k: found[k][0].parameters):
        behind = Gap.of(found[k][1].losses, losses)
        if k == best or behind.difference <= (behind.standard_error or 0.0):
            return k
    return best


def best_of(found: Sequence[tuple[TriedArchitecture, Judgement]]) -> int:
    """Return the architecture with the least NLL; of equal ones the first."""
    return min(range(len(found)), key=lambda k: found[k][0].nll)


# --------------------------------------------------------------------------------------------------
# Choice of a network for windows, by held-out groups
#
# Windows of one person are alike, and a few people held out may be easy ones. So every candidate is
# trained as a bank of folds over whole groups, and judged by the mean over groups of each group's
# own NLL. Candidates are compared group by group: one that is larger, or less regular, must win by
# more than one standard error of the paired difference, s = std(d_g) / sqrt(G) over G groups.
#
# It is done in three rounds, each around the winner of the one before: rotations of the usual size
# at the usual drop probability, the largest one only if that before is not worse than the best by
# more than two standard errors; other sizes, and dense layers; other drop probabilities. On a CPU
# each round is on a sample of the windows and a few steps, and all of it is bounded; few steps
# speak for little dropout and against large networks whatever is true later, so neither is asked
# there. On a GPU it is a third of the usual length on all windows.
# --------------------------------------------------------------------------------------------------

Tried = tuple[TriedArchitecture, Judgement]
USUAL_DROP = 0.1
OTHER_DROPS = (0.2, 0.02)


@dataclass(frozen=True)
class SearchLimits:
    """What a choice may cost: windows and steps of a candidate, and of the winner's own folds."""

    windows: int
    steps: int | None  # None is a third of the usual number
    batch_size: int | None
    passes: float  # windows times networks of the winner's folds and its last training
    longer: bool  # whether there are steps enough to tell larger networks and less dropout


CPU = SearchLimits(windows=1_500, steps=150, batch_size=64, passes=600_000, longer=False)
CUDA = SearchLimits(windows=20_000, steps=None, batch_size=None, passes=math.inf, longer=True)


def can_choose(trainer: Trainer, architectures: Sequence[Architecture]) -> bool:
    """Tell whether a network for windows is to be chosen, and there are groups to choose by."""
    spec, rows = trainer.spec, trainer.rows
    return (
        any(map(is_expensive, architectures))
        and rows.groups is not None
        and rows.split_off
        and spec.criterion == "nll"
        and spec.budget is None
        and rows.rows.blocks >= FOLDS
    )


def choose_by_groups(
    trainer: Trainer, architectures: Sequence[Architecture]
) -> tuple[tuple[TriedArchitecture, ...], Length | None]:
    """Leave the trainer with the network and its grid; returns the trials and a length for it."""
    spec, means = trainer.spec, CUDA if trainer.spec.device.type == "cuda" else CPU
    part = spread(trainer.rows.rows, means.windows)
    fold = part.folds(FOLDS, trainer.rows.seed, trainer.rows.labels)
    length = _search_length(trainer, len(part), means)
    usual = _nearest(spec.grid, USUAL_DROP)
    dear = [one for one in architectures if is_expensive(one)]
    plain = [one for one in architectures if not is_expensive(one)]
    at = min(1, len(dear) - 1)  # the usual size
    smaller = dear[:at] if trainer.row_count < MANY_ROWS else []
    rest = [*smaller, *(dear[at + 1 :] if means.longer else [])]
    found: list[Tried] = []
    tried: list[Architecture] = []

    def try_all(offered: Sequence[Architecture], goes_on: Callable[[Sequence[Tried]], bool]) -> int:
        for architecture in offered:
            if found and not (trainer.has_time() and goes_on(found)):
                break
            trainer.spec = replace(spec, architecture=architecture)
            judged, size = _judged_by_groups(trainer, [usual], part, fold, length)
            found.append((tried_as(architecture, size, judged[0].trial.nll), judged[0]))
            tried.append(architecture)
        return smallest_good(found)

    by_angle = turned(dear[at])[::-1]
    try_all(by_angle, lambda so_far: len(so_far) + 1 < len(by_angle) or is_close(so_far))
    found.reverse()  # of equal ones the first counts: the most regular
    tried.reverse()
    like = tried[smallest_good(found)]
    chosen = try_all([*plain, *(_like(one, like) for one in rest)], lambda _: True)
    drops = [c for c in (_nearest(spec.grid, p) for p in OTHER_DROPS) if c != usual]
    candidate = usual
    if drops and means.longer and trainer.has_time():
        trainer.spec = replace(spec, architecture=tried[chosen])
        others, _ = _judged_by_groups(trainer, drops, part, fold, length)
        candidate = clearly_best(found[chosen][1], others)
    grid = tuple(
        c for c in spec.grid if c.drop_prob == candidate.drop_prob and c.alpha == candidate.alpha
    )
    trainer.spec = replace(spec, architecture=tried[chosen], grid=grid)
    told = tuple(
        replace(own, chosen=True)
        if number == chosen
        else replace(own, behind=Gap.of(judgement.losses, found[chosen][1].losses))
        for number, (own, judgement) in enumerate(found)
    )
    return told, _last_length(trainer, means)


def is_close(found: Sequence[Tried]) -> bool:
    """Tell whether the last one is within two standard errors of the best so far."""
    behind = Gap.of(found[-1][1].losses, found[best_of(found)][1].losses)
    return behind.difference <= 2 * (behind.standard_error or 0.0)


def _judged_by_groups(
    trainer: Trainer,
    group: Sequence[Candidate],
    part: Part,
    fold: Integers,
    length: Length | None,
) -> tuple[list[Judgement], int]:
    """Train candidates in one bank of folds; their losses are means of groups, in one order."""
    data, members = trainer.rows, trainer.spec.members
    assert data.groups is not None
    scaler = trainer.target_scaler(part, group[0].likelihood)
    rows = trainer.training_rows(part, scaler)
    inside, outside = fold_weights(rows, fold, members, len(group))
    networks, record, _ = trainer.train(group, FOLDS, inside, outside, length)
    if trainer.interrupted:
        raise KeyboardInterrupt  # nothing is trained yet that could be returned
    hidden = [part[fold == number] for number in range(FOLDS)]
    index = np.concatenate([own.index for own in hidden])
    label = data.groups[index]
    weight = alike(np.concatenate([own.weight for own in hidden]), label)
    found = []
    for number, candidate in enumerate(group):
        first = number * FOLDS * members
        dists = [
            trainer.predict(
                networks[first + k * members : first + (k + 1) * members],
                data.X[own.index],
                scaler,
            )
            for k, own in enumerate(hidden)
        ]
        held_out = HeldOutPredictions(concatenate(dists), data.X[index], data.y[index], weight)
        steps = record.best_step[first : first + FOLDS * members]
        judgement = trainer.judge(candidate, held_out, steps)
        found.append(replace(judgement, losses=_by_group(judgement.losses, label)))
    return found, sum(value.numel() for value in networks[0].parameters())


def _by_group(losses: Floats, group: Integers) -> Floats:
    number = np.unique(group, return_inverse=True)[1].reshape(-1)
    means: Floats = np.bincount(number, losses) / np.bincount(number)
    return means


def clearly_best(usual: Judgement, others: Sequence[Judgement]) -> Candidate:
    """Return the usual candidate, unless another is better by more than a standard error."""
    best = min(others, key=lambda one: one.trial.nll)
    ahead = Gap.of(usual.losses, best.losses)
    clearly = ahead.difference > (ahead.standard_error or 0.0)
    return (best if clearly else usual).trial.candidate


def _nearest(grid: Sequence[Candidate], drop: float) -> Candidate:
    """Return the grid's candidate with about this drop probability, first head and last alpha."""
    first, last = grid[0].likelihood, grid[-1].alpha
    own = [c for c in grid if c.likelihood == first and c.alpha == last]
    return min(own, key=lambda c: abs(float(np.mean(c.drop_prob)) - drop))


def _like(architecture: Architecture, other: Architecture) -> Architecture:
    """Return an architecture with the rotation of another."""
    return next(
        one
        for one in turned(architecture)
        if getattr(one, "rotation_std", 0.0) == getattr(other, "rotation_std", 0.0)
    )


def spread(part: Part, most: int) -> Part:
    """Take about so many rows, as many of each block as of the others where they have them."""
    if len(part) <= most:
        return part
    number = np.unique(part.block, return_inverse=True)[1].reshape(-1)
    order = np.argsort(number, kind="stable")
    counts = np.bincount(number)
    place = np.empty(len(part), np.int64)
    place[order] = np.arange(len(part)) - np.repeat(np.cumsum(counts) - counts, counts)
    each = np.sort(counts)
    # The most rows of a block with which all blocks together have no more than `most`.
    cap = max(n for n in range(1, int(each[-1]) + 1) if np.minimum(each, n).sum() <= most or n == 1)
    return part[place < cap]


def _search_length(trainer: Trainer, rows: int, means: SearchLimits) -> Length | None:
    if trainer.spec.epochs is not None:
        return None
    size = trainer.spec.batch_size or means.batch_size
    usual = Schedule.of(rows, 1, 1.0, 0, batch_size=size)
    steps = usual.steps / 3 if means.steps is None else min(means.steps, usual.steps)
    return Length(max(1, round(steps / max(1, rows // usual.batch_size))), usual.batch_size)


def _last_length(trainer: Trainer, means: SearchLimits) -> Length | None:
    """Return the length of the winner's folds: the usual one, or what may be spent."""
    if trainer.spec.epochs is not None:
        return None
    rows = trainer.row_count
    usual = Schedule.of(rows, 1, 1.0, 0, batch_size=trainer.spec.batch_size)
    steps = min(usual.steps, means.passes / ((FOLDS + 1) * usual.batch_size))
    return Length(max(1, round(steps / max(1, rows // usual.batch_size))), usual.batch_size)


# --------------------------------------------------------------------------------------------------
# Choice of a candidate: on validation rows or by cross-validation
#
# With validation rows in plenty, every candidate is trained once and judged on them. With few, the
# grid is cross-validated in one bank (a member sees the rows of its folds through weights of 0 and
# 1), every candidate is judged at the one step that is best for its folds together, and the winner
# is trained once more on all rows, up to that step.
#
# Either way the first head spans the whole grid and a further one only the leader's drop
# probability, and the winner is then tried at other lengths of training (`LengthSearch`). Where
# the network is open too, it is chosen first (`choose_architecture`), and the grid is what that
# leaves; of few rows, one small bank of the smallest network is the whole search. Networks for
# windows are judged on validation rows, however few: folds would cost too much. Where windows have
# groups, folds of groups judge, at a bounded cost (`choose_by_groups`).
# --------------------------------------------------------------------------------------------------

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
    fold = fold and not any(map(is_expensive, judged)) and trainer.rows.rows.blocks >= FOLDS
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
                candidate=candidate,
                networks=tuple(networks[own]),
                target_scaler=scaler,
                trained_on=rows.train,
                held_out=held_out,
                calibration=judgement.calibration,
                training=report,
                length=Length.of(schedule, train.total),
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
        candidate=candidate,
        networks=tuple(networks),
        target_scaler=scaler,
        trained_on=part,
        held_out=folds.held_out,
        calibration=calibration,
        training=replace(report, validated=how),
        length=lengths.best,
        selection=replace(board.selection(how), lengths=tuple(lengths.tried)),
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


# --------------------------------------------------------------------------------------------------
# Search on a sample of a large table
#
# Which network, head, alpha, dropout and length are best is told by 50,000 rows as well as by
# millions, in a fraction of the time. The sample's rows train or validate as they do in the whole.
# Then the winner is fitted as if it had been given: on all training rows, with its best step and
# calibration found on all validation rows. It is trained for the usual length for so many rows, and
# for no fewer steps and no fewer rows than it took on the sample:
#
#     steps >= max(usual steps, n, n b / B)
#
# with n steps in batches of b rows on the sample, and batches of the usual B rows on all.
# --------------------------------------------------------------------------------------------------

SAMPLE = 50_000  # rows, those to judge by included
FEWEST = 2_000  # that a budget of memory must leave of a larger table in files, to choose on them


class SampleTrainer(Trainer):
    """A trainer on a sample in memory, which has validation rows enough."""

    can_fold = False

    def __init__(self, spec: FitSpec, rows: FitRows, target: Target) -> None:
        super().__init__(spec, rows, target)
        self.about = f"choosing on {_count(rows):,} rows: "


def choose(trainer: Trainer) -> TrainedModel:
    """Return the best candidate's networks, trained on all rows; the trainer is left with it."""
    spec, rows = trainer.spec, trainer.rows
    if not (len(spec.grid) > 1 or spec.open_architecture) or not _on_sample(trainer):
        return select(trainer)
    streamed = isinstance(rows, ParquetRows)
    trained = trainer.row_count if streamed else len(rows.train)
    own = SampleTrainer(spec, sampled(rows, SAMPLE, trained), trainer.target)
    found = select(own)
    few, total = _count(own.rows), trained + len(rows.validation)
    selection = found.selection
    if selection is not None and few < total:
        how = f"{selection.how} of a sample of {few:,} of {total:,} rows"
        selection = replace(selection, how=how)
    if own.interrupted:  # whoever stops a search wants no long training after it
        trainer.spec, trainer.input_scaler = own.spec, own.input_scaler
        return replace(found, selection=selection)
    trainer.about = f"training the choice on all {total:,} rows: "
    trainer.spec = replace(
        spec,
        architecture=own.spec.architecture,
        open_architecture=False,
        grid=(found.candidate,),
        epochs=spec.epochs or epochs_on(trained, found, spec.batch_size),
        checkpoint=None if spec.checkpoint is None else f"{os.fspath(spec.checkpoint)}.all",
    )
    return replace(select(trainer), selection=selection)


def epochs_on(rows: int, found: TrainedModel, batch_size: int | None) -> int:
    """Return the epochs of a table of so many rows, for what was trained well on a sample of it."""
    usual = Schedule.of(rows, 0, 1.0, 0, batch_size=batch_size)
    details = found.training.details
    larger = max(1.0, int(details["batch_size"]) / usual.batch_size)
    steps = max(usual.steps, int(details["planned_steps"]) * larger)
    return math.ceil(steps / max(1, rows // usual.batch_size))


def _on_sample(trainer: Trainer) -> bool:
    """Tell whether rows are many, or in files and as many in memory as a choice needs."""
    rows = trainer.rows
    if not isinstance(rows, ParquetRows):
        return trainer.row_count > SAMPLE
    return len(rows.train) >= min(FEWEST, trainer.row_count)


def _count(rows: FitRows) -> int:
    return len(rows.train) + len(rows.validation)
