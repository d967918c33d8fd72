"""DeepSense: convolutions and a GRU over windows of sensor data, and its augmentations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from rdeepsense import _torch
from rdeepsense.arrays import Floats
from rdeepsense.errors import InputError
from rdeepsense.networks.base import InputUnits, Shape

# --------------------------------------------------------------------------------------------------
# The frequency response of short intervals, as a layer
# --------------------------------------------------------------------------------------------------

QUIET = 0.5e-3


class FrequencyResponse(nn.Module):
    """Windows (rows, time, channels) -> (rows, channels, terms, intervals).

    With X_f = sum_t x_t exp(-2 pi i f t / n) / n for an interval of n samples x, the terms are
    the mean X_0 with its sign, which tells the direction of gravity, and, because motion spans
    orders of magnitude,

        log(sqrt(|X_f|^2 + q^2) + q),   f = 1 .. n/2,   2 q = 0.001 of a standardised channel

    whose slope is finite where all is silent. The sums are products with fixed matrices: for
    intervals this short they cost no more than an FFT, and every run-time has them.
    """

    cosines: Tensor
    sines: Tensor

    def __init__(self, interval: int) -> None:
        super().__init__()
        self.interval = interval
        self.terms = interval // 2 + 1
        for name in ("cosines", "sines"):
            table = torch.empty(interval, self.terms, dtype=torch.float32)
            self.register_buffer(name, table, persistent=False)
        # Without memory there is a shape alone: to compute one would import torch's compiler.
        if not self.cosines.is_meta:
            self._fill()

    def _fill(self) -> None:
        angles = torch.outer(torch.arange(self.interval), torch.arange(self.terms)) % self.interval
        angles = angles.double() * (2 * math.pi / self.interval)
        self.cosines.copy_(angles.cos() / self.interval)
        self.sines.copy_(angles.sin() / self.interval)

    def forward(self, x: Tensor) -> Tensor:
        parts = x.unflatten(1, (-1, self.interval)).permute(0, 3, 1, 2)
        real, imaginary = parts @ self.cosines, parts @ self.sines
        power = real[..., 1:] ** 2 + imaginary[..., 1:] ** 2
        response = torch.log(torch.sqrt(power + QUIET**2) + QUIET)
        return torch.cat([real[..., :1], response], -1).transpose(2, 3)


# --------------------------------------------------------------------------------------------------
# Random rotation of the sensors in training, for any orientation of a phone
# --------------------------------------------------------------------------------------------------

AXES = 3


class RandomRotation(InputUnits):
    """Windows (rows, time, channels), each seen through sensors rotated at random.

    One rotation vector v ~ N(0, spread^2 I), in radians, is drawn for each window, and every sensor
    of three channels is rotated by the angle t = |v| about v (Rodrigues):

        p' = p + sin(t) / t  v x p + (1 - cos(t)) / t^2  v x (v x p)

    Only p in the sensor's own units can be rotated: the mean that a scaler takes away holds
    gravity, and its axes differ in scale. Inputs are x = (p - shift) / scale, as
    `set_units` sets; before that shift is 0 and scale 1. In evaluation mode nothing is done.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, sensors: Sequence[int], spread: float) -> None:
        super().__init__()
        self.sensors, self.spread = tuple(sensors), spread
        # Of training alone, so that model files need not hold them.
        self.register_buffer("shift", torch.zeros(1, sum(sensors)), persistent=False)
        self.register_buffer("scale", torch.ones(1, sum(sensors)), persistent=False)

    def set_units(self, shift: Floats, scale: Floats) -> None:
        """Note how inputs were standardised: by channel, or each number of a flat window."""
        self.shift, self.scale = (
            torch.tensor(values).to(self.shift).view(-1, sum(self.sensors))
            for values in (shift, scale)
        )

    def forward(self, x: Tensor) -> Tensor:
        if not (self.training and self.spread):
            return x
        vector = self.spread * torch.randn(
            len(x),
            1,
            AXES,
            generator=_torch.current(x.device),
            dtype=x.dtype,
            device=x.device,
        )
        raw = (x * self.scale + self.shift).split(self.sensors, dim=-1)
        moved = [_moved(p, vector) if p.shape[-1] == AXES else torch.zeros_like(p) for p in raw]
        return x + torch.cat(moved, -1) / self.scale

    def extra_repr(self) -> str:
        return f"sensors={self.sensors}, spread={self.spread}"


