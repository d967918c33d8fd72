"""Training the candidates of one fit and judging them on rows they did not train on."""

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
from torch.nn.modules.conv import _ConvNd

from rdeepsense import calibration, metrics
from rdeepsense.data.rows import Data
from rdeepsense.data.scaling import Scaler
from rdeepsense.data.splits import Part
from rdeepsense.distributions import AnyDistribution
from rdeepsense.dropout import StochasticNetwork, convert
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import Judged
from rdeepsense.fitting.candidates import Candidate, Trial
from rdeepsense.fitting.passes import choose_device
from rdeepsense.networks import DeepSense, dense
from rdeepsense.networks.rotation import RandomTurn
from rdeepsense.training import Rows, Schedule, TrainingRecord, train_networks


@dataclass(frozen=True)
class Learnt:
    """What comes out: networks, the scale of their targets, the choice made, the record."""

    candidate: Candidate
    networks: list[StochasticNetwork]
    target_scaler: Scaler | None
    judged: Judged
    training: dict[str, Any]
    selection: dict[str, Any]  # empty where there was nothing to choose


@dataclass(frozen=True)
class Length:
    """How long to train."""

    epochs: int
    batch_size: int


class Learner:
    """Trains candidates for an estimator, `members` networks each, and judges them."""

    folds = True  # whether its rows can be cross-validated

    def __init__(self, estimator: Any, data: Data, members: int, beta: float = 0.0) -> None:
        self.estimator, self.data, self.members, self.beta = estimator, data, members, beta
        self.device = choose_device(estimator.device)
        self.input_scaler = self._input_scaler(data.train)
        self._banks = 0
        self.interrupted = False  # then no further bank is begun, and the trained ones compete

    def on_all_rows(self) -> None:
        """Scale inputs by all rows, as for a network that is trained on all of them."""
        self.input_scaler = self._input_scaler(self.data.rows)

    def close(self) -> None:
        """Let go of what the rows were read with."""

    def target_scaler(self, part: Part, likelihood: str) -> Scaler | None:
        scaler: Scaler | None = self.estimator._target_scaler(self.data.y, part, likelihood)
        return scaler

    def training_rows(self, part: Part, scaler: Scaler | None) -> Rows:
        return self._rows(self.data.X, self.data.y, part, scaler)

    def validation_rows(self, scaler: Scaler | None) -> Rows:
        return self._rows(self.data.X_val, self.data.y_val, self.data.validation, scaler)

    def train(
        self,
        group: Sequence[Candidate],
        folds: int,
        rows: Rows,
        held: Rows,
        length: Length | None = None,
        stop_at: int | None = None,
    ) -> tuple[list[StochasticNetwork], TrainingRecord, Schedule]:
        """Each candidate's networks at their best step, `folds` times `members` of them."""
        estimator = self.estimator
        networks = [
            self.network(candidate, member)
            for candidate in group
            for _ in range(folds)
            for member in range(self.members)
        ]
        schedule = replace(
            Schedule.of(
                rows=rows.total,
                validation_rows=len(held),
                learning_rate=estimator.learning_rate or default_learning_rate(networks[0]),
                seed=self.data.seed,
                epochs=estimator.epochs if length is None else length.epochs,
                batch_size=estimator.batch_size or (None if length is None else length.batch_size),
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
            self.interrupted = True
            warnings.warn(
                f"training was interrupted at step {record.steps} of {schedule.last_step}; the "
                f"best step so far ({record.best_step[0]}) is kept",
                stacklevel=6,
            )
        return done, record, schedule

    def network(self, candidate: Candidate, member: int) -> StochasticNetwork:
        """The converted network: the user's own, or layers drawn from the seed."""
        estimator, shape = self.estimator, self.estimator.input_shape_
        given, outputs = estimator.network, estimator._outputs()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.data.seed + member)
            if given is None:
                network: nn.Module = dense(shape[0], estimator.hidden, outputs)
            elif isinstance(given, DeepSense):
                given.check_shape(shape)
                network = given.build(outputs)
            else:
                network = given if member == 0 else _drawn_anew(given)
            converted = convert(
                network,
                likelihood=candidate.likelihood,
                drop_prob=candidate.drop_prob,
                input_drop_prob=getattr(estimator, "input_drop_prob", 0.0),
                example=torch.zeros(2, *shape).to(next(network.parameters())),
            )
        if converted.head.outputs != outputs:
            raise InputError(
                f"the network's last layer has {converted.head.outputs} outputs, "
                f"the targets need {outputs}"
            )
        for module in converted.modules():
            if isinstance(module, RandomTurn):
                module.set_units(self.input_scaler.shift, self.input_scaler.scale)
        return converted

    def _input_scaler(self, part: Part) -> Scaler:
        return Scaler.standard(self.data.X, part.index, part.weight)

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

    def predict(
        self, networks: list[StochasticNetwork], X: NDArray[Any], scaler: Scaler | None
    ) -> AnyDistribution:
        """What the estimator makes of these networks, uncalibrated, in the target's units."""
        dist = self.estimator._passes(networks, X, self.input_scaler, None, self.data.seed)
        predicted: AnyDistribution = self.estimator._in_units(dist, scaler)
        return predicted

    def trial(
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

    def record(
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
            "interrupted": self.interrupted,  # in this bank or one before it
            "best_nll": record.best_nll[own],
            "best_step": record.best_step[own],
            "history": [nll[own] for nll in record.history],
        }


def default_learning_rate(network: nn.Module) -> float:
    """5e-3 for layers of up to 100 units, falling to 1e-3 at the paper's 500.

    2e-3 at most where there are convolutions or recurrent layers.
    """
    if any(isinstance(m, _ConvNd | nn.RNNBase) for m in network.modules()):
        return 2e-3
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
