"""What the estimators that train networks share: their arguments, learning and prediction."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn

from rdeepsense.data import checks
from rdeepsense.data.rows import Data
from rdeepsense.data.scaling import Scaler
from rdeepsense.data.stream import StreamedData, open_table
from rdeepsense.distributions import AnyDistribution
from rdeepsense.dropout import StochasticNetwork, convert
from rdeepsense.errors import InputError, ModelFileError
from rdeepsense.estimators.base import DistributionEstimator, Judged
from rdeepsense.fitting import store as model_io
from rdeepsense.fitting.candidates import Candidate, candidates
from rdeepsense.fitting.passes import choose_device
from rdeepsense.fitting.select import choose
from rdeepsense.fitting.stream_trainer import StreamLearner
from rdeepsense.fitting.trainer import Learner
from rdeepsense.networks import NAMED, DeepSense, dense
from rdeepsense.scoring import ScoringRule


class NetworkEstimator(DistributionEstimator):
    """Networks with a distribution head, trained by the one loop."""

    _members = 1

    def __init__(
        self,
        hidden: Sequence[int] = (64, 64),
        network: nn.Module | DeepSense | None = None,
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

    @property
    def network_(self) -> StochasticNetwork:
        """The trained network; the first one of an ensemble."""
        network: StochasticNetwork = self.networks_[0]
        return network

    def _check_options(self) -> None:
        super()._check_options()
        checks.check_positive("weight_decay", self.weight_decay, zero=True)
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
        elif not isinstance(self.network, nn.Module | DeepSense):
            raise InputError(
                f"network is a {type(self.network).__name__}, not a torch.nn.Module or one of "
                f"rdeepsense.networks: {', '.join(NAMED)}"
            )
        choose_device(self.device)
        for candidate in self._grid():
            self._rule([candidate.alpha], getattr(self, "beta", 0.0))

    def _open(
        self, X: Any, y: Any, sample_weight: Any, validation: Any, groups: Any, memory: int
    ) -> tuple[Data, tuple[NDArray[Any], NDArray[Any]] | None]:
        return open_table(self, X, y, sample_weight, validation, groups, memory)

    def _learn(self, data: Data) -> Judged:
        members, beta = self._members, getattr(self, "beta", 0.0)
        learner = (
            StreamLearner(self, data, members, beta)
            if isinstance(data, StreamedData)
            else Learner(self, data, members, beta)
        )
        with closing(learner):
            learnt = choose(learner, self._grid(), by=self._judge())
        self.input_scaler_, self.target_scaler_ = learner.input_scaler, learnt.target_scaler
        self.networks_ = learnt.networks
        self.candidate_ = learnt.candidate
        self.training_ = learnt.training
        self.selection_ = learnt.selection or None
        return learnt.judged

    def _predict(self, X: NDArray[Any], samples: int | None) -> AnyDistribution:
        dist = self._passes(self.networks_, X, self.input_scaler_, samples, self.training_["seed"])
        predicted: AnyDistribution = self._in_units(dist, self.target_scaler_)
        return predicted

    def _describe_learnt(self, header: dict[str, Any], tensors: dict[str, Any]) -> None:
        """Add the networks to what a model file holds."""
        candidate, own = self.candidate_, self.network
        header["architecture"] = {
            "class": "dense" if own is None else type(own).__name__,
            "inputs": self.n_features_in_,
            "hidden": list(self.hidden) if own is None else None,
            "arguments": own.arguments() if isinstance(own, DeepSense) else None,
            "outputs": self._outputs(),
            "members": len(self.networks_),
            "likelihood": candidate.likelihood,
            "alpha": candidate.alpha,
            "drop_prob": candidate.drop_prob,
            "input_drop_prob": float(getattr(self, "input_drop_prob", 0.0)),
        }
        for number, network in enumerate(self.networks_):
            for name, value in network.state_dict().items():
                tensors[f"network.{number}.{name}"] = value.cpu().numpy()

    def _restore_learnt(
        self, header: dict[str, Any], tensors: dict[str, Any], network: nn.Module | None
    ) -> None:
        saved = header["architecture"]
        known = saved["class"] == "dense" or saved.get("arguments") is not None
        if known and network is not None:
            raise InputError("this model has layers of its own; leave out network=")
        if saved["class"] == "dense":
            network = dense(saved["inputs"], saved["hidden"], saved["outputs"])
        elif known:
            self.network = NAMED[saved["class"]](**saved["arguments"])
            network = self.network.build(saved["outputs"])
        elif network is None:
            raise InputError(
                f"this model was trained on a network of your own ({saved['class']}); "
                "load it with rds.load(path, network=...), giving a new instance"
            )
        else:
            self.network = network
        self.candidate_ = Candidate(
            saved["likelihood"], saved["alpha"], model_io.tupled(saved["drop_prob"])
        )
        self.networks_ = []
        for number in range(saved["members"]):
            converted = convert(
                network,
                likelihood=saved["likelihood"],
                drop_prob=self.candidate_.drop_prob,
                input_drop_prob=saved["input_drop_prob"],
                example=torch.zeros(2, *self.input_shape_).to(next(network.parameters())),
            )
            state = model_io.under(f"network.{number}.", tensors)
            try:
                converted.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in state.items()})
            except RuntimeError as error:
                raise ModelFileError(
                    f"the network does not fit the file's weights: {error}"
                ) from error
            self.networks_.append(converted.eval())

    # -- what a method says ---------------------------------------------------------------------

    def _likelihoods(self) -> tuple[str, ...]:
        """The heads to choose among."""
        raise NotImplementedError

    def _grid(self) -> list[Candidate]:
        """What to choose among: heads, alphas and drop probabilities."""
        return candidates(
            self._likelihoods(), getattr(self, "alpha", 0.0), getattr(self, "drop_prob", 0.0)
        )

    def _judge(self) -> str:
        """What to choose by."""
        return "nll"

    def _rule(self, alphas: list[float], beta: float) -> ScoringRule:
        """The loss of members with these alphas."""
        return ScoringRule(alphas, beta)

    def _passes(
        self,
        networks: list[StochasticNetwork],
        X: NDArray[Any],
        scaler: Scaler,
        samples: int | None,
        seed: int,
    ) -> AnyDistribution:
        """The forward passes of one prediction and what they make together."""
        raise NotImplementedError