def _moved(points: Tensor, vector: Tensor) -> Tensor:
    """Return p' - p; sinc(a) = sin(pi a) / (pi a) does not divide by 0 where nothing is rotated."""
    turns = torch.linalg.vector_norm(vector, dim=-1, keepdim=True) / math.pi
    once = torch.linalg.cross(vector, points)
    twice = torch.linalg.cross(vector, once)
    moved: Tensor = torch.sinc(turns) * once + 0.5 * torch.sinc(turns / 2) ** 2 * twice
    return moved


# --------------------------------------------------------------------------------------------------
# Rounding of the sensors in training, as browsers round acceleration
# --------------------------------------------------------------------------------------------------


class RandomRounding(InputUnits):
    """Windows (rows, time, channels), about half of them as sensors that round would give them.

    A sensor with a step s > 0, in its own units, gives s round(p / s) of p. Inputs are
    x = (p - shift) / scale, as `set_units` sets. In evaluation mode nothing is done.
    """

    shift: Tensor
    scale: Tensor
    steps: Tensor

    def __init__(self, sensors: Sequence[int], steps: Sequence[float]) -> None:
        super().__init__()
        self.rounds = any(steps)
        own = [step for step, count in zip(steps, sensors, strict=True) for _ in range(count)]
        # Of training alone, so that model files need not hold them.
        for name, value in (
            ("steps", own),
            ("shift", [0.0] * len(own)),
            ("scale", [1.0] * len(own)),
        ):
            self.register_buffer(name, torch.tensor(value).view(1, -1), persistent=False)

    def set_units(self, shift: Floats, scale: Floats) -> None:
        """Note how inputs were standardised: by channel, or each number of a flat window."""
        channels = self.steps.shape[1]
        self.shift, self.scale = (
            torch.tensor(values).to(self.shift).view(-1, channels) for values in (shift, scale)
        )

    def forward(self, x: Tensor) -> Tensor:
        if not (self.training and self.rounds):
            return x
        drawn = torch.rand(
            len(x), 1, 1, generator=_torch.current(x.device), dtype=x.dtype, device=x.device
        )
        raw = x * self.scale + self.shift
        step = torch.where(self.steps > 0, self.steps, 1.0)
        rounded = (step * torch.round(raw / step) - self.shift) / self.scale
        return torch.where((drawn < 0.5) & (self.steps > 0), rounded, x)


# --------------------------------------------------------------------------------------------------
# DeepSense (Yao et al. 2017): convolutions over frequency, then a GRU over time
#
# For every interval of a quarter of a second, each sensor's frequency response goes through
# separate convolutions (all axes of the sensor are channels of the first); their outputs are merged
# by further convolutions; a stacked GRU reads what they make of one interval after the other. Its
# states are averaged over time, and one Linear layer gives the outputs.
# --------------------------------------------------------------------------------------------------

KERNEL, PADDING = (1, 3), (0, 1)
POOLS = ("mean", "last")


@dataclass(frozen=True)
class DeepSense:
    """A DeepSense network; the number of outputs is found when it is fitted.

    Parameters
    ----------
    sensors : channels of each sensor, in the order of the window's channels: ``(3, 3)`` is an
        accelerometer and a gyroscope.
    interval : samples of one interval, which must divide the length of a window; 12 is a quarter
        of a second at 50 Hz.
    filters : of every convolution.
    depth : convolutions for each sensor, and again for the merged ones.
    hidden : states of each GRU layer.
    layers : of the GRU.
    pool : "mean" of the states over time, or the "last" one.
    rotation_std : while training, every window is rotated at random, the same for all sensors of
        three channels; each part of the rotation vector has this standard deviation, in radians.
        For sensors that are worn a little differently every time; 0 for those fixed in place.
    rounding : while training, about half of the windows are seen as sensors that round would give
        them: the step of each sensor in its own units, 0 for none, such as ``(0.1, 0)`` for the
        acceleration of a browser. Empty where no sensor rounds.
    """

    sensors: Sequence[int] = (3, 3)
    interval: int = 12
    filters: int = 32
    depth: int = 2
    hidden: int = 64
    layers: int = 2
    pool: str = "mean"
    rotation_std: float = 0.0
    rounding: Sequence[float] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.sensors, list | tuple) or not self.sensors:
            raise InputError(
                f"sensors = {self.sensors!r} does not list the number of channels of each "
                "sensor, such as (3, 3)"
            )
        object.__setattr__(self, "sensors", tuple(self.sensors))
        sizes = {f"sensors[{k}]": size for k, size in enumerate(self.sensors)}
        names = ("interval", "filters", "depth", "hidden", "layers")
        for name, size in (sizes | {name: getattr(self, name) for name in names}).items():
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise InputError(f"{name} = {size!r} is not a whole number of at least 1")
        if self.pool not in POOLS:
            raise InputError(f"pool = {self.pool!r} is unknown; accepted: {', '.join(POOLS)}")
        object.__setattr__(self, "rounding", _steps(self.rounding, self.sensors))
        std = self.rotation_std
        number = isinstance(std, int | float) and not isinstance(std, bool)
        if not number or not 0 <= std < math.inf:
            raise InputError(f"rotation_std = {std!r} is not a finite number >= 0 (radians)")
        if std and AXES not in self.sensors:
            raise InputError(
                f"rotation_std = {std!r} rotates sensors of {AXES} channels; sensors = "
                f"{self.sensors} has none, so leave rotation_std at 0"
            )

    def build(self, shape: Shape, outputs: int, member: int) -> nn.Module:
        """Build the network for windows (rows, time, channels)."""
        return DeepSenseNetwork(self, outputs)

    def arguments(self) -> dict[str, Any]:
        found = asdict(self)
        if not self.rounding:  # files of models that do not round stay as they were
            del found["rounding"]
        return found

    def shortest(self, shape: Shape) -> Shape:
        """Return the shape of a window of one interval, which passes through every layer."""
        return shape if len(shape) == 1 else (self.interval, *shape[1:])

    def check(self, shape: Shape) -> None:
        """Refuse rows of a shape that the network cannot take."""
        channels = sum(self.sensors)
        flat = len(shape) == 1 and shape[0] % (channels * self.interval) == 0
        windows = len(shape) == 2 and shape[1] == channels and shape[0] % self.interval == 0
        if not (flat or windows):
            raise InputError(
                f"X has rows of shape {shape}; DeepSense with sensors = {self.sensors} takes "
                f"windows (rows, time, {channels}), or the same flattened, with a time that is a "
                f"multiple of interval = {self.interval}"
            )


