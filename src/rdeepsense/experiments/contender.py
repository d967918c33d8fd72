"""Whatever takes part in a comparison: an estimator, a peer, an object of the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import ArrayLike

from rdeepsense.experiments.build import build
from rdeepsense.experiments.methods import Method
from rdeepsense.experiments.peers.boosted import BoostedPeer
from rdeepsense.experiments.peers.catboost import CatBoost
from rdeepsense.experiments.peers.ngboost import NGBoost
from rdeepsense.experiments.peers.own_model import OwnModel, Prediction

PEERS: dict[str, type[BoostedPeer]] = {"CatBoost": CatBoost, "NGBoost": NGBoost}


class Contender(Protocol):
    """A model to fit and to score."""

    def fit(self, X: ArrayLike, y: ArrayLike, *, groups: ArrayLike | None = None) -> object:
        """Learn from these rows."""

    def predict_dist(self, X: ArrayLike, samples: int | None = None) -> Prediction:
        """Return what is predicted for each row."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments that the figures follow from."""


def contender(
    methods: Sequence[Method],
    task: str,
    hidden: Sequence[int] | str,
    random_state: int,
    epochs: int | None = None,
) -> Contender:
    """Return the unfitted model that serves all these methods of one family."""
    first = methods[0]
    if first.model is not None:
        return OwnModel(first.model, task, first.name)
    if first.family in PEERS:
        return PEERS[first.family](task, random_state)
    return build(methods, task, hidden, random_state, epochs)
