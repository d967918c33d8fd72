"""A fitted model: networks, calibration, corrections, and how it compares with baselines."""

from __future__ import annotations

import contextlib
import hashlib
import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax

from rdeepsense import metrics
from rdeepsense.adaptation.choose import MOST_FEATURES
from rdeepsense.adaptation.corrections import (
    MOST_DIRECTIONS,
    AdaptedClasses,
    AdaptedNumbers,
    ClassPrior,
    Prior,
)
from rdeepsense.adaptation.rates import Rates
from rdeepsense.arrays import Booleans, Floats
from rdeepsense.calibration import Calibration
from rdeepsense.calibration.conformal import Conformal, most_coverage
from rdeepsense.compact_novelty import CompactNovelty
from rdeepsense.data.checks import Given, Texts, texts
from rdeepsense.data.rows import ENOUGH_GROUPS, FitRows, Pair
from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.encoding import Encoding
from rdeepsense.errors import InputError
from rdeepsense.fitting.epistemic import EpistemicPart, Reading, compact, fit_unlike, judging
from rdeepsense.fitting.gp import Process
from rdeepsense.fitting.passes import Forward, Passes, Single, hidden_size, last_hidden
from rdeepsense.fitting.records import Candidate, Selection, TrainingReport
from rdeepsense.fitting.spec import AfterTraining
from rdeepsense.fitting.target import Target
from rdeepsense.fitting.trainer import HeldOutPredictions
from rdeepsense.guard import Guard, every
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.modelfile.container import Header
from rdeepsense.modelfile.layout import (
    COUNT,
    FIGURE,
    OBJECT,
    SHORT,
    Context,
    FilePart,
    Layout,
    Numbers,
    Record,
    length,
)
from rdeepsense.modelfile.schema import (
    Json,
    Kind,
    check_fields,
    number,
    several,
    whole,
)
from rdeepsense.modelfile.tensors import Tensors
from rdeepsense.networks import Architecture, Shape
from rdeepsense.status import DOUBTS, Status, Statuses
from rdeepsense.uncertainty.laplace import mutual_information
from rdeepsense.uncertainty.novelty import Novelty
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.stream import Smoothing

# --------------------------------------------------------------------------------------------------
# How a model did beside simple ones on rows that no choice had seen, as its file keeps it
# --------------------------------------------------------------------------------------------------

_PEERS = {"rows": whole(1, 1 << 53), "records": several(OBJECT, 10_000, least=1)}
_RECORD = {
    "target": SHORT,
    "method": SHORT,
    "figures": OBJECT,
    "behind": FIGURE,
    "behind_error": FIGURE,
}


@dataclass(frozen=True)
class PeerRecord:
    """One method's figures of one target; `behind` is its NLL less the model's, row by row."""

    target: str
    method: str
    figures: Mapping[str, float | None]
    behind: float | None
    behind_error: float | None


@dataclass(frozen=True)
class BaselineScores:
    """The figures of the model and of simple ones on the same rows."""

    rows: int
    records: tuple[PeerRecord, ...]

    def to_json(self) -> dict[str, Any]:  # Any: whatever JSON holds
        """Return plain data."""
        return {"rows": self.rows, "records": [asdict(one) for one in self.records]}

    @classmethod
    def from_json(cls, value: Json) -> BaselineScores:
        """Read what `check_peers` has passed."""
        return cls(value["rows"], tuple(PeerRecord(**one) for one in value["records"]))


def check_peers(value: Json) -> None:
    """Refuse a record of which a field is missing, unknown, of another kind or out of range."""
    check_fields(value, _PEERS, at="peers.")
    for place, one in enumerate(value["records"]):
        at = f"peers.records[{place}]."
        check_fields(one, _RECORD, at=at, closed=True)
        check_fields(one["figures"], dict.fromkeys(one["figures"], FIGURE), at=f"{at}figures.")


