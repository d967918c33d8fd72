"""Folding: scaling, calibration and adaptation become part of the network's weights."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rdeepsense import __version__
from rdeepsense.adaptation.corrections import MOST_SHARE, AdaptedNumbers
from rdeepsense.arrays import Floats
from rdeepsense.calibration import Calibration, Isotonic, Scale, Temperature
from rdeepsense.calibration.conformal import Conformal
from rdeepsense.data.scaling import Scaler
from rdeepsense.deploy.folded.file import (
    EMBEDDING,
    LAPLACE,
    STEP,
    arrays_of,
    check_header,
    graph_arrays,
    graph_record,
)
from rdeepsense.deploy.folded.graph import FoldedGraph, Graph, last_hidden, last_layer
from rdeepsense.deploy.folded.model import (
    FASTEST,
    DenseLayer,
    Embedding,
    Facts,
    Folded,
    Intervals,
    LastLayerLaplace,
    Layers,
    Output,
    VarianceReduction,
    triangular,
)
from rdeepsense.deploy.tracing import stream_of, trace
from rdeepsense.distributions import LocationScale, Recalibrated
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import DistributionEstimator, fitted_model
from rdeepsense.fitting.epistemic import EpistemicPart
from rdeepsense.fitting.fitted import Adaptation, Fitted
from rdeepsense.heads import HEADS, Head
from rdeepsense.link import Column, Expression, LocationWidth, Operation, to_json
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.networks.periodic import PeriodicEmbedding
from rdeepsense.windowing.stream import Smoothing

# --------------------------------------------------------------------------------------------------
# Weights and biases of fully connected ReLU networks in torch
#
# An embedding of the inputs may stand before the layers.
# --------------------------------------------------------------------------------------------------

WeightBias = tuple[Floats, Floats]
FOLDABLE = (nn.Linear, nn.ReLU, nn.Dropout, nn.Identity)


def is_dense(body: nn.Module) -> bool:
    """Tell whether a network is a Sequential of dense layers, which `dense_layers` takes."""
    modules = without_embedding(flat(body))
    several = len(modules) == len(flat(body)) or sum(isinstance(m, nn.Linear) for m in modules) > 1
    return several and all(isinstance(module, FOLDABLE) for module in modules)


def flat(module: nn.Module) -> list[nn.Module]:
    """List the modules of nested Sequentials in the order of the pass."""
    # The exact type: a subclass may have a forward of its own.
    if type(module) is nn.Sequential:
        return [inner for part in module for inner in flat(part)]
    return [module]


def without_embedding(modules: list[nn.Module]) -> list[nn.Module]:
    """Leave out an embedding that stands before all layers."""
    return modules[1:] if modules and type(modules[0]) is PeriodicEmbedding else modules


def embedding_of(modules: list[nn.Module]) -> Embedding | None:
    """Copy the numbers of the embedding before all layers, if there is one."""
    found = modules[0]
    if type(found) is not PeriodicEmbedding:
        return None
    frequency, weight, bias = (
        value.detach().cpu().double().numpy().copy()
        for value in (found.frequency, found.weight, found.bias)
    )
    if not all(np.isfinite(values).all() for values in (weight, bias)):
        raise InputError("the embedding has weights that are not finite")
    if not np.abs(frequency).max() <= FASTEST:
        raise InputError(
            f"the embedding has frequencies of up to {np.abs(frequency).max():g} periods per "
            f"standard deviation; accepted: {FASTEST:g}"
        )
    return Embedding(frequency, weight.reshape(bias.size, -1), bias)


def dense_layers(modules: list[nn.Module]) -> list[WeightBias]:
    """Copy W and b of each layer; layers with no ReLU between them are multiplied out."""
    layers: list[WeightBias] = []
    rectified = True
    for module in modules:
        if isinstance(module, nn.Linear):
            weight, bias = weight_bias(module)
            if rectified:
                layers.append((weight, bias))
            else:
                before, offset = layers[-1]
                layers[-1] = (weight @ before, weight @ offset + bias)
            rectified = False
        elif isinstance(module, nn.ReLU):
            if not layers:
                raise InputError("the network begins with a ReLU, which cannot be folded")
            rectified = True
        elif not isinstance(module, FOLDABLE):
            raise InputError(
                f"a network with {type(module).__name__} cannot be folded; accepted: nn.Sequential "
                "of Linear, ReLU, Dropout and Identity"
            )
    for weight, bias in layers:
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise InputError("the network has weights that are not finite")
    return layers


def weight_bias(linear: nn.Linear) -> WeightBias:
    """Copy W and b in float64; b is 0 where the layer has none."""
    weight = linear.weight.detach().cpu().double().numpy().copy()
    bias: Tensor | None = linear.bias
    if bias is None:
        return weight, np.zeros(len(weight))
    return weight, bias.detach().cpu().double().numpy().copy()


def before_last(modules: list[nn.Module]) -> list[nn.Module]:
    """List what makes the numbers that the last Linear layer reads."""
    return modules[: max(k for k, module in enumerate(modules) if isinstance(module, nn.Linear))]


# --------------------------------------------------------------------------------------------------
# Folding of the Laplace approximation; see `LastLayerLaplace`
# --------------------------------------------------------------------------------------------------

PROBIT = np.pi / 8


def fitted_epistemic(fitted: Fitted, epistemic: str) -> EpistemicPart:
    """Return what was fitted of the epistemic part; refuse what cannot be exported."""
    if epistemic != "laplace":
        raise InputError(f"epistemic={epistemic!r} cannot be exported; accepted: 'laplace'")
    if fitted.epistemic is None:
        raise InputError(
            "the model's file is older than epistemic uncertainty; fit the model again to export "
            "it with epistemic='laplace'"
        )
    return fitted.epistemic


def fold_laplace(
    fitted: Fitted, before: list[tuple[Floats, Floats]], layers: int, factor: Floats
) -> LastLayerLaplace:
    """Fold the matrix for `layers` folded layers, and the numbers of each output.

    `before` are the layers that the network has before its last one, `factor` is what target scale
    and calibration multiply a std by.
    """
    network, found = fitted.network, fitted.epistemic
    assert found is not None
    ratio = found.laplace.ratio
    width = network.body.get_submodule(network.output).in_features
    root = found.laplace.root.astype(np.float64)
    last, inputs, constant = root[:width], root[width:-1], root[-1:]
    if len(before) == layers:  # no ReLU stands between the last two, which became one
        weight, bias = before[-1]
        last, constant = weight.T @ last, constant + bias @ last
    if layers == 1:  # the last layer reads the inputs, which may stand beside them once more
        last, inputs = last + inputs if len(inputs) else last, inputs[:0]
    root = triangular(np.concatenate([last, inputs, constant]))
    if network.head.is_classifier:
        return LastLayerLaplace(root, PROBIT * ratio, np.sqrt(ratio))
    unit_std = network.head.unit().std
    gain = ratio / (found.noise_share * unit_std**2)
    return LastLayerLaplace(root, gain, factor * np.sqrt(ratio))


# --------------------------------------------------------------------------------------------------
# Folding of a fitted model into dense layers, exact up to rounding
#
# With inputs (x - shift) / scale and targets s y + t, W_1 is divided by the input scale, the rows
# of the location in the last layer are multiplied by s and t is added to their bias; a temperature
# T divides the last layer of a classifier. What the link makes of the other rows cannot be folded:
# their factor stands beside as `spread`. An embedding of the inputs stays as it was trained, and so
# do the columns of W_1 that read it.
# --------------------------------------------------------------------------------------------------

COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)


def fold(model: DistributionEstimator, epistemic: str | None = None) -> Folded:
    """Fold a fitted RDeepSense estimator whose network is fully connected with ReLU.

    With `epistemic` "laplace" it is that of `predict_dist(X, epistemic="laplace")`.
    """
    return fold_fitted(fitted_model(model), epistemic)


def fold_fitted(fitted: Fitted, epistemic: str | None = None) -> Folded:
    """Fold all layers of a fitted model."""
    check_one_pass(fitted)
    modules = flat(fitted.network.body)
    embedding, modules = embedding_of(modules), without_embedding(modules)
    layers = dense_layers(modules)
    if embedding is not None and len(layers) < 2:
        raise InputError("an embedding that only the last layer reads cannot be folded")
    scaler = fitted.inputs.scaler
    layers[0][0][:, : len(scaler.scale)] /= scaler.scale
    source = _digest(layers, [scaler], fitted, embedding)
    calibration, noise_share = fitted.calibration, np.ones(1)
    if epistemic is not None:
        found = fitted_epistemic(fitted, epistemic)
        calibration, noise_share = found.calibrations[epistemic], found.noise_share
    last, output, intervals = _last(fitted, layers[-1], calibration, noise_share, epistemic is None)
    if epistemic is not None:
        before, factor = dense_layers(before_last(modules)), _factor(fitted, calibration)
        laplace = fold_laplace(fitted, before, len(layers), factor)
        output = Output(output.link, output.spread, output.shift, laplace)
    dense = tuple(DenseLayer(np.ascontiguousarray(w), b) for w, b in (*layers[:-1], last))
    facts = _facts(fitted, calibration, intervals, source)
    folded = Layers(scaler.shift, scaler.scale, dense, embedding, scaler.encoding)
    return Folded(facts, folded, output)


def fold_last(fitted: Fitted) -> tuple[Facts, DenseLayer, Output]:
    """Fold the last layer alone, of a network whose other layers are not dense."""
    check_one_pass(fitted)
    network = fitted.network
    linear = network.body.get_submodule(network.output)
    assert isinstance(linear, nn.Linear)
    layer = weight_bias(linear)
    ones = Scaler(np.zeros(linear.in_features), np.ones(linear.in_features))
    digest = hashlib.sha256(_digest([layer], [ones], fitted).encode())
    scaler = fitted.inputs.scaler
    weights = [value.detach().cpu().numpy() for value in network.state_dict().values()]
    digest.update(_bytes((scaler.shift, scaler.scale, *weights)))
    last, output, intervals = _last(fitted, layer, fitted.calibration, np.ones(1), True)
    facts = _facts(fitted, fitted.calibration, intervals, digest.hexdigest())
    return facts, DenseLayer(*last), output


def check_one_pass(fitted: Fitted) -> None:
    """Refuse a method whose prediction is not one pass of one network, as it was trained."""
    if fitted.correction is not None:
        raise InputError(
            "an adapted model cannot be exported: what it has learnt does not fit into the trained "
            "layers; export the model that it was adapted from"
        )
    if not fitted.takes_one_pass:
        raise InputError(
            f"a {fitted.method} takes more than one pass, so it cannot be folded; "
            "accepted: RDeepSenseRegressor, RDeepSenseClassifier"
        )


def _last(
    fitted: Fitted,
    layer: WeightBias,
    calibration: Calibration | None,
    noise_share: Floats,
    conformal: bool,
) -> tuple[WeightBias, Output, Intervals | None]:
    """Fold target scale and calibration into the last layer, and what is left into an output."""
    weight, bias = layer
    head, target = fitted.network.head, fitted.target_scaler
    if target is None:
        heat = calibration.factor if isinstance(calibration, Temperature) else 1.0
        return (weight / heat, bias / heat), Output(head.link), None
    _check_location(head)
    outputs = len(target.scale)
    weight, bias = weight.copy(), bias.copy()
    weight[:outputs] *= target.scale[:, None]
    bias[:outputs] = bias[:outputs] * target.scale + target.shift
    # What the calibrated distribution says of a centre 0 and a width 1, output by output.
    plain = head.unit()
    unit: LocationScale | Recalibrated = plain
    if isinstance(calibration, Isotonic):
        unit = Recalibrated(plain, calibration.stated, calibration.actual)
    width = _factor(fitted, calibration)
    output = Output(
        head.link, width * unit.std * np.sqrt(noise_share), np.asarray(unit.mean / unit.std)
    )
    # Conformal thresholds are of the plain std.
    return (weight, bias), output, _intervals(unit, fitted.conformal if conformal else None)


def _check_location(head: Head) -> None:
    """Refuse a link into whose location the target's scale could not go."""
    link = head.link
    if not isinstance(link, LocationWidth) or link.location != Column(0) or _reads_it(link.width):
        raise InputError(
            f"the link of {type(head).__name__} cannot be folded: its location must be column 0, "
            "and its width must not read that column"
        )


