"""The state of a live model: settings, current weights, and its file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from rdeepsense.adaptation.choose import basis, of_last_layer
from rdeepsense.adaptation.last_layer import Correction
from rdeepsense.adaptation.rates import (
    ABOVE_0,
    BELOW_1,
    FARTHEST,
    Alarm,
    Filters,
    Multiplicative,
    Outlook,
    Rates,
    is_real,
)
from rdeepsense.arrays import Booleans, Floats, Integers, Singles
from rdeepsense.data.checks import check_choice
from rdeepsense.distributions import AnyDistribution
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.errors import InputError, ModelFileError, share
from rdeepsense.fitting.fitted import CPU, Fitted
from rdeepsense.fitting.passes import hidden_size, prepared
from rdeepsense.live.targets import Pending
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.modelfile.schema import TEXT, check_fields, number, whole
from rdeepsense.modelfile.tensors import Header, Tensors
from rdeepsense.uncertainty.laplace import features

# --------------------------------------------------------------------------------------------------
# The arguments of `model.live`, checked
# --------------------------------------------------------------------------------------------------

LABELS = ("some", "all", "none")
FALSE_ALARMS = 0.01
MOST_PENDING = 1 << 16


@dataclass(frozen=True)
class Settings:
    """How a model is live: what it promises, what it learns by, what it watches."""

    coverage: float
    rates: Rates
    labels: str
    alarm: float  # the rate of false alarms; 0 watches nothing
    pending: int

    def __post_init__(self) -> None:
        check_choice("labels", self.labels, LABELS)
        kinds: list[tuple[str, type[float | int], float, float, str]] = [
            ("coverage", float, ABOVE_0, BELOW_1, "between 0 and 1"),
            ("alarm", float, 0, BELOW_1, "True, False, or a rate between 0 and 1"),
            ("pending", int, 1, MOST_PENDING, f"1 to {MOST_PENDING}"),
        ]
        for name, kind, least, most, accepted in kinds:
            value = getattr(self, name)
            if not is_real(value) or not least <= value <= most or kind(value) != value:
                meant = share(value) if most == BELOW_1 else ""
                raise InputError(f"{name} = {value!r:.60}; accepted: {accepted}{meant}")
            object.__setattr__(self, name, kind(value))

    @classmethod
    def of(
        cls,
        coverage: float,
        forget: float | Sequence[float] | None,
        labels: str,
        alarm: bool | float,
        pending: int,
        rates: Rates,
    ) -> Settings:
        """Take arguments as they are given; `forget` is what a label takes of earlier ones."""
        if not isinstance(rates, Rates):
            raise InputError(f"rates = {rates!r:.60}; accepted: None, adaptation.rates.Rates(...)")
        if forget is not None:
            given = tuple(forget) if isinstance(forget, Iterable) else (forget,)
            if not given or not all(is_real(share) and 0 < share < 1 for share in given):
                raise InputError(
                    f"forget = {forget!r:.60}; accepted: None, a share above 0 and below 1, or "
                    "several"
                )
            rates = replace(rates, keep=tuple(1 - float(share) for share in given))
        rate = (FALSE_ALARMS if alarm else 0.0) if isinstance(alarm, bool) else alarm
        return cls(coverage, rates, labels, rate, pending)


# --------------------------------------------------------------------------------------------------
# The network pass: distribution and last-layer inputs of a row
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowPass:
    """A network that is ready to run, and B with psi = B^T phi."""

    fitted: Fitted
    network: StochasticNetwork
    dtype: torch.dtype
    turned: Floats  # (hidden + 1, directions)

    @classmethod
    def of(cls, fitted: Fitted, rates: Rates) -> Self:
        """Prepare a fitted model; refuse one that has no single pass or no Laplace part."""
        if not fitted.takes_one_pass or fitted.epistemic is None:
            raise InputError(
                f"a {fitted.method} cannot be live: it needs one pass and a last layer whose "
                "information was kept; accepted: RDeepSenseRegressor, RDeepSenseClassifier"
            )
        network, dtype = prepared(fitted.network, CPU)
        information = of_last_layer(fitted.epistemic.laplace.root, hidden_size(network))
        turned = basis(information, fitted.training.rows, rates.rows, rates.between)
        return cls(fitted, network, dtype, turned)

    def __call__(self, X: NDArray[Any]) -> tuple[AnyDistribution, Floats]:
        """Return the calibrated distribution of checked rows, and psi (rows, directions)."""
        x = self.fitted.reader.transform(X, self.dtype)
        with torch.no_grad(), self.network.drawing(0, CPU):
            params, seen = features(self.network, x)
        numbers = seen.numpy()
        hidden = len(self.turned) - 1
        phi: Floats = np.concatenate([numbers[:, :hidden], numbers[:, -1:]], 1)
        dist: AnyDistribution = params.numpy()
        return self.fitted.finished(dist, X), phi @ self.turned

    def digest(self) -> str:
        """Return SHA-256 of the trained numbers: states belong to one model."""
        found = hashlib.sha256(self.fitted.digest().encode())
        if self.fitted.correction is not None:
            for array in self.fitted.correction.arrays().values():
                found.update(np.ascontiguousarray(array, "<f8").tobytes())
        return found.hexdigest()


# --------------------------------------------------------------------------------------------------
# The learned state of a live model, and its update by one row
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """Filters, trackers, running tests by name ("inputs", "labels"), and counts."""

    filters: Filters
    trackers: tuple[Multiplicative, ...]
    alarms: dict[str, Alarm]
    rows: int = 0
    labels: int = 0
    set_aside: int = 0

    @property
    def q(self) -> Floats:
        """The factors of the intervals."""
        return np.array([tracker.q for tracker in self.trackers])

    def rings(self, rate: float) -> bool:
        """Tell whether any test has found drift; together they do so without cause at `rate`."""
        return any(test.rings(rate / len(self.alarms)) for test in self.alarms.values())

    def seen(self, score: float | None) -> Self:
        """Count a row, and take in its novelty."""
        return replace(self, alarms=self._scored("inputs", score), rows=self.rows + 1)

    def learnt(self, filters: Filters, missed: Booleans, score: float | None) -> Self:
        """Take in what a label taught, which intervals missed it, and how far out it lay."""
        trackers = tuple(
            tracker.after(bool(miss)) for tracker, miss in zip(self.trackers, missed, strict=True)
        )
        alarms = self._scored("labels", score)
        return replace(
            self, filters=filters, trackers=trackers, alarms=alarms, labels=self.labels + 1
        )

    def without(self, score: float | None) -> Self:
        """Count a label that is set aside; how far out it lay is known all the same."""
        return replace(self, alarms=self._scored("labels", score), set_aside=self.set_aside + 1)

    def _scored(self, name: str, score: float | None) -> dict[str, Alarm]:
        if score is None or name not in self.alarms:
            return self.alarms
        return {**self.alarms, name: self.alarms[name].after(score)}


# --------------------------------------------------------------------------------------------------
# The file of the state: written atomically, verified when read
#
# Covariances are packed as their upper triangles in single precision, which is all that the running
# state holds: 8.6 kB for 64 features and the 1. Rows that wait for labels are kept with what was
# said of them; their distributions are predicted again.
# --------------------------------------------------------------------------------------------------

KIND = "live"
MOST_ROWS = 1 << 53
FIELDS = {
    "coverage": number(0, 1),
    "alarm": number(0, 1),
    "pending": whole(1, MOST_PENDING),
    "labels": TEXT,
}
ABOVE = 1e-3  # what rounding may add to a covariance of at most 1


def write(
    path: str | os.PathLike[str],
    state: State,
    pending: Mapping[int, Pending],
    settings: Settings,
    digest: str,
) -> None:
    """Write a state and the rows that wait."""
    filters = state.filters
    header: Header = {
        "kind": KIND,
        "model": digest,
        "settings": model_file.to_plain(asdict(settings)),
        "rows": state.rows,
        "labels": state.labels,
        "set_aside": state.set_aside,
        "alarms": {
            name: {"seen": test.seen, "capital": test.log_capital, "highest": test.highest}
            for name, test in state.alarms.items()
        },
    }
    tensors: Tensors = {
        "covariance": np.stack([packed(own.covariance) for own in filters.corrections]),
        "correction": np.stack([own.weights for own in filters.corrections]).astype(np.float32),
        "experts": filters.weights,
        "log_q": np.array([tracker.log_q for tracker in state.trackers]),
    }
    for name, test in state.alarms.items():
        arrays = {"edges": test.edges, "counts": test.counts, "weights": test.weights}
        tensors |= model_file.named(f"alarm.{name}", arrays)
    if pending:
        rows = list(pending.values())
        tensors["pending.ticket"] = np.array(list(pending), np.int64)
        tensors["pending.row"] = np.concatenate([one.row for one in rows])
        tensors["pending.shift"] = np.stack([one.outlook.shift for one in rows])
        tensors["pending.share"] = np.stack([one.outlook.share for one in rows])
        tensors["pending.interval"] = np.stack(
            [np.stack([np.ravel(edge) for edge in one.interval]) for one in rows]
        )
    model_file.write(path, header, tensors)


def read(path: str | os.PathLike[str]) -> tuple[Header, Tensors]:
    """Read a file and see that it is of this kind."""
    header, tensors = model_file.read(path)
    if header.get("kind") != KIND:
        raise ModelFileError(f"{path}: is a {header.get('kind')!s:.40}, not a live model's state")
    return header, tensors


def settings_of(path: str | os.PathLike[str], header: Header) -> Settings:
    """Return the settings in a header, checked as those that are given."""
    try:
        check_fields(header["settings"], FIELDS)
        values = dict(header["settings"])
        rates = dict(values.pop("rates"))
        keep = tuple(float(k) for k in rates.pop("keep"))
        own = Rates(keep=keep, **{name: float(value) for name, value in rates.items()})
        if not own.keep:
            raise ValueError("no rate")
        return Settings(rates=own, **values)
    except (InputError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path}: its settings cannot be used: {error!s:.200}") from error


def restored(
    path: str | os.PathLike[str], header: Header, tensors: Tensors, start: State, run: RowPass
) -> tuple[State, dict[int, Pending]]:
    """Return the state in a file and the rows that wait; `start` is what a new one looks like."""
    if header.get("model") != run.digest():
        raise ModelFileError(f"{path}: is the state of another model")
    try:
        state = _state(header, tensors, start)
        return state, _pending(tensors, state, run)
    except (InputError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{path}: is garbled: {error!s:.200}") from error


def packed(matrix: Floats) -> Singles:
    """Return the upper triangle of a symmetric matrix, row after row."""
    found: Singles = matrix[np.triu_indices(len(matrix))].astype(np.float32)
    return found


def unpacked(triangle: Singles, size: int) -> Floats:
    """Return the symmetric matrix of an upper triangle."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = triangle
    return np.triu(matrix) + np.triu(matrix, 1).T


