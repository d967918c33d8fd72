"""What the alarm compares a stream with: rows that the model was not fitted to.

Inputs are compared by their surprise, where `fit_novelty` was called, with the rows that it held
out. Labels are compared by how far out they lie, with the validation rows that the model kept. A
model that was trained on those rows in the end has its own word for them: labels drawn from its
predictions, which were calibrated on rows that were left out; with several outputs, whose errors go
together in ways that no prediction tells, labels are not watched then.
"""

from __future__ import annotations

import numpy as np

from rdeepsense.adaptation.alarm import FEWEST_REFERENCE, Alarm
from rdeepsense.live.classes import Classes
from rdeepsense.live.numbers import Numbers
from rdeepsense.live.row_pass import RowPass
from rdeepsense.live.settings import Settings


def alarms(run: RowPass, target: Numbers | Classes, settings: Settings) -> dict[str, Alarm]:
    """Return the tests that a model has references for, at their start."""
    fitted, found = run.fitted, {}
    if fitted.novelty is not None and len(fitted.novelty.held_out) >= FEWEST_REFERENCE:
        found["inputs"] = Alarm.start(fitted.novelty.held_out)
    X, y = fitted.kept_rows
    if settings.labels == "none" or len(y) < FEWEST_REFERENCE:
        return found
    dist = fitted.distribution(X)
    truths = np.asarray(y, np.float64).reshape(len(y), -1)
    validated = fitted.training.validated
    if "then trained on all rows" in validated or "cross" in validated:
        if truths.shape[1] > 1:
            return found
        truths = np.asarray(dist.sample(1, 0)[0], np.float64).reshape(truths.shape)
    found["labels"] = Alarm.start(target.scores(dist, truths))
    return found