def _reads_it(expression: Expression | None) -> bool:
    if isinstance(expression, Operation):
        return any(_reads_it(argument) for argument in expression.arguments)
    return expression == Column(0)


def _factor(fitted: Fitted, calibration: Calibration | None) -> Floats:
    """Compute what target scale and calibration multiply a std by."""
    if fitted.target_scaler is None:
        return np.ones(1)
    factor = calibration.factor if isinstance(calibration, Scale | Isotonic) else 1.0
    return np.asarray(fitted.target_scaler.scale * factor)


def _facts(
    fitted: Fitted, calibration: Calibration | None, intervals: Intervals | None, source: str
) -> Facts:
    return Facts(
        inputs=fitted.inputs.shape[-1],
        outputs=fitted.target.outputs,
        head=_name_of(fitted.network.head),
        features=fitted.inputs.names,
        feature_units=fitted.inputs.units,
        targets=fitted.target.names,
        target_units=fitted.target.units,
        classes=fitted.target.classes,
        missing=fitted.inputs.missing,
        one_output=not fitted.target.is_classes and fitted.target.shape == (),
        calibration=None if calibration is None else type(calibration).__name__.lower(),
        intervals=intervals,
        guard=fitted.guard,
        encoding=fitted.inputs.encoding,
        version=__version__,
        source=source,
        window=fitted.inputs.shape[:-1],
        recipe=fitted.recipe,
        smoothing=_smoothing(fitted),
        dated=fitted.inputs.dated,
        double=fitted.inputs.scaler.double_columns,
    )


