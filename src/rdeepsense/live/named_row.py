"""One row with its inputs by name: a dictionary, or a Series of pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rdeepsense.data.categories import is_missing, objects_of
from rdeepsense.data.dates import further_columns, holds_dates, needed_for
from rdeepsense.errors import InputError, nearest


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
