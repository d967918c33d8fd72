"""Loading whatever estimator a model file holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from rdeepsense.errors import ModelFileError, RDeepSenseError
from rdeepsense.estimators.gp import GPClassifier, GPRegressor
from rdeepsense.estimators.mcdrop import MCDropClassifier, MCDropRegressor
from rdeepsense.estimators.rdeepsense import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.estimators.ssp import SSPClassifier, SSPRegressor
from rdeepsense.fitting.description import check_header
from rdeepsense.fitting.store import check_network
from rdeepsense.modelfile import tensors as model_file

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
    kind, name = header.get("kind"), header.get("estimator")
    if kind != "model":
        raise ModelFileError(f"{path}: is a {kind!s:.40}, not a model")
    if type(name) is not str or name not in ESTIMATORS:
        raise ModelFileError(f"{path}: holds a {name!r:.60}, which is unknown here")
    estimator = ESTIMATORS[name]()
    with _as_file_errors(path):
        check_header(header)
    check_network(header, network)
    with _as_file_errors(path):
        estimator.restore(header, tensors, network)
    return estimator


@contextmanager
def _as_file_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in what is wrong with it."""
    try:
        yield
    except RDeepSenseError as error:
        raise ModelFileError(f"{path}: {error}") from error
