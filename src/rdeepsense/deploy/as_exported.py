"""What a network that was just trained would predict once it is exported.

It is folded and rounded as an export does it, without the calibration, which is fitted on these
very predictions afterwards, and without the guard, which is no part of a comparison.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.fold import fold_fitted
from rdeepsense.deploy.networks import NetworkRunner
from rdeepsense.deploy.prepare import prepare
from rdeepsense.deploy.quality import distribution
from rdeepsense.distributions import AnyDistribution
from rdeepsense.fitting.fitted import Fitted, Inputs, Networks
from rdeepsense.fitting.passes import Single
from rdeepsense.fitting.records import Candidate, TrainingReport
from rdeepsense.fitting.spec import TrainedNetwork
from rdeepsense.networks import Own


def as_exported(
    dist: AnyDistribution, X: NDArray[Any], trained: TrainedNetwork, dtype: str
) -> AnyDistribution:
    """Give predictions of X the mean and std, or the probabilities, of the stored network."""
    folded = fold_fitted(_fitted(trained))
    network = prepare(folded, dtype, trained.rows.astype(np.float32))
    return distribution(dist, NetworkRunner(folded, network).run(X.astype(np.float32)))


def _fitted(trained: TrainedNetwork) -> Fitted:
    """Dress a network up as a model; only what folding reads is true of it."""
    rows = trained.rows[:0]
    return Fitted(
        "",
        Inputs(rows.shape[1:], None, "mean", trained.input_scaler),
        trained.target,
        trained.target_scaler,
        Networks((trained.network,), Candidate("", 0.0, 0.0), Own(trained.network), 0.0, Single()),
        None,
        TrainingReport(0, 0, 0, ""),
        None,
        {},
        (rows, np.empty(0)),
    )
