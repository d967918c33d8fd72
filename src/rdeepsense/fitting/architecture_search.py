"""The first stage of a fit that chooses its network: every architecture on a few steps.

Each architecture of the ladder is trained as a small bank (three drop probabilities, the first
head, one alpha) for a third of the usual length and judged as everything else is: by calibrated NLL
on rows it was not trained on. A smaller network wins where the paired difference, row by row, is
within one standard error. Large networks gain more from the steps that are left: on tables of many
rows the winner and the best of those larger than it are compared once more after all steps; for a
budget, where no rule prefers small ones, the best three. The grid of the second stage is what lies
around the winner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from rdeepsense.fitting.budget_ladder import need_of
from rdeepsense.fitting.candidates import FOLDS, Candidate
from rdeepsense.fitting.folds import fold_weights, out_of_fold
from rdeepsense.fitting.ladder import VERY_MANY_ROWS, wider
from rdeepsense.fitting.passes import Single
from rdeepsense.fitting.records import Behind, TriedArchitecture
from rdeepsense.fitting.spec import FitSpec
from rdeepsense.fitting.spread import engine_for, spread
from rdeepsense.fitting.trainer import HeldOutPredictions, Judgement, Length, Trainer
from rdeepsense.fitting.window_ladder import rotated
from rdeepsense.networks import Architecture, name_of
from rdeepsense.training import Schedule

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
        else replace(own, behind=Behind.of(judgement.losses, found[chosen][1].losses))
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
        elsewhere = spread(engine, trainer, tasks)
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
        judged = spread(engine, trainer, tasks)
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
        behind = Behind.of(found[k][1].losses, losses)
        if k == best or behind.difference <= (behind.standard_error or 0.0):
            return k
    return best


def best_of(found: Sequence[tuple[TriedArchitecture, Judgement]]) -> int:
    """Return the architecture with the least NLL; of equal ones the first."""
    return min(range(len(found)), key=lambda k: found[k][0].nll)