def _smoothing(fitted: Fitted) -> Smoothing | None:
    if fitted.recipe is None or not fitted.target.is_classes:
        return None
    return fitted.smoothing or Smoothing.unseen(fitted.recipe)


def _name_of(head: Head) -> str:
    names = (name for name, kind in HEADS.items() if kind is type(head))
    return next(names, type(head).__name__)


def _intervals(unit: LocationScale | Recalibrated, conformal: Conformal | None) -> Intervals:
    low, high = (
        np.array([(unit.interval(c)[side] - unit.mean) / unit.std for c in COVERAGES])
        for side in (0, 1)
    )
    reach = None
    if conformal is not None and conformal.is_common:
        reach = np.array([conformal.threshold(c, 1)[0] for c in COVERAGES])
    return Intervals(np.array(COVERAGES), low, high, reach)


def _digest(
    layers: list[WeightBias],
    scalers: list[Scaler],
    fitted: Fitted,
    embedding: Embedding | None = None,
) -> str:
    """Compute SHA-256 of the trained numbers, to tell which model an artefact came from."""
    arrays = [array for layer in layers for array in layer]
    arrays += [] if embedding is None else list(vars(embedding).values())
    encoding = fitted.inputs.encoding
    arrays += [] if encoding is None else list(encoding.arrays().values())
    for scaler in (*scalers, fitted.target_scaler):
        arrays += [] if scaler is None else [scaler.shift, scaler.scale]
    if fitted.calibration is not None:
        arrays += list(fitted.calibration.arrays().values())
    return hashlib.sha256(_bytes(arrays)).hexdigest()


