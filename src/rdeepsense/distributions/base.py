"""The interface that all distributions share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, Self, TypeVar

import numpy as np

from rdeepsense.arrays import Floats, Index


class Distribution:
    """Base of all distributions: immutability, indexing, comparison by value."""

    __hash__ = None  # type: ignore[assignment]

    def _freeze(self, **parameters: Floats) -> None:
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
        return all(np.array_equal(mine, vars(other)[name]) for name, mine in vars(self).items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape})"

    def followed_by(self, others: Sequence[Self]) -> Self:
        joined = object.__new__(type(self))
        for name, mine in vars(self).items():
            joined._freeze(**{name: np.concatenate([mine, *(vars(o)[name] for o in others)])})
        return joined

    def __getitem__(self, index: Index) -> Self:
        """Return the distributions of some entries; `index` is whatever numpy takes for `shape`."""
        entries = np.arange(np.prod(self.shape, dtype=int)).reshape(self.shape)[index]
        # Not the constructor: normalising probabilities twice could change their last digit.
        new = object.__new__(type(self))
        for name, value in vars(self).items():
            class_axis = value.shape[len(self.shape) :]
            new._freeze(**{name: np.array(value.reshape(-1, *class_axis)[entries])})
        return new


Kind = TypeVar("Kind", bound=Distribution)


def concatenate(distributions: Sequence[Kind]) -> Kind:
    """Join distributions of one kind along the first axis."""
    return distributions[0].followed_by(distributions[1:])
