"""Trip files of New York's Taxi and Limousine Commission (TLC), in the layouts of all years.

Yellow and green, CSV and Parquet; with coordinates, or since July 2016 with the ids of zones.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import polars as pl

BEGIN, END = "pick-up time", "drop-off time"
POSITIONS = (
    "pick-up longitude",
    "pick-up latitude",
    "drop-off longitude",
    "drop-off latitude",
)
ZONES = ("pick-up zone", "drop-off zone")
# What the columns were called over the years; compared in lower case, without spaces around.
SPELLINGS = {
    BEGIN: (
        "tpep_pickup_datetime",
        "lpep_pickup_datetime",
        "pickup_datetime",
        "trip_pickup_datetime",
    ),
    END: (
        "tpep_dropoff_datetime",
        "lpep_dropoff_datetime",
        "dropoff_datetime",
        "trip_dropoff_datetime",
    ),
    POSITIONS[0]: ("pickup_longitude", "start_lon"),
    POSITIONS[1]: ("pickup_latitude", "start_lat"),
    POSITIONS[2]: ("dropoff_longitude", "end_lon"),
    POSITIONS[3]: ("dropoff_latitude", "end_lat"),
    ZONES[0]: ("pulocationid",),
    ZONES[1]: ("dolocationid",),
}
TIMES = ("%Y-%m-%d %H:%M:%S", "%m/%d/%Y %I:%M:%S %p")  # the TLC's, and the city's open data site's


def find_files(folder: Path) -> list[Path]:
    """Return the trip files of a folder, in the order of their names."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder")
    found = [
        path
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in (".csv", ".parquet")
        and path.name.lower().startswith(("yellow", "green"))
    ]
    if not found:
        raise InputError(
            f"{folder}: holds no trip files; their names begin with yellow or green and end in "
            ".csv or .parquet, such as yellow_tripdata_2017-01.parquet"
        )
    return found


def scan(file: Path) -> pl.LazyFrame:
    """Read times, and positions or zones as numbers, null where missing; mark `unreadable` lines.

    Row n is line n + 2 of a CSV file: blank lines count.
    """
    import polars as pl

    if not file.stat().st_size:
        raise InputError(f"{file}: is empty")
    if file.suffix.lower() == ".parquet":
        raw = pl.scan_parquet(file, glob=False)
    else:
        # As text, so that one odd field costs one line; green files have commas too many.
        raw = pl.scan_csv(
            file, glob=False, infer_schema=False, truncate_ragged_lines=True, encoding="utf8-lossy"
        )
    has = _recognise(file, raw.collect_schema().names())
    return _values(raw.select(pl.col(old).alias(new) for new, old in has.items()))


def _recognise(file: Path, columns: list[str]) -> dict[str, str]:
    """Return our names of the columns to read, with the file's own."""
    plain = {column.strip().strip('"').lower(): column for column in columns}
    has = {
        name: plain[spelling]
        for name, spellings in SPELLINGS.items()
        for spelling in spellings
        if spelling in plain
    }
    where = POSITIONS if set(POSITIONS) <= set(has) else ZONES
    for name in (BEGIN, END, *where):
        if name not in has:
            accepted = " or ".join(SPELLINGS[name])
            if name in ZONES:
                accepted += "; or all four of pickup/dropoff_longitude/latitude"
            raise InputError(
                f"{file}: line 1: no column for the {name} ({accepted}); "
                f"it has {', '.join(columns)}"
            )
    return {name: has[name] for name in (BEGIN, END, *where)}


def _values(raw: pl.LazyFrame) -> pl.LazyFrame:
    """Read times as times and the rest as numbers; mark `unreadable` where text is neither."""
    import polars as pl

    values, unreadable = {}, [pl.lit(False)]
    for name, kind in raw.collect_schema().items():
        column = pl.col(name).str.strip_chars() if kind == pl.String else pl.col(name)
        if name not in (BEGIN, END):
            values[name] = column.cast(pl.Float64, strict=False)
        elif kind != pl.String:
            values[name] = column.cast(pl.Datetime("us"))
        else:
            values[name] = pl.coalesce(
                column.str.to_datetime(form, strict=False, time_unit="us") for form in TIMES
            )
        if kind == pl.String:
            unreadable.append(values[name].is_null() & (column.str.len_bytes() > 0))
    return raw.with_columns(unreadable=pl.any_horizontal(unreadable), **values)
