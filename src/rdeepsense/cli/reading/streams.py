"""Tables that are logs of a sensor: rows that look like their neighbours, in the order of time.

Single samples of a stream say little, and a random split puts neighbours on both sides of it. What
tells is a column of times in order, and numbers whose lag-1 autocorrelation

    r = sum (x_i - m)(x_(i+1) - m) / sum (x_i - m)^2

is high for several inputs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rdeepsense.cli.reading.dates import as_dates, source_of

if TYPE_CHECKING:
    import polars as pl

FEWEST_ROWS = 200
ALIKE, SEVERAL = 0.8, 2
MOST_INPUTS = 50  # that are looked at
IN_ORDER = 0.9  # of the steps; a log of several recordings goes back between them
CLOCK = re.compile(
    r"t|ts|time|.*[\W_]time|time[\W_].*|.*timestamp.*|date|datetime|seconds|ms|millis\w*",
    re.IGNORECASE,
)


def stream_hint(frame: pl.DataFrame, inputs: Sequence[str]) -> str | None:
    """Return what to do about a table that looks like a log; None of another."""
    if frame.height < FEWEST_ROWS:
        return None
    clock = next((name for name in frame.columns if _is_clock(frame[name])), None)
    if clock is None:
        return None
    # Parts of dates change slowly in any table that is sorted by them.
    own = [n for n in inputs if source_of(n) is None and n != clock]
    numbers = [n for n in own if frame[n].dtype.is_numeric()][:MOST_INPUTS]
    alike = [name for name in numbers if _autocorrelation(frame[name]) > ALIKE]
    if len(alike) < SEVERAL:
        return None
    columns = ",".join(alike[:3])
    return (
        f"rows look like samples of a stream: {clock} is in order, and {', '.join(alike[:5])} "
        f"hardly change from row to row. Single samples say little, and neighbours on both sides "
        f"of a split flatter the figures. Cut windows: --time {clock} --sensor NAME={columns} "
        "--window 5s --hop 1s --by RECORDING --groups USER"
    )


def _is_clock(series: pl.Series) -> bool:
    """Tell whether a column holds times that go on for most of the rows."""
    import numpy as np

    named = CLOCK.fullmatch(series.name.strip()) is not None
    if series.dtype.is_numeric():
        if not named:
            return False
        steps = np.diff(series.drop_nulls().to_numpy().astype(np.float64))
    else:
        parsed = as_dates(series)
        if parsed is None:
            return False
        steps = np.diff(parsed[0].drop_nulls().to_physical().to_numpy().astype(np.float64))
    return len(steps) > 0 and bool((steps > 0).mean() >= IN_ORDER)


def _autocorrelation(series: pl.Series) -> float:
    import numpy as np

    values = series.drop_nulls().to_numpy().astype(np.float64)
    values = values[np.isfinite(values)]
    if len(values) < FEWEST_ROWS:
        return 0.0
    values = values - values.mean()
    total = float(values @ values)
    return float(values[:-1] @ values[1:]) / total if total > 0 else 0.0
