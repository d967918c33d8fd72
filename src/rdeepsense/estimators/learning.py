"""Training the candidates of one fit, judging them on rows they did not train on, choosing one."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rdeepsense import calibration, metrics
from rdeepsense.distributions import AnyDistribution, concatenate
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import Data, Judged
from rdeepsense.estimators.holdout import Part
from rdeepsense.estimators.inference import choose_device
from rdeepsense.estimators.scaling import Scaler
from rdeepsense.networks import dense
from rdeepsense.recipe import StochasticNetwork, convert
from rdeepsense.selection import FEW_VALIDATION_ROWS, FOLDS, Candidate, Trial, best
from rdeepsense.training import Rows, Schedule, TrainingRecord, train_networks

LENGTHENINGS = 2
WORTH = 0.01  # nats that a longer training must gain


@dataclass(frozen=True)
class Learnt:
    """What comes out: networks, the scale of their targets, the choice made, the record."""

    candidate: Candidate
    networks: list[StochasticNetwork]
    target_scaler: Scaler | None
    judged: Judged
    training: dict[str, Any]
    selection: dict[str, Any]  # empty where there was nothing to choose


class Learner:
    """Trains candidates for an estimator; `members` networks each, of seeds of their own.

    With validation rows in plenty, every candidate is trained once and judged on them, and the
    winner is trained longer while that pays (targets with little noise need it). With few,
    the whole grid is cross-validated in one bank (a member sees the rows of its folds through
    weights of 0 and 1), every candidate is judged at the one step that is best for its folds
    together, and the winner is trained once more on all rows, up to that step.
    """

    def __init__(self, estimator: Any, data: Data, members: int, beta: float = 0.0) -> None:
        self.estimator, self.data, self.members, self.beta = estimator, data, members, beta
        self.device = choose_device(estimator.device)
        self.input_scaler = Scaler.standard(data.X, data.train.index, data.train.weight)
        self._banks = 0
        self._interrupted = False  # then no further bank is begun, and the trained ones compete

    def learn(self, grid: Sequence[Candidate], by: str = "nll") -> Learnt:
        few = len(self.data.validation) < FEW_VALIDATION_ROWS and self.data.split_off
        if len(grid) > 1 and few and by == "nll":
            return self._cross_validated(grid)
        return self._held_out(grid, by)

    # -- the two ways ---------------------------------------------------------------------------

    def _held_out(self, grid: Sequence[Candidate], by: str) -> Learnt:
        data, options, losses = self.data, [], []
        for likelihood in dict.fromkeys(c.likelihood for c in grid):
            if self._interrupted:
                break
            group = [c for c in grid if c.likelihood == likelihood]
            scaler = self.estimator._target_scaler(data.y, data.train, likelihood)
            rows = self._rows(data.X, data.y, data.train, scaler)
            held = self._rows(data.X_val, data.y_val, data.validation, scaler)
            networks, record, schedule = self._train(group, 1, rows, held)
            X, y = data.X_val[data.validation.index], data.y_val[data.validation.index]
            for i, candidate in enumerate(group[: len(networks) // self.members]):
                own = slice(i * self.members, (i + 1) * self.members)
                judged = Judged(
                    self._predict(networks[own], X, scaler), X, y, data.validation.uneven
                )
                trial, loss = self._trial(candidate, judged, record.best_step[own])
                losses.append(loss)
                training = self._record(record, schedule, own, len(rows), len(held))
                options.append(
                    (trial, Learnt(candidate, networks[own], scaler, judged, training, {}))
                )
        if len(options) == 1:
            return options[0][1]
        trials = [trial for trial, _ in options]
        chosen = best(trials, by, losses)
        selection = self._selection(trials, chosen, by, "validation rows")
        learnt = replace(options[chosen][1], selection=selection)
        if by != "nll" or self.estimator.epochs is not None or self._interrupted:
            return learnt
        return self._longer(learnt, trials[chosen].nll)

    def _longer(self, learnt: Learnt, nll: float) -> Learnt:
        """Train the winner three times as long, and again, as long as that pays."""
        data, scaler = self.data, learnt.target_scaler
        rows = self._rows(data.X, data.y, data.train, scaler)
        held = self._rows(data.X_val, data.y_val, data.validation, scaler)
        learnt.selection["lengths"] = [{"steps": learnt.training["planned_steps"], "nll": nll}]
        per_epoch = max(1, len(rows) // learnt.training["batch_size"])
        epochs = learnt.training["planned_steps"] // per_epoch
        for _ in range(LENGTHENINGS):
            epochs *= 3
            networks, record, schedule = self._train([learnt.candidate], 1, rows, held, epochs)
            judged = replace(learnt.judged, dist=self._predict(networks, learnt.judged.X, scaler))
            trial, _ = self._trial(learnt.candidate, judged, record.best_step)
            learnt.selection["lengths"].append({"steps": schedule.steps, "nll": trial.nll})
            if trial.nll > nll - WORTH or self._interrupted:
                break
            nll = trial.nll
            training = self._record(record, schedule, slice(None), len(rows), len(held))
            learnt = replace(learnt, networks=networks, judged=judged, training=training)
        return learnt

    def _cross_validated(self, grid: Sequence[Candidate]) -> Learnt:
        data = self.data
        part = data.rows
        self.input_scaler = Scaler.standard(data.X, part.index, part.weight)
        fold = part.folds(FOLDS, data.seed, data.labels)
        trials, judgements, scalers, losses = [], [], [], []
        for likelihood in dict.fromkeys(c.likelihood for c in grid):
            group = [c for c in grid if c.likelihood == likelihood]
            if self._interrupted:
                break
            scaler = self.estimator._target_scaler(data.y, part, likelihood)
            rows = self._rows(data.X, data.y, part, scaler)
            weight = torch.ones(len(rows)) if rows.weight is None else rows.weight.cpu()
            # Members in the order candidate, fold, member of the ensemble.
            held = torch.from_numpy(fold == np.arange(FOLDS)[:, None]).repeat_interleave(
                self.members, 0
            )
            held = held.repeat(len(group), 1)
            inside = (weight * ~held).to(rows.x)
            inside = inside / inside.mean(1, keepdim=True)
            outside = (weight * held).to(rows.x)
            networks, record, _ = self._train(
                group, FOLDS, replace(rows, weight=inside), replace(rows, weight=outside)
            )
            size = FOLDS * self.members
            for i, candidate in enumerate(group[: len(networks) // size]):
                judged = self._out_of_fold(networks[i * size : (i + 1) * size], part, fold, scaler)
                steps = record.best_step[i * size : (i + 1) * size]
                trial, loss = self._trial(candidate, judged, steps)
                trials.append(trial)
                losses.append(loss)
                judgements.append(judged)
                scalers.append(scaler)
        chosen = best(trials, "nll", losses)
        candidate, scaler = trials[chosen].candidate, scalers[chosen]
        rows = self._rows(data.X, data.y, part, scaler)
        networks, record, schedule = self._train(
            [candidate], 1, rows, rows, stop_at=trials[chosen].best_step
        )
        how = f"{FOLDS}-fold cross-validation"
        training = self._record(record, schedule, slice(None), len(rows), len(rows))
        selection = self._selection(trials, chosen, "nll", how)
        return Learnt(
            candidate,
            networks,
            scaler,
            judgements[chosen],
            {**training, "validated": how},
            selection,
        )

    # -- the pieces -----------------------------------------------------------------------------

    def _train(
        self,
        group: Sequence[Candidate],
        folds: int,
        rows: Rows,
        held: Rows,
        epochs: int | None = None,
        stop_at: int | None = None,
    ) -> tuple[list[StochasticNetwork], TrainingRecord, Schedule]:
        estimator = self.estimator
        networks = [
            self.network(candidate, member)
            for candidate in group
            for _ in range(folds)
            for member in range(self.members)
        ]
        schedule = replace(
            Schedule.of(
                rows=len(rows),
                validation_rows=len(held),
                learning_rate=estimator.learning_rate or default_learning_rate(networks[0]),
                seed=self.data.seed,
                epochs=epochs or estimator.epochs,
                batch_size=estimator.batch_size,
            ),
            stop_at=stop_at,
            together=folds * self.members if folds > 1 else 1,
            adversarial=getattr(estimator, "_adversarial_step", 0.0),
        )
        if stop_at is not None:  # nothing is chosen along the way
            schedule = replace(schedule, evaluate_every=stop_at)
        alphas = [c.alpha for c in group for _ in range(folds * self.members)]
        self._banks += 1
        path = estimator.checkpoint
        done, record = train_networks(
            networks,
            lambda part: estimator._rule(alphas[part], self.beta),
            estimator.weight_decay,
            rows,
            held,
            schedule,
            path if path is None or self._banks == 1 else f"{os.fspath(path)}.{self._banks}",
            estimator.verbose,
            "training" if len(networks) == 1 else f"training {len(networks)} networks",
        )
        if record.interrupted:
            if len(done) < folds * self.members:
                raise KeyboardInterrupt
            self._interrupted = True
            warnings.warn(
                f"training was interrupted at step {record.steps} of {schedule.last_step}; the "
                f"best step so far ({record.best_step[0]}) is kept",
                stacklevel=6,
            )
        return done, record, schedule

    def network(self, candidate: Candidate, member: int) -> StochasticNetwork:
        """The converted network: the user's own, or fully-connected layers drawn from the seed."""
        estimator, features = self.estimator, self.estimator.n_features_in_
        given, outputs = estimator.network, estimator._outputs()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.data.seed + member)
            if given is None:
                network: nn.Module = dense(features, estimator.hidden, outputs)
            else:
                network = given if member == 0 else _drawn_anew(given)
            converted = convert(
                network,
                likelihood=candidate.likelihood,
                drop_prob=candidate.drop_prob,
                input_drop_prob=getattr(estimator, "input_drop_prob", 0.0),
                example=torch.zeros(2, features).to(next(network.parameters())),
            )
        if converted.head.outputs != outputs:
            raise InputError(
                f"the network's last layer has {converted.head.outputs} outputs, "
                f"the targets need {outputs}"
            )
        return converted

    def _rows(self, X: NDArray[Any], y: NDArray[Any], part: Part, scaler: Scaler | None) -> Rows:
        """Scaled rows on the device."""
        x = self.input_scaler.gather(X, part.index).to(self.device)
        if scaler is None:
            target = torch.from_numpy(y[part.index])
        else:
            target = scaler.gather(y.reshape(len(y), -1), part.index)
        weight = part.uneven
        scaled = None if weight is None else torch.from_numpy(weight).float().to(self.device)
        return Rows(x, target.to(self.device), scaled)

    def _predict(
        self, networks: list[StochasticNetwork], X: NDArray[Any], scaler: Scaler | None
    ) -> AnyDistribution:
        dist = self.estimator._passes(networks, X, self.input_scaler, None, self.data.seed)
        predicted: AnyDistribution = self.estimator._in_units(dist, scaler)
        return predicted

    def _out_of_fold(
        self, networks: list[StochasticNetwork], part: Part, fold: NDArray[Any], scaler: Any
    ) -> Judged:
        """Every row predicted by the networks that did not see it."""
        dists, order = [], []
        for f in range(FOLDS):
            order.append(np.flatnonzero(fold == f))
            own = networks[f * self.members : (f + 1) * self.members]
            dists.append(self._predict(own, self.data.X[part.index[order[f]]], scaler))
        joined = part[np.concatenate(order)]
        return Judged(
            concatenate(dists), self.data.X[joined.index], self.data.y[joined.index], joined.uneven
        )

    def _trial(
        self, candidate: Candidate, judged: Judged, steps: list[int]
    ) -> tuple[Trial, NDArray[np.float64]]:
        """How a candidate did, and its NLL row by row."""
        kind = self.estimator._calibration_kind()
        dist, factor = judged.dist, None
        if kind is not None:
            fitted = calibration.fit(kind, dist, judged.y, judged.weight)
            dist, factor = fitted.apply(dist), fitted.summary()
        trial = Trial(
            candidate,
            nll=calibration.weighted_nll(dist, judged.y, judged.weight),
            deviation_area=None if dist.is_categorical else metrics.deviation_area(dist, judged.y),
            calibration=factor,
            best_step=max(1, round(float(np.mean(steps)))),
        )
        return trial, -dist.log_prob(judged.y).reshape(len(judged.y), -1).mean(1)

    def _record(
        self, record: TrainingRecord, schedule: Schedule, own: slice, rows: int, held: int
    ) -> dict[str, Any]:
        """The part of the record that is about the chosen networks."""
        return {
            "rows": rows,
            "validation_rows": held,
            "validated": "validation rows" if self.data.split_off else "validation rows given",
            "planned_steps": schedule.last_step,
            **asdict(schedule),
            **asdict(record),
            "interrupted": self._interrupted,  # in this bank or one before it
            "best_nll": record.best_nll[own],
            "best_step": record.best_step[own],
            "history": [nll[own] for nll in record.history],
        }

    def _selection(self, trials: Sequence[Trial], chosen: int, by: str, how: str) -> dict[str, Any]:
        return {
            "by": by,
            "how": how,
            "chosen": chosen,
            "trials": [trial.plain() for trial in trials],
        }


def default_learning_rate(network: nn.Module) -> float:
    """5e-3 for layers of up to 100 units, falling to 1e-3 at the paper's 500."""
    widths = [m.out_features for m in network.modules() if isinstance(m, nn.Linear)][:-1]
    return 5e-3 * min(1.0, 100 / max(widths, default=1))


def _drawn_anew(network: nn.Module) -> nn.Module:
    """A copy with other initial weights, for the further members of an ensemble."""
    network = copy.deepcopy(network)
    for module in network.modules():
        reset = getattr(module, "reset_parameters", None)
        if callable(reset):
            reset()
    return network
