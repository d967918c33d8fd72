"""What all distributions share: checks of parameters, display in notebooks, location and scale."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats, Index
from rdeepsense.errors import InputError, share

# --------------------------------------------------------------------------------------------------
# Checks of the arguments of distributions
# --------------------------------------------------------------------------------------------------

Seed = np.random.Generator | int


def floats(name: str, value: npt.ArrayLike) -> Floats:
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} must be a number or an array of numbers; {error}") from error


def refuse(name: str, values: Floats, bad: Booleans, accepted: str) -> None:
    if np.any(bad):
        raise InputError(f"{name} must be {accepted}; got {values[bad].flat[0]}")


def finite(name: str, value: npt.ArrayLike) -> Floats:
    values = floats(name, value)
    refuse(name, values, ~np.isfinite(values), "finite")
    return values


def positive(name: str, value: npt.ArrayLike) -> Floats:
    values = finite(name, value)
    refuse(name, values, values <= 0, "greater than 0")
    return values


def numbers(name: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Check numbers, infinite ones too, that broadcast against the shape of a distribution."""
    values = floats(name, value)
    refuse(name, values, np.isnan(values), "a number")
    try:
        np.broadcast_shapes(values.shape, shape)
    except ValueError:
        hint = f"; for every row with each of them give {name}[:, None]"
        raise InputError(
            f"{name} must broadcast against the distribution's shape {shape}; got {values.shape}"
            f"{hint if values.ndim == 1 else ''}"
        ) from None
    return values


def fractions(name: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> Floats:
    values = numbers(name, value, shape)
    meant = share(values.flat[values.argmax()].item()) if values.size else ""
    refuse(name, values, (values < 0) | (values > 1), f"between 0 and 1{meant}")
    return values


def broadcast(**parameters: Floats) -> list[Floats]:
    try:
        return [np.array(values) for values in np.broadcast_arrays(*parameters.values())]
    except ValueError:
        shapes = ", ".join(f"{name} {values.shape}" for name, values in parameters.items())
        raise InputError(f"shapes must broadcast against each other; got {shapes}") from None


def count(n: int) -> int:
    try:
        count = operator.index(n)
    except TypeError:
        raise InputError(f"n must be an integer; got {n!r}") from None
    if count < 1:
        raise InputError(f"n must be 1 or greater; got {n}")
    return count


def generator(rng: Seed) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, int | np.integer) and rng >= 0:
        return np.random.default_rng(int(rng))
    raise InputError(f"rng must be a numpy Generator or a seed of 0 or greater; got {rng!r}")


# --------------------------------------------------------------------------------------------------
# Display of distributions in notebooks
# --------------------------------------------------------------------------------------------------

LINES, BARS = 5, 60
WIDTH, HEIGHT = 360, 90  # pixels


def shown_in_notebooks(dist: Any) -> str:  # Any: whichever of the distributions
    """Return the first entries of a distribution as HTML."""
    entries = int(np.prod(dist.shape))
    few = dist[:BARS] if dist.shape else dist  # some distributions take their time
    shown = _classes(few, entries) if dist.is_categorical else _numbers(few, entries)
    return f"<div><b>{escape(repr(dist))}</b>{shown}</div>"


def _numbers(dist: Any, entries: int) -> str:
    """Show mean, std and 90 % interval of some entries, and the intervals of more of them."""
    flat = [np.reshape(np.asarray(one), -1) for one in (dist.mean, dist.std, *dist.interval(0.9))]
    mean, std, low, high = flat
    rows = [
        [str(k), f"{mean[k]:.4g}", f"{std[k]:.4g}", f"{low[k]:.4g} to {high[k]:.4g}"]
        for k in range(min(LINES, len(mean)))
    ]
    drawn = _bars(mean[:BARS], low[:BARS], high[:BARS]) if entries else ""
    return drawn + _table(["", "mean", "std", "90 % interval"], rows, entries)


