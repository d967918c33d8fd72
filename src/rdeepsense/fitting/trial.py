"""A few rows through a model that was just loaded: it must answer them with numbers.

The rows are the centre of the training rows and a standard deviation on either side of it. Shapes
and ranges have been checked, so this finds what only the whole of the numbers makes wrong.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from rdeepsense.arrays import Floats
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted, Networks
from rdeepsense.fitting.gp_models import ExactGP
from rdeepsense.fitting.known_architecture import example_shape
from rdeepsense.fitting.passes import Sampled

LARGEST = 1e250
LONG = 1 << 14  # numbers of a window, of which a part is tried
SMALL = 1 << 21  # numbers, of which a copy takes 16 MiB


def try_model(fitted: Fitted) -> None:
    """Refuse a model that has no finite prediction for the rows that it should know best."""
    scaler, shape = fitted.inputs.scaler, fitted.inputs.network_shape
    if isinstance(fitted.model, Networks) and math.prod(shape) > LONG:
        shape = example_shape(fitted.model.architecture, shape)
    whole = shape == fitted.inputs.network_shape
    steps = np.array([0.0, 1.0, -1.0]).reshape(-1, *[1] * len(shape))
    rows = scaler.rows_at(np.broadcast_to(steps, (len(steps), *shape)))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for dist in _predicted(fitted, rows):
            _check(dist, "prediction")
        frozen = replace(fitted, correction=None)
        if fitted.epistemic is not None and _is_small(fitted) and whole:
            _check(frozen.distribution(rows, "laplace"), "epistemic prediction")
            _finite(frozen.epistemic_std(rows, "laplace"), "epistemic std")
        if fitted.novelty is not None:
            share = fitted.novelty.novelty(fitted.scaled(rows))
            if not ((share >= 0) & (share <= 1)).all():
                raise InputError("the novelty arrays give a share outside of 0 to 1")


def _predicted(fitted: Fitted, rows: Floats) -> Iterator[AnyDistribution]:
    """Predict as any caller would; of a large model each network by itself, without copies."""
    model = fitted.model
    if _is_small(fitted):
        passes = model.passes if isinstance(model, Networks) else None
        few = replace(passes, count=2) if isinstance(passes, Sampled) else passes
        yield fitted.distribution(rows, passes=few)
    elif isinstance(model, Networks):
        x = fitted.inputs.scaler.transform(rows)
        for member in model.members:
            with torch.no_grad():
                dist = member(x.to(next(member.parameters()))).numpy()
            dist = fitted.target.in_units(dist, fitted.target_scaler)
            yield dist if fitted.calibration is None else fitted.calibration.apply(dist)


def _is_small(fitted: Fitted) -> bool:
    """Tell whether copies of a model, in float64, are little beside all else."""
    model = fitted.model
    if isinstance(model, Networks):
        return sum(p.numel() for member in model.members for p in member.parameters()) <= SMALL
    return not isinstance(model.gp, ExactGP) or model.gp.root.numel() <= SMALL


def _check(dist: AnyDistribution, what: str) -> None:
    if isinstance(dist, Categorical):
        _finite(dist.probs, what)
        return
    _finite(dist.mean, what)
    _finite(dist.std, what)
    if not (dist.std > 0).all():
        raise InputError(f"the {what} of known rows has a std that is not positive")


def _finite(values: Floats, what: str) -> None:
    if not np.abs(values).max() <= LARGEST:
        raise InputError(f"the {what} of known rows is not finite")
