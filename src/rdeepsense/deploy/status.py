"""Status flags of exported models: reject option, novelty, range guard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Floats
from rdeepsense.calibration.reject import RejectOption
from rdeepsense.compact_novelty import CompactNovelty
from rdeepsense.deploy.folded.model import Facts
from rdeepsense.deploy.options import HEARD, LabelledRows, Options
from rdeepsense.deploy.quality import NoveltyReport, aurocs, false_alarms
from rdeepsense.distributions import AnyDistribution
from rdeepsense.errors import InputError
from rdeepsense.fitting.epistemic import LEVEL, Reading, judging, with_threshold
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.refusal import Refusal
from rdeepsense.uncertainty.novelty import Marginals, Novelty, Units, fit_compact

# --------------------------------------------------------------------------------------------------
# The reject threshold of an export
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# The compact novelty of an export, and its quality
#
# A model that has one from its fit, or from `fit_novelty`, exports that, and all rows at hand judge
# it. Otherwise it is that of the rows at hand: each fifth of them is judged by a density of the
# others. Either way the threshold is a quantile of rows that the density did not see.
# --------------------------------------------------------------------------------------------------

FOLDS = 5
Found = tuple[CompactNovelty, NoveltyReport]


def export_novelty(fitted: Fitted, rows: LabelledRows) -> Found:
    """Fit it, and find its threshold; refuse rows that it cannot describe, or too few."""
    reading = Reading(fitted.inputs.shape, fitted.inputs.scaler)
    X, full, known = judging(rows.X), fitted.novelty, fitted.compact_novelty
    if known is not None:
        found, origin = known, "the novelty that was fitted"
        surprise = found.surprise(reading.raw(X))
        judged = aurocs(lambda raw: found.surprise(reading.raw(raw)), X)
        columns = reading.columns if full is None else fitted.scaled
        density = Novelty.fit(columns(X[::2]), columns(X[::2])) if full is None else full
        beside = aurocs(lambda raw: density.surprise(columns(raw)), X)
    else:
        units, columns = reading.units, reading.columns
        surprise = _crossed(X, reading)
        found = with_threshold(_of_rows(columns(X), units), surprise)
        own, others = X[::2], X[1::2]
        half, beside_half = _of_rows(columns(own), units), Novelty.fit(columns(own), columns(own))
        judged = aurocs(lambda raw: half.surprise(reading.raw(raw)), others)
        beside = aurocs(lambda raw: beside_half.surprise(columns(raw)), others)
        origin = rows.origin
    report = NoveltyReport(
        len(reading.units.shift),
        found.components,
        found.gaussians,
        found.bytes,
        found.multiply_adds,
        origin,
        len(X),
        LEVEL,
        float(found.threshold[0]),
        false_alarms(surprise, LEVEL),
        judged,
        beside,
    )
    return found, report


def _of_rows(x: Floats, units: Units) -> CompactNovelty:
    return fit_compact(x, Marginals.of_rows(x), units)


def _crossed(X: NDArray[Any], reading: Reading) -> Floats:
    """Return the surprise of each row by a density of the other folds."""
    surprise, fold = np.empty(len(X)), np.arange(len(X)) % FOLDS
    for own in range(FOLDS):
        out = fold == own
        density = _of_rows(reading.columns(X[~out]), reading.units)
        surprise[out] = density.surprise(reading.raw(X[out]))
    return surprise


# --------------------------------------------------------------------------------------------------
# `Status.UNSURE` and `Status.UNLIKE` of an export
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StatusRules:
    """A reject option's threshold and a compact novelty, where there are any.

    `left_out` says why a novelty that was fitted does not go along.
    """

    refusal: Refusal | None = None
    novelty: CompactNovelty | None = None
    report: NoveltyReport | None = None
    left_out: str | None = None

    @classmethod
    def of(cls, fitted: Fitted, rows: LabelledRows, options: Options) -> StatusRules:
        """Find what the options ask for; unasked, a novelty goes along where one was fitted."""
        refusal = export_refusal(fitted, rows, options.reject)
        if options.novelty is False or (options.novelty is None and fitted.novelty is None):
            return cls(refusal)
        try:
            return cls(refusal, *export_novelty(fitted, rows))
        except InputError as error:
            if options.novelty:
                raise
            return cls(refusal, left_out=str(error))

    def on(self, facts: Facts) -> Facts:
        """Return the facts of a model that is watched."""
        return replace(facts, refusal=self.refusal, novelty=self.novelty)


def watched(fitted: Fitted, to: str, options: Options) -> Fitted:
    """Return the model that an export is compared with: unlike rows are flagged where it does it.

    Unasked, an export takes the novelty of `fit_novelty` along; what every fit learns is for those
    who ask.
    """
    asked = fitted.novelty is not None if options.novelty is None else options.novelty
    if asked and "novelty" in HEARD[to]:
        return fitted
    return replace(fitted, novelty=None, unlike=None)


UNWATCHED = StatusRules()