def _classes(dist: Any, entries: int) -> str:
    """Show the most probable classes of some entries."""
    probs = np.reshape(dist.mean, (-1, dist.mean.shape[-1]))
    first = getattr(dist, "components", (dist,))[0]  # of a mixture
    labels = [str(c) for c in (range(probs.shape[1]) if first.classes is None else first.classes)]
    rows = []
    for k in range(min(LINES, len(probs))):
        best = np.argsort(-probs[k], kind="stable")[:3]
        rows.append([str(k), ", ".join(f"{labels[c]} {100 * probs[k, c]:.0f} %" for c in best)])
    return _table(["", "most probable"], rows, entries)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], entries: int) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    more = f"<small>and {entries - len(rows):,} more</small>" if entries > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _bars(mean: Floats, low: Floats, high: Floats) -> str:
    """Draw a line from low to high and a dot for each entry, in the reader's own colour."""
    ends = np.concatenate([low, high])
    ends = ends[np.isfinite(ends)]
    if not len(ends):
        return ""
    least, span = float(ends.min()), float(np.ptp(ends)) or 1.0

    def across(values: Floats) -> Floats:
        return np.asarray(HEIGHT - 5 - (np.clip(values, least, ends.max()) - least) / span
                          * (HEIGHT - 10))  # fmt: skip

    places = 4 + (WIDTH - 8) * (np.arange(len(mean)) + 0.5) / len(mean)
    marks = "".join(
        f'<path d="M{x:.1f} {a:.1f}V{b:.1f}" stroke="currentColor" stroke-opacity=".4" '
        f'stroke-width="3"/><circle cx="{x:.1f}" cy="{m:.1f}" r="2" fill="currentColor"/>'
        for x, a, b, m in zip(places, across(low), across(high), across(mean), strict=True)
    )
    return (
        f'<svg role="img" aria-label="90 % intervals of the first {len(mean)} entries, from '
        f'{least:.4g} to {least + span:.4g}" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" style="display:block">{marks}</svg>'
    )


# --------------------------------------------------------------------------------------------------
# The interface that all distributions share
# --------------------------------------------------------------------------------------------------


class Distribution:
    """Base of all distributions: immutability, indexing, comparison by value."""

    __hash__ = None  # type: ignore[assignment]
    _shared: ClassVar[tuple[str, ...]] = ()  # attributes that all entries have in common

    def _freeze(self, **parameters: NDArray[Any]) -> None:
        for name, value in parameters.items():
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed: make a new one")

    def __setstate__(self, state: dict[str, Floats]) -> None:
        self._freeze(**state)

    @property
    def is_categorical(self) -> bool:
        """Whether values are class indices rather than numbers."""
        return False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values; for classes, the class axis is not part of it."""
        raise NotImplementedError

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"a {type(self).__name__} of one value has no length")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        mine, theirs = vars(self), vars(other)
        return mine.keys() == theirs.keys() and all(
            np.array_equal(value, theirs[name]) for name, value in mine.items()
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape})"

    def _repr_html_(self) -> str:
        return shown_in_notebooks(self)

    def followed_by(self, others: Sequence[Self]) -> Self:
        for name in self._shared:
            if not all_equal([vars(one).get(name) for one in (self, *others)]):
                raise InputError(f"distributions with other {name} cannot be joined")
        return self._made_of(
            lambda name, mine: np.concatenate([mine, *(vars(o)[name] for o in others)])
        )

    def __getitem__(self, index: Index) -> Self:
        """Return the distributions of some entries; `index` is whatever numpy takes for `shape`."""
        entries = np.arange(np.prod(self.shape, dtype=int)).reshape(self.shape)[index]
        axes = len(self.shape)
        return self._made_of(
            lambda _, value: np.array(value.reshape(-1, *value.shape[axes:])[entries])
        )

    def _made_of(self, change: Callable[[str, Floats], Floats], **shared: NDArray[Any]) -> Self:
        """Return the distribution whose parameters are `change(name, value)` of this one's."""
        # Not the constructor: normalising probabilities twice could change their last digit.
        new = object.__new__(type(self))
        for name, value in vars(self).items():
            new._freeze(**{name: value if name in self._shared else change(name, value)})
        new._freeze(**shared)
        return new


def all_equal(arrays: Sequence[NDArray[Any] | None]) -> bool:
    """Tell whether arrays, any of which may not be there, are one and the same."""
    first, *others = arrays
    if first is None:
        return all(other is None for other in others)
    return all(other is not None and np.array_equal(first, other) for other in others)


Kind = TypeVar("Kind", bound=Distribution)


def concatenate(distributions: Sequence[Kind]) -> Kind:
    """Join distributions of one kind along the first axis."""
    return distributions[0].followed_by(distributions[1:])


# --------------------------------------------------------------------------------------------------
# Location-scale distributions
# --------------------------------------------------------------------------------------------------


