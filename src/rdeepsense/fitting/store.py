"""Writing a fitted model to a file and reading it back. Nothing in a file is executed."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import sklearn
import torch
from torch import nn

from rdeepsense import __version__
from rdeepsense.adaptation.rates import Rates
from rdeepsense.calibration import KINDS, Calibration
from rdeepsense.calibration.conformal import Conformal
from rdeepsense.compact_novelty import CompactNovelty
from rdeepsense.data.checks import KEPT
from rdeepsense.data.scaling import Scaler
from rdeepsense.encoding import encoding_of
from rdeepsense.errors import InputError
from rdeepsense.fitting.correction import (
    GroupCorrection,
    prior_arrays,
    prior_json,
    prior_restored,
)
from rdeepsense.fitting.description import (
    check_header,
    missing_of,
    network_shape_of,
    shape_of,
)
from rdeepsense.fitting.epistemic import EpistemicPart
from rdeepsense.fitting.fitted import Fitted, Inputs, Networks
from rdeepsense.fitting.passes import Passes
from rdeepsense.fitting.peer_record import Peers
from rdeepsense.fitting.process import MODELS, Process
from rdeepsense.fitting.records import Selection, TrainingReport
from rdeepsense.fitting.store_networks import check_own, read_networks, write_networks
from rdeepsense.fitting.target import Target, target_from_json
from rdeepsense.fitting.tensor_layout import check_tensors
from rdeepsense.fitting.trial import try_model
from rdeepsense.guard import Guard
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.modelfile.tensors import Header, Tensors, tupled
from rdeepsense.uncertainty import Laplace
from rdeepsense.uncertainty.novelty import Novelty
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.stream import Smoothing


def save(fitted: Fitted, params: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a fitted model and the arguments of its estimator, whole or not at all."""
    header: Header = {
        "kind": "model",
        "estimator": fitted.method,
        "params": model_file.plain(params),
        "features": fitted.inputs.shape[-1],
        "input_shape": list(fitted.inputs.shape),
        "feature_names": model_file.plain(fitted.inputs.names),
        "missing": fitted.inputs.missing,
        "target": fitted.target.to_json(),
        "target_names": model_file.plain(fitted.target.names),
        "target_units": model_file.plain(fitted.target.units),
        "feature_units": model_file.plain(fitted.inputs.units),
        "calibration": _kind(fitted.calibration),
        "training": model_file.plain(fitted.training.to_json()),
        "selection": None
        if fitted.selection is None
        else model_file.plain(fitted.selection.to_json()),
        "validation_scores": model_file.plain(fitted.scores),
        "versions": {
            "rdeepsense": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
    }
    if fitted.inputs.dated:
        header["dates"] = list(fitted.inputs.dated)
    tensors: Tensors = {}
    for name, scaler in (("input", fitted.inputs.scaler), ("target", fitted.target_scaler)):
        if scaler is not None:
            tensors |= {f"{name}.shift": scaler.shift, f"{name}.scale": scaler.scale}
    if fitted.inputs.encoding is not None:
        header["encoding"] = fitted.inputs.encoding.to_json()
        tensors |= fitted.inputs.encoding.arrays()
    if fitted.calibration is not None:
        tensors |= model_file.named("calibration", fitted.calibration.arrays())
    if fitted.conformal is not None:
        tensors["conformal.scores"] = fitted.conformal.scores
        tensors["conformal.group"] = fitted.conformal.group
        header["conformal_groups"] = list(fitted.conformal.labels)
        if fitted.conformal.new_group:
            header["conformal_new_group"] = True
    if fitted.novelty is not None:
        tensors |= model_file.named("novelty", vars(fitted.novelty))
    if fitted.unlike is not None:
        tensors |= model_file.named("unlike", fitted.unlike.stored())
    if fitted.guard is not None:
        tensors |= model_file.named("guard", fitted.guard.arrays())
    if len(fitted.kept_rows[0]):
        tensors["rows.X"], tensors["rows.y"] = fitted.kept_rows
    if isinstance(fitted.model, Process):
        header["method"] = fitted.model.method
        arrays = fitted.model.gp.arrays()
        tensors |= model_file.named("gp", {name: value.numpy() for name, value in arrays.items()})
    else:
        write_networks(fitted.model, fitted.target.outputs, header, tensors)
    if fitted.epistemic is not None:
        _write_epistemic(fitted.epistemic, header, tensors)
    if fitted.adaptation is not None:
        header["adaptation"] = model_file.plain(prior_json(fitted.adaptation))
        tensors |= model_file.named("adaptation", prior_arrays(fitted.adaptation))
    if fitted.rates is not None:
        header["live"] = model_file.plain(asdict(fitted.rates))
    if fitted.correction is not None:
        header["adapted"] = fitted.correction.to_json()
        tensors |= model_file.named("adapted", fitted.correction.arrays())
    if fitted.recipe is not None:
        header["windows"] = fitted.recipe.to_json()
    if fitted.smoothing is not None:
        header["smoothing"] = asdict(fitted.smoothing)
    if fitted.peers is not None:
        header["peers"] = model_file.plain(fitted.peers.to_json())
    # What reading would refuse is refused here, before anything is written.
    check_header(json.loads(json.dumps(header)))
    check_tensors(header, {name: np.asarray(array) for name, array in tensors.items()})
    model_file.write(path, header, tensors)


def restore(
    header: Header, tensors: Tensors, passes: Passes | None, network: nn.Module | None
) -> Fitted:
    """Build the model that a file holds; `passes` is None for a Gaussian process.

    `check_header` has been passed. `tensors` is emptied: the bytes of the file are let go before
    the model is tried.
    """
    target = target_from_json(header["target"])
    check_tensors(header, tensors)
    names, shape = header["feature_names"], shape_of(header)
    model: Process | Networks
    if passes is None:
        model = _process(header, _taken("gp", tensors), target)
    else:
        shapes = {name: array.shape for name, array in tensors.items()}
        model = read_networks(header, tensors, network_shape_of(header, shapes), passes, network)
    kept = {name: array.copy() for name, array in tensors.items()}
    tensors.clear()
    encoding = None
    if "encoding" in header:
        encoding = encoding_of(header["encoding"], header["features"], kept)
    inputs = Inputs(
        shape,
        None if names is None else tuple(names),
        missing_of(header),
        Scaler(kept["input.shift"], kept["input.scale"], encoding=encoding),
        dated=tuple(header.get("dates", ())),
    )
    scaler = None
    if "target.shift" in kept:
        scaler = Scaler(kept["target.shift"], kept["target.scale"])
    conformal = None
    if "conformal.scores" in kept:
        groups = tuple(header["conformal_groups"])
        is_new = header.get("conformal_new_group", False)
        conformal = Conformal(
            **model_file.under("conformal", kept), labels=groups, new_group=is_new
        )
    density, unlike = (model_file.under(name, kept) for name in ("novelty", "unlike"))
    guard = model_file.under("guard", kept)
    adaptation, correction, rates = None, None, None
    if "live" in header:
        rates = Rates(**{name: tupled(value) for name, value in header["live"].items()})
    if "adaptation" in header:
        adaptation = prior_restored(header["adaptation"], model_file.under("adaptation", kept))
        if "adapted" in header:
            learnt = model_file.under("adapted", kept)
            correction = GroupCorrection.restored(header["adapted"], adaptation, learnt)
    selection = header["selection"]
    nothing = (np.empty((0, *inputs.shape)), np.empty(0))
    fitted = Fitted(
        header["estimator"],
        inputs,
        target,
        scaler,
        model,
        _calibration(header["calibration"], model_file.under("calibration", kept)),
        TrainingReport.from_json(header["training"]),
        Selection.from_json(selection) if selection else None,
        {k: math.nan if v is None else v for k, v in header["validation_scores"].items()},
        (kept.get("rows.X", nothing[0]), kept.get("rows.y", nothing[1])),
        _epistemic(header, kept),
        conformal,
        Novelty(**density) if density else None,
        Guard(**guard) if guard else None,
        adaptation,
        correction,
        rates,
        Recipe.from_json(header["windows"]) if "windows" in header else None,
        Smoothing.from_json(header["smoothing"]) if "smoothing" in header else None,
        Peers.from_json(header["peers"]) if "peers" in header else None,
        CompactNovelty.restored(unlike) if unlike else None,
    )
    fitted = fitted.described(*(header.get(name) for name in KEPT))
    try_model(fitted)
    return fitted


def check_network(header: Header, network: nn.Module | None) -> None:
    """Refuse a network where the file has its own, and the lack of one where it has none."""
    if "architecture" in header:
        check_own(header["architecture"], network)
    elif network is not None:
        raise InputError("a Gaussian process has no network; leave out network=")


def _taken(prefix: str, tensors: Tensors) -> Tensors:
    """Take the tensors under a prefix out of the others."""
    found = model_file.under(prefix, tensors)
    for name in found:
        del tensors[f"{prefix}.{name}"]
    return found


def _process(header: Header, arrays: Tensors, target: Target) -> Process:
    held = {name: torch.from_numpy(array) for name, array in arrays.items()}
    restored = MODELS[header["method"]].restored(held)
    # A tensor that is still a part of the file's bytes would keep all of them.
    parts = {name: value.clone() for name, value in vars(restored).items() if value is held[name]}
    gp = replace(restored, **parts)
    return Process(gp, header["method"], target.outputs if target.is_classes else None)


def _write_epistemic(epistemic: EpistemicPart, header: Header, tensors: Tensors) -> None:
    laplace = epistemic.laplace
    calibrations = epistemic.calibrations
    header["epistemic"] = {
        "prior": laplace.prior,
        "calibrations": {method: _kind(fitted) for method, fitted in calibrations.items()},
    }
    tensors |= {"epistemic.root": laplace.root, "epistemic.ratio": laplace.ratio}
    tensors["epistemic.noise_share"] = epistemic.noise_share
    for method, fitted in calibrations.items():
        if fitted is not None:
            tensors |= model_file.named(f"epistemic.{method}", fitted.arrays())


def _epistemic(header: Header, tensors: Tensors) -> EpistemicPart | None:
    """Read the epistemic part; files of the first versions have none."""
    if "epistemic" not in header:
        return None
    kept = header["epistemic"]
    laplace = Laplace(tensors["epistemic.root"], tensors["epistemic.ratio"], kept["prior"])
    calibrations = {
        method: _calibration(kind, model_file.under(f"epistemic.{method}", tensors))
        for method, kind in kept["calibrations"].items()
    }
    return EpistemicPart(laplace, tensors["epistemic.noise_share"], calibrations)


def _kind(calibration: Calibration | None) -> str | None:
    """Return the name that a file has for a kind of calibration."""
    if calibration is None:
        return None
    return next(name for name, kind in KINDS.items() if type(calibration) is kind)


def _calibration(kind: str | None, arrays: Tensors) -> Calibration | None:
    if kind is None:
        return None
    return KINDS[kind](**{k: v.item() if v.ndim == 0 else v for k, v in arrays.items()})
