"""Saving and loading of fitted models."""

from __future__ import annotations

import json
import math
import os
import platform
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import sklearn
import torch
from torch import nn

from rdeepsense import __version__
from rdeepsense.adaptation.rates import Rates
from rdeepsense.arrays import Floats
from rdeepsense.calibration import KINDS, Calibration
from rdeepsense.calibration.conformal import Conformal
from rdeepsense.compact_novelty import CompactNovelty
from rdeepsense.data.checks import KEPT
from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.dropout import StochasticNetwork, convert
from rdeepsense.encoding import encoding_of
from rdeepsense.errors import InputError, RDeepSenseError
from rdeepsense.fitting.description import (
    check_adapted_size,
    check_header,
    check_tensors,
    example_shape,
    known_architecture,
    missing_of,
    network_shape_of,
    shape_of,
)
from rdeepsense.fitting.epistemic import EpistemicPart
from rdeepsense.fitting.fitted import (
    Fitted,
    GroupCorrection,
    Inputs,
    Networks,
    Peers,
    prior_arrays,
    prior_json,
    prior_restored,
)
from rdeepsense.fitting.gp import MODELS, ExactGP, Process
from rdeepsense.fitting.passes import Passes, Sampled, hidden_size
from rdeepsense.fitting.records import Candidate, Selection, TrainingReport
from rdeepsense.fitting.target import Target, target_from_json
from rdeepsense.guard import Guard
from rdeepsense.heads import head_named
from rdeepsense.link import Softmax
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.modelfile.tensors import Header, Tensors, tupled
from rdeepsense.networks import Architecture, Own, name_of
from rdeepsense.networks.base import built
from rdeepsense.uncertainty import Laplace
from rdeepsense.uncertainty.laplace import features_of
from rdeepsense.uncertainty.novelty import Novelty
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.stream import Smoothing

# --------------------------------------------------------------------------------------------------
# A few rows through a model that was just loaded: it must answer them with numbers
#
# The rows are the centre of the training rows and a standard deviation on either side of it. Shapes
# and ranges have been checked, so this finds what only the whole of the numbers makes wrong.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Writing trained networks to a model file and reading them back
# --------------------------------------------------------------------------------------------------


def write_networks(model: Networks, outputs: int, header: Header, tensors: Tensors) -> None:
    """Add the networks of a model to what its file will hold."""
    header["architecture"] = {
        "class": name_of(model.architecture),
        "arguments": model_file.plain(model.architecture.arguments()),
        "outputs": outputs,
        "members": len(model.members),
        "likelihood": model.candidate.likelihood,
        "alpha": model.candidate.alpha,
        "drop_prob": model.candidate.drop_prob,
        "input_drop_prob": float(model.input_drop_prob),
    }
    for number, network in enumerate(model.members):
        state = {name: value.cpu().numpy() for name, value in network.state_dict().items()}
        tensors |= model_file.named(f"network.{number}", state)


def read_networks(
    header: Header,
    tensors: Tensors,
    shape: tuple[int, ...],
    passes: Passes,
    network: nn.Module | None,
) -> Networks:
    """Build the networks that a file holds, and take their weights out of `tensors`."""
    saved = header["architecture"]
    candidate = Candidate(
        saved["likelihood"], saved["alpha"], model_file.tupled(saved["drop_prob"])
    )
    head = head_named(candidate.likelihood)
    if isinstance(head.link, Softmax) != ("classes" in header["target"]):
        raise InputError(
            f"architecture.likelihood = {candidate.likelihood!r} does not fit the target"
        )
    states = _states(saved["members"], tensors)
    architecture: Architecture = (
        Own(network) if network is not None else known_architecture(saved, shape, states[0])
    )
    members = []
    for state in states:
        member = _member(architecture, candidate, saved, shape)
        try:
            member.load_state_dict({name: torch.from_numpy(v) for name, v in state.items()})
        except RuntimeError as error:
            raise InputError(f"the network does not fit the file's weights: {error}") from error
        members.append(member.eval())
        _check_laplace(header, tensors, member, shape)
    if "adapted" in header:
        check_adapted_size(tensors, hidden_size(members[0]))
    return Networks(tuple(members), candidate, architecture, saved["input_drop_prob"], passes)


def check_own(saved: Header, network: nn.Module | None) -> None:
    """Refuse a network of the user's own where none is needed, and ask for one where it is."""
    own = saved.get("arguments") is None and saved["class"] != "dense"
    if own and network is None:
        raise InputError(
            f"this model was trained on a network of your own ({saved['class']:.60}); "
            "load it with rds.load(path, network=...), giving a new instance"
        )
    if not own and network is not None:
        raise InputError("this model has layers of its own; leave out network=")


def _states(members: int, tensors: Tensors) -> list[Tensors]:
    """Take the weights of each member out of the others."""
    names = [name for name in tensors if name.startswith("network.")]
    states: list[Tensors] = [{} for _ in range(members)]
    for name in names:
        number, _, own = name.removeprefix("network.").partition(".")
        if not number.isdecimal() or int(number) >= members or str(int(number)) != number:
            raise InputError(f"{name!r:.60} is no tensor of architecture.members = {members}")
        states[int(number)][own] = tensors.pop(name)
    for k, state in enumerate(states):
        if not state:
            raise InputError(f"lacks the tensors network.{k}, of architecture.members")
    return states


def _member(
    architecture: Architecture, candidate: Candidate, saved: Header, shape: tuple[int, ...]
) -> StochasticNetwork:
    plain = built(architecture, shape, saved["outputs"], 0, seed=0)
    example = torch.zeros(2, *example_shape(architecture, shape)).to(next(plain.parameters()))
    try:
        return convert(
            plain,
            likelihood=candidate.likelihood,
            drop_prob=candidate.drop_prob,
            input_drop_prob=saved["input_drop_prob"],
            example=example,
        )
    except RDeepSenseError:
        raise
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"the network does not take rows of shape {shape}: {error}") from error


def _check_laplace(
    header: Header, tensors: Tensors, member: StochasticNetwork, shape: tuple[int, ...]
) -> None:
    """Refuse a matrix of another size than what the last layer reads."""
    if "epistemic" not in header:
        return
    size, wanted = len(tensors["epistemic.root"]), features_of(member, math.prod(shape))
    if size != wanted:
        raise InputError(f"epistemic.root has {size} rows, the network asks for {wanted}")


# --------------------------------------------------------------------------------------------------
# Writing a fitted model to a file and reading it back. Nothing in a file is executed
# --------------------------------------------------------------------------------------------------


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