PEERS = Record(
    "peers",
    "peers",
    check=lambda value, context: check_peers(value),
    write=lambda peers: model_file.to_plain(peers.to_json()),
    read=BaselineScores.from_json,
)

# --------------------------------------------------------------------------------------------------
# What a model has learnt from the labels of one group, beside its frozen networks
# --------------------------------------------------------------------------------------------------

AnyPrior = Prior | ClassPrior
TINY = 1e-300


@dataclass(frozen=True)
class Adaptation:
    """The state after `labels` labels, and the SHA-256 of the networks that it corrects."""

    state: AdaptedNumbers | AdaptedClasses
    projection: Floats | None
    labels: int
    source: str

    def apply(self, dist: AnyDistribution, phi: Floats, unit: Floats | None) -> AnyDistribution:
        """Correct calibrated predictions; `unit` is the scale of each output, None for classes.

        Numbers: the median is shifted and the width around it multiplied, whatever the shape.
        """
        if isinstance(self.state, AdaptedClasses):
            assert isinstance(dist, Categorical)
            return Categorical(
                softmax(logits_of(dist) + self.state.shift(phi), axis=1), dist.classes
            )
        assert not isinstance(dist, Categorical)
        assert unit is not None
        shape = dist.shape
        shift = (self.state.shift(phi) * unit).reshape(shape)
        factor = np.sqrt(self.state.kept(phi)).reshape(shape)
        return dist.affine(dist.quantile(0.5) * (1 - factor) + shift, factor)

    def arrays(self) -> Tensors:
        """Return the tensors of a model file."""
        state = self.state
        found: Tensors = {"weights": state.weights, "covariance": state.covariance}
        if isinstance(state, AdaptedNumbers):
            found["start"] = state.start
        if self.projection is not None:
            found["projection"] = self.projection
        return found


def logits_of(dist: Categorical) -> Floats:
    """Return the logits of calibrated probabilities, which are known up to a constant."""
    found: Floats = np.log(np.maximum(dist.probs, TINY))
    return found


def networks_digest(members: Iterable[StochasticNetwork], scales: Iterable[NDArray[Any]]) -> str:
    """Compute SHA-256 of all weights and scales: two models with the same one predict alike."""
    digest = hashlib.sha256()
    for member in members:
        for name, value in sorted(member.state_dict().items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(value.cpu().numpy(), "<f8").tobytes())
    for array in scales:
        digest.update(np.ascontiguousarray(array, "<f8").tobytes())
    return digest.hexdigest()


# --------------------------------------------------------------------------------------------------
# File format of group corrections and their prior
#
# adaptation.between, .within       (directions,), of numbers alone
# adaptation.directions, .shares    (outputs, directions), of numbers alone
# adapted.weights                   (features, directions), of classes (features, classes)
# adapted.covariance, .start        (directions, features, features), of classes one matrix alone
# adapted.projection                (hidden, features - 1), where the last layer is wide
# --------------------------------------------------------------------------------------------------

LARGE = 1e30
DIGEST = Kind(
    lambda value: type(value) is str and len(value) == 64 and set(value) <= set("0123456789abcdef"),
    "64 hexadecimal digits",
)


