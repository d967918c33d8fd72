"""NYCommute (section 4.2): minutes of a New York taxi trip from where and when it begins and ends.

Five inputs: longitude and latitude of pick-up and drop-off in degrees, and the time of day of the
pick-up in hours (New York wall-clock time). The paper standardises them; here that is left to the
estimators, which standardise on the rows they train on. Target: minutes from pick-up to drop-off.

Reads the trip files of the Taxi and Limousine Commission (TLC), yellow and green, CSV and Parquet:
the older layouts with coordinates, and the newer one with zone ids, whose positions then are the
centroids in `zones.csv` (or those of the TLC's `taxi_zones.shp`) in the same folder.

Dropped, and counted in `source`: lines that cannot be read; trips without a position (0 is how the
meters write a missing coordinate) or a time; trips in zones without a centroid; trips that take
less than 0 or at least 24 hours. Nothing else: the heavy tail, with its trips of almost 24 hours,
is part of the task. `drop_corrupted=True` keeps only trips that

- take at least 1 and at most 180 minutes,
- begin and end in the box 74.3 to 73.6 degrees west, 40.4 to 41.0 degrees north, and
- have a great-circle distance / duration of at most 100 miles per hour.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.errors import InputError, require
from rdeepsense.experiments.tasks.task import Task
from rdeepsense.experiments.tasks.tlc import BEGIN, END, POSITIONS, ZONES, find_files, scan
from rdeepsense.experiments.tasks.zones import centroids

if TYPE_CHECKING:
    import polars as pl

FEATURES = (*POSITIONS, "time of day")
FATES = (
    "kept",
    "unreadable",
    "without position or time",
    "in zones without a centroid",
    "not within [0, 24) hours",
    "corrupted",
)
KEPT, UNREADABLE, MISSING, NO_ZONE, IMPOSSIBLE, CORRUPTED = range(len(FATES))
MOST_UNREADABLE = 0.01  # of the lines of a file; beyond, it is no file of trips
MINUTES, BOX, MOST_MPH = (1.0, 180.0), ((-74.3, -73.6), (40.4, 41.0)), 100.0
EARTH_MILES = 3958.8


def load(folder: Path, drop_corrupted: bool = False) -> Task:
    """Return all trips in the files `yellow*` and `green*` of a folder."""
    files = find_files(folder)
    counts = np.zeros(len(FATES), dtype=np.int64)
    first, parts = "", []
    for file in files:
        frame, unreadable = _read(file, drop_corrupted)
        fates = np.bincount(frame["fate"].to_numpy(), minlength=len(FATES))
        if fates[UNREADABLE] > MOST_UNREADABLE * len(frame):
            raise InputError(
                f"{unreadable}; {fates[UNREADABLE]:,} of its {len(frame):,} lines cannot"
            )
        counts, first = counts + fates, first or unreadable
        parts.append(_arrays(frame.filter(frame["fate"] == KEPT)))
    X, y, day = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Task(
        name="NYCommute",
        X=X,
        y=y,
        features=FEATURES,
        targets=("duration",),
        unit="min",
        source=_source(files, counts, first),
        simulated=False,
        groups=day,
        grouped_by="day",
    )


def _read(file: Path, drop_corrupted: bool) -> tuple[pl.DataFrame, str]:
    """Return inputs, minutes, day and fate of every line, and the first that cannot be read."""
    polars = require("polars", "tasks")
    try:
        trips = _trips(scan(file), file)
        frame = trips.with_columns(fate=_fate(drop_corrupted)).collect(engine="streaming")
    except polars.exceptions.PolarsError as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"{file}: cannot be read: {reason}") from error
    bad = frame["fate"].eq(UNREADABLE).arg_max()
    if bad is None or frame["fate"][bad] != UNREADABLE:
        return frame, ""
    return frame, f"{file}: line {bad + 2} cannot be read"  # after the header, counted from 1


def _trips(raw: pl.LazyFrame, file: Path) -> pl.LazyFrame:
    """Return inputs, minutes and day, null where missing; mark `unreadable` and `no_zone`."""
    import polars as pl

    trips = raw.with_columns(no_zone=pl.lit(False))
    if ZONES[0] in trips.collect_schema().names():
        trips = _place(trips, file)
    begin = pl.col(BEGIN)
    positions = (
        pl.when(pl.col(at).is_finite() & (pl.col(at) != 0)).then(pl.col(at)).cast(pl.Float32)
        for at in POSITIONS
    )
    seconds = (begin - begin.dt.truncate("1d")).dt.total_seconds()
    return trips.select(
        *positions,
        (seconds / 3600).cast(pl.Float32).alias(FEATURES[4]),
        minutes=(pl.col(END) - begin).dt.total_milliseconds() / 60_000,
        day=begin.dt.date().cast(pl.Int32),
        unreadable="unreadable",
        no_zone="no_zone",
    )


def _place(trips: pl.LazyFrame, file: Path) -> pl.LazyFrame:
    """Put the centroids of the zones for positions."""
    import polars as pl

    ids, lon, lat = centroids(file.parent, wanted_by=file)
    places = {
        at: pl.col(zone).replace_strict(ids, degrees, default=None, return_dtype=pl.Float64)
        for at, zone, degrees in zip(
            POSITIONS, (ZONES[0], ZONES[0], ZONES[1], ZONES[1]), (lon, lat, lon, lat), strict=True
        )
    }
    named = pl.all_horizontal(pl.col(zone).is_not_null() for zone in ZONES)
    known = pl.all_horizontal(pl.col(zone).is_in(ids) for zone in ZONES)
    return trips.with_columns(no_zone=named & ~known, **places)


def _fate(drop_corrupted: bool) -> pl.Expr:
    """Return the index into FATES of each trip: the first that applies."""
    import polars as pl

    minutes = pl.col("minutes")
    missing = [pl.col(name).is_null() for name in (*POSITIONS, "minutes")]
    fate = (
        pl.when(pl.col("unreadable"))
        .then(UNREADABLE)
        .when(pl.col("no_zone") & minutes.is_not_null())
        .then(NO_ZONE)
        .when(pl.any_horizontal(missing))
        .then(MISSING)
        .when((minutes < 0) | (minutes >= 24 * 60))
        .then(IMPOSSIBLE)
    )
    if drop_corrupted:
        fate = fate.when(_corrupted()).then(CORRUPTED)
    return fate.otherwise(KEPT).cast(pl.UInt8)


def _corrupted() -> pl.Expr:
    """Return what `drop_corrupted` drops; the distance by the haversine formula."""
    import polars as pl

    lon, lat, to_lon, to_lat = (pl.col(at).cast(pl.Float64) for at in POSITIONS)
    outside = [
        ~x.is_between(*side) for x, side in zip((lon, lat, to_lon, to_lat), BOX * 2, strict=True)
    ]
    half = ((to_lat - lat).radians() / 2).sin() ** 2 + (
        lat.radians().cos() * to_lat.radians().cos() * ((to_lon - lon).radians() / 2).sin() ** 2
    )
    miles = 2 * EARTH_MILES * half.sqrt().arcsin()
    minutes = pl.col("minutes")
    return (
        ~minutes.is_between(*MINUTES)
        | pl.any_horizontal(outside)
        | (miles > MOST_MPH * minutes / 60)
    )


def _arrays(kept: pl.DataFrame) -> tuple[NDArray[Any], ...]:
    X = np.empty((len(kept), len(FEATURES)), dtype=np.float32)
    for number, name in enumerate(FEATURES):
        X[:, number] = kept[name].to_numpy()
    return X, kept["minutes"].to_numpy().astype(np.float32), kept["day"].to_numpy().astype(np.int64)


def _source(files: list[Path], counts: NDArray[np.int64], unreadable: str) -> str:
    """Return one line: the files, how many trips of how many, and what became of the others."""
    names = files[0].name
    if len(files) > 1:
        names = f"{len(files)} files ({names} to {files[-1].name})"
    fates = list(zip(counts, FATES, strict=True))[1:]
    dropped = [f"{count:,} {fate}" for count, fate in fates if count]
    text = f"TLC trips, {names}: {counts[KEPT]:,} of {counts.sum():,} trips"
    if dropped:
        text += f"; dropped {', '.join(dropped)}"
    return f"{text}; {unreadable}" if unreadable else text
