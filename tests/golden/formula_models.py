"""Model files for the record of exports: every number is set by a formula, none is trained.

Weights, scales and rows are small multiples of powers of two, so that sums and products of them
are exact: the bytes of an export then depend neither on the processor nor on the version of a
library.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from golden.tables import Layers, Recurrent
from numpy.typing import NDArray
from torch import nn

import rdeepsense as rds
from rdeepsense.modelfile import tensors as model_file

Header = dict[str, Any]
Tensors = dict[str, NDArray[Any]]
Made = tuple[Header, Tensors]
HIDDEN = (8, 6)
ROWS = 40
CLASSES = ["rest", "run", "walk"]


def steps(*shape: int, seed: int = 1, unit: float = 0.125) -> NDArray[np.float64]:
    """Return multiples of `unit` from -8 to 7 units, in an order without a pattern."""
    n = np.arange(1, math.prod(shape) + 1, dtype=np.uint64)
    mixed = (n * np.uint64(2654435761 * seed) % np.uint64(2**32)) >> np.uint64(12)
    return ((mixed * mixed >> np.uint64(7)) % np.uint64(16)).reshape(shape).astype(
        float
    ) * unit - 8 * unit


def singles(*shape: int, seed: int = 1, unit: float = 0.125) -> NDArray[np.float32]:
    """The same in float32, as weights are."""
    return steps(*shape, seed=seed, unit=unit).astype(np.float32)


def dense(
    inputs: int = 4,
    outputs: int = 1,
    likelihood: str = "gaussian",
    hidden: tuple[int, ...] = HIDDEN,
) -> Made:
    """A fully connected network with a calibration and an epistemic part, and rows that it kept."""
    classes = likelihood == "categorical"
    header = _header(inputs, (inputs,), outputs, likelihood)
    header["architecture"] |= {"class": "Dense", "arguments": {"hidden": list(hidden)}}
    tensors = _common((inputs,), outputs, classes)
    columns = outputs if classes else 2 * outputs
    widths = (inputs, *hidden, columns)
    for k in range(len(widths) - 1):
        at = f"network.0.body.{2 * k}"
        tensors[f"{at}.weight"] = singles(widths[k + 1], widths[k], seed=k + 1)
        tensors[f"{at}.bias"] = singles(widths[k + 1], seed=k + 11)
    if likelihood == "student":
        tensors["network.0.head.raw_df"] = singles(outputs, seed=5)
    size = 1 + inputs + widths[-2]  # the last layer reads so many numbers beside the inputs
    return header, tensors | _laplace(header, size, outputs)


def periodic() -> Made:
    """A network with periodic embeddings of its inputs."""
    header, tensors = dense(hidden=(8,))
    header["architecture"] |= {
        "class": "Periodic",
        "arguments": {"hidden": [8], "frequencies": 4, "width": 2, "std": 0.25},
    }
    for name in [name for name in tensors if name.startswith(("network.", "epistemic."))]:
        del tensors[name]
    body = "network.0.body"
    tensors |= {
        f"{body}.0.frequency": singles(4, 4, seed=21),
        f"{body}.0.weight": singles(4, 2, 8, seed=22),
        f"{body}.0.bias": singles(4, 2, seed=23),
        f"{body}.1.weight": singles(8, 12, seed=24),
        f"{body}.1.bias": singles(8, seed=25),
        f"{body}.3.weight": singles(2, 8, seed=26),
        f"{body}.3.bias": singles(2, seed=27),
    }
    del header["epistemic"]
    return header, tensors


def guarded(made: Made) -> Made:
    """A model that knows the ranges of its inputs."""
    header, tensors = made
    classes, inputs = "classes" in header["target"], header["features"]
    outputs = header["architecture"]["outputs"]
    shift, scale = tensors["input.shift"][:inputs], tensors["input.scale"][:inputs]
    tensors |= {
        "guard.low": shift - 3 * scale,
        "guard.high": shift + 3 * scale,
        "guard.missing": np.zeros(inputs),
        "guard.fallback": _frequencies(outputs) if classes else np.full(outputs, 32.0),
    }
    return header, tensors


def named(made: Made) -> Made:
    """A model with names and units of its inputs and targets."""
    header, tensors = made
    header["feature_names"] = ["speed", "load", "temperature", "angle"]
    header["feature_units"] = ["m/s", "kN", "°C", ""]
    header["target_names"] = ["wear"]
    header["target_units"] = ["µm"]
    return header, tensors


def with_means(made: Made) -> Made:
    """A model that takes the mean of an input where a row lacks its value."""
    header, tensors = made
    header["missing"] = "mean"
    tensors["guard.missing"] = np.ones(header["features"])
    tensors["rows.X"][::5, 1] = np.nan
    return header, tensors


def holed() -> Made:
    """A table with a column that is flagged where it lacks values, and two categories."""
    header, tensors = dense(inputs=5, likelihood="student")
    header["feature_names"] = ["speed", "load", "site", "angle", "tool"]
    header["missing"] = "indicator"
    header["encoding"] = {
        "flagged": [1],
        "categories": [
            {"column": 2, "levels": ["north", "south"]},
            {"column": 4, "levels": ["drill", "mill", "saw"]},
        ],
    }
    width = 3 + 1 + 2 + 2  # numbers, flags, vectors
    tensors |= {
        "input.shift": steps(width, seed=31, unit=0.25),
        "input.scale": 2.0 ** (np.arange(width) % 3),
        "encoding.0": np.array([[1.0, 0], [0, 1], [0, 0], [0, 0]]),
        "encoding.1": steps(5, 2, seed=32),
        "network.0.body.0.weight": singles(HIDDEN[0], width, seed=33),
    }
    header, tensors = guarded((header, tensors))
    tensors |= _laplace(header, 1 + width + HIDDEN[-1], 1)
    tensors["guard.levels"] = np.array([0.0, 0, 2, 0, 3])
    tensors["guard.missing"] = np.array([0.0, 1, 1, 0, 0])
    tensors["guard.low"][[2, 4]], tensors["guard.high"][[2, 4]] = 0.0, (1.0, 2.0)
    rows = tensors["rows.X"]
    rows[:, 2], rows[:, 4] = np.arange(ROWS) % 2, np.arange(ROWS) % 3
    rows[::5, 1] = np.nan
    return header, tensors


def calibrated(made: Made, kind: str | None) -> Made:
    """A model with another calibration than the usual scale or temperature."""
    header, tensors = made
    header["calibration"] = kind
    if kind is None:
        del tensors["calibration.factor"]
    if kind == "isotonic":
        stated = np.arange(9) / 8
        tensors |= {"calibration.stated": stated, "calibration.actual": stated**2}
    return header, tensors


def conformal(made: Made) -> Made:
    """A model with rows set aside for conformal prediction."""
    header, tensors = made
    classes, outputs = "classes" in header["target"], header["architecture"]["outputs"]
    scores = np.abs(steps(40, 1 if classes else outputs, seed=41, unit=0.0625))
    tensors |= {"conformal.scores": scores, "conformal.group": np.zeros(40, np.int64)}
    header["conformal_groups"] = ["all"]
    return header, tensors


def novel(made: Made) -> Made:
    """A model with a density of its inputs, and a compact one that exports carry as it is."""
    header, tensors = made
    shape = header["input_shape"]
    columns, components, gaussians = shape[0] if len(shape) == 1 else 5 * shape[-1], 2, 2
    rank = np.linspace(-2.2, 2.3, 13)
    tensors |= {
        "novelty.mean": np.float32(0.1) * singles(columns, seed=51),
        "novelty.std": np.float32(1.1) + np.float32(0.3) * singles(columns, seed=52),
        "novelty.knots": np.sort(rank[:, None] + 0.01 * steps(13, columns, seed=53), 0).astype(
            "f4"
        ),
        "novelty.centre": np.zeros(columns, np.float32),
        "novelty.axes": np.float32(0.7) * singles(columns, components, seed=54),
        "novelty.shares": np.array([0.6, 0.4], np.float32),
        "novelty.means": np.float32(0.9) * singles(gaussians, components, seed=55),
        "novelty.factors": np.array([[[1.1, 0.2], [0, 0.9]], [[0.8, -0.3], [0, 1.2]]], np.float32),
        "novelty.held_out": np.linspace(1.03, 7.21, 40),
    }
    scores = np.array([-2.0, -1.5, -0.75, 0.0, 0.75, 1.5, 2.0])
    lines = np.array([0.125, 0.5, 0.25, 0.375]) + 0.25 * steps(columns, 4, seed=51, unit=0.03125)
    bytes_of = lambda *shape, seed: steps(*shape, seed=seed, unit=8).astype(np.int8)  # noqa: E731
    tables = {
        "centre": np.zeros(shape[-1]),
        "lines": lines,
        "knots": scores + steps(columns, 1, seed=53, unit=0.03125),
        "axis_steps": np.full(components, 0.015625),
        "factor_steps": np.full((gaussians, components), 0.0078125),
        "means": singles(gaussians, components, seed=55),
        "constants": np.array([-1.5, -2.25]),
        "threshold": np.array([24.0]),
        "width": np.array([4.0]),
    }
    tensors |= {f"unlike.{name}": table.astype(np.float32) for name, table in tables.items()}
    tensors |= {
        "unlike.scores": np.sort(bytes_of(columns, 7, seed=52), 1),
        "unlike.axes": bytes_of(columns, components, seed=54),
        "unlike.factors": np.array([[[96, 16], [0, 112]], [[64, -24], [0, 80]]], np.int8),
    }
    return header, tensors


def adapted(made: Made) -> Made:
    """A model that learned its last layer anew from a few labels of one machine."""
    header, tensors = made
    classes, outputs = "classes" in header["target"], header["architecture"]["outputs"]
    size = 1 + HIDDEN[-1]
    header["adaptation"] = {"rows": 32.0, "groups": 8}
    header["adapted"] = {"labels": 5, "source": "0" * 64}
    covariance = np.eye(size) * 2.0
    tensors["adapted.weights"] = steps(size, outputs, seed=61, unit=0.0625)
    tensors["adapted.covariance"] = covariance if classes else covariance[None]
    if not classes:
        tensors |= {
            "adaptation.between": np.array([1.0]),
            "adaptation.within": np.array([1.0]),
            "adaptation.directions": np.array([[1.0]]),
            "adaptation.shares": np.array([[1.0]]),
            "adapted.start": 4 * covariance[None],
        }
    return header, tensors


def windows(outputs: int = 3) -> Made:
    """A DeepSense network for windows of two sensors that were cut from a log."""
    classes = outputs > 1
    names = ["ax", "ay", "az", "gx", "gy"]
    header = _header(5, (20, 5), outputs, "categorical" if classes else "gaussian")
    filters, hidden = 4, 6
    header["architecture"] |= {
        "class": "DeepSense",
        "arguments": {
            "sensors": [3, 2],
            "interval": 5,
            "filters": filters,
            "depth": 1,
            "hidden": hidden,
            "layers": 1,
            "pool": "mean",
            "rotation_std": 0.0,
        },
    }
    header["feature_names"] = names
    header["windows"] = {
        "time": "t",
        "time_unit": None,
        "sensors": {"accelerometer": names[:3], "gyroscope": names[3:]},
        "window": 2.0,
        "hop": 0.5,
        "rate": 10.0,
        "gap": 0.5,
        "by": ["user"],
        "label": ["activity"],
        "target": "majority" if classes else "mean",
        "purity": 0.5,
    }
    tensors = _common((20, 5), outputs, classes)
    body, columns = "network.0.body", outputs if classes else 2 * outputs
    spectrum = 3  # frequencies of an interval
    tensors |= {
        f"{body}.single.0.0.weight": singles(filters, 3, 1, 3, seed=71),
        f"{body}.single.1.0.weight": singles(filters, 2, 1, 3, seed=72),
        f"{body}.merged.0.weight": singles(filters, 2 * filters, 1, 3, seed=73),
        f"{body}.recurrent.weight_ih_l0": singles(3 * hidden, spectrum * filters, seed=74),
        f"{body}.recurrent.weight_hh_l0": singles(3 * hidden, hidden, seed=75),
        f"{body}.recurrent.bias_ih_l0": singles(3 * hidden, seed=76),
        f"{body}.recurrent.bias_hh_l0": singles(3 * hidden, seed=77),
        f"{body}.output.weight": singles(columns, hidden, seed=78),
        f"{body}.output.bias": singles(columns, seed=79),
    }
    for name, width in (
        ("scale", 5 * spectrum),
        ("single.0.1", filters),
        ("single.1.1", filters),
        ("merged.1", filters),
    ):
        tensors |= {
            f"{body}.{name}.weight": 1 + singles(width, seed=81, unit=0.0625),
            f"{body}.{name}.bias": singles(width, seed=82),
            f"{body}.{name}.running_mean": singles(width, seed=83),
            f"{body}.{name}.running_var": np.ones(width, np.float32),
            f"{body}.{name}.num_batches_tracked": np.array(9),
        }
    return header, tensors | _laplace(header, 1 + 20 * 5 + hidden, outputs)


def own(kind: type[nn.Module]) -> Made:
    """A network of somebody's own, which reads windows (16, 3)."""
    header = _header(3, (16, 3), 1, "gaussian")
    header["architecture"] |= {"class": kind.__name__, "arguments": None}
    tensors = _common((16, 3), 1, False)
    shapes = {name: tuple(value.shape) for name, value in kind(2).state_dict().items()}
    for number, (name, shape) in enumerate(shapes.items()):
        tensors[f"network.0.body.{name}"] = singles(*shape, seed=91 + number)
    return header, tensors