def _state(header: Header, tensors: Tensors, start: State) -> State:
    first = start.filters.corrections[0].weights
    count, size = len(start.filters.corrections), len(first)
    triangles = _taken(tensors, "covariance", (count, size * (size + 1) // 2))
    weights = _taken(tensors, "correction", (count, *first.shape))
    corrections = tuple(
        Correction(own.astype(np.float64), unpacked(triangle, size))
        for own, triangle in zip(weights, triangles, strict=True)
    )
    for own in corrections:
        spectrum = np.linalg.eigvalsh(own.covariance)
        if spectrum[0] <= 0 or spectrum[-1] > 1 + ABOVE:
            raise InputError("a covariance is not between 0 and the prior")
    experts = _taken(tensors, "experts", start.filters.weights.shape)
    if (experts < 0).any() or abs(experts.sum() - 1) > ABOVE:
        raise InputError("the weights of the experts are none")
    log_q = _taken(tensors, "log_q", (len(start.trackers),))
    if np.abs(log_q).max() > FARTHEST:
        raise InputError("a tracked quantile is out of range")
    trackers = tuple(
        replace(tracker, log_q=float(value))
        for tracker, value in zip(start.trackers, log_q, strict=True)
    )
    if set(header["alarms"]) != set(start.alarms):
        raise InputError("its alarms are not those of this model")
    tests = {
        name: _alarm(header["alarms"][name], model_file.under(f"alarm.{name}", tensors), test)
        for name, test in start.alarms.items()
    }
    rows, labels = _count(header["rows"]), _count(header["labels"])
    set_aside = _count(header.get("set_aside", 0))  # older states have none
    return State(Filters(corrections, experts), trackers, tests, rows, labels, set_aside)


def _alarm(fields: Any, tensors: Tensors, start: Alarm) -> Alarm:
    edges = _taken(tensors, "edges", start.edges.shape)
    counts = _taken(tensors, "counts", start.counts.shape)
    weights = _taken(tensors, "weights", start.weights.shape)
    if counts.dtype != np.int64 or (counts < 0).any() or not weights.min() >= 0:
        raise InputError("an alarm's counts are none")
    if abs(weights.sum() - 1) > ABOVE:
        raise InputError("an alarm's weights are none")
    capital, highest = float(fields["capital"]), float(fields["highest"])
    if not np.isfinite([capital, highest]).all():
        raise InputError("an alarm's capital is none")
    return Alarm(edges, counts, weights, capital, highest, _count(fields["seen"]))


def _pending(tensors: Tensors, state: State, run: RowPass) -> dict[int, Pending]:
    if "pending.ticket" not in tensors:
        return {}
    tickets: Integers = tensors["pending.ticket"]
    count, first = len(tickets), state.filters.corrections[0].weights
    ways = 1 + len(state.filters.corrections)
    X = _taken(tensors, "pending.row", (count, *run.fitted.inputs.shape), gaps=True)
    shifts = _taken(tensors, "pending.shift", (count, ways, first.shape[1]))
    shares = _taken(tensors, "pending.share", (count, ways))
    classes = run.fitted.target.is_classes
    reach = _taken(tensors, "pending.interval", (count, 1 if classes else 2, first.shape[1]))
    if tickets.dtype != np.int64 or not ((tickets >= 0) & (tickets < state.rows)).all():
        raise InputError("a row that waits has no ticket")
    if (shares <= 0).any():
        raise InputError("a row that waits has no share")
    found = {}
    for k, ticket in enumerate(tickets):
        frozen, psi = run(X[k : k + 1])
        outlook = Outlook(shifts[k], shares[k])
        found[int(ticket)] = Pending(X[k : k + 1], frozen, psi[0], outlook, tuple(reach[k]))
    return found


def _taken(tensors: Tensors, name: str, shape: tuple[int, ...], gaps: bool = False) -> Any:
    """Return a copy of a tensor of this shape, finite but for NaN where rows may lack values."""
    array = tensors[name]
    if array.shape != shape:
        raise InputError(f"{name} has the shape {array.shape}, not {shape}")
    if np.isinf(array).any() or (not gaps and np.isnan(array).any()):
        raise InputError(f"{name} holds what is not finite")
    return array.copy()


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < MOST_ROWS:
        raise InputError(f"{value!r:.40} is no count")
    return value
