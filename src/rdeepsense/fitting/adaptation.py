"""Adapting a fitted model to a group by a few of its labels, and choosing how far that may go."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rdeepsense._progress import progress_for
from rdeepsense.adaptation import choose
from rdeepsense.adaptation.choose import choose_rates
from rdeepsense.adaptation.corrections import (
    AdaptedClasses,
    AdaptedNumbers,
    ClassPrior,
    ClassStream,
    GroupStream,
    Prior,
)
from rdeepsense.adaptation.rates import Rates
from rdeepsense.arrays import Booleans, Floats
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.errors import InputError, LabelWarning
from rdeepsense.fitting.fitted import CPU, Adaptation, AnyPrior, Fitted, logits_of
from rdeepsense.fitting.passes import LastHidden

Stream = GroupStream | ClassStream
FAR = 100.0  # standard deviations, beyond which a label teaches nothing, as in a stream
ODD = 10.0  # standard deviations, which no offset of a sensor or a person explains
IMPROBABLE = 0.05  # of a class


def adapt(fitted: Fitted, X: NDArray[Any], y: NDArray[Any], device: torch.device = CPU) -> Fitted:
    """Return the model corrected by labelled rows, going on from what it has learnt before.

    X and y are checked and encoded, one row or more. Conformal thresholds are of the frozen model
    and are left out.
    """
    check_adaptable(fitted)
    known = fitted.correction or _nothing_learnt(fitted)
    phi = fitted.last_hidden(X, known.projection, device)
    dist = fitted.calibrated(X, device=device)
    state: AdaptedNumbers | AdaptedClasses
    if isinstance(known.state, AdaptedClasses):
        assert isinstance(dist, Categorical)
        state = known.state.observed(phi, logits_of(dist), y)
        _warn_of_classes(dist.probs[np.arange(len(y)), y])
    else:
        assert fitted.target_scaler is not None
        error, variance = _in_scale(dist, y, fitted.target_scaler.scale)
        far = (np.abs(error) > FAR * np.sqrt(np.maximum(variance, 1.0))).any(axis=1)
        near = np.asarray(~far)
        state = known.state.observed(phi[near], error[near], variance[near])
        left = np.abs(error - state.shift(phi)) / np.sqrt(variance)
        _warn_of_numbers(near, left)
        y = y[near]
    correction = replace(known, state=state, labels=known.labels + len(y))
    return replace(
        fitted, adaptation=state.prior, correction=correction, conformal=None, peers=None
    )


def _warn_of_numbers(near: Booleans, left: Floats) -> None:
    """Say which labels were set aside, and whether most others still contradict the model."""
    if not near.all():
        warnings.warn(
            f"{int((~near).sum()):,} of {len(near):,} labels are set aside, the first in row "
            f"{int(np.argmin(near)):,} (the first row is 0): they lie {FAR:g} standard deviations "
            "off or more; mend them, or write them as missing",
            LabelWarning,
            stacklevel=4,
        )
    odd = np.asarray((left[near] > ODD).any(axis=1))
    if 2 * odd.sum() > len(odd):
        warnings.warn(
            f"{int(odd.sum()):,} of {len(odd):,} labels lie more than {ODD:g} standard "
            "deviations off, after adapting to them too; are they of these rows, and in the "
            "target's units?",
            LabelWarning,
            stacklevel=4,
        )


def _warn_of_classes(probs: Floats) -> None:
    """Say whether most labels contradict the model, given the probabilities of their classes."""
    odd = probs < IMPROBABLE
    if 2 * odd.sum() > len(odd):
        warnings.warn(
            f"{int(odd.sum()):,} of {len(odd):,} labels are of a class that the model gave less "
            f"than {IMPROBABLE:.0%}; are they of these rows, and named as in the training?",
            LabelWarning,
            stacklevel=4,
        )


def check_adaptable(fitted: Fitted) -> None:
    """Refuse a model that has no single last layer, or whose information is not known."""
    if not fitted.takes_one_pass:
        raise InputError(
            f"a {fitted.method} has no single last layer that could learn on; accepted: "
            "RDeepSenseRegressor, RDeepSenseClassifier"
        )
    if fitted.epistemic is None:
        raise InputError(
            "the model's file is older than what adapt needs, the information of its training "
            "rows; fit the model again"
        )


def stream_of(
    fitted: Fitted, X: NDArray[Any], y: NDArray[Any], device: torch.device = CPU
) -> Stream:
    """Replay a group, rows in their order, through a model that was fitted without it."""
    check_adaptable(fitted)
    layer, rows = _layer(fitted), float(fitted.training.rows)
    phi = fitted.last_hidden(X, layer.projection, device)
    dist = fitted.calibrated(X, device=device)
    unit = None if fitted.target_scaler is None else fitted.target_scaler.scale
    return group_streams(layer, rows, phi, dist=dist, y=y, group=np.zeros(len(y)), unit=unit)[0]


def group_streams(
    layer: LastHidden,
    rows: float,
    phi: Floats,
    dist: AnyDistribution,
    y: NDArray[Any],
    group: NDArray[Any],
    unit: Floats | None,
) -> list[Stream]:
    """Return a stream for each group of rows that one network, trained on `rows` rows, never saw.

    `dist` is calibrated and in units, `y` encoded, and `unit` the scale of each output.
    """
    found: list[Stream] = []
    for own in np.unique(group):
        some = np.flatnonzero(group == own)
        part = dist[some]
        if isinstance(part, Categorical):
            logits = logits_of(part)
            found.append(ClassStream(phi[some], logits, y[some], layer.information, rows))
        else:
            assert unit is not None
            errors = _in_scale(part, y[some], unit)
            found.append(GroupStream(phi[some], *errors, layer.information, rows))
    return found


def prior_of(streams: Sequence[Stream]) -> AnyPrior:
    """Choose how far a new group may be from those trained on, by groups that were left out."""
    classes = [stream for stream in streams if isinstance(stream, ClassStream)]
    if classes:
        return ClassPrior.choose(classes)
    return choose.choose_prior([stream for stream in streams if isinstance(stream, GroupStream)])


def rates_of(streams: Sequence[Stream], verbose: bool = False) -> Rates | None:
    """Choose what a live model learns by on the same groups; None for classes."""
    numbers = [stream for stream in streams if isinstance(stream, GroupStream)]
    return choose_rates(numbers, progress=progress_for(verbose)) if numbers else None


def _nothing_learnt(fitted: Fitted) -> Adaptation:
    """Return the state before any label; a prior that was not chosen is the default."""
    layer, outputs = _layer(fitted), fitted.target.outputs
    information = layer.information / fitted.training.rows
    state: AdaptedNumbers | AdaptedClasses
    if fitted.target.is_classes:
        own = fitted.adaptation if isinstance(fitted.adaptation, ClassPrior) else ClassPrior()
        state = AdaptedClasses.none(own, information, outputs)
    else:
        chosen = fitted.adaptation
        # The bias's information is the mean of 1 / variance over the training rows.
        typical = 1 / float(information[-1, -1])
        prior = chosen if isinstance(chosen, Prior) else Prior.default(outputs, typical)
        state = AdaptedNumbers.none(prior, information)
    return Adaptation(state, layer.projection, 0, fitted.digest())


def _layer(fitted: Fitted) -> LastHidden:
    assert fitted.epistemic is not None
    return LastHidden.of(fitted.network, fitted.epistemic.laplace)


def _in_scale(dist: AnyDistribution, y: NDArray[Any], unit: Floats) -> tuple[Floats, Floats]:
    """Return errors and variances (rows, outputs), in units of the target's scale."""
    assert not isinstance(dist, Categorical)
    shape = (len(y), len(unit))
    error: Floats = (y - dist.quantile(0.5)).reshape(shape) / unit
    return error, dist.var.reshape(shape) / unit**2
