"""The threshold above which a model had better not answer, by the rows that its file keeps."""

from __future__ import annotations

from rdeepsense.batch.known import Refusal
from rdeepsense.calibration.reject import RejectOption
from rdeepsense.deploy.refusal import Coded
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted


def refusal_of(fitted: Fitted, accept: float) -> Refusal:
    """Find the threshold that accepts this share of the kept rows: `RejectOption`'s."""
    X, y = fitted.kept_rows
    if not len(X):
        raise InputError(
            "with = 'reject': the model's file keeps no validation rows to judge by; fit with "
            "--keep-rows"
        )
    truth = y if fitted.target.is_classes else y.reshape(len(y), *fitted.target.shape)
    found = RejectOption(target_coverage=accept).fit(Coded(fitted), X, truth)
    return Refusal(found.threshold_, found.spread_)
