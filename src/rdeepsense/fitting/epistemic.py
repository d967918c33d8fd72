"""What is fitted beside the networks: the Laplace posterior, and novelty for `Status.UNLIKE`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rdeepsense import calibration
from rdeepsense.arrays import Floats, Integers
from rdeepsense.calibration import KINDS, Calibration, maps
from rdeepsense.compact_novelty import CompactNovelty
from rdeepsense.data.checks import check_choice
from rdeepsense.data.rows import FitRows
from rdeepsense.data.scaling import Scaler
from rdeepsense.data.splits import Part
from rdeepsense.distributions import AnyDistribution, Categorical, LocationScale, concatenate
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.errors import InputError
from rdeepsense.fitting.passes import Forward, prepared
from rdeepsense.fitting.target import Target
from rdeepsense.fitting.trainer import HeldOutPredictions, LeftOut
from rdeepsense.heads import Params
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.modelfile.container import Header
from rdeepsense.modelfile.layout import (
    LARGEST_FIGURE,
    OBJECT,
    TINY,
    Context,
    FilePart,
    Layout,
    Numbers,
    length,
)
from rdeepsense.modelfile.schema import check_fields, choice, maybe, number
from rdeepsense.modelfile.tensors import Tensors
from rdeepsense.networks import Shape
from rdeepsense.uncertainty import METHODS, Laplace, by_delta, by_laplace, by_moments, by_sampling
from rdeepsense.uncertainty.laplace import features_of, probit
from rdeepsense.uncertainty.novelty import (
    FEWEST_GROUPS,
    MOST_COMPONENTS,
    Marginals,
    Novelty,
    Units,
    described,
    drawn,
    drawn_columns,
    fit_compact,
    quantiles,
)

# --------------------------------------------------------------------------------------------------
# Novelty of inputs: the density for `Status.UNLIKE`
#
# Every fit learns a density of the inputs, of some thousand rows at most. A row is `Status.UNLIKE`
# whose surprise is above the 0.99 quantile of rows that the density did not see:
#
# - of K = min(groups, 4) folds of whole groups, each by a density of the others, all groups alike;
# - of the rows that were held out, where they are enough for that quantile;
# - else of four folds of all rows, and for less than 99 of them the quantile is that of an
#   exponential tail beyond the largest surprise.
#
# Models of fewer than 60 rows have none, nor have tables of more than 160 numbers (of more than 32,
# if there are not 20 rows for each), windows of more than 32 channels, tables of categories alone,
# and columns that float32 does not tell apart.
#
# Files of before fits did this may hold a full novelty: the density is then that of columns drawn
# from it.
# --------------------------------------------------------------------------------------------------

LEVEL = 0.99
FEWEST_ROWS = 40  # to set a threshold by, of a novelty that was fitted before
FEWEST_FITTED = 60  # rows, held-out ones among them, of a fit
ENOUGH_HELD_OUT = 99
UNLIKE_MOST_ROWS, MOST_HELD_OUT = 2_000, 2_048
FOLDS = 4
LEAST_WIDTH = 1.0  # nats
ROUNDING = 1e-3  # of a surprise
ROWS_EACH_COLUMN = 20  # where columns are more than the components of a density


@dataclass(frozen=True)
class Reading:
    """What a compact novelty reads of rows of a shape: raw numbers, and columns of scaled ones."""

    shape: Shape
    scaler: Scaler

    def __post_init__(self) -> None:
        if len(self.shape) > 2 or not self.numbers:
            raise InputError(
                f"a novelty is for tables of numbers and windows (time, channels), not for rows of "
                f"shape {self.shape} with {len(self.numbers)} numbers"
            )

    @property
    def is_window(self) -> bool:
        """Whether a row is a window (time, channels)."""
        return len(self.shape) == 2

    @property
    def numbers(self) -> list[int]:
        """The inputs that are no categories."""
        encoding = self.scaler.encoding
        return list(range(self.shape[-1]) if encoding is None else encoding.numbers)

    @property
    def units(self) -> Units:
        """The units of the columns."""
        count = len(self.numbers)
        return Units.of(self.scaler.shift[:count], self.scaler.scale[:count], self.is_window)

    def raw(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return what is read of rows."""
        return X if self.is_window else X[:, self.numbers]

    def columns(self, X: NDArray[Any]) -> Floats:
        """Return the scaled columns of rows."""
        found = described(self.scaler.transform(X).numpy())
        return found if self.is_window else found[:, : len(self.numbers)]