OWN = {"recurrent": Recurrent, "layers": Layers}
MODELS: dict[str, Callable[[], Made]] = {
    "regressor": lambda: named(guarded(dense())),
    "uncalibrated": lambda: calibrated(dense(hidden=()), None),
    "student-isotonic-of-two": lambda: calibrated(
        dense(outputs=2, likelihood="student"), "isotonic"
    ),
    "gaussian-of-three": lambda: calibrated(dense(outputs=3), "isotonic"),
    "wide": lambda: dense(hidden=(72, 65)),  # tables of whole cache lines
    "two-classes-uncalibrated": lambda: calibrated(
        dense(outputs=2, likelihood="categorical", hidden=(16,)), None
    ),
    "student": lambda: guarded(dense(likelihood="student")),
    "conformal": lambda: conformal(guarded(dense())),
    "classifier": lambda: guarded(dense(outputs=3, likelihood="categorical")),
    "categories-and-holes": holed,
    "periodic": periodic,
    "novelty": lambda: novel(guarded(dense())),
    "holes-as-means": lambda: novel(with_means(guarded(dense()))),
    "adapted": lambda: adapted(guarded(dense())),
    "adapted-classifier": lambda: adapted(guarded(dense(outputs=3, likelihood="categorical"))),
    "windows": lambda: guarded(windows()),
    "windows-of-numbers": lambda: guarded(windows(outputs=1)),
    "windows-novelty": lambda: novel(guarded(windows())),
    **{name: partial(own, kind) for name, kind in OWN.items()},
}


