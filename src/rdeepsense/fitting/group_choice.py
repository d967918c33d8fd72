"""Choosing a network for windows by groups that it has not seen.

Windows of one person are alike, and a few people held out may be easy ones. So every candidate is
trained as a bank of folds over whole groups, and judged by the mean over groups of each group's own
NLL. Candidates are compared group by group: one that is larger, or less regular, must win by more
than one standard error of the paired difference, s = std(d_g) / sqrt(G) over G groups.

It is done in three rounds, each around the winner of the one before: rotations of the usual size at
the usual drop probability, the largest one only if that before is not worse than the best by more
than two standard errors; other sizes, and dense layers; other drop probabilities. On a CPU each
round is on a sample of the windows and a few steps, and all of it is bounded; few steps speak for
little dropout and against large networks whatever is true later, so neither is asked there. On a
GPU it is a third of the usual length on all windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rdeepsense.arrays import Floats, Integers
from rdeepsense.data.splits import Part
from rdeepsense.distributions import concatenate
from rdeepsense.fitting.architecture_search import best_of, smallest_good, tried_as
from rdeepsense.fitting.candidates import FOLDS, Candidate
from rdeepsense.fitting.folds import fold_weights
from rdeepsense.fitting.left_out import alike
from rdeepsense.fitting.records import Behind, TriedArchitecture
from rdeepsense.fitting.trainer import HeldOutPredictions, Judgement, Length, Trainer
from rdeepsense.fitting.window_ladder import MANY_ROWS, is_dear, turned
from rdeepsense.networks import Architecture
from rdeepsense.training import Schedule

Tried = tuple[TriedArchitecture, Judgement]
USUAL_DROP = 0.1
OTHER_DROPS = (0.2, 0.02)


@dataclass(frozen=True)
class Means:
    """What a choice may cost: windows and steps of a candidate, and of the winner's own folds."""

    windows: int
    steps: int | None  # None is a third of the usual number
    batch_size: int | None
    passes: float  # windows times networks of the winner's folds and its last training
    longer: bool  # whether there are steps enough to tell larger networks and less dropout


CPU = Means(windows=1_500, steps=150, batch_size=64, passes=600_000, longer=False)
CUDA = Means(windows=20_000, steps=None, batch_size=None, passes=math.inf, longer=True)


def can_choose(trainer: Trainer, architectures: Sequence[Architecture]) -> bool:
    """Tell whether a network for windows is to be chosen, and there are groups to choose by."""
    spec, rows = trainer.spec, trainer.rows
    return (
        any(map(is_dear, architectures))
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
    dear = [one for one in architectures if is_dear(one)]
    plain = [one for one in architectures if not is_dear(one)]
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
            judged, size = _judged(trainer, [usual], part, fold, length)
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
        others, _ = _judged(trainer, drops, part, fold, length)
        candidate = clearly_best(found[chosen][1], others)
    grid = tuple(
        c for c in spec.grid if c.drop_prob == candidate.drop_prob and c.alpha == candidate.alpha
    )
    trainer.spec = replace(spec, architecture=tried[chosen], grid=grid)
    told = tuple(
        replace(own, chosen=True)
        if number == chosen
        else replace(own, behind=Behind.of(judgement.losses, found[chosen][1].losses))
        for number, (own, judgement) in enumerate(found)
    )
    return told, _last_length(trainer, means)


def is_close(found: Sequence[Tried]) -> bool:
    """Tell whether the last one is within two standard errors of the best so far."""
    behind = Behind.of(found[-1][1].losses, found[best_of(found)][1].losses)
    return behind.difference <= 2 * (behind.standard_error or 0.0)


def _judged(
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
    ahead = Behind.of(usual.losses, best.losses)
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


def _search_length(trainer: Trainer, rows: int, means: Means) -> Length | None:
    if trainer.spec.epochs is not None:
        return None
    size = trainer.spec.batch_size or means.batch_size
    usual = Schedule.of(rows, 1, 1.0, 0, batch_size=size)
    steps = usual.steps / 3 if means.steps is None else min(means.steps, usual.steps)
    return Length(max(1, round(steps / max(1, rows // usual.batch_size))), usual.batch_size)


def _last_length(trainer: Trainer, means: Means) -> Length | None:
    """Return the length of the winner's folds: the usual one, or what may be spent."""
    if trainer.spec.epochs is not None:
        return None
    rows = trainer.row_count
    usual = Schedule.of(rows, 1, 1.0, 0, batch_size=trainer.spec.batch_size)
    steps = min(usual.steps, means.passes / ((FOLDS + 1) * usual.batch_size))
    return Length(max(1, round(steps / max(1, rows // usual.batch_size))), usual.batch_size)