class AdaptationFile(FilePart[AnyPrior]):
    name = section = "adaptation"

    def check_header(self, context: Context) -> None:
        own = {"rows": number(1e-3, 1e9), "groups": COUNT}
        check_fields(context.header["adaptation"], own, at="adaptation.")

    def layout(self, context: Context) -> Layout:
        if context.is_classes:
            return
        columns, outputs = length(context.shapes, "adaptation.between"), context.outputs
        if columns > MOST_DIRECTIONS:
            raise InputError(f"adaptation.between has {columns} of {MOST_DIRECTIONS} directions")
        yield "adaptation.between", Numbers((columns,), 0.0, LARGE)
        yield "adaptation.within", Numbers((columns,), 1 / LARGE, LARGE)
        yield "adaptation.directions", Numbers((outputs, columns), -1 - 1e-6, 1 + 1e-6)
        yield "adaptation.shares", Numbers((outputs, columns), 0.0, 1.0)

    def to_file(self, part: AnyPrior, header: Header, tensors: Tensors) -> None:
        header["adaptation"] = model_file.to_plain({"rows": part.rows, "groups": part.groups})
        if isinstance(part, Prior):
            for name in ("between", "within", "directions", "shares"):
                tensors[f"adaptation.{name}"] = getattr(part, name)

    def from_file(self, tensors: Tensors, context: Context) -> AnyPrior:
        kept, arrays = context.header["adaptation"], model_file.under("adaptation", tensors)
        if not arrays:
            return ClassPrior(float(kept["rows"]), kept["groups"])
        return Prior(float(kept["rows"]), **arrays, groups=kept["groups"])


class CorrectionFile(FilePart[Adaptation]):
    name, section = "correction", "adapted"

    def check_header(self, context: Context) -> None:
        own = {"labels": whole(1, 1 << 53), "source": DIGEST}
        check_fields(context.header["adapted"], own, at="adapted.")
        if not {"adaptation", "epistemic", "architecture"} <= set(context.header):
            raise InputError("adapted is there without what a model adapts by")

    def layout(self, context: Context) -> Layout:
        shapes, classes = context.shapes, context.is_classes
        columns = context.outputs if classes else length(shapes, "adaptation.between")
        size = length(shapes, "adapted.weights")
        if size > MOST_FEATURES + 1:
            raise InputError(
                f"adapted.weights has {size} rows; accepted: {MOST_FEATURES + 1} at most"
            )
        matrices = (size, size) if classes else (columns, size, size)
        yield "adapted.weights", Numbers((size, columns), -LARGE, LARGE)
        yield "adapted.covariance", Numbers(matrices, -LARGE, LARGE)
        if not classes:
            yield "adapted.start", Numbers(matrices, -LARGE, LARGE)
        if "adapted.projection" in shapes:
            hidden = length(shapes, "adapted.projection")
            yield "adapted.projection", Numbers((hidden, size - 1), -1 - 1e-6, 1 + 1e-6)

    def check_numbers(self, tensors: Tensors, context: Context) -> None:
        """Refuse matrices that are no covariances."""
        for name in ("adapted.covariance", "adapted.start"):
            if name not in tensors:
                continue
            found = tensors[name].astype(np.float64)
            if not np.array_equal(found, np.swapaxes(found, -1, -2)):
                raise InputError(f"{name} is not symmetric")
            try:
                np.linalg.cholesky(found)
            except np.linalg.LinAlgError as error:
                raise InputError(f"{name} is not positive definite") from error

    def to_file(self, part: Adaptation, header: Header, tensors: Tensors) -> None:
        header["adapted"] = {"labels": part.labels, "source": part.source}
        tensors |= model_file.named("adapted", part.arrays())

    def from_file(self, tensors: Tensors, context: Context) -> Adaptation:
        """Restore the part; refuse a correction of another last layer than the network's."""
        kept, arrays = context.header["adapted"], model_file.under("adapted", tensors)
        weights, covariance = arrays["weights"], arrays["covariance"]
        projection, hidden = arrays.get("projection"), hidden_size(context.model.members[0])
        reads = len(weights) - 1 if projection is None else len(projection)
        if reads != hidden:
            raise InputError(
                f"adapted.weights are for {reads} numbers, the last layer has {hidden}"
            )
        prior = context.parts["adaptation"]
        state: AdaptedNumbers | AdaptedClasses
        if isinstance(prior, Prior):
            state = AdaptedNumbers(prior, weights, covariance, arrays["start"])
        else:
            assert isinstance(prior, ClassPrior)
            state = AdaptedClasses(prior, weights, covariance)
        return Adaptation(state, projection, kept["labels"], kept["source"])


