"""`rdeepsense.export`: a fitted model in any form that runs without the library."""

from __future__ import annotations

import os
from pathlib import Path

from numpy.typing import ArrayLike

from rdeepsense.deploy.c.export import export_c99
from rdeepsense.deploy.fold import fold_fitted
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.onnx.export import export_onnx
from rdeepsense.deploy.options import Options, check_options
from rdeepsense.deploy.report import ExportReport
from rdeepsense.deploy.save_folded import save
from rdeepsense.estimators.base import DistributionEstimator, fitted_model
from rdeepsense.progress import Progress


def export(
    model: DistributionEstimator,
    path: str | os.PathLike[str],
    *,
    to: str = "folded",
    dtype: str = "float32",
    rows: tuple[ArrayLike, ArrayLike] | None = None,
    epistemic: str | None = None,
    max_nll_change: float = 0.02,
    sure_share: float = 0.9,
    fine_tune: bool = False,
    name: str = "model",
    progress: Progress | None = None,
) -> ExportReport:
    """Write a fitted RDeepSense estimator in a form that runs without it.

    Scaling of inputs and targets and the calibration go inside: raw sensor values go in, mean and
    standard deviation in the target's unit, or probabilities, come out. Everything is checked
    before anything is written. An option that a format does not take is refused.

    Parameters
    ----------
    model : a fitted `RDeepSenseRegressor` or `RDeepSenseClassifier`. Networks that are fully
        connected with ReLU go to every format, others to ONNX alone.
    path : the file to write; for "c99" the folder.
    to : "folded" (one file that `rdeepsense.deploy.load` runs with numpy alone), "c99" (C source
        for firmware) or "onnx" (for ONNX Runtime).
    dtype : how weights are stored: "float32", "float16" (c99) or "int8" (c99, onnx).
    rows : labelled rows (X, y) to calibrate int8 on and to judge the export by; the rows that the
        model kept where None (c99, onnx).
    epistemic : "laplace" adds what the model does not know of a row: one more output, and part of
        std or probabilities. Not with int8.
    max_nll_change : by how much the negative log-likelihood of those rows may rise (c99, onnx).
    sure_share : share of the rows that `is_sure` shall accept (c99).
    fine_tune : where int8 is beyond `max_nll_change`, train the weights to round better.
    name : beginning of every name in the C (c99).
    progress : told how far fine-tuning is.

    Returns
    -------
    ExportReport : what was found out; `to_json()` gives it as plain values.

    Raises
    ------
    InputError : a model, option or row that cannot be used, or an export that predicts worse than
        `max_nll_change` allows. Nothing is written then.
    """
    options = Options(dtype, epistemic, max_nll_change, sure_share, fine_tune, name)
    check_options(to, options, rows is not None)
    fitted, place = fitted_model(model), Path(path)
    if to == "folded":
        save(fold_fitted(fitted, epistemic), place)
        return ExportReport(to, place, None)
    labelled = LabelledRows.of(fitted, rows)
    if to == "c99":
        return export_c99(fitted, place, options, labelled, progress)
    return export_onnx(fitted, place, options, labelled, progress)
