"""`rdeepsense.deploy.load`: a folded file as a model that predicts with numpy alone."""

from __future__ import annotations

import os
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from rdeepsense.arrays import Booleans
from rdeepsense.deploy.folded.file import check_folded, load_folded
from rdeepsense.deploy.folded.model import Facts, Folded, MeanStd, Probabilities, Runner, Values
from rdeepsense.errors import InputError
from rdeepsense.status import Statuses

# --------------------------------------------------------------------------------------------------
# The public interface of a deployed model
# --------------------------------------------------------------------------------------------------

Pair = tuple[Values, Values]


class DeployedModel:
    """Predictions of a model without the library that trained it; see `rdeepsense.deploy.load`."""

    def __init__(self, runner: Runner) -> None:
        if isinstance(runner, Folded):
            check_folded(runner)  # numpy would repeat a spread that is too short
        self.runner = runner

    @property
    def facts(self) -> Facts:
        """Names, units, classes, stored intervals and where the model came from."""
        return self.runner.facts

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False) -> Values: ...
    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> Pair: ...
    @overload
    def predict(self, X: ArrayLike, return_std: bool) -> Values | Pair: ...
    def predict(self, X: ArrayLike, return_std: bool = False) -> Values | Pair:
        """Predict the mean, with `return_std` also the standard deviation; of classes, a label."""
        if self.facts.classes is not None:
            if return_std:
                raise InputError("a classifier has probabilities, no std; use predict_proba(X)")
            labels: Values = self.facts.classes[np.argmax(self.predict_proba(X), axis=1)]
            return labels
        found = self._moments(X)
        mean, std = self._shaped(found.mean), self._shaped(found.std)
        return (mean, std) if return_std else mean

    def predict_proba(self, X: ArrayLike) -> Values:
        """Predict the probability of each class, in the order of `facts.classes`."""
        found = self.runner.run(self.facts.check(X))
        if not isinstance(found, Probabilities):
            raise InputError("a regression has no classes; use predict(X, return_std=True)")
        return found.probs

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9, method: str = "auto") -> Pair:
        """Predict the interval that should hold the truth with probability `coverage`.

        `coverage` is one of those stored in `facts.intervals`. The method "predicted" takes the
        interval of the distribution, "conformal" that of the rows set aside; "auto" is the latter
        where the model has it.
        """
        low, high = self._factors(coverage, method)
        found = self._moments(X)
        ends = (found.mean + low * found.std, found.mean + high * found.std)
        return self._shaped(ends[0]), self._shaped(ends[1])

    def status(self, X: ArrayLike) -> Statuses:
        """Tell what is the matter with each row, as numbers of `rdeepsense.Status`; 0 is nothing.

        The network reads the end of the range in place of an input beyond it. The std of such a row
        is at least that of the training targets, and its probabilities are half the training
        frequencies. Rows that `predict` refuses have a status. UNSURE and UNLIKE are of models that
        were exported with `reject` and `novelty`. UNSURE changes no prediction; the std of a row
        that is UNLIKE grows with its distance, from its own to that of the training targets.
        """
        rows = self.facts.floats(X)
        found = self.runner.run(rows).status
        return np.zeros(len(rows), np.uint8) if found is None else found

    def surprise(self, X: ArrayLike) -> Values:
        """Tell how unlike the training rows each row is, by its inputs; see `compact_novelty`."""
        novelty = self.facts.novelty
        if novelty is None:
            raise InputError(
                "the model was exported without a novelty; rdeepsense.export(model, path, "
                "novelty=True) takes one along"
            )
        return novelty.surprise(self.facts.numbers(self.facts.floats(X)))

    def flagged_inputs(self, X: ArrayLike) -> Booleans:
        """Tell which inputs of each row, (rows, inputs), its status is for."""
        rows, guard = self.facts.floats(X), self.facts.guard
        return (
            np.zeros((len(rows), rows.shape[-1]), np.bool_) if guard is None else guard.beyond(rows)
        )

    def epistemic_std(self, X: ArrayLike) -> Values:
        """Predict the part of the std that is doubt about the mean; for classes, of each logit."""
        found = self.runner.run(self.facts.check(X)).epistemic
        if found is None:
            raise InputError(
                "the model was exported without its epistemic part; rdeepsense.export(model, path, "
                "epistemic='laplace') keeps it"
            )
        return self._shaped(found)

    def _moments(self, X: ArrayLike) -> MeanStd:
        found = self.runner.run(self.facts.check(X))
        assert isinstance(found, MeanStd)
        return found

    def _factors(self, coverage: float, method: str) -> Pair:
        intervals = self.facts.intervals
        if intervals is None:
            raise InputError("a classifier has no intervals; use predict_proba(X)")
        at = intervals.row(coverage)
        if method == "predicted" or (method == "auto" and intervals.conformal is None):
            return intervals.low[at], intervals.high[at]
        if method not in ("auto", "conformal"):
            raise InputError(
                f"method = {method!r} is unknown; accepted: auto, predicted, conformal"
            )
        if intervals.conformal is None:
            raise InputError("the model was folded without conformal thresholds")
        return -intervals.conformal[at], intervals.conformal[at]

    def _shaped(self, values: Values) -> Values:
        return values[:, 0] if self.facts.one_output else values


# --------------------------------------------------------------------------------------------------
# `rdeepsense.deploy.load`: a folded file as a deployed model
# --------------------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str], compile: bool = False) -> DeployedModel:
    """Load a folded model from its file, verified.

    With `compile` the generated C is built once by the system's compiler (`cc`, or what the
    environment's CC names), kept in the user's cache folder, and called instead of numpy.
    """
    folded = load_folded(path)
    if not compile:
        return DeployedModel(folded)
    # Only here: the generator of C would slow down every other start.
    from rdeepsense.deploy.c.build import compiled

    return DeployedModel(compiled(folded))