def fit_unlike(
    reading: Reading,
    known: NDArray[Any],
    held_out: NDArray[Any] | None = None,
    groups: NDArray[Any] | None = None,
) -> CompactNovelty:
    """Fit a density to rows, and set its threshold by rows that it did not see."""
    units, total = reading.units, len(known) + (0 if held_out is None else len(held_out))
    columns = len(units.scale)
    if total < max(FEWEST_FITTED, columns * ROWS_EACH_COLUMN * (columns > MOST_COMPONENTS)):
        raise InputError(
            f"{total} rows of {columns} columns are too few to tell which others are unlike them"
        )

    def density(X: NDArray[Any]) -> CompactNovelty:
        x = reading.columns(X)
        with np.errstate(over="ignore", invalid="ignore"):
            found = fit_compact(x, Marginals.of_rows(x), units)
        if not all(np.isfinite(part).all() for part in found.arrays().values()):
            raise InputError("the novelty has numbers that float32 cannot hold")
        return found

    if groups is not None and len(np.unique(groups)) >= FEWEST_GROUPS:
        some = drawn(len(known), UNLIKE_MOST_ROWS)
        known, number = known[some], np.unique(groups[some], return_inverse=True)[1]
        order = np.random.default_rng(0).permutation(number.max() + 1)
        surprise = _crossed(known, order[number] % min(len(order), FOLDS), density, reading)
        surprise = quantiles(surprise, 1 / np.bincount(number)[number])
        return with_threshold(density(known), surprise)
    if held_out is not None and len(held_out) >= ENOUGH_HELD_OUT:
        found = density(known[drawn(len(known), UNLIKE_MOST_ROWS)])
        judges = held_out[drawn(len(held_out), MOST_HELD_OUT)]
        return with_threshold(found, found.surprise(reading.raw(judges)))
    rows = known if held_out is None else np.concatenate([known, held_out])
    rows = rows[drawn(len(rows), UNLIKE_MOST_ROWS)]
    fold = np.random.default_rng(0).permutation(len(rows)) % FOLDS
    return with_threshold(density(rows), _crossed(rows, fold, density, reading))


def unlike_of(rows: FitRows, scaler: Scaler) -> CompactNovelty | None:
    """Fit the novelty of a fit's rows; None where it cannot be had."""
    part, held = rows.train, rows.validation
    if len(part) + len(held) < FEWEST_FITTED or scaler.double_columns:
        return None
    try:
        reading = Reading(rows.X.shape[1:], scaler)
        if rows.groups is not None:
            index = part.index[drawn(len(part), UNLIKE_MOST_ROWS)]
            if rows.split_off:
                every = np.concatenate([part.index, held.index])
                index = every[drawn(len(every), UNLIKE_MOST_ROWS)]
            return fit_unlike(reading, rows.X[index], groups=rows.groups[index])
        known = rows.X[part.index[drawn(len(part), UNLIKE_MOST_ROWS)]]
        judges = rows.X_val[held.index[drawn(len(held), MOST_HELD_OUT)]]
        return fit_unlike(reading, known, judges)
    except (InputError, np.linalg.LinAlgError):  # a fit is no worse for rows without a density
        return None


def _crossed(
    X: NDArray[Any],
    fold: Integers,
    density: Callable[[NDArray[Any]], CompactNovelty],
    reading: Reading,
) -> Floats:
    """Return the surprise of each row by a density of the other folds."""
    surprise = np.empty(len(X))
    for own in range(fold.max() + 1):
        out = fold == own
        surprise[out] = density(X[~out]).surprise(reading.raw(X[out]))
    return surprise