class DeepSenseNetwork(nn.Module):
    """The network itself, on windows (rows, time, channels), raw or standardised by channel."""

    def __init__(self, spec: DeepSense, outputs: int) -> None:
        super().__init__()
        self.sensors, self.pool = tuple(spec.sensors), spec.pool
        self.rotation = RandomRotation(self.sensors, spec.rotation_std)
        self.rounding = RandomRounding(self.sensors, spec.rounding or (0.0,) * len(self.sensors))
        self.response = FrequencyResponse(spec.interval)
        terms = self.response.terms
        # Terms are of very different size, so each gets its own scale.
        self.scale = nn.BatchNorm1d(sum(self.sensors) * terms)
        self.single = nn.ModuleList(
            _convolutions(axes, spec.filters, spec.depth) for axes in self.sensors
        )
        self.merged = _convolutions(len(self.sensors) * spec.filters, spec.filters, spec.depth)
        self.recurrent = nn.GRU(
            spec.filters * terms, spec.hidden, num_layers=spec.layers, batch_first=True
        )
        self.output = nn.Linear(spec.hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 2:
            x = x.unflatten(1, (-1, sum(self.sensors)))
        scaled = self.scale(self.response(self.rounding(self.rotation(x))).flatten(1, 2))
        parts = scaled.unflatten(1, (-1, self.response.terms)).transpose(2, 3)
        split = parts.split(self.sensors, dim=1)
        found = [own(part) for own, part in zip(self.single, split, strict=True)]
        merged = self.merged(torch.cat(found, 1))
        states, _ = self.recurrent(merged.transpose(1, 2).flatten(2))
        pooled = states.mean(1) if self.pool == "mean" else states[:, -1]
        output: Tensor = self.output(pooled)
        return output


def _steps(given: Sequence[float], sensors: Sequence[int]) -> tuple[float, ...]:
    """Return the step of each sensor; none at all where all are 0."""
    listed = isinstance(given, list | tuple) and len(given) in (0, len(sensors))
    if not listed or not all(
        isinstance(step, int | float) and not isinstance(step, bool) and 0 <= step < math.inf
        for step in given
    ):
        raise InputError(
            f"rounding = {given!r} is no list of a step >= 0 for each sensor, such as (0.1, 0); "
            f"sensors = {tuple(sensors)}"
        )
    return tuple(map(float, given)) if any(given) else ()


def _convolutions(channels: int, filters: int, depth: int) -> nn.Sequential:
    """Convolve over the frequencies of (rows, channels, intervals, frequencies).

    With the intervals as an axis, a channel that is dropped is dropped for the whole window.
    """
    layers: list[nn.Module] = []
    for _ in range(depth):
        convolution = nn.Conv2d(channels, filters, KERNEL, padding=PADDING, bias=False)
        layers += [convolution, nn.BatchNorm2d(filters), nn.ReLU()]
        channels = filters
    return nn.Sequential(*layers)
