"""Exports that learn on, and their C called through ctypes."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from deploy.c_models import COMPILERS, library, write
from numpy.typing import NDArray

import rdeepsense as rds
from rdeepsense.adaptation.rates import STRETCHES, Rates
from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.c.export import fold_live
from rdeepsense.deploy.c.inputs import CLive
from rdeepsense.deploy.fold import fold_fitted, with_adaptation_folded
from rdeepsense.deploy.quantise import prepare
from rdeepsense.deploy.status import UNWATCHED, StatusRules

SETTINGS: dict[str, Any] = {
    "effort": "quick",
    "epochs": 12,
    "random_state": 0,
    "device": "cpu",
    "verbose": False,
    "calibrate": "scale",
}


def rows(count: int, seed: int, outputs: int = 1, drift: float = 0.0) -> tuple[Any, Any]:
    """Rows in float32, and targets of quite different units, of which the truth drifts away."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3)).astype(np.float32)
    y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.standard_t(4, size=count)
    y += drift * np.arange(count) / count
    y = y if outputs == 1 else np.c_[y, 100 * y + X[:, 2]]
    return X, y.astype(np.float32)


def fitted(likelihood: str, outputs: int, hidden: tuple[int, ...] = (16, 16)) -> Any:
    """A small regressor."""
    model = rds.RDeepSenseRegressor(likelihood=likelihood, hidden=hidden, **SETTINGS)
    return model.fit(*rows(400, 0, outputs))


def exported(
    model: Any,
    dtype: str,
    coverage: float = 0.9,
    rates: Rates | None = None,
    watch: StatusRules = UNWATCHED,
) -> Source:
    """The C of a model that learns on."""
    plain = with_adaptation_folded(model.fitted_)
    folded, X = fold_fitted(plain), rows(200, 5)[0]
    folded = replace(folded, facts=watch.on(folded.facts))
    network = prepare(folded, dtype, X)
    live = fold_live(plain, network, coverage, rates or Rates())
    return Source(folded, network, live=live)


@dataclass
class InC:
    """A state and the functions on it."""

    source: Source
    library: ctypes.CDLL

    @classmethod
    def built(cls, source: Source, folder: Path, *flags: str) -> InC:
        found = cls(source, library(write(source, folder), COMPILERS[0], "-O2", *flags))
        found.begin()
        return found

    @property
    def live(self) -> CLive:
        assert self.source.model.live is not None
        return self.source.model.live

    def begin(self) -> None:
        outputs = self.source.model.outputs
        self.state = np.full(self.live.state_bytes(outputs) // 4, -7, np.float32)
        self.scratch = np.zeros(self.source.scratch_bytes() // 4 + 1, np.float32)
        self.library.model_begin(_pointer(self.state))

    def predict(self, x: Any) -> tuple[int, NDArray[np.float32], NDArray[np.float32]]:
        """Status; mean, std, low and high (4, outputs); the row that waits."""
        row = np.full(self.live.row_bytes(self.source.model.outputs) // 4, -7, np.float32)
        out = np.full((4, self.source.model.outputs), -7, np.float32)
        x = np.ascontiguousarray(x, np.float32)
        parts = (_pointer(part) for part in out)
        status = self.library.model_live(
            _pointer(self.state), _pointer(x), _pointer(row), *parts, _pointer(self.scratch)
        )
        return status, out, row

    def observe(self, row: NDArray[np.float32], y: Any) -> int:
        label = np.ascontiguousarray(np.atleast_1d(y), np.float32)
        return int(self.library.model_observe(_pointer(self.state), _pointer(row), _pointer(label)))

    def covariances(self) -> NDArray[np.float64]:
        """The filters' covariances, (filters, directions, directions)."""
        n, f = self.live.directions, self.live.filters
        packed = self.state[: f * n * (n + 1) // 2].reshape(f, -1)
        found = np.zeros((f, n, n))
        upper = np.triu_indices(n)
        for matrix, values in zip(found, packed, strict=True):
            matrix[upper] = values
            matrix.T[upper] = values
        return found

    def trust(self) -> NDArray[np.float32]:
        """The weights of the experts."""
        n, f, outputs = self.live.directions, self.live.filters, self.source.model.outputs
        start = f * (n * (n + 1) // 2 + outputs * n)
        return self.state[start : start + (f + 1) * len(STRETCHES)]

    def counts(self) -> list[int]:
        """Rows and labels."""
        return [int(count) for count in self.state[-5:-3].view(np.uint32)]


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