def _bytes(arrays: Iterable[NDArray[Any]]) -> bytes:
    return b"".join(np.ascontiguousarray(array, dtype="<f8").tobytes() for array in arrays)


# --------------------------------------------------------------------------------------------------
# Folding of other networks into a graph
#
# Scale of targets and calibration go into the last layer, as for dense networks; the batch norms
# into the weights before them. What the graph says of drawn rows is compared with torch before
# anyone uses it.
# --------------------------------------------------------------------------------------------------

ROWS = 8
AGREEMENT = 1e-6  # of the spread of the columns


def fold_graph(fitted: Fitted) -> FoldedGraph:
    """Fold all layers of a fitted model into a graph."""
    if fitted.inputs.encoding is not None:
        raise InputError(
            "categories, and flags of missing values, are for fully-connected networks here; "
            "fit this one on numbers, with missing='mean'"
        )
    facts, last, output = fold_last(fitted)
    body = copy.deepcopy(fitted.network.body).cpu().double().eval()
    linear = body.get_submodule(fitted.network.output)
    assert isinstance(linear, nn.Linear)
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(last.weight))
        linear.bias.copy_(torch.from_numpy(last.bias))
    scaler, shape = fitted.inputs.scaler, fitted.inputs.shape
    graph = Graph(shape, scaler.shift, scaler.scale, trace(body, shape))
    _compare(body, graph)
    return FoldedGraph(facts, graph, output, stream_of(body, graph))