ADAPTATION, CORRECTION = AdaptationFile(), CorrectionFile()


# --------------------------------------------------------------------------------------------------
# The result of a fit: everything that predicting, storing and deploying need
# --------------------------------------------------------------------------------------------------

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Inputs:
    """The rows that a model takes: their shape, the names of their numbers, their scale."""

    shape: Shape
    names: Texts | None
    missing: str  # "refuse", "mean" or "indicator"
    scaler: Scaler
    units: Texts | None = None
    dated: Texts = ()  # the columns of dates that inputs are made from, see `data.columns`

    @property
    def encoding(self) -> Encoding | None:
        """What becomes of columns that are categories, or lack values; None without any."""
        return self.scaler.encoding

    @property
    def network_shape(self) -> Shape:
        """The shape of what networks read of a row."""
        return self.shape if self.encoding is None else (self.encoding.width,)

    @property
    def constant(self) -> Texts:
        """Names, or numbers, of inputs that did not vary in the training rows."""
        return tuple(self.names[k] if self.names else str(k) for k in self.scaler.flat)


@dataclass(frozen=True)
class Networks:
    """Trained networks, what they were trained as, and how they predict together."""

    members: tuple[StochasticNetwork, ...]
    candidate: Candidate
    architecture: Architecture
    input_drop_prob: float
    passes: Passes


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A fitted model, whatever method it is of.

    `fitting.parts` lists the parts that files keep beside the networks and their calibration.
    """

    method: str  # the name of the estimator
    inputs: Inputs
    target: Target
    target_scaler: Scaler | None
    model: Networks | Process
    calibration: Calibration | None
    training: TrainingReport
    selection: Selection | None
    scores: Mapping[str, float]  # on the held-out rows, calibrated there
    kept_rows: Pair  # some of the held-out rows
    epistemic: EpistemicPart | None = None
    conformal: Conformal | None = None
    novelty: Novelty | None = None  # of `fit_novelty`
    guard: Guard | None = None  # None for files of before there was one
    adaptation: AnyPrior | None = None  # None where no groups were left out
    correction: Adaptation | None = None  # of a model that was adapted
    rates: Rates | None = None  # of a live model; None where they were not chosen
    recipe: Recipe | None = None  # how rows are cut from a log; None where nobody said
    smoothing: Smoothing | None = None  # of decisions in a stream; None where no group was left out
    peers: BaselineScores | None = None  # beside simple models; None where nobody compared
    unlike: CompactNovelty | None = None  # that rows are flagged by; None where rows were few
    parts: Mapping[str, object] = field(default_factory=dict)  # those without a field of their name

    @classmethod
    def of(cls, parts: Mapping[str, Any], **core: Any) -> Fitted:  # Any: fields of all kinds
        """Build a model from its parts by name, and the fields that are no parts."""
        own = {one.name for one in fields(cls)} & parts.keys()
        others = {name: part for name, part in parts.items() if name not in own}
        return cls(**core, **{name: parts[name] for name in own}, parts=others)

    def part(self, name: str) -> object | None:
        """Return a part by its name; None where the model has none."""
        found: object = vars(self).get(name, self.parts.get(name))
        return found

    @property
    def networks(self) -> Networks:
        """The trained networks; refused for a Gaussian process, which has none."""
        if not isinstance(self.model, Networks):
            raise InputError(f"a {self.method} has no networks")
        return self.model

    @property
    def network(self) -> StochasticNetwork:
        """The trained network; the first one of an ensemble."""
        return self.networks.members[0]

    @property
    def takes_one_pass(self) -> bool:
        """Whether one deterministic pass is all that a prediction takes."""
        return isinstance(self.model, Networks) and isinstance(self.model.passes, Single)

    @cached_property
    def reader(self) -> Scaler:
        """The scaler of what networks read: numbers out of range are moved to its end."""
        return replace(self.inputs.scaler, guard=self.guard)

    def distribution(
        self,
        X: NDArray[Any],
        epistemic: str | None = None,
        passes: Passes | None = None,
        device: torch.device = CPU,
    ) -> AnyDistribution:
        """Predict checked rows, calibrated; `epistemic` adds that part to a single pass.

        An adapted model adds what it has learnt. Rows that the guard flags are as unsure as the
        training targets at least, and rows unlike the known ones go towards that.
        """
        if epistemic is not None:
            dist = self._with_epistemic(X, epistemic, device)
        else:
            if self.correction is not None:
                self._check_one_pass(passes)
            dist = self._adapted(self.calibrated(X, passes, device), X, device)
        return self._guarded(dist, X)

    def finished(self, dist: AnyDistribution, X: NDArray[Any]) -> AnyDistribution:
        """Bring a single pass over checked rows to units, calibrated, adapted and guarded."""
        dist = self.target.in_units(dist, self.target_scaler)
        dist = dist if self.calibration is None else self.calibration.apply(dist)
        return self._guarded(self._adapted(dist, X, CPU), X)

    def calibrated(
        self, X: NDArray[Any], passes: Passes | None = None, device: torch.device = CPU
    ) -> AnyDistribution:
        """Predict in the target's units, calibrated, without guard and adaptation."""
        dist = self.uncalibrated(X, passes, device)
        return dist if self.calibration is None else self.calibration.apply(dist)

    def last_hidden(
        self, X: NDArray[Any], projection: Floats | None, device: torch.device = CPU
    ) -> Floats:
        """Return what the last layer reads of rows, projected, and a 1."""
        return last_hidden(self.network, self._forward(device), X, projection)

    def digest(self) -> str:
        """Compute SHA-256 of all that frozen predictions come from."""
        scalers = [self.inputs.scaler, self.target_scaler]
        arrays = [part for one in scalers if one is not None for part in (one.shift, one.scale)]
        if self.calibration is not None:
            arrays += [np.asarray(value) for value in self.calibration.arrays().values()]
        return networks_digest(self.networks.members, arrays)

    def status(self, X: NDArray[Any]) -> Statuses:
        """Return what the guard says of each row; 0 where there is none. See `flags`."""
        return np.zeros(len(X), np.uint8) if self.guard is None else self.guard.status(X)

    @cached_property
    def compact_novelty(self) -> CompactNovelty | None:
        """The novelty as exports carry it; None where none was fitted, or can be made compact.

        Files of before `unlike` have that of `fit_novelty` alone.
        """
        if self.unlike is not None or self.novelty is None:
            return self.unlike
        try:
            reading = Reading(self.inputs.shape, self.inputs.scaler)
            return compact(self.novelty, reading, judging(self.kept_rows[0]))
        except InputError:
            return None

    def with_novelty(
        self,
        novelty: Novelty,
        known: NDArray[Any],
        held_out: NDArray[Any] | None = None,
        groups: NDArray[Any] | None = None,
    ) -> Fitted:
        """Return the model with a novelty, and one that flags rows fitted to the same rows."""
        unlike = None
        with contextlib.suppress(InputError, np.linalg.LinAlgError):
            reading = Reading(self.inputs.shape, self.inputs.scaler)
            unlike = fit_unlike(reading, known, held_out, groups)
        return replace(self, novelty=novelty, unlike=unlike)

    def flags(self, X: NDArray[Any]) -> Statuses:
        """Return the status of each row, with UNLIKE as an export has it."""
        return self._judged(X)[0]

    def _judged(self, X: NDArray[Any]) -> tuple[Statuses, Floats]:
        """Return the status of each row, and the doubt of those that are UNLIKE.

        UNLIKE is for rows that no single input gives away.
        """
        status, novelty = self.status(X), self.compact_novelty
        if novelty is None:
            return status, np.zeros(len(X))
        surprise = novelty.surprise(Reading(self.inputs.shape, self.inputs.scaler).raw(X))
        unlike = (surprise > novelty.threshold[0]) & (status == 0)
        doubt = np.where(unlike, novelty.doubt(surprise), 0.0)
        return status | unlike * np.uint8(Status.UNLIKE), doubt

    def beyond(self, X: NDArray[Any]) -> Booleans:
        """Tell which inputs of each row the guard flags."""
        if self.guard is None:
            return np.zeros((len(X), X.shape[-1]), np.bool_)
        return self.guard.beyond(X)

    def uncalibrated(
        self, X: NDArray[Any], passes: Passes | None = None, device: torch.device = CPU
    ) -> AnyDistribution:
        """Predict in the target's units."""
        dist: AnyDistribution
        if isinstance(self.model, Process):
            dist = self.model.predict(X, self.reader, device)
        else:
            run = self.model.passes if passes is None else passes
            dist = run.run(self.model.members, X, self._forward(device))
        return self.target.in_units(dist, self.target_scaler)

    def epistemic_std(self, X: NDArray[Any], method: str, device: torch.device = CPU) -> Floats:
        """Return the part of the std that is uncertainty of the mean; of classes, of the logits."""
        epistemic, _, variance = self._epistemic(X, method, device)
        chosen = epistemic.calibration_of(method)
        factor = 1.0 if chosen is None or self.target.is_classes else chosen.summary()
        std: Floats = factor * np.sqrt(variance)
        return std

    def mutual_information(
        self, X: NDArray[Any], method: str, device: torch.device = CPU
    ) -> Floats:
        """Return what the true class would tell about the model, in nats."""
        epistemic, dist, variance = self._epistemic(X, method, device)
        chosen = epistemic.calibration_of(method)
        assert isinstance(dist, Categorical)
        return mutual_information(dist, variance, 1.0 if chosen is None else chosen.summary())

    def scaled(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return standardised rows in float32, of any range: what a novelty judges."""
        rows: NDArray[Any] = self.inputs.scaler.transform(X).numpy()
        return rows

    def described(
        self,
        target_names: Given | None,
        target_units: Given | None,
        feature_units: Given | None,
    ) -> Fitted:
        """Return the model with other texts, where they are given."""
        inputs = self.inputs
        if feature_units is not None:
            count = inputs.shape[-1]
            units = texts("feature_units", feature_units, count, inputs.names)
            inputs = replace(inputs, units=units)
        return replace(
            self, inputs=inputs, target=self.target.described(target_names, target_units)
        )

    def _adapted(
        self, dist: AnyDistribution, X: NDArray[Any], device: torch.device
    ) -> AnyDistribution:
        if self.correction is None:
            return dist
        phi = self.last_hidden(X, self.correction.projection, device)
        unit = None if self.target_scaler is None else self.target_scaler.scale
        return self.correction.apply(dist, phi, unit)

    def _guarded(self, dist: AnyDistribution, X: NDArray[Any]) -> AnyDistribution:
        if self.guard is None:
            return dist
        status, doubt = self._judged(X)
        flagged = status & ~DOUBTS
        if not flagged.any() and not doubt.any():
            return dist
        if isinstance(dist, Categorical):
            probs = self.guard.blended(self.guard.mixed(dist.probs, flagged), doubt)
            return Categorical(probs, dist.classes)
        mean, std = dist.mean, dist.std
        wide = self.guard.widened(std.reshape(len(std), -1), flagged)
        wide = self.guard.stretched(wide, doubt).reshape(std.shape)
        factor = np.where(wide > std, wide / std, 1.0)
        return dist.affine(np.where(factor > 1, (1 - factor) * mean, 0.0), factor)

    def _with_epistemic(
        self, X: NDArray[Any], method: str, device: torch.device
    ) -> AnyDistribution:
        epistemic, dist, variance = self._epistemic(X, method, device)
        total = epistemic.total(dist, variance, method)
        chosen = epistemic.calibration_of(method)
        return total if chosen is None else chosen.apply(total)

    def _epistemic(
        self, X: NDArray[Any], method: str, device: torch.device
    ) -> tuple[EpistemicPart, AnyDistribution, Floats]:
        """Return the fitted part, the single pass and the epistemic variance, in units."""
        if self.correction is not None:
            raise InputError(
                "the epistemic part is that of the frozen model, and this one was adapted; ask the "
                "model that it was adapted from"
            )
        if self.epistemic is None:
            raise InputError(
                "the model's file is older than epistemic uncertainty; fit the model again"
            )
        dist, variance = self.epistemic.passes(self.network, self._forward(device), X, method)
        dist = self.target.in_units(dist, self.target_scaler)
        return self.epistemic, dist, self.target.variance_in_units(variance, self.target_scaler)

    def _check_one_pass(self, passes: Passes | None) -> None:
        if passes is not None and not isinstance(passes, Single):
            raise InputError(
                "samples= is for models as they were trained: one that was adapted predicts in one "
                "pass; leave it out"
            )

    def _forward(self, device: torch.device) -> Forward:
        return Forward(self.reader, device, self.training.seed)


def score(held_out: HeldOutPredictions, calibration: Calibration | None) -> dict[str, float]:
    """Evaluate held-out predictions, calibrated."""
    dist = held_out.dist if calibration is None else calibration.apply(held_out.dist)
    return metrics.evaluate(dist, held_out.y)


def inputs_of(rows: FitRows, names: Texts | None, missing: str, scaler: Scaler) -> Inputs:
    """Say what rows a model takes that was trained on some with this scaler."""
    if scaler.encoding is not None:
        scaler = replace(scaler, encoding=scaler.encoding.settled)
    return Inputs(rows.X.shape[1:], names, missing, scaler)


def keep(
    held_out: HeldOutPredictions, after: AfterTraining, seed: int, encoding: Encoding | None = None
) -> Pair:
    """Choose held-out rows for the model file, in their order; codes as later rows have them."""
    chosen = np.random.default_rng(seed).permutation(len(held_out.y))[: after.keep_rows]
    X = held_out.X[np.sort(chosen)]
    X = X if encoding is None else encoding.settled_codes(X)
    return X, held_out.y[np.sort(chosen)]


def guard_for(rows: FitRows, target: Target, target_scaler: Scaler | None) -> Guard:
    """Learn the ranges of a fit's rows, and the spread or the frequencies of its targets."""
    part = rows.rows
    # Chosen before they are copied: the table may be large.
    X = rows.X[part.index[:: every(len(part), math.prod(rows.X.shape[1:]))]]
    levels = None
    if rows.encoding is not None:
        X, found = rows.encoding.settled_codes(X), rows.encoding.counts
        levels = found if found.any() else None
    if target_scaler is None:
        counts = np.bincount(rows.y[part.index], part.weight, target.outputs)
        return Guard.fit(X, counts / counts.sum(), levels)
    return Guard.fit(X, target_scaler.scale, levels)


def with_conformal(fitted: Fitted, rows: FitRows, device: torch.device) -> Fitted:
    """Add conformal thresholds from the rows set aside, where there are any.

    Where whole groups were set aside, the thresholds are those of a new group.
    """
    if rows.aside is None:
        return fitted
    (X, y), groups = rows.aside, rows.aside_groups
    if groups is not None and (count := len(np.unique(groups))) < ENOUGH_GROUPS:
        warnings.warn(
            f"{count} groups were set aside, with which conformal prediction can promise a new "
            f"group a coverage of {most_coverage(count):.3f} at most; beyond, intervals are "
            "infinite and sets hold every class",
            stacklevel=2,
        )
    dist = fitted.distribution(X, device=device)
    return replace(fitted, conformal=Conformal.fit(dist, y, groups, groups is not None))
