"""Loading whatever estimator a model file holds."""

from __future__ import annotations

import os

from torch import nn

from rdeepsense import model_file
from rdeepsense.errors import ModelFileError
from rdeepsense.estimators.gp import GPClassifier, GPRegressor
from rdeepsense.estimators.mcdrop import MCDropClassifier, MCDropRegressor
from rdeepsense.estimators.rdeepsense import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.estimators.ssp import SSPClassifier, SSPRegressor

Estimator = (
    RDeepSenseRegressor
    | RDeepSenseClassifier
    | MCDropRegressor
    | MCDropClassifier
    | SSPRegressor
    | SSPClassifier
    | GPRegressor
    | GPClassifier
)
ESTIMATORS: dict[str, type[Estimator]] = {
    kind.__name__: kind
    for kind in (
        RDeepSenseRegressor,
        RDeepSenseClassifier,
        MCDropRegressor,
        MCDropClassifier,
        SSPRegressor,
        SSPClassifier,
        GPRegressor,
        GPClassifier,
    )
}


def load(path: str | os.PathLike[str], network: nn.Module | None = None) -> Estimator:
    """Load the estimator in a model file, verified; nothing from the file is executed.

    A model trained on a network of your own, not one of `rdeepsense.networks`, needs a new
    instance of it as `network`.
    """
    header, tensors = model_file.read(path)
    if header.get("kind") != "model":
        raise ModelFileError(f"{path}: is a {header.get('kind')}, not a model")
    if header["estimator"] not in ESTIMATORS:
        raise ModelFileError(f"{path}: holds a {header['estimator']!r}, which is unknown here")
    estimator = ESTIMATORS[header["estimator"]]()
    try:
        estimator.restore(header, tensors, network)
    except (KeyError, TypeError) as error:
        raise ModelFileError(f"{path}: lacks or garbles the entry {error}") from error
    return estimator