def _compare(body: nn.Module, graph: Graph) -> None:
    """Refuse a graph that is not the network: rows that depend on each other, or on chance."""
    z = np.random.default_rng(0).normal(size=(ROWS, *graph.shape))
    with torch.no_grad():
        wanted = body(torch.from_numpy(z)).reshape(ROWS, -1).numpy()
    found = graph.computed(z.reshape(ROWS, -1))
    size = np.abs(wanted - wanted.mean()).max() + np.finfo(np.float32).tiny
    if found.shape != wanted.shape or not np.abs(found - wanted).max() <= AGREEMENT * size:
        raise InputError(
            f"{type(body).__name__} cannot be exported: its steps, taken one after the other, do "
            "not give what it gives; accepted: networks whose rows do not depend on each other, on "
            "chance or on numbers that a forward reads into Python"
        )


# --------------------------------------------------------------------------------------------------
# Folding of adaptation into the last layer
#
# With phi = [h, 1] and a correction phi^T D of medians (in units of the target's scale) or of
# calibrated logits, the last layer's W h + b becomes
#
#     numbers   (W + D^T) h + ...        of the rows of the location
#     classes   (W + T D^T) h + ...      as the temperature T divides it later
#
# which is exact. What labels leave of the variance of numbers changes from row to row, unless the
# model was fitted without groups, and then it stays: `VarianceReduction`, which C has.
# --------------------------------------------------------------------------------------------------


def with_adaptation_folded(fitted: Fitted, epistemic: str | None = None) -> Fitted:
    """Return a model with the same medians and no correction beside its network.

    Its variance is that of before the labels; `narrowing` has what they leave of it.
    """
    known = fitted.correction
    if known is None:
        return fitted
    if epistemic is not None:
        raise InputError(
            f"epistemic={epistemic!r} is that of the frozen model, and this one was adapted; "
            "export the model that it was adapted from"
        )
    heat = fitted.calibration.factor if isinstance(fitted.calibration, Temperature) else 1.0
    network = copy.deepcopy(fitted.network)
    layer = network.body.get_submodule(network.output)
    assert isinstance(layer, nn.Linear)
    _add(layer, heat * _change(known))
    model = replace(fitted.networks, members=(network,))
    return replace(fitted, model=model, correction=None)


