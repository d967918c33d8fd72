"""The interface that all distributions share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats, Index
from rdeepsense.distributions.notebook import shown_in_notebooks
from rdeepsense.errors import InputError


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
