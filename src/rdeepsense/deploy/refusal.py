"""The threshold that an export refuses by: a reject option's own, or one found at export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.calibration.reject import RejectOption
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.distributions import AnyDistribution
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.refusal import Refusal

Reject = RejectOption | float


def export_refusal(fitted: Fitted, rows: LabelledRows, reject: Reject | None) -> Refusal | None:
    """Take the threshold of a reject option, or the one that accepts this share of the rows."""
    if reject is None:
        return None
    if not isinstance(reject, RejectOption):
        reject = _fitted_to(fitted, rows, reject)
    elif not hasattr(reject, "threshold_"):
        raise InputError("reject= is a RejectOption that is not fitted; call its fit first")
    else:
        own = getattr(reject.model_, "fitted_", None)
        if own is None or own.digest() != fitted.digest():
            raise InputError("reject= was fitted on another model than the one that is exported")
    if reject.score != "predicted":
        raise InputError(
            f"reject= has the score {reject.score!r}, which exports do not compute; accepted: "
            "'predicted'; novelty=True flags rows unlike those trained on"
        )
    return Refusal(np.array([reject.threshold_]), np.asarray(reject.spread_, np.float64))


def _fitted_to(fitted: Fitted, rows: LabelledRows, share: float) -> RejectOption:
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise InputError(
            f"reject={share!r}; accepted: a fitted RejectOption, or the share of rows to accept, "
            "above 0 up to 1"
        )
    if not len(rows.y):
        raise InputError(
            "reject= needs labelled rows to find its threshold on, and the model kept none; give "
            "rows=, or a fitted RejectOption"
        )
    target = fitted.target
    y = rows.y if target.is_classes else rows.y.reshape(len(rows.y), *target.shape)
    return RejectOption(target_coverage=float(share)).fit(Coded(fitted), rows.X, y)


@dataclass(frozen=True)
class Coded:
    """A fitted model as a predictor of rows, and of classes, that are codes already."""

    fitted: Fitted

    def predict_dist(self, X: ArrayLike) -> AnyDistribution:
        return self.fitted.distribution(np.asarray(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        return np.asarray(self.predict_dist(X).mode)