def narrows(fitted: Fitted) -> bool:
    """Tell whether labels have narrowed predictions, from row to row."""
    known = fitted.correction
    if known is None or not isinstance(known.state, AdaptedNumbers):
        return False
    return bool(known.state.prior.shares.any())


def check_steady(fitted: Fitted, to: str) -> None:
    """Refuse a format that cannot narrow predictions from row to row."""
    if narrows(fitted):
        raise InputError(
            f"an adapted model cannot be exported to {to!r} where labels have narrowed its "
            "predictions: how far changes from row to row; accepted: to='c99', in float32"
        )


def narrowing(fitted: Fitted, dtype: str, live: bool) -> VarianceReduction | None:
    """Fold what labels leave of the variance, if they take anything away.

    With C0 = L L^T the ratio phi^T C phi / phi^T C0 phi is psi^T M psi / psi^T psi of
    psi = L^T phi, with M = L^-1 C L^-T, and psi may be turned so that B is triangular, as in
    `fold_live`.
    """
    if not narrows(fitted):
        return None
    _check_narrowing(fitted, dtype, live)
    known = fitted.correction
    assert known is not None
    state = known.state
    assert isinstance(state, AdaptedNumbers)
    turned, left = [], []
    for start, covariance in zip(state.start, state.covariance, strict=True):
        lower = np.linalg.cholesky(start)
        own = np.linalg.solve(lower, np.linalg.solve(lower, covariance).T)
        q, upper = np.linalg.qr(_unprojected(known, lower).T)
        turned.append(upper.T)
        left.append(q.T @ (own + own.T) @ q / 2)
    return VarianceReduction(np.array(turned), np.array(left), state.prior.shares, 1 - MOST_SHARE)


def _check_narrowing(fitted: Fitted, dtype: str, live: bool) -> None:
    what = "labels have narrowed the predictions of this adapted model, which C computes in"
    if dtype != "float32":
        raise InputError(f"{what} float32; dtype={dtype!r} cannot")
    if live:
        raise InputError(
            "live=True cannot go on from an adapted model whose predictions labels have narrowed; "
            "export the model that it was adapted from, and observe the labels there"
        )
    if isinstance(fitted.calibration, Isotonic):
        raise InputError(f'{what} for calibrate="scale" alone, not isotonic')
    if not is_dense(fitted.network.body):
        return  # the numbers that the last step of a graph reads are checked there
    modules = without_embedding(flat(fitted.network.body))
    layers = dense_layers(modules)
    if len(layers) < 2 or len(dense_layers(before_last(modules))) == len(layers):
        raise InputError(f"{what} networks with a hidden layer and a ReLU before the last layer")


def _change(known: Adaptation) -> Floats:
    """Return D (hidden + 1, outputs) of the last hidden layer's own numbers, and the 1."""
    state = known.state
    found: Floats = state.weights
    if isinstance(state, AdaptedNumbers):
        found = state.weights @ state.prior.directions.T
    return _unprojected(known, found)


def _unprojected(known: Adaptation, of_features: Floats) -> Floats:
    """Return rows for the last hidden layer's own numbers, and the 1, from those of phi."""
    if known.projection is None:
        return of_features
    return np.vstack([known.projection @ of_features[:-1], of_features[-1:]])


def _add(layer: nn.Linear, change: Floats) -> None:
    """Add D to the first columns of a layer."""
    more = torch.from_numpy(np.ascontiguousarray(change.T))
    outputs = len(more)
    with torch.no_grad():
        bias: torch.Tensor | None = layer.bias
        if bias is None:
            layer.bias = nn.Parameter(torch.zeros_like(layer.weight[:, 0]))
        layer.weight[:outputs] += more[:, :-1].to(layer.weight)
        layer.bias[:outputs] += more[:, -1].to(layer.bias)


# --------------------------------------------------------------------------------------------------
# The folded form of any fitted model: dense layers or a graph
# --------------------------------------------------------------------------------------------------


