"""Whether ONNX Runtime computes what the model does in float64; nothing else is written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.folded.runner import MeanStd, Outputs, Probabilities, Runner, apart
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted

AGREEMENT = 1e-5  # of the std, and of a probability
EPISTEMIC = 1e-4  # of the epistemic std: its sums may be small differences of large numbers
ROUNDING = 4 * float(np.finfo(np.float32).eps)  # of an output's largest mean
DRAWN_ROWS = 256


def drawn_rows(fitted: Fitted) -> NDArray[np.float64]:
    """Draw inputs about as large as those of the training, where a model kept no rows."""
    drawn = np.random.default_rng(0).normal(size=(DRAWN_ROWS, *fitted.inputs.network_shape))
    rows = fitted.inputs.scaler.rows_at(drawn)
    return rows if fitted.guard is None else fitted.guard.inside(rows)


def fitted_outputs(fitted: Fitted, X: NDArray[Any]) -> Outputs:
    """Predict by the fitted model itself."""
    dist = fitted.distribution(X)
    if dist.is_categorical:
        return Probabilities(np.asarray(dist.mean))
    shape = (len(X), -1)
    return MeanStd(np.reshape(dist.mean, shape), np.reshape(dist.std, shape))


def check_agreement(wanted: Outputs, running: Runner, X: NDArray[Any]) -> str:
    """Refuse a graph that does not compute what the model does.

    Returns how far apart they are: means and stds in units of the std, or probabilities.
    """
    found = running.run(X)
    difference = apart(wanted, found)
    allowed, unit = np.full(difference.shape, AGREEMENT), "in probability"
    if isinstance(wanted, MeanStd):
        # Sums are as large as the largest mean; their rounding may be far above a tiny std.
        allowed[0] += ROUNDING * np.abs(wanted.mean).max(0) / wanted.std
        unit = "of the std"
    said = f"differs from the model by {difference.max():.1e} {unit} at most ({len(X)} rows)"
    if not (difference <= allowed).all():
        raise InputError(
            f"ONNX Runtime {said}, which float32 does not explain; nothing was written"
        )
    if wanted.epistemic is not None:
        _check_epistemic(wanted.epistemic, found.epistemic)
    return said


def _check_epistemic(wanted: NDArray[np.float64], found: NDArray[np.float64] | None) -> None:
    assert found is not None
    ratio = float(np.abs(found / wanted - 1).max())
    if not ratio <= EPISTEMIC:
        raise InputError(
            f"ONNX Runtime's epistemic std differs from the model's by {ratio:.1e} of itself, "
            "which float32 does not explain; nothing was written"
        )
