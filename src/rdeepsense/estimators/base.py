"""What all network estimators share: check, split, scale, train, calibrate; predict in one pass."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn

from rdeepsense import calibration, metrics
from rdeepsense.distributions import AnyDistribution, Mixture, concatenate
from rdeepsense.errors import InputError
from rdeepsense.estimators import checks, model_io
from rdeepsense.estimators.holdout import Part, evenly, hold_out
from rdeepsense.estimators.scaling import Scaler
from rdeepsense.networks import dense
from rdeepsense.recipe import StochasticNetwork, convert
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Rows, Schedule, stack, train
from rdeepsense.training.progress import progress_for

PREDICTION_CHUNK = 8_192  # rows (times samples) of one pass


class NetworkEstimator(BaseEstimator):
    """A network with a distribution head, trained by the recipe, behind scikit-learn's manners.

    Subclasses say what a target is: `_encode` turns y into numbers to train on, `_target_scaler`
    their units, `_likelihood` the head.
    """

    _calibration: str  # the default kind

    def __init__(
        self,
        hidden: Sequence[int] = (64, 64),
        network: nn.Module | None = None,
        drop_prob: float | Sequence[float] = 0.05,
        input_drop_prob: float = 0.0,
        alpha: float = 0.5,
        calibrate: bool | str = True,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float = 1e-2,
        missing: str = "refuse",
        checkpoint: str | os.PathLike[str] | None = None,
        keep_rows: int = 512,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = True,
    ) -> None:
        self.hidden = hidden
        self.network = network
        self.drop_prob = drop_prob
        self.input_drop_prob = input_drop_prob
        self.alpha = alpha
        self.calibrate = calibrate
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.missing = missing
        self.checkpoint = checkpoint
        self.keep_rows = keep_rows
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # -- what a subclass says about its targets ------------------------------------------------

    def _encode(self, y: Any, rows: int, weight: NDArray[np.float64] | None) -> NDArray[Any]:
        """y checked and as numbers, learning what there is to learn about it (classes, shape)."""
        raise NotImplementedError

    def _encode_more(self, y: Any, rows: int) -> NDArray[Any]:
        """y of further rows, after `_encode` has seen the first."""
        raise NotImplementedError

    def _likelihood(self) -> str:
        raise NotImplementedError

    def _target_scaler(self, y: NDArray[Any], part: Part) -> Scaler | None:
        raise NotImplementedError

    def _outputs(self) -> int:
        """How many columns of mean or logits the targets need."""
        raise NotImplementedError

    def _describe_target(self) -> dict[str, Any]:
        """What a model file must say about the targets; `_restore_target` reads it back."""
        raise NotImplementedError

    def _restore_target(self, target: dict[str, Any]) -> None:
        raise NotImplementedError

    # -- fitting -------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        validation: tuple[Any, Any] | None = None,
        groups: Any = None,
    ) -> Self:
        """Train on X (rows, features) and y; returns self.

        A part of the rows is held out to choose the best step and the calibration; `groups` (a
        user or record per row) keeps each group on one side, `validation=(X, y)` brings rows of
        your own instead.
        """
        options = self._options()
        X = checks.check_inputs(self, X, self.missing, reset=True)
        weight = checks.check_weights(sample_weight, len(X))
        encoded = self._encode(y, len(X), weight)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        part, X_val, y_val, part_val = self._split(X, encoded, weight, validation, groups, seed)

        self.input_scaler_ = Scaler.standard(X, part.index, part.weight)
        self.target_scaler_ = self._target_scaler(encoded, part)
        device = torch.device(options["device"])
        rows = self._rows(X, encoded, part, device)
        rows_val = self._rows(X_val, y_val, part_val, device)

        network = self._network(seed)
        schedule = Schedule.of(
            rows=len(rows),
            validation_rows=len(rows_val),
            learning_rate=self.learning_rate or default_learning_rate(network),
            seed=seed,
            epochs=self.epochs,
            batch_size=self.batch_size,
        )
        bank = stack([network])
        record = train(
            bank,
            ScoringRule([self.alpha], getattr(self, "beta", 0.0)),
            [self.weight_decay],
            rows,
            rows_val,
            schedule,
            checkpoint=self.checkpoint,
            progress=progress_for(self.verbose),
        )
        if record.interrupted:
            warnings.warn(
                f"training was interrupted at step {record.steps} of {schedule.steps}; the best "
                f"step so far ({record.best_step[0]}) is kept",
                stacklevel=2,
            )
        (self.network_,) = bank.networks()
        self.training_ = {
            "seed": seed,
            "rows": len(rows),
            "validation_rows": len(rows_val),
            **asdict(schedule),
            **asdict(record),
        }
        del rows, rows_val, bank
        self._calibrate(X_val, y_val, part_val, seed)
        return self

    def _options(self) -> dict[str, Any]:
        """Check the constructor's arguments that nobody below checks."""
        checks.check_choice("missing", self.missing, checks.MISSING)
        calibration.kind_of(self.calibrate, self._calibration)
        checks.check_positive("weight_decay", self.weight_decay, zero=True)
        checks.check_whole("keep_rows", self.keep_rows, 0)
        for name in ("epochs", "batch_size"):
            if getattr(self, name) is not None:
                checks.check_whole(name, getattr(self, name), 1)
        if self.learning_rate is not None:
            checks.check_positive("learning_rate", self.learning_rate)
        if self.network is None:
            if not isinstance(self.hidden, Sequence):
                raise InputError(f"hidden = {self.hidden!r} is not a sequence of layer widths")
            for width in self.hidden:
                checks.check_whole("a width in hidden", width, 1)
        elif not isinstance(self.network, nn.Module):
            raise InputError(f"network is a {type(self.network).__name__}, not a torch.nn.Module")
        ScoringRule(self.alpha, getattr(self, "beta", 0.0))
        return {"device": choose_device(self.device)}

    def _split(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        weight: NDArray[np.float64] | None,
        validation: tuple[Any, Any] | None,
        groups: Any,
        seed: int,
    ) -> tuple[Part, NDArray[Any], NDArray[Any], Part]:
        """The training rows, and the validation rows with the tables they are rows of."""
        if validation is None:
            if groups is not None:
                groups = np.asarray(groups)
                checks.check_length("groups", len(groups), len(X))
            stratify = self._likelihood() == "categorical"
            part, part_val = hold_out(X, y, weight, groups, stratify, seed)
            return part, X, y, part_val
        if groups is not None:
            raise InputError(
                "give groups or validation, not both: groups only split off validation"
            )
        if not isinstance(validation, tuple) or len(validation) != 2:
            raise InputError("validation must be a pair (X, y)")
        X_val = checks.check_inputs(self, validation[0], self.missing, reset=False)
        y_val = self._encode_more(validation[1], len(X_val))
        part = evenly(np.arange(len(X))) if weight is None else Part(np.arange(len(X)), weight)
        return part, X_val, y_val, evenly(np.arange(len(X_val)))

    def _rows(self, X: NDArray[Any], y: NDArray[Any], part: Part, device: torch.device) -> Rows:
        """Scaled rows on the device."""
        x = self.input_scaler_.gather(X, part.index).to(device)
        if self.target_scaler_ is None:
            target = torch.from_numpy(y[part.index])
        else:
            target = self.target_scaler_.gather(y.reshape(len(y), -1), part.index)
        weight = part.uneven
        return Rows(
            x,
            target.to(device),
            None if weight is None else torch.from_numpy(weight).float().to(device),
        )

    def _network(self, seed: int) -> StochasticNetwork:
        """The converted network: the user's own, or fully-connected layers drawn from the seed."""
        network = self.network
        if network is None:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                network = dense(self.n_features_in_, self.hidden, self._outputs())
        converted = convert(
            network,
            likelihood=self._likelihood(),
            drop_prob=self.drop_prob,
            input_drop_prob=self.input_drop_prob,
            example=torch.zeros(2, self.n_features_in_).to(next(network.parameters())),
        )
        if converted.head.outputs != self._outputs():
            raise InputError(
                f"the network's last layer has {converted.head.outputs} outputs, "
                f"the targets need {self._outputs()}"
            )
        return converted

    def _calibrate(self, X: NDArray[Any], y: NDArray[Any], part: Part, seed: int) -> None:
        """Fit the calibration on the validation rows; keep figures and some of the rows."""
        X, y = X[part.index], y[part.index]
        self.calibration_ = None
        dist = self._distribution(X)
        kind = calibration.kind_of(self.calibrate, self._calibration)
        if kind is not None:
            self.calibration_ = calibration.KINDS[kind].fit(dist, y, part.uneven)  # type: ignore[arg-type]
            dist = self.calibration_.apply(dist)
        self.validation_scores_ = metrics.evaluate(dist, y)
        chosen = np.sort(np.random.default_rng(seed).permutation(len(X))[: self.keep_rows])
        self.kept_rows_ = (X[chosen], y[chosen])

    # -- predicting ----------------------------------------------------------------------------

    def predict_dist(self, X: Any, samples: int | None = None) -> AnyDistribution:
        """The predictive distribution of each row.

        `samples=None` is the single deterministic pass (section 3.3). `samples=k` is
        RDeepSense-MCk: k passes with dropout on, their mixture matched in mean and variance:
        mean = mean of means, var = mean of vars + population variance of means.
        """
        check_is_fitted(self)
        if samples is not None:
            checks.check_whole("samples", samples, 1)
        dist = self._distribution(checks.check_inputs(self, X, self.missing, reset=False), samples)
        return dist if self.calibration_ is None else self.calibration_.apply(dist)

    def _distribution(self, X: NDArray[Any], samples: int | None = None) -> AnyDistribution:
        """The uncalibrated distribution in the target's own units."""
        device = torch.device(choose_device(self.device))
        # float64 on the CPU: a row's result must not depend on which rows share its batch.
        dtype = torch.float64 if device.type == "cpu" else torch.float32
        network = copy.deepcopy(self.network_).to(device, dtype).eval()
        chunk = max(1, PREDICTION_CHUNK // (samples or 1))
        parts = []
        with (
            torch.no_grad(),
            torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
        ):
            torch.manual_seed(self.training_["seed"])
            for start in range(0, len(X), chunk):
                x = self.input_scaler_.transform(X[start : start + chunk], dtype).to(device)
                if samples is None:
                    parts.append(network(x).numpy())
                else:
                    with network.sampling():
                        drawn = network(x.repeat(samples, 1)).numpy()
                    one_each = [drawn[k * len(x) : (k + 1) * len(x)] for k in range(samples)]
                    parts.append(Mixture(one_each).moment_matched())
        return self._in_units(concatenate(parts))

    def _in_units(self, dist: AnyDistribution) -> AnyDistribution:
        """From the network's scale to the target's."""
        return dist

    # -- keeping -------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one safetensors file, whole or not at all."""
        check_is_fitted(self)
        model_io.save(self, path)


def default_learning_rate(network: nn.Module) -> float:
    """5e-3 for layers of up to 100 units, falling to 1e-3 at the paper's 500."""
    widths = [m.out_features for m in network.modules() if isinstance(m, nn.Linear)][:-1]
    return 5e-3 * min(1.0, 100 / max(widths, default=1))


def choose_device(device: str) -> str:
    """ "auto" is a GPU where there is one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return str(torch.device(device))
    except (RuntimeError, TypeError) as error:
        raise InputError(
            f"device = {device!r} is unknown; accepted: auto, cpu, cuda, cuda:N"
        ) from error
