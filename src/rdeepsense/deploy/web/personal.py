"""What a page needs to learn from a user's labels as `model.adapt` does: the prior's root.

The change D of the last layer has the prior N(0, C0) for each class (`adaptation.classes`), and
C0 = B B^T with B lower triangular: with psi = B^T phi of the labelled windows the page needs only
their products psi_n^T psi_m, and D = B sum_n psi_n a_n^T.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from rdeepsense.adaptation.corrections import ClassPrior
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.fitting.passes import LastHidden, hidden_size


def personal(fitted: Fitted) -> dict[str, Any]:
    """Return the number of features and the triangle of B, row by row, in base64 of float32."""
    assert fitted.epistemic is not None
    layer = LastHidden.of(fitted.network, fitted.epistemic.laplace)
    prior = fitted.adaptation if isinstance(fitted.adaptation, ClassPrior) else ClassPrior()
    root = np.linalg.cholesky(prior.covariance(layer.information / fitted.training.rows))
    triangle = root[np.tril_indices(len(root))].astype("<f4")
    return {"features": len(root), "root": base64.b64encode(triangle.tobytes()).decode()}


def check_personal(fitted: Fitted, header: str | None = None) -> None:
    """Refuse live=True for a network of windows that cannot learn in a page.

    Once its C is known, `header` is its model.h.
    """
    if not fitted.target.is_classes:
        raise InputError("live=True is for windows of classes, and tables of numbers, in a page")
    if fitted.epistemic is None:
        raise InputError(
            "the model's file is older than what live=True needs, the information of its training "
            "rows; fit the model again"
        )
    hidden = hidden_size(fitted.network)
    layer = LastHidden.of(fitted.network, fitted.epistemic.laplace)
    if layer.projection is not None:
        raise InputError(
            f"live=True is for last layers that read 128 numbers at most; this one reads {hidden}"
        )
    if header is not None and f"#define MODEL_TOP {hidden}\n" not in header:
        raise InputError(
            "live=True needs a network whose last layer reads the states of a recurrent one, such "
            "as DeepSense; export this one without it"
        )