def compact(novelty: Novelty, reading: Reading, X: NDArray[Any]) -> CompactNovelty:
    """Make a novelty compact; `X` are rows to set its threshold by, see `judging`."""
    units = reading.units
    columns = len(units.shift)
    found = fit_compact(_drawn(novelty)[:, :columns], Marginals.of_novelty(novelty, columns), units)
    return with_threshold(found, found.surprise(reading.raw(X)))


def _drawn(novelty: Novelty) -> Floats:
    """Draw columns; refuse a density that cannot be drawn from, which a file may hold."""
    try:
        with np.errstate(all="ignore"):
            found = drawn_columns(novelty)
    except np.linalg.LinAlgError:
        found = np.full(1, np.nan)
    if not np.isfinite(found).all():
        raise InputError("the novelty's axes or factors are singular, so it cannot be compact")
    return found


def judging(X: NDArray[Any]) -> NDArray[Any]:
    """Draw rows to set a threshold by; refuse too few."""
    X = X[drawn(len(X))]
    if len(X) < FEWEST_ROWS:
        raise InputError(
            f"a novelty needs {FEWEST_ROWS} rows to set its threshold, and has {len(X)}; fit "
            "the model with keep_rows, or give rows="
        )
    return X


def with_threshold(novelty: CompactNovelty, surprise: Floats) -> CompactNovelty:
    """Set threshold and width by the surprise of rows that the density did not see."""
    threshold = quantile(surprise, LEVEL)
    width = max(threshold - float(np.median(surprise)), LEAST_WIDTH)
    # Rows that are alike to the number must not be flagged by rounding, here or on a device.
    threshold += ROUNDING * max(1.0, abs(threshold))
    held = {"threshold": threshold, "width": width}
    return replace(
        novelty,
        **{name: np.array([np.float32(value)], np.float64) for name, value in held.items()},
    )


def quantile(surprise: Floats, level: float) -> float:
    """Return the score that a further row of the same kind passes with at most 1 - level.

    Where rows are too few to have it among them the tail is continued as an exponential one, with
    the mean excess of the fifth that is most surprising.
    """
    ordered = np.sort(surprise)
    place = int(np.ceil((len(ordered) + 1) * level - 1e-9))
    if place <= len(ordered):
        return float(ordered[place - 1])
    tail = ordered[int(0.8 * len(ordered)) :]
    missing = np.log(1 / (1 - level) / (len(ordered) + 1))
    return float(ordered[-1] + missing * (tail - tail[0]).mean())


# --------------------------------------------------------------------------------------------------
# Epistemic variance of a single pass
#
# The variance head is trained on residuals around a MASKED mean, so it learns the noise of the data
# and the variance of the masks together. The noise alone is what is left without the masks':
#
#     noise = max(head - masks, head / 20),     total = noise + epistemic
#
# `masks` is found by the delta method. With epistemic "delta" it is also what is added, so that the
# total is the head's own variance wherever that is the larger one. With "laplace" one number per
# output stands for noise / head, its mean over rows that were not trained on: predictions then need
# one pass and one matrix. Each of the two has its own calibration, fitted to the total.
# --------------------------------------------------------------------------------------------------

TOTALS = ("delta", "laplace")
CHUNK = 1_024  # rows at a time: a backward pass keeps every layer's numbers
SAMPLES = 100
LEAST_NOISE = 0.05  # of the head's variance
MOST_ROWS, MOST_VALUES = 4_096, 100_000  # for the calibrations: a backward pass per output
MOST_TRAINED = 100_000  # rows for the last layer's matrix, which stand for all of them


