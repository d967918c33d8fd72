"""The budget of a device: what a network needs there, and how good it is as exported."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.c.layout import Dimensions, Memory
from rdeepsense.deploy.fold import fold_fitted
from rdeepsense.deploy.quality import distribution
from rdeepsense.deploy.quantise import DTYPES, NetworkRunner, prepare
from rdeepsense.distributions import AnyDistribution
from rdeepsense.encoding import Encoding
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted, Inputs, Networks
from rdeepsense.fitting.passes import Single
from rdeepsense.fitting.records import Candidate, DeviceCost, TrainingReport
from rdeepsense.fitting.spec import TrainedNetwork
from rdeepsense.networks import Architecture, Dense, Own, Periodic, Shape

# --------------------------------------------------------------------------------------------------
# Predictions of a trained network after its export
#
# It is folded and rounded as an export does it, without the calibration, which is fitted on these
# very predictions afterwards, and without the guard, which is no part of a comparison.
# --------------------------------------------------------------------------------------------------


def as_exported(
    dist: AnyDistribution, X: NDArray[Any], trained: TrainedNetwork, dtype: str
) -> AnyDistribution:
    """Give predictions of X the mean and std, or the probabilities, of the stored network."""
    folded = fold_fitted(_fitted(trained))
    network = prepare(folded, dtype, trained.rows.astype(np.float32))
    return distribution(dist, NetworkRunner(folded, network).run(X.astype(np.float32)))


def _fitted(trained: TrainedNetwork) -> Fitted:
    """Dress a network up as a model; only what folding reads is true of it."""
    rows = trained.rows[:0]
    return Fitted(
        method="",
        inputs=Inputs(rows.shape[1:], None, "mean", trained.input_scaler),
        target=trained.target,
        target_scaler=trained.target_scaler,
        model=Networks(
            (trained.network,), Candidate("", 0.0, 0.0), Own(trained.network), 0.0, Single()
        ),
        calibration=None,
        training=TrainingReport(0, 0, 0, ""),
        selection=None,
        scores={},
        kept_rows=(rows, np.empty(0)),
    )


# --------------------------------------------------------------------------------------------------
# The budget of a device for a model exported as C
# --------------------------------------------------------------------------------------------------

KIB = 1024
UNITS = {"": 1, "b": 1, "kb": KIB, "kib": KIB, "mb": KIB**2, "mib": KIB**2}
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")
SIZES = "bytes, or a text such as '64 kB' or '1 MB'"


@dataclass(frozen=True)
class Budget:
    """Limits of a device for a model exported as C; None is no limit, and one must be given.

    Sizes are whole bytes or texts: "64 kB", "64KiB" and 65536 are the same, because makers of
    microcontrollers mean 1024 bytes by a kB (1 MB is 1024 of these).

    What a model needs is counted before it is trained. Scratch memory and multiply-adds are those
    of the export, and so are the tables of a model that has all that training may add: a shift of
    means, and flags of inputs that may be missing. For code and stack there are upper bounds of
    what gcc -O2 makes of it for a Cortex-M3, M4, M7 or M55, without what a core without floats
    takes from the compiler's own library. float16 counts as float32, because layers may have to
    stay that. What is exported on request is not counted: `epistemic`, `novelty`, `reject`, `live`.

    Parameters
    ----------
    flash : for tables and code.
    ram : for scratch memory and stack.
    multiply_adds : of one prediction.
    dtype : how weights are stored, "float32", "float16" or "int8"; models are judged in that form.
    """

    flash: int | str | None = None
    ram: int | str | None = None
    multiply_adds: int | None = None
    dtype: str = "int8"

    def __post_init__(self) -> None:
        for name in ("flash", "ram"):
            object.__setattr__(self, name, _bytes(name, getattr(self, name)))
        count: object = self.multiply_adds
        if count is not None:
            if isinstance(count, bool) or not hasattr(count, "__index__") or int(count) < 1:
                raise InputError(f"multiply_adds = {count!r} is not a whole number of at least 1")
            object.__setattr__(self, "multiply_adds", int(count))
        if self.dtype not in DTYPES:
            accepted = ", ".join(map(repr, DTYPES))
            raise InputError(f"dtype = {self.dtype!r} is unknown; accepted: {accepted}")
        if self.flash is None and self.ram is None and self.multiply_adds is None:
            raise InputError("a budget limits something; give flash, ram or multiply_adds")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what a command line says: flash=64kB,ram=8kB,multiply_adds=200000,dtype=int8."""
        found: dict[str, Any] = {}
        for part in text.split(","):
            name, sign, value = (word.strip() for word in part.partition("="))
            if not sign or name not in cls.__dataclass_fields__:
                accepted = ", ".join(f"{name}=" for name in cls.__dataclass_fields__)
                raise InputError(f"budget {text!r}: {part!r} is not understood; known: {accepted}")
            if name in found:
                raise InputError(f"budget {text!r}: {name} is given twice")
            found[name] = value
        count = found.get("multiply_adds")
        if count is not None:
            if not count.replace("_", "").isdecimal():
                raise InputError(f"budget {text!r}: multiply_adds={count} is not a whole number")
            found["multiply_adds"] = int(count)
        return cls(**found)

    def need(
        self,
        architecture: Architecture,
        shape: Shape,
        outputs: int,
        columns: int,
        encoding: Encoding | None = None,
    ) -> DeviceCost:
        """Count what a network needs, `columns` those of its last layer."""
        if not isinstance(architecture, Dense | Periodic) or len(shape) != 1:
            raise InputError(
                f"budget = {self!r} is for tables and networks of Dense or Periodic layers, whose "
                f"C can be counted before training; this is {architecture!r:.80} for rows of shape "
                f"{shape}"
            )
        embedding = None
        if isinstance(architecture, Periodic):
            embedding = architecture.frequencies, architecture.width
        widths = (*architecture.hidden, columns)
        planned = Dimensions.planned(shape[0], outputs, widths, self.dtype, embedding, encoding)
        memory = Memory.of(planned, self.dtype)
        return DeviceCost(memory.flash, memory.ram, planned.multiply_adds)

    def allows(self, need: DeviceCost) -> bool:
        """Tell whether a need is within every limit."""
        limits = (self.flash, self.ram, self.multiply_adds)
        needed = (need.flash, need.ram, need.multiply_adds)
        pairs = zip(needed, limits, strict=True)
        return all(limit is None or needs <= int(limit) for needs, limit in pairs)

    def as_exported(
        self, dist: AnyDistribution, X: NDArray[Any], trained: TrainedNetwork
    ) -> AnyDistribution:
        """Return predictions as the stored network makes them."""
        return as_exported(dist, X, trained, self.dtype)

    def words(self, need: DeviceCost) -> str:
        """Say what is needed, of what there is where there is a limit."""
        flash, ram = (_of(*pair) for pair in ((need.flash, self.flash), (need.ram, self.ram)))
        most = "" if self.multiply_adds is None else f" of {self.multiply_adds:,}"
        return f"flash {flash}, ram {ram}, {need.multiply_adds:,}{most} multiply-adds, {self.dtype}"

    def to_json(self) -> dict[str, Any]:
        """Return the limits, sizes in bytes."""
        return asdict(self)


def _bytes(name: str, size: object) -> int | None:
    """Read a size in bytes."""
    if size is None:
        return None
    if isinstance(size, str):
        found = SIZE.fullmatch(size)
        unit = None if found is None else UNITS.get(found[2].lower())
        if found is None or unit is None:
            raise InputError(f"{name} = {size!r} is no size; accepted: {SIZES}")
        value = int(float(found[1]) * unit)
    elif isinstance(size, bool) or not hasattr(size, "__index__"):
        raise InputError(f"{name} = {size!r} is no size; accepted: {SIZES}")
    else:
        value = int(size)
    if value < 1:
        raise InputError(f"{name} = {size!r} is less than a byte; accepted: {SIZES}")
    return value


def _of(need: int, limit: int | str | None) -> str:
    if limit is None:
        return f"{need / KIB:.1f} kB"
    return f"{need / KIB:.1f} of {int(limit) / KIB:g} kB"