def model(name: str, folder: Path) -> Any:
    """Write a model file and load it."""
    path = folder / f"{name}.safetensors"
    header, tensors = MODELS[name]()
    model_file.write(path, header, tensors)
    return rds.load(path, network=OWN[name]() if name in OWN else None)


def _header(features: int, shape: tuple[int, ...], outputs: int, likelihood: str) -> Header:
    classes = likelihood == "categorical"
    return {
        "kind": "model",
        "estimator": "RDeepSenseClassifier" if classes else "RDeepSenseRegressor",
        "params": {"hidden": list(HIDDEN), "drop_prob": 0.0, "alpha": 0.5, "random_state": 0},
        "features": features,
        "input_shape": list(shape),
        "feature_names": None,
        "missing": "refuse",
        "target": {"dtype": "<U4", "classes": CLASSES[:outputs]}
        if classes
        else {"shape": [outputs] if outputs > 1 else []},
        "calibration": "temperature" if classes else "scale",
        "training": {
            "seed": 0,
            "rows": 96,
            "validation_rows": ROWS,
            "validated": "validation rows",
        },
        "selection": None,
        "validation_scores": {},
        "architecture": {
            "outputs": outputs,
            "members": 1,
            "likelihood": likelihood,
            "alpha": 0.5,
            "drop_prob": 0.125,
            "input_drop_prob": 0.0,
        },
    }


