"""Saving and loading of fitted models."""

from __future__ import annotations

import json
import math
import os
import platform
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import sklearn
import torch
from torch import nn

from rdeepsense import __version__
from rdeepsense.arrays import Floats
from rdeepsense.calibration import maps
from rdeepsense.data.checks import KEPT
from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.dropout import StochasticNetwork, convert
from rdeepsense.encoding import encoding_of
from rdeepsense.errors import InputError, RDeepSenseError
from rdeepsense.fitting.description import (
    check_header,
    check_tensors,
    example_shape,
    known_architecture,
)
from rdeepsense.fitting.fitted import Fitted, Inputs, Networks
from rdeepsense.fitting.gp import ExactGP, Process, read_process, write_process
from rdeepsense.fitting.parts import PARTS, missing_of
from rdeepsense.fitting.passes import Passes, Sampled
from rdeepsense.fitting.records import Candidate, Selection, TrainingReport
from rdeepsense.fitting.target import target_from_json
from rdeepsense.heads import head_named
from rdeepsense.link import Softmax
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.modelfile.layout import Context
from rdeepsense.modelfile.tensors import Header, Tensors
from rdeepsense.networks import Architecture, Own, name_of
from rdeepsense.networks.base import built

# --------------------------------------------------------------------------------------------------
# A few rows through a model that was just loaded: it must answer them with numbers
#
# The rows are the centre of the training rows and a standard deviation on either side of it. Shapes
# and ranges have been checked, so this finds what only the whole of the numbers makes wrong.
# --------------------------------------------------------------------------------------------------

LARGEST = 1e250
LONG = 1 << 14  # numbers of a window, of which a part is tried
SMALL = 1 << 21  # numbers, of which a copy takes 16 MiB


def check_predicts(fitted: Fitted) -> None:
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
        "arguments": model_file.to_plain(model.architecture.arguments()),
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


# --------------------------------------------------------------------------------------------------
# Writing a fitted model to a file and reading it back. Nothing in a file is executed
# --------------------------------------------------------------------------------------------------


def save(fitted: Fitted, params: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a fitted model and the arguments of its estimator, whole or not at all."""
    header: Header = {
        "kind": "model",
        "estimator": fitted.method,
        "params": model_file.to_plain(params),
        "features": fitted.inputs.shape[-1],
        "input_shape": list(fitted.inputs.shape),
        "feature_names": model_file.to_plain(fitted.inputs.names),
        "missing": fitted.inputs.missing,
        "target": fitted.target.to_json(),
        "target_names": model_file.to_plain(fitted.target.names),
        "target_units": model_file.to_plain(fitted.target.units),
        "feature_units": model_file.to_plain(fitted.inputs.units),
        "calibration": maps.name_of(fitted.calibration),
        "training": model_file.to_plain(fitted.training.to_json()),
        "selection": None
        if fitted.selection is None
        else model_file.to_plain(fitted.selection.to_json()),
        "validation_scores": model_file.to_plain(fitted.scores),
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
    own = [(part, fitted.part(part.name)) for part in PARTS]
    for part, held in own:
        if held is not None and part.before_model:
            part.to_file(held, header, tensors)
    if isinstance(fitted.model, Process):
        write_process(fitted.model, header, tensors)
    else:
        write_networks(fitted.model, fitted.target.outputs, header, tensors)
    for part, held in own:
        if held is not None and not part.before_model:
            part.to_file(held, header, tensors)
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
    context = check_tensors(header, tensors)
    names = header["feature_names"]
    model: Process | Networks
    if passes is None:
        model = read_process(tensors, context)
    else:
        model = read_networks(header, tensors, context.network_shape, passes, network)
    kept = {name: array.copy() for name, array in tensors.items()}
    tensors.clear()
    encoding = None
    if "encoding" in header:
        encoding = encoding_of(header["encoding"], header["features"], kept)
    inputs = Inputs(
        context.shape,
        None if names is None else tuple(names),
        missing_of(header),
        Scaler(kept["input.shift"], kept["input.scale"], encoding=encoding),
        dated=tuple(header.get("dates", ())),
    )
    scaler = None
    if "target.shift" in kept:
        scaler = Scaler(kept["target.shift"], kept["target.scale"])
    selection = header["selection"]
    fitted = Fitted.of(
        _parts(kept, replace(context, model=model)),
        method=header["estimator"],
        inputs=inputs,
        target=target,
        target_scaler=scaler,
        model=model,
        calibration=maps.restored(header["calibration"], model_file.under("calibration", kept)),
        training=TrainingReport.from_json(header["training"]),
        selection=Selection.from_json(selection) if selection else None,
        scores={k: math.nan if v is None else v for k, v in header["validation_scores"].items()},
    )
    fitted = fitted.described(*(header.get(name) for name in KEPT))
    check_predicts(fitted)
    return fitted


def _parts(tensors: Tensors, context: Context) -> dict[str, Any]:
    """Restore the parts in their order: a later one may need an earlier one."""
    for part in PARTS:
        there = part.is_in(context.header, context.shapes)
        found = part.from_file(tensors, context) if there else part.absent(context)
        if found is not None:
            context.parts[part.name] = found
    return context.parts


def check_network(header: Header, network: nn.Module | None) -> None:
    """Refuse a network where the file has its own, and the lack of one where it has none."""
    if "architecture" in header:
        check_own(header["architecture"], network)
    elif network is not None:
        raise InputError("a Gaussian process has no network; leave out network=")