def folded_form(fitted: Fitted, epistemic: str | None = None) -> Folded | FoldedGraph:
    """Fold all layers of a fitted model."""
    if not has_graph(fitted):
        return fold_fitted(fitted, epistemic)
    if epistemic is not None:
        raise InputError(
            f"epistemic={epistemic!r} is for fully-connected networks; export this one without it"
        )
    return fold_graph(fitted)


def has_graph(fitted: Fitted) -> bool:
    """Tell whether a model's network is not plain dense layers."""
    # An adapted model's own correction is dealt with where it is exported.
    return fitted.takes_one_pass and not is_dense(fitted.network.body)


# --------------------------------------------------------------------------------------------------
# Check that a graph ends in the trained last layer
# --------------------------------------------------------------------------------------------------

HIDDEN_ROWS = 4
HIDDEN_AGREEMENT = 0.05  # of the largest number: weights may be bytes


def check_hidden(fitted: Fitted, graph: Graph) -> None:
    """Refuse a graph whose last layer was joined with others, or stands elsewhere."""
    last_layer(graph)
    X = graph.rows_at(np.random.default_rng(0).normal(size=(HIDDEN_ROWS, graph.inputs)))
    wanted, found = fitted.last_hidden(X, None)[:, :-1], last_hidden(graph, X)
    if wanted.shape == found.shape:
        size = np.abs(wanted).max() + np.finfo(np.float32).tiny
        if np.abs(found - wanted).max() <= HIDDEN_AGREEMENT * size:
            return
    raise InputError(
        "what was learnt, or is to be learnt, from labels is about the numbers that the last layer "
        "reads, and the exported steps do not hold them; end the network in one Linear layer"
    )


# --------------------------------------------------------------------------------------------------
# Writing of folded models; `deploy.folded.file` reads them with numpy alone
# --------------------------------------------------------------------------------------------------

NARROWED = ("layer.", EMBEDDING, LAPLACE, STEP)  # the arrays that may be float32


def save(folded: Folded | FoldedGraph, path: str | os.PathLike[str]) -> None:
    """Write the folded model as one safetensors file, whole or not at all."""
    facts = folded.facts
    steps = None if isinstance(folded, Folded) else graph_record(folded.graph)
    header = {
        "kind": "folded",
        "head": facts.head,  # for information: the link is what counts
        "link": to_json(folded.output.link),
        "layers": len(folded.layers.dense) if isinstance(folded, Folded) else 1,
        **({} if steps is None else {"graph": steps}),
        **({} if facts.recipe is None else {"windows": facts.recipe.to_json()}),
        **({} if facts.smoothing is None else {"smoothing": asdict(facts.smoothing)}),
        **({"dates": list(facts.dated)} if facts.dated else {}),
        "classes": None if facts.classes is None else facts.classes.tolist(),
        "class_dtype": None if facts.classes is None else facts.classes.dtype.str,
        "features": facts.features,
        "feature_units": facts.feature_units,
        "targets": facts.targets,
        "target_units": facts.target_units,
        "missing": facts.missing,
        "columns": facts.inputs,
        "encoding": None if facts.encoding is None else facts.encoding.to_json(),
        "one_output": facts.one_output,
        "calibration": facts.calibration,
        "version": facts.version,
        "source": facts.source,
    }
    # What reading would refuse is refused here, before anything is written.
    check_header(json.loads(json.dumps(header)))
    found = arrays_of(folded) if isinstance(folded, Folded) else graph_arrays(folded)
    tensors: dict[str, NDArray[Any]] = {
        name: _smallest(values) if name.startswith(NARROWED) else values
        for name, values in found.items()
    }
    model_file.write(path, header, tensors)


def _smallest(values: NDArray[np.float64]) -> NDArray[Any]:
    """Narrow to float32 where that keeps every bit, as it does for layers left as trained."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return narrow if np.array_equal(narrow.astype(np.float64), values) else values