@dataclass(frozen=True)
class EpistemicPart:
    """The last layer's matrix, noise / head, and a calibration for each total."""

    laplace: Laplace
    noise_share: Floats
    calibrations: dict[str, Calibration | None]

    @classmethod
    def fit(
        cls,
        network: StochasticNetwork,
        forward: Forward,
        X: NDArray[Any],
        trained_on: Part,
        held_out: HeldOutPredictions,
        target: Target,
        target_scaler: Scaler | None,
        kind: str | None,
        left_out: LeftOut | None = None,
    ) -> EpistemicPart:
        """Pass once over the rows that the network was trained on, and fit the calibrations.

        `kind` is the kind of calibration, None for none. Where groups were left out, each held-out
        row is judged by the network that did not see its group, and by that network's matrix.
        """
        laplace = laplace_of(network, forward, X, trained_on)
        most = max(1, min(MOST_ROWS, MOST_VALUES // target.outputs))
        some = np.random.default_rng(0).permutation(len(held_out.y))[:most]
        judges = [(network, laplace, some)]
        if left_out is not None:
            judges = list(_judges(left_out, X, some))
            some = np.concatenate([own for _, _, own in judges])
        y, said = held_out.y[some], held_out.dist[some]
        weight = None if held_out.weight is None else held_out.weight[some]
        share = np.ones(target.outputs)

        def passes(method: str) -> tuple[AnyDistribution, Floats]:
            found = [
                cls(matrix, share, {}).passes(judge, forward, held_out.X[own], method)
                for judge, matrix, own in judges
            ]
            return concatenate([d for d, _ in found]), np.concatenate([v for _, v in found])

        variances = {}
        try:
            dist, variances["delta"] = passes("delta")
        except InputError:  # it has nothing to find, and says so again when it is asked for
            pass
        else:
            if not isinstance(dist, Categorical):
                share = np.average(_noise(dist.var, variances["delta"]) / dist.var, 0, weight)
        variances["laplace"] = passes("laplace")[1]
        found = cls(laplace, share, {})
        fitted: dict[str, Calibration | None] = {}
        for method, variance in variances.items():
            total = found.total(said, target.variance_in_units(variance, target_scaler), method)
            fitted[method] = (
                None
                if kind is None
                else calibration.fit(kind, total, y, weight, freedom=held_out.freedom)
            )
        return cls(laplace, share, fitted)

    def passes(
        self, network: StochasticNetwork, forward: Forward, X: NDArray[Any], method: str
    ) -> tuple[AnyDistribution, Floats]:
        """Return the single pass and the epistemic variance, on the network's own scale."""
        check_choice("method", method, METHODS)
        network, dtype = prepared(network, forward.device)
        dists, variances = [], []
        for start in range(0, len(X), CHUNK):
            x = forward.scaler.transform(X[start : start + CHUNK], dtype).to(forward.device)
            params: Params
            if method == "laplace":
                params, variance = by_laplace(network, x, self.laplace)
            elif method == "sample":
                params, variance = by_sampling(network, x, SAMPLES, forward.seed)
            else:
                params, variance = (by_delta if method == "delta" else by_moments)(network, x)
            dists.append(params.numpy())
            variances.append(variance.cpu().double().numpy())
        return concatenate(dists), np.concatenate(variances)

    def total(self, dist: AnyDistribution, variance: Floats, method: str) -> AnyDistribution:
        """Return the distribution with its epistemic part, both in units, uncalibrated."""
        if isinstance(dist, Categorical):
            return probit(dist, variance)
        assert isinstance(dist, LocationScale)
        if method == "delta":
            noise = _noise(dist.var, variance)
        else:
            noise = dist.var * (self.noise_share if dist.var.ndim > 1 else self.noise_share[0])
        return dist.widened(np.sqrt((noise + variance) / dist.var))

    def calibration_of(self, method: str) -> Calibration | None:
        """Return the calibration of a method's total; the ways to the masks share that of delta."""
        return self.calibrations.get(method if method in TOTALS else "delta")


def laplace_of(
    network: StochasticNetwork, forward: Forward, X: NDArray[Any], trained_on: Part
) -> Laplace:
    """Fit the last layer's matrix of any network to the rows that it was trained on."""
    network, dtype = prepared(network, forward.device)
    total, part = trained_on.weight.sum(), trained_on
    if len(part) > MOST_TRAINED:
        rng = np.random.default_rng(forward.seed)
        part = part[np.sort(rng.permutation(len(part))[:MOST_TRAINED])]
    stands_for = total / part.weight.sum()

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for start in range(0, len(part), CHUNK):
            some = part[np.arange(start, min(start + CHUNK, len(part)))]
            x = forward.scaler.gather(X, some.index, dtype)
            weight = torch.from_numpy(some.weight * stands_for)
            yield x.to(forward.device), weight.to(forward.device)

    return Laplace.fit(network, batches())


def _judges(
    left_out: LeftOut, X: NDArray[Any], some: Integers
) -> Iterator[tuple[StochasticNetwork, Laplace, Integers]]:
    """Return each network that left groups out, its matrix, and which of some rows were hidden."""
    begin = 0
    for fold in left_out.folds:
        own = some[(some >= begin) & (some < begin + len(fold.y))]
        begin += len(fold.y)
        if len(own):
            matrix = laplace_of(fold.network, left_out.forward, X, fold.trained_on)
            yield fold.network, matrix, own


def _noise(head: Floats, masks: Floats) -> Floats:
    """Return the variance head without the variance of the masks that it was trained under."""
    return np.maximum(head - masks, LEAST_NOISE * head)


# --------------------------------------------------------------------------------------------------
# File format of the epistemic part: epistemic.root (square), .ratio and .noise_share (outputs,),
# and the calibrations below epistemic.laplace and epistemic.delta
# --------------------------------------------------------------------------------------------------

CALIBRATION = maybe(choice(*KINDS))
FIELDS = {"prior": number(1e-300, LARGEST_FIGURE), "calibrations": OBJECT}


class EpistemicFile(FilePart[EpistemicPart]):
    name = section = "epistemic"

    def check_header(self, context: Context) -> None:
        kept = context.header["epistemic"]
        check_fields(kept, FIELDS, at="epistemic.")
        kinds = kept["calibrations"]
        own = {method: CALIBRATION for method in TOTALS if method in kinds}
        check_fields(kinds, {"laplace": CALIBRATION, **own}, at="epistemic.calibrations.")
        if strange := sorted(set(kinds) - set(TOTALS)):
            raise InputError(f"epistemic.calibrations names {strange[0]!r:.60}, unknown here")

    def layout(self, context: Context) -> Layout:
        size = length(context.shapes, "epistemic.root")
        yield "epistemic.root", Numbers((size, size), -1e30, 1e30)
        yield "epistemic.ratio", Numbers((context.outputs,), TINY)
        yield "epistemic.noise_share", Numbers((context.outputs,), 1e-6, 1.0 + 1e-6)
        for method, kind in context.header["epistemic"]["calibrations"].items():
            yield from maps.layout(f"epistemic.{method}", kind, context)

    def check_numbers(self, tensors: Tensors, context: Context) -> None:
        maps.check_knots("epistemic", tensors)

    def to_file(self, part: EpistemicPart, header: Header, tensors: Tensors) -> None:
        header["epistemic"] = {
            "prior": part.laplace.prior,
            "calibrations": {name: maps.name_of(own) for name, own in part.calibrations.items()},
        }
        tensors |= {"epistemic.root": part.laplace.root, "epistemic.ratio": part.laplace.ratio}
        tensors["epistemic.noise_share"] = part.noise_share
        for method, fitted in part.calibrations.items():
            if fitted is not None:
                tensors |= model_file.named(f"epistemic.{method}", fitted.arrays())

    def from_file(self, tensors: Tensors, context: Context) -> EpistemicPart:
        """Restore the part; refuse a matrix of another size than what the last layer reads."""
        size = len(tensors["epistemic.root"])
        for member in getattr(context.model, "members", ()):
            wanted = features_of(member, math.prod(context.network_shape))
            if size != wanted:
                raise InputError(f"epistemic.root has {size} rows, the network asks for {wanted}")
        kept = context.header["epistemic"]
        laplace = Laplace(tensors["epistemic.root"], tensors["epistemic.ratio"], kept["prior"])
        calibrations = {
            method: maps.restored(kind, model_file.under(f"epistemic.{method}", tensors))
            for method, kind in kept["calibrations"].items()
        }
        return EpistemicPart(laplace, tensors["epistemic.noise_share"], calibrations)


EPISTEMIC = EpistemicFile()
