"""Columns that number rows or recordings: they say nothing about rows to come."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

FEWEST_ROWS = 10  # of fewer, any column may be in order by chance
NAMED = re.compile(
    r"(.*[\W_])?(id|idx|index|uuid|guid|row|nr)[\W_]*|unnamed.*|__index_level_\d+__", re.IGNORECASE
)
RECORDINGS = re.compile(
    r"(.*[\W_])?(recordings?|sessions?|segments?|experiments?|trials?|episodes?|sequences?)[\W_]*",
    re.IGNORECASE,
)
CASED = re.compile(r".*[a-z](Id|ID)")  # userId, but not "humid"


def is_named_id(name: str) -> bool:
    """Tell whether a name, such as "id", "row", "user_id" or "Unnamed: 0", is that of an id."""
    return bool(NAMED.fullmatch(name.strip()) or CASED.fullmatch(name.strip()))


def ids_among(frame: pl.DataFrame, names: Sequence[str]) -> dict[str, str]:
    """Return which of these columns number the rows, and why one thinks so.

    Whole numbers without gaps in the column, each there once: in order, or called id or index. Or
    each in one run of rows, and called recording, session or the like.
    """
    found = dict[str, str]()
    if frame.height < FEWEST_ROWS:
        return found
    for name in names:
        if frame[name].null_count():
            continue
        values = frame[name].to_numpy()
        if (values[1:] > values[:-1]).all() or (values[1:] < values[:-1]).all():
            found[name] = "whole numbers in order, each once: numbers of rows, or times"
        elif is_named_id(name) and frame[name].n_unique() == frame.height:
            found[name] = "whole numbers, each once: an id"
        elif RECORDINGS.fullmatch(name.strip()):
            runs, distinct = 1 + int((values[1:] != values[:-1]).sum()), frame[name].n_unique()
            if runs == distinct > 1:
                found[name] = "whole numbers in runs: numbers of recordings"
    return found