class LocationScale(Distribution):
    """Y = centre + width * Z, for a standard Z that is symmetric about 0 and has one mode.

    A subclass freezes `centre` and `width` and fills in the eight hooks below. One whose Z has a
    shape of its own, or a standard deviation other than 1, overrides the three after them too.
    """

    centre: Floats
    width: Floats

    def _with(self, centre: Floats, width: Floats) -> Self:
        raise NotImplementedError

    def _log_density(self, z: Floats) -> Floats:
        raise NotImplementedError

    def _cdf(self, z: Floats) -> Floats:
        raise NotImplementedError

    def _quantile(self, q: Floats) -> Floats:
        raise NotImplementedError

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        raise NotImplementedError

    def _entropy(self) -> Floats | float:
        raise NotImplementedError

    def _distance(self, z: Floats) -> Floats:
        """Return E|Z - z|."""
        raise NotImplementedError

    def _self_distance(self) -> Floats | float:
        """Return E|Z - Z'| of two independent draws."""
        raise NotImplementedError

    def is_like(self, other: Distribution) -> bool:
        """Tell whether Z is the same, entry by entry."""
        return type(self) is type(other)

    def with_moments(self, mean: Floats, std: Floats) -> Self:
        """Return the distribution of the same Z with this mean and standard deviation."""
        return self._with(mean, std)

    def standard_forms(self) -> Iterator[tuple[Index, Self]]:
        """Yield entries with one and the same Z, and its distribution (centre 0, width 1)."""
        yield ..., self._with(np.zeros(()), np.ones(()))

    def __repr__(self) -> str:
        if not self.centre.size:
            return super().__repr__()
        mean, std = float(np.mean(self.mean)), float(np.mean(self.std))
        return f"{type(self).__name__}(shape={self.shape}, mean={mean:.4g}, std={std:.4g})"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.centre.shape

    @property
    def mean(self) -> Floats:
        return self.centre

    @property
    def std(self) -> Floats:
        return self.width

    @property
    def var(self) -> Floats:
        return self.std**2

    @property
    def mode(self) -> Floats:
        return self.centre

    def _standardised(self, y: npt.ArrayLike) -> Floats:
        return (numbers("y", y, self.shape) - self.centre) / self.width

    def log_prob(self, y: npt.ArrayLike) -> Floats:
        """Return the logarithm of the density at y."""
        return self._log_density(self._standardised(y)) - np.log(self.width)

    def cdf(self, y: npt.ArrayLike) -> Floats:
        """Return P(Y <= y)."""
        return self._cdf(self._standardised(y))

    def quantile(self, q: npt.ArrayLike) -> Floats:
        """Return the y with P(Y <= y) = q; -inf and inf for q = 0 and 1."""
        return self.centre + self.width * self._quantile(fractions("q", q, self.shape))

    def interval(self, coverage: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Return the central interval (low, high) that holds Y with probability `coverage`."""
        low = self.quantile((1 - fractions("coverage", coverage, self.shape)) / 2)
        return low, 2 * self.centre - low

    def entropy(self) -> Floats:
        """Return E[-log p(Y)] in nats: that of Z plus log width."""
        return self._entropy() + np.log(self.width)

    def crps(self, y: npt.ArrayLike) -> Floats:
        """Return the continuous ranked probability score E|Y - y| - E|Y - Y'| / 2."""
        return self.width * (self._distance(self._standardised(y)) - self._self_distance() / 2)

    def mean_distance(self, y: Floats) -> Floats:
        """Return E|Y - y|."""
        return self.width * self._distance((y - self.centre) / self.width)

    def sample(self, n: int, rng: Seed) -> Floats:
        """Draw n independent values of every entry, of shape (n, *shape)."""
        shape = (count(n), *self.shape)
        return self.centre + self.width * self._draw(shape, generator(rng))

    def affine(self, shift: npt.ArrayLike, scale: npt.ArrayLike) -> Self:
        """Return the distribution of shift + scale * Y, for a scale that is not 0."""
        factor = finite("scale", scale)
        refuse("scale", factor, factor == 0, "different from 0")
        return self._with(finite("shift", shift) + factor * self.centre, abs(factor) * self.width)

    def widened(self, factor: npt.ArrayLike) -> Self:
        """Return the distribution of the same centre with the standard deviation times `factor`."""
        return self._with(self.centre, positive("factor", factor) * self.width)