def _common(shape: tuple[int, ...], outputs: int, classes: bool) -> Tensors:
    channels = shape[-1]
    shift, scale = steps(channels, seed=3, unit=2.0), 2.0 ** (np.arange(channels) % 4 - 1)
    tensors: Tensors = {
        "input.shift": shift,
        "input.scale": scale,
        "rows.X": shift + scale * steps(ROWS, *shape, seed=7, unit=0.25),
        "calibration.factor": np.array(1.25),
    }
    if classes:
        return tensors | {"rows.y": np.arange(ROWS) * 7 % outputs}
    y = 40 + steps(ROWS, outputs, seed=9, unit=4.0)
    return tensors | {
        "target.shift": 40 + np.arange(outputs, dtype=float),
        "target.scale": 2.0 ** (4 - np.arange(outputs)),
        "rows.y": y if outputs > 1 else y[:, 0],
    }


def _laplace(header: Header, size: int, outputs: int) -> Tensors:
    kind = header["calibration"]
    header["epistemic"] = {"prior": 8.0, "calibrations": {"laplace": kind}}
    root = np.triu(singles(size, size, seed=17, unit=0.03125)) + np.eye(size, dtype=np.float32)
    return {
        "epistemic.root": root.T.copy(),
        "epistemic.ratio": np.full(outputs, 0.5),
        "epistemic.noise_share": np.full(outputs, 0.75),
        "epistemic.laplace.factor": np.array(1.125),
    }


def _frequencies(outputs: int) -> NDArray[np.float64]:
    return np.array([0.5, *[0.5 / (outputs - 1)] * (outputs - 1)])
