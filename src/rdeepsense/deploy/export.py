"""`rdeepsense.export`: a fitted model in any form that runs without the library."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from rdeepsense._progress import Progress
from rdeepsense.adaptation.rates import Rates
from rdeepsense.calibration.reject import RejectOption
from rdeepsense.deploy.c.export import check_folder, export_c99, export_graph_c99
from rdeepsense.deploy.fold import (
    check_steady,
    folded_form,
    has_graph,
    save,
    with_adaptation_folded,
)
from rdeepsense.deploy.onnx.export import export_onnx
from rdeepsense.deploy.options import LabelledRows, Options, check_options
from rdeepsense.deploy.package.export import check_package, write_package
from rdeepsense.deploy.quality import ExportReport
from rdeepsense.deploy.quantise import column_label, refusal
from rdeepsense.deploy.status import StatusRules, export_refusal, watched
from rdeepsense.deploy.web.export import export_web
from rdeepsense.errors import ColumnWarning
from rdeepsense.estimators.base import DistributionEstimator, fitted_model
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.windowing.stream import Smoothing

MOST_NOISE = 0.02  # of an input's standard deviation, that float32 may add


def export(
    model: DistributionEstimator,
    path: str | os.PathLike[str],
    *,
    to: str = "folded",
    dtype: str = "float32",
    rows: tuple[ArrayLike, ArrayLike] | None = None,
    epistemic: str | None = None,
    max_nll_change: float = 0.02,
    fine_tune: bool = False,
    name: str = "model",
    live: bool = False,
    coverage: float = 0.9,
    rates: Rates | None = None,
    features: bool = False,
    stream: str | None = None,
    smoothing: Smoothing | None = None,
    hop: str | float | None = None,
    version: str | None = None,
    reject: RejectOption | float | None = None,
    novelty: bool | None = None,
    progress: Progress | None = None,
) -> ExportReport:
    """Write a fitted RDeepSense estimator in a form that runs without it.

    Scaling of inputs and targets and the calibration go inside: raw sensor values go in, mean and
    standard deviation in the target's unit, or probabilities, come out. Everything is checked
    before anything is written. An option that a format does not take is refused.

    Parameters
    ----------
    model : a fitted `RDeepSenseRegressor` or `RDeepSenseClassifier`. Networks that are fully
        connected with ReLU go to every format with every option; DeepSense, and networks of your
        own of Conv1d, Conv2d, GRU, LSTM and Linear layers, to every format; others to ONNX alone.
        Of one that was adapted, what it has learnt goes into the last layer.
    path : the file to write; for "c99", "package" and "web" the folder.
    to : "folded" (one file that `rdeepsense.deploy.load` runs with numpy alone), "c99" (C source
        for firmware), "package" (the same C as a library of Arduino, PlatformIO, Zephyr and ESP-IDF
        at once; it takes what "c99" does), "onnx" (for ONNX Runtime) or "web" (a page that runs
        it in any browser).
    dtype : how weights are stored: "float32", "float16" (c99, web) or "int8" (c99, onnx, web).
    rows : labelled rows (X, y) to calibrate int8 on and to judge the export by; the rows that the
        model kept where None (c99, onnx, web).
    epistemic : "laplace" adds what the model does not know of a row: one more output, and part of
        std or probabilities. Not with int8.
    max_nll_change : by how much the negative log-likelihood of those rows may rise (c99, onnx,
        web).
    fine_tune : where int8 is beyond `max_nll_change`, train the weights to round better.
    name : beginning of every name in the C (c99); also what the library is called (package).
    live : the C also learns on from labels, as `model.live()` does: `model_live` and
        `model_observe` (c99; in a page `observe`: web; numbers, not classes).
    coverage : of the intervals that it tracks (c99, web, live).
    rates : what it learns by, `rdeepsense.adaptation.rates.Rates`; None is what `fit` chose on
        groups that it left out, or the default where it was given none (c99, live).
    features : the last hidden layer's numbers come out as well, as "features", so that the host
        can learn on (onnx, float32; fully-connected networks).
    stream : how a model that was fitted on `rdeepsense.windows` computes its windows in a stream of
        samples (c99, web): "window" the whole of each, "exact" with old intervals kept, "running"
        with recurrent layers that go on, which is another function; by default the cheapest of
        the first two.
    smoothing : how the decisions of that stream are taken together (c99, folded, web; classes); by
        default fitted on `rows` whose X is a `rdeepsense.Windows`, or else what `fit` found on
        groups that it left out, or what is believed without.
    hop : how far apart the windows of that stream are, such as "0.5s" (c99, folded); by default as
        the model's own were. Intervals are kept where they divide it.
    version : of the library, such as "1.2.0"; None names the model by its digest (package).
    reject : rows less sure than this have `Status.UNSURE`: a fitted `rdeepsense.RejectOption` whose
        score is "predicted", or the share of the labelled rows to accept. None flags none.
    novelty : rows unlike those trained on have `Status.UNLIKE` and a wider spread, as in Python, by
        a density of the inputs of at most 8 kB; 1 % of healthy rows are to be flagged. True exports
        that of `fit` or `fit_novelty`, or fits one to the labelled rows where the model has none
        (folded, c99). None exports that of `model.fit_novelty` alone. Without it an export predicts
        such rows as the model does without its novelty.
    progress : told how far fine-tuning is.

    Returns
    -------
    ExportReport : what was found out; `to_json()` gives it as plain values.

    Raises
    ------
    InputError : a model, option or row that cannot be used, or an export that predicts worse than
        `max_nll_change` allows. Nothing is written then.
    """
    options = Options(
        dtype,
        epistemic,
        max_nll_change,
        fine_tune,
        name,
        live,
        coverage,
        rates,
        features,
        stream,
        smoothing,
        hop,
        version,
        reject,
        novelty,
    )
    check_options(to, options, rows is not None)
    fitted, place = watched(fitted_model(model), to, options), Path(path)
    if to != "folded":
        _check_single(fitted, f"to={to!r}")
    if to in ("c99", "package"):
        if to == "c99":
            check_folder(place)
        else:
            check_package(place, name, version)
        labelled = LabelledRows.of(fitted, rows)
        if has_graph(fitted):
            made = export_graph_c99(fitted, place, options, labelled)
        else:
            made = export_c99(fitted, place, options, labelled, progress)
        if to == "c99":
            return made.write()
        return write_package(made, labelled.X, fitted.recipe, version)
    if to == "web":
        return export_web(fitted, place, options, LabelledRows.of(fitted, rows), progress)
    check_steady(fitted, to)
    plain = with_adaptation_folded(fitted, epistemic)
    if to == "folded":
        folded = folded_form(plain, epistemic)
        watch = StatusRules.of(fitted, LabelledRows.of(fitted), options)
        facts = watch.on(folded.facts.streamed(smoothing, hop))
        save(replace(folded, facts=facts), place)
        return ExportReport(to, place, None)
    labelled = LabelledRows.of(fitted, rows)
    refusal = export_refusal(fitted, labelled, reject)
    return export_onnx(plain, place, options, labelled, progress, refusal)


def _check_single(fitted: Fitted, to: str) -> None:
    """Refuse what float32 does not tell apart; warn of an input that it makes noisy."""
    scaler, target = fitted.inputs.scaler, fitted.target_scaler
    for k in scaler.double_columns:
        raise refusal(to, column_label("input", k, fitted.inputs.names), scaler.about(k))
    if target is not None:
        for k in target.double_columns:
            raise refusal(to, column_label("target", k, fitted.target.names), target.about(k))
    X = fitted.kept_rows[0]
    numbers = list(range(X.shape[-1]) if scaler.encoding is None else scaler.encoding.numbers)
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.nan_to_num(X.astype(np.float32) - X)[..., numbers]
        rows = max(1, apart[..., :1].size)
        noise = np.sqrt(np.square(apart).sum(tuple(range(X.ndim - 1))) / rows)
        noise /= scaler.scale[: len(numbers)]
    for k in np.flatnonzero(noise > MOST_NOISE)[:1].tolist():
        column = column_label("input", numbers[k], fitted.inputs.names)
        warnings.warn(
            f"{to} reads float32, which rounds {column} ({scaler.about(numbers[k])}) by "
            f"{noise[k]:.0%} of its standard deviation; subtract a constant from it and fit again",
            ColumnWarning,
            stacklevel=3,
        )
