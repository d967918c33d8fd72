"""The arguments that all methods of networks share, and what they specify together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from torch import nn

from rdeepsense.data import checks
from rdeepsense.data.check import check_sample
from rdeepsense.data.findings import warn_of
from rdeepsense.data.parquet import ParquetTable
from rdeepsense.data.rows import FitRows, check_one_split
from rdeepsense.data.stream import split_parquet
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.engines import Engine, Ray
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import DistributionEstimator, Files, Train
from rdeepsense.estimators.effort import widths
from rdeepsense.estimators.inputs import KnownInputs
from rdeepsense.fitting.candidates import Candidate
from rdeepsense.fitting.network_fit import fit_networks
from rdeepsense.fitting.spec import FitSpec
from rdeepsense.fitting.stream_trainer import ParquetRows
from rdeepsense.fitting.target import Target
from rdeepsense.modelfile.tensors import Header, Tensors
from rdeepsense.networks import Architecture, architecture_of


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkEstimator(DistributionEstimator):
    """Networks with a distribution head, trained by the one loop.

    Parameters
    ----------
    hidden : widths of the hidden layers; the paper's network is ``(500, 500, 500)``, and 32 is one
        layer. "auto" chooses
        among widths, depths and periodic embeddings of the inputs, by calibrated validation NLL.
    network : one of `rdeepsense.networks`, or a torch network of your own, which is converted on a
        copy and starts from its present weights; its last Linear layer must have one column per
        output.
    epochs, batch_size, learning_rate : None follows the default recipe.
    weight_decay : AdamW's, on weights only. In the paper's sums over N rows,
        lambda = (1 - alpha) lambda_l + alpha lambda_e corresponds to weight_decay = 2 lambda / N.
    max_seconds : begin no further training after so many seconds, and choose among what is trained
        by then; None is as long as it takes.
    checkpoint : a path where the state is saved as training goes on, and taken up again from.
    """

    hidden: Sequence[int] | int | str = (64, 64)
    network: nn.Module | Architecture | None = None
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    weight_decay: float = 1e-2
    max_seconds: float | None = None
    checkpoint: str | os.PathLike[str] | None = None

    @property
    def network_(self) -> StochasticNetwork:
        """The trained network; the first one of an ensemble."""
        return self.fitted_.network

    @property
    def candidate_(self) -> Candidate:
        """The head, alpha and drop probability that were fixed or chosen."""
        return self.fitted_.networks.candidate

    def restore(self, header: Header, tensors: Tensors, network: nn.Module | None) -> None:
        super().restore(header, tensors, network)
        architecture, layers = self.fitted_.networks.architecture, self._layers()
        selection = self.fitted_.selection
        if network is not None:
            self.network = network
        elif layers == "auto":
            if selection is None or selection.architectures is None:  # it was given
                self.network = architecture
        elif architecture != architecture_of(layers, None):
            self.network = architecture

    def _training(self, engine: Ray | None = None) -> Train:
        spec = replace(self._spec(), engine=cast("Engine | None", engine))
        for candidate in spec.grid:
            spec.scoring_rule([candidate.alpha])
        return partial(fit_networks, spec)

    def _spec(self) -> FitSpec:
        """Specify what all methods of networks have in common; a method replaces the rest."""
        after = self._after()
        checks.check_positive("weight_decay", self.weight_decay, zero=True)
        for name in ("epochs", "batch_size"):
            if getattr(self, name) is not None:
                checks.check_whole(name, getattr(self, name), 1)
        if self.max_seconds is not None:
            checks.check_positive("max_seconds", self.max_seconds, zero=True)
        if self.learning_rate is not None:
            checks.check_positive("learning_rate", self.learning_rate)
        passes = self._passes(None)
        assert passes is not None
        return FitSpec(
            method=type(self).__name__,
            architecture=architecture_of(self._layers(), self.network),
            open_architecture=self._layers() == "auto" and self.network is None,
            max_seconds=self.max_seconds,
            grid=self._grid(),
            passes=passes,
            after=after,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            checkpoint=self.checkpoint,
            device=self._where(),
            verbose=self.verbose,
        )

    def _layers(self) -> Sequence[int] | str:
        """Return the widths of the hidden layers, or "auto"."""
        layers: Sequence[int] | str = widths(self.hidden)
        return layers

    def _grid(self) -> tuple[Candidate, ...]:
        """Return the heads, alphas and drop probabilities to choose among."""
        raise NotImplementedError

    def _read(
        self,
        source: Files,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        validation: tuple[ArrayLike, ArrayLike] | None,
        groups: ArrayLike | None,
        memory: int,
    ) -> tuple[FitRows, Target, str]:
        checks.check_whole("memory", memory, 1)
        if sample_weight is not None:
            raise InputError(
                "sample_weight does not go with files; read the table into memory for it"
            )
        check_one_split(validation, groups)
        table = source if isinstance(source, ParquetTable) else ParquetTable(source)
        split = split_parquet(
            table,
            y,
            groups,
            classes=self.target_type.is_classes,
            missing=self.missing,
            hold_out=validation is None,
            set_aside=self._after().set_aside,
            seed=self._seed(),
            memory=memory,
            verbose=self.verbose,
        )
        inputs = split.columns.inputs
        self.feature_names_in_ = np.array(inputs, dtype=object)
        self.n_features_in_ = len(inputs)
        target, _ = self.target_type.of(split.values, len(split.values), None)
        target = replace(target, names=tuple(split.columns.targets))
        pair = None
        if validation is not None:
            known = KnownInputs((len(inputs),), split.missing)
            pair = self._further_rows("validation", validation, known, target)
        rows = ParquetRows.of(split, target, pair)
        if self.check:
            labels = rows.y if target.classes is None else target.classes[rows.y]
            found = check_sample(rows.X, inputs, labels, target.is_classes)
            warn_of(found, stacklevel=3)
            rows = replace(rows, findings=found)
        return rows, target, split.missing
