"""Choosing a prior for numbers: its variances by likelihood, its shares by what labels do.

The shares are not taken from the prior's own variances: errors have heavier tails than a Gaussian,
and a label helps less than it should. Groups that were left out are adapted with their first 1, 2
and 5 rows, and the rows after these keep a part of their squared errors,

    kept_o = sum e_ok^2 / var_o / sum e_o^2 / var_o

which is what their variance must keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rdeepsense.adaptation.evidence import MOST_GROUPS, spread
from rdeepsense.adaptation.numbers import MOST_SHARE, AdaptedNumbers
from rdeepsense.adaptation.prior import Prior
from rdeepsense.adaptation.streams import GroupStream
from rdeepsense.arrays import Floats

LABELS = (1, 2, 5)


def chosen(streams: Sequence[GroupStream]) -> Prior:
    """Choose a prior on groups that were left out."""
    prior = Prior.choose(streams)
    if not prior.groups:
        return prior
    return replace(prior, shares=_shares(prior, streams))


def _shares(prior: Prior, streams: Sequence[GroupStream]) -> Floats:
    """Share out 1 - kept among the directions, by b_oj^2 times how much each varies."""
    outputs, most = len(prior.directions), max(LABELS)
    before, after = np.zeros(outputs), np.zeros((len(LABELS), outputs))
    learnt, rows = np.zeros((len(LABELS), len(prior.between))), 0
    long = [stream for stream in streams if len(stream.error) > most]
    for stream in (long[k] for k in spread(len(long), MOST_GROUPS)):
        none = AdaptedNumbers.none(prior, stream.information / stream.rows)
        rest = stream.phi[most:]
        before += (stream.error[most:] ** 2 / stream.variance[most:]).sum(0)
        rows += len(rest)
        for k, labels in enumerate(LABELS):
            first = (part[:labels] for part in (stream.phi, stream.error, stream.variance))
            state = none.observed(*first)
            left = stream.error[most:] - state.shift(rest)
            after[k] += (left**2 / stream.variance[most:]).sum(0)
            learnt[k] += state.learnt(rest).sum(0)
    if not rows:
        return np.zeros_like(prior.directions)
    taken = np.clip(1 - after / np.maximum(before, np.finfo(float).tiny), 0.0, MOST_SHARE)
    learnt /= rows
    weight = prior.directions**2 * (prior.between + 1e-12)
    weight /= np.maximum(weight.sum(1, keepdims=True), np.finfo(float).tiny)
    expected = learnt @ weight.T  # (labels, outputs): what shares of 1 in all would take away
    factor = (taken * expected).sum(0) / np.maximum((expected**2).sum(0), np.finfo(float).tiny)
    found: Floats = weight * np.clip(factor, 0.0, MOST_SHARE)[:, None]
    return found
