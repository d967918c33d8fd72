"""`model.live()`: predictions row by row from a model that learns from labels as they come."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.adaptation.rates import FEWEST_REFERENCE, Alarm, Filters, Multiplicative
from rdeepsense.data.checks import check_values
from rdeepsense.data.columns import (
    check_table,
    further_columns,
    holds_dates,
    is_missing,
    needed_for,
    objects_of,
    row_holds_dates,
    unmasked,
)
from rdeepsense.errors import InputError, nearest
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.live import state as state_file
from rdeepsense.live.state import RowPass, Settings, State
from rdeepsense.live.targets import Classes, Numbers, Pending, Prediction
from rdeepsense.status import Status
from rdeepsense.uncertainty.novelty import RowNovelty

# --------------------------------------------------------------------------------------------------
# One row of named inputs: a dictionary or a Series of pandas
# --------------------------------------------------------------------------------------------------


def in_order(x: Any, names: Sequence[str] | None) -> Any:  # Any: whatever `predict` takes
    """Return a row's values as a list in the order of the model's inputs; others as they are."""
    if isinstance(x, Mapping):
        values: Mapping[Any, Any] = x
        if names is None:
            raise InputError(
                "x is a dictionary, and the model does not know the names of its inputs; give a "
                "list, or fit on a table"
            )
    elif getattr(x, "ndim", None) == 1 and hasattr(x, "index") and hasattr(x, "to_dict"):
        if names is None or not all(isinstance(name, str) for name in x.index):
            return x.tolist()
        values = x.to_dict()
    elif hasattr(x, "to_list") and hasattr(x, "is_null"):  # a Series of polars has no names
        return x.to_list()
    else:
        return x
    missing = [name for name in names if name not in values]
    unknown = [name for name in values if name not in set(names)]
    if any(is_missing(values[name]) or holds_dates([values[name]]) for name in unknown):
        columns = further_columns({str(name): [value] for name, value in values.items()}, names)
        assert columns is not None
        return [objects_of(one)[0] for one in columns.values]
    if missing or unknown:
        lacking = [needed_for(name) for name in missing[:1]]
        what = [f"lacks {one!r}{nearest(one, unknown)}" for one in lacking]
        what += [f"has {one!r}, which is no input" for one in unknown[:1]]
        raise InputError(f"x {' and '.join(what)}; the inputs are {', '.join(names[:20])}")
    return [values[name] for name in names]


# --------------------------------------------------------------------------------------------------
# References of the drift alarm: rows that the model was not fitted to
#
# Inputs are compared by their surprise, where `fit_novelty` was called, with the rows that it held
# out. Labels are compared by how far out they lie, with the validation rows that the model kept. A
# model that was trained on those rows in the end has its own word for them: labels drawn from its
# predictions, which were calibrated on rows that were left out; with several outputs, whose errors
# go together in ways that no prediction tells, labels are not watched then.
# --------------------------------------------------------------------------------------------------


def alarms(run: RowPass, target: Numbers | Classes, settings: Settings) -> dict[str, Alarm]:
    """Return the tests that a model has references for, at their start."""
    fitted, found = run.fitted, {}
    if fitted.novelty is not None and len(fitted.novelty.held_out) >= FEWEST_REFERENCE:
        found["inputs"] = Alarm.start(fitted.novelty.held_out)
    X, y = fitted.kept_rows
    if settings.labels == "none" or len(y) < FEWEST_REFERENCE:
        return found
    dist = fitted.distribution(X)
    truths = np.asarray(y, np.float64).reshape(len(y), -1)
    validated = fitted.training.validated
    if "then trained on all rows" in validated or "cross" in validated:
        if truths.shape[1] > 1:
            return found
        truths = np.asarray(dist.sample(1, 0)[0], np.float64).reshape(truths.shape)
    found["labels"] = Alarm.start(target.scores(dist, truths))
    return found


# --------------------------------------------------------------------------------------------------
# The live model: predict a row, observe its label, continue
# --------------------------------------------------------------------------------------------------

Rows = Callable[[Any], NDArray[Any]]  # a table of one row, checked as `predict` checks it


class Live:
    """A fitted model that learns on, row by row; `model.live()` makes one.

    The network stays as it is. Its last layer's output is corrected in closed form, its intervals
    are widened or narrowed so that they hold as often as they say, and a test watches whether rows
    are still like those of the training. All of that is a few kilobytes; `save` keeps them.

    Threads may share it: calls are served one after the other. Give `observe` the ticket then, as
    the latest row may be another thread's.
    """

    def __init__(self, fitted: Fitted, settings: Settings, rows: Rows) -> None:
        self.settings = settings
        self._rows = rows
        self._pass = RowPass.of(fitted, settings.rates)
        kind = Classes if fitted.target.is_classes else Numbers
        self._target = kind.of(fitted, settings.coverage, settings.rates)
        self._novelty = None if fitted.novelty is None else RowNovelty.of(fitted.novelty)
        self._pending: dict[int, Pending] = {}
        self._lock = threading.RLock()
        self._state = State(
            Filters.start(self._pass.turned.shape[1], self._target.outputs, settings.rates),
            tuple(
                Multiplicative(1 - settings.coverage, settings.rates.eta)
                for _ in range(self._target.tracked)
            ),
            alarms(self._pass, self._target, settings) if settings.alarm else {},
        )

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pending = dict(self._pending)
        self._lock = threading.RLock()

    def predict(self, x: ArrayLike | Mapping[str, Any]) -> Prediction:
        """Predict a row: its inputs as a list, array, dictionary or Series, or a table of one row.

        The row is kept until its label comes, or until `pending` newer ones have come.
        """
        with self._lock:
            return self._predicted(x)

    def _predicted(self, x: ArrayLike | Mapping[str, Any]) -> Prediction:
        settings, state = self.settings, self._state
        if settings.labels == "all" and state.rows - 1 in self._pending:
            raise InputError(
                f'the label of row {state.rows - 1} has not come, and labels = "all"; observe it '
                'first, or use labels="some"'
            )
        X = self._checked(x)
        fitted = self._pass.fitted
        frozen, psi = self._pass(X)
        outlook = state.filters.outlook(psi[0], settings.rates)
        dist, reach = self._target.answer(state.filters, frozen, outlook, state.q)
        score = None
        if self._novelty is not None and "inputs" in state.alarms:
            score = self._novelty.surprise(fitted.scaled(X))
        ticket = state.rows
        self._state = state.seen(score)
        if settings.labels != "none":
            self._pending[ticket] = Pending(X, frozen, psi[0], outlook, reach)
            self._pending.pop(ticket - settings.pending, None)
        status = Status(int(fitted.flags(X)[0]))
        interval: Any = reach if len(reach) == 2 else reach[0]
        return Prediction(dist[0], interval, status | self._drift(), ticket)

    def observe(self, y: ArrayLike, ticket: int | None = None) -> None:
        """Learn from a label: that of the latest row, or of the row that `ticket` names.

        Labels may come late, in any order, or never. NaN is refused. A number more than 100
        standard deviations off, of the prediction or of the training targets if that is more, is
        set aside: it is counted, and the alarm sees it, but nothing is learnt from it.
        """
        with self._lock:
            self._observed(y, ticket)

    def _observed(self, y: ArrayLike, ticket: int | None) -> None:
        if self.settings.labels == "none":
            raise InputError('labels = "none": this live model takes no labels')
        latest = self._state.rows - 1
        if ticket is None and latest < 0:
            raise InputError("there is no row to observe yet; predict one first")
        own = latest if ticket is None else ticket
        pending = self._pending.get(own) if isinstance(own, int | np.integer) else None
        if pending is None:
            raise InputError(self._unknown(own))
        truth = self._target.truth(y)
        state = self._state
        score = None
        if "labels" in state.alarms:
            score = float(self._target.scores(pending.frozen, truth[None])[0])
        if self._target.is_absurd(pending, truth):
            self._state = state.without(score)
        else:
            filters = self._target.learnt(state.filters, pending, truth)
            self._state = state.learnt(filters, self._target.missed(pending.interval, truth), score)
        del self._pending[int(own)]

    @property
    def drifting(self) -> bool:
        """Whether the alarm has rung: rows are no longer like those of the training."""
        return bool(self._drift())

    @property
    def rows(self) -> int:
        """How many rows have been predicted."""
        return self._state.rows

    @property
    def labels(self) -> int:
        """How many labels were learnt from."""
        return self._state.labels

    @property
    def set_aside(self) -> int:
        """How many labels were set aside, because they lay absurdly far off."""
        return self._state.set_aside

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that was learnt to one file, whole or not at all; rows that wait are in it."""
        with self._lock:
            state, pending = self._state, dict(self._pending)
        state_file.write(path, state, pending, self.settings, self._pass.digest())

    @classmethod
    def load(cls, path: str | os.PathLike[str], fitted: Fitted, rows: Rows) -> Live:
        """Go on from a file exactly where it was written; `model.live(state=path)` calls this."""
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"state = {path!r:.60}; accepted: None, or the path of a file")
        header, tensors = state_file.read(path)
        live = cls(fitted, state_file.settings_of(path, header), rows)
        found = state_file.restored(path, header, tensors, live._state, live._pass)
        live._state, live._pending = found
        return live

    def _drift(self) -> Status:
        rate = self.settings.alarm
        return Status.DRIFTING if rate and self._state.rings(rate) else Status.OK

    def _checked(self, x: Any) -> NDArray[Any]:  # Any: whatever `predict` takes
        """Return one row as the network takes it; what is no plain row goes the estimator's way."""
        inputs, guard = self._pass.fitted.inputs, self._pass.fitted.guard
        x = in_order(unmasked(x), inputs.names)
        if isinstance(x, np.ndarray) and x.dtype.kind == "M":  # numpy would make numbers of them
            return self._rows([list(x.ravel())])
        if isinstance(x, list | tuple | np.ndarray) and inputs.encoding is None:
            try:
                row = np.asarray(x, np.float64)
            except (TypeError, ValueError, OverflowError) as error:
                if np.ndim(x) == 1 and row_holds_dates(x):
                    return self._rows([list(x)])
                raise InputError(f"x holds what is no number: {error}") from error
            if row.shape == (1, *inputs.shape):
                row = row[0]
            if row.shape != inputs.shape:
                raise InputError(
                    f"x has the shape {row.shape}; one row of this model has {inputs.shape}"
                )
            gaps = None if guard is None else guard.missing > 0
            check_values(row[None], inputs.missing, inputs.names, gaps)
            return row[None]
        check_table("x", x)
        if isinstance(x, str) or not hasattr(x, "__len__") or np.ndim(x) == 0:
            raise InputError(f"x = {x!r:.60} is no row; accepted: a list, an array or a table")
        plain = isinstance(x, list | tuple) or (isinstance(x, np.ndarray) and x.ndim == 1)
        X = self._rows([x] if plain else x)
        if len(X) != 1:
            raise InputError(f"x has {len(X)} rows; predict takes one at a time")
        return X

    def _unknown(self, ticket: object) -> str:
        known = isinstance(ticket, int | np.integer) and 0 <= ticket < self._state.rows
        if not known:
            return f"ticket = {ticket!r:.40} is unknown; {self._state.rows} rows were predicted"
        if int(ticket) < self._state.rows - self.settings.pending:  # type: ignore[call-overload]
            return (
                f"ticket = {ticket!r:.40} has expired: a row waits for its label until "
                f"{self.settings.pending} newer ones have come; see `pending`"
            )
        return f"the label of row {ticket!r:.40} was observed already"
