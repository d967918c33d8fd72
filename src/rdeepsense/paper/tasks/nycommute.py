"""NYCommute: minutes of a taxi trip from where and when it begins and ends (section 4.1)."""

from __future__ import annotations

import csv
import math
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy import special

from rdeepsense.arrays import Floats as Array
from rdeepsense.distributions import Distribution
from rdeepsense.distributions import base as checks
from rdeepsense.distributions.base import Seed
from rdeepsense.errors import InputError, require
from rdeepsense.paper.tasks import task
from rdeepsense.paper.tasks.task import Task

if TYPE_CHECKING:
    import polars as pl


# --------------------------------------------------------------------------------------------------
# Trip files of the Taxi and Limousine Commission (TLC), all layouts
#
# Yellow and green, CSV and Parquet; with coordinates, or since July 2016 with the ids of zones.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Centroids of New York's taxi zones, in degrees
#
# Trips since July 2016 name zones instead of positions. A table `zones.csv` (zone id, longitude,
# latitude) says where they are; without it, the TLC's own map `taxi_zones.shp` with
# `taxi_zones.dbf` is read, and the area centroid of each zone is computed. A zone drawn as several
# shapes has the centroid of all of them.
# --------------------------------------------------------------------------------------------------

Centroids = tuple[list[float], list[float], list[float]]  # zone ids, longitudes, latitudes
TABLE, MAP = "zones.csv", "taxi_zones.shp"
ZONE_SPELLINGS = {
    "zone id": ("zone_id", "zoneid", "locationid", "location_id"),
    "longitude": ("lon", "longitude", "lng"),
    "latitude": ("lat", "latitude"),
}
POLYGON = 5  # the shape type of the map


def centroids(folder: Path, wanted_by: Path) -> Centroids:
    """Return zone ids, longitudes and latitudes from the table or the map in a folder."""
    if (folder / TABLE).exists():
        return _from_table(folder / TABLE)
    if (folder / MAP).exists():
        return _from_map(folder / MAP)
    raise InputError(
        f"{wanted_by}: its trips have zone ids, no positions, and {folder} holds neither {TABLE} "
        f"(columns zone_id, lon, lat) nor the TLC's map {MAP}"
    )


def _from_table(path: Path) -> Centroids:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        header = [name.strip().lower() for name in next(rows, [])]
        at = []
        for what, spellings in ZONE_SPELLINGS.items():
            column = next((header.index(name) for name in spellings if name in header), None)
            if column is None:
                raise InputError(
                    f"{path}: line 1: no column for the {what} ({' or '.join(spellings)})"
                )
            at.append(column)
        table = []
        for row in rows:
            if not row:
                continue
            try:
                table.append([float(row[column]) for column in at])
            except (ValueError, IndexError):
                raise InputError(
                    f"{path}: line {rows.line_num} has no number for zone id, longitude or latitude"
                ) from None
    zones = np.array(table).reshape(-1, 3)
    ids, first, times = np.unique(zones[:, 0], return_index=True, return_counts=True)
    if len(ids) == 0:
        raise InputError(f"{path}: has no zones")
    if times.max() > 1:
        raise InputError(f"{path}: zone {ids[times.argmax()]:g} occurs {times.max()} times")
    return ids.tolist(), zones[first, 1].tolist(), zones[first, 2].tolist()


def _from_map(path: Path) -> Centroids:
    table = path.with_suffix(".dbf")
    if not table.exists():
        raise InputError(f"{path}: its table {table.name} is not beside it")
    try:
        numbers, shapes = _zone_numbers(table), _shapes(path.read_bytes())
    except (struct.error, ValueError, IndexError) as error:
        raise InputError(f"{path}: cannot be read as a map of zones: {error}") from error
    if len(numbers) != len(shapes):
        raise InputError(f"{path}: {len(shapes)} shapes, but {table.name} has {len(numbers)} rows")
    sums: dict[int, NDArray[np.float64]] = {}
    for number, rings in zip(numbers, shapes, strict=True):
        sums[number] = sums.get(number, np.zeros(3)) + sum(_moments(ring) for ring in rings)
    ids = sorted(sums)
    places = [degrees(sums[i][1] / sums[i][0], sums[i][2] / sums[i][0]) for i in ids]
    return [float(i) for i in ids], [lon for lon, _ in places], [lat for _, lat in places]


def _zone_numbers(path: Path) -> list[int]:
    """Return the column LocationID of a dBase table."""
    data = path.read_bytes()
    rows, start, width = struct.unpack("<IHH", data[4:12])
    offset = 1  # after the deletion mark
    for field in range(32, start - 1, 32):
        name = data[field : field + 11].split(b"\0")[0].decode("ascii", "replace")
        if name.lower() == "locationid":
            break
        offset += data[field + 16]
    else:
        raise ValueError(f"{path.name} has no column LocationID")
    size = data[field + 16]
    cells = (start + row * width + offset for row in range(rows))
    return [int(float(data[cell : cell + size])) for cell in cells]


def _shapes(data: bytes) -> list[list[NDArray[np.float64]]]:
    """Yield the rings of each shape of an ESRI shapefile, as arrays (points, 2)."""
    shapes: list[list[NDArray[np.float64]]] = []
    at = 100  # after the header
    while at < len(data):
        (words,) = struct.unpack(">I", data[at + 4 : at + 8])
        body = data[at + 8 : at + 8 + 2 * words]
        (kind,) = struct.unpack("<I", body[:4])
        if kind != POLYGON:
            raise ValueError(f"shape {len(shapes) + 1} is of type {kind}, no polygon")
        parts, points = struct.unpack("<II", body[36:44])
        starts = struct.unpack(f"<{parts}I", body[44 : 44 + 4 * parts])
        xy = np.frombuffer(body, "<f8", 2 * points, 44 + 4 * parts).reshape(-1, 2)
        shapes.append(np.split(xy, starts[1:]))
        at += 8 + 2 * words
    return shapes


def _moments(ring: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return area and first moments by the shoelace formula; a hole counts as negative."""
    origin = ring[0]  # large coordinates would cost digits
    (x, y), (nx, ny) = (ring[:-1] - origin).T, (ring[1:] - origin).T
    cross = nx * y - x * ny  # outer rings run clockwise in this format
    area = cross.sum() / 2
    return np.array(
        [
            area,
            (cross * (x + nx)).sum() / 6 + area * origin[0],
            (cross * (y + ny)).sum() / 6 + area * origin[1],
        ]
    )


def degrees(x: float, y: float) -> tuple[float, float]:
    """Return the degrees of a point of the map (New York Long Island state plane, US feet).

    The inverse of Lambert's conformal conic projection with two standard parallels (EPSG:2263;
    Snyder, Map Projections, 1987, p. 107) on the GRS 80 ellipsoid.
    """
    radius, flattening = 6_378_137.0, 1 / 298.257222101
    e = math.sqrt(flattening * (2 - flattening))
    north, south, origin = (math.radians(d + m / 60) for d, m in ((41, 2), (40, 40), (40, 10)))

    def m(lat: float) -> float:
        return math.cos(lat) / math.sqrt(1 - (e * math.sin(lat)) ** 2)

    def t(lat: float) -> float:
        s = e * math.sin(lat)
        return math.tan(math.pi / 4 - lat / 2) / math.pow((1 - s) / (1 + s), e / 2)

    n = math.log(m(south) / m(north)) / math.log(t(south) / t(north))
    scale = radius * m(south) / (n * t(south) ** n)
    foot = 1200 / 3937
    east, above = x * foot - 300_000.0, scale * t(origin) ** n - y * foot
    angle, distance = math.atan2(east, above), math.hypot(east, above)
    wanted = (distance / scale) ** (1 / n)
    lat = origin
    for _ in range(8):  # gains three digits each time
        s = e * math.sin(lat)
        lat = math.pi / 2 - 2 * math.atan(wanted * ((1 - s) / (1 + s)) ** (e / 2))
    return math.degrees(angle / n) - 74.0, math.degrees(lat)


# --------------------------------------------------------------------------------------------------
# NYCommute (section 4.2): minutes of a taxi trip from start and end
#
# Five inputs: longitude and latitude of pick-up and drop-off in degrees, and the time of day of the
# pick-up in hours (New York wall-clock time). The paper standardises them; here that is left to the
# estimators, which standardise on the rows they train on. Target: minutes from pick-up to drop-off.
#
# Reads the trip files of the Taxi and Limousine Commission (TLC), yellow and green, CSV and
# Parquet: the older layouts with coordinates, and the newer one with zone ids, whose positions then
# are the centroids in `zones.csv` (or those of the TLC's `taxi_zones.shp`) in the same folder.
#
# Dropped, and counted in `source`: lines that cannot be read; trips without a position (0 is how
# the meters write a missing coordinate) or a time; trips in zones without a centroid; trips that
# take less than 0 or at least 24 hours. Nothing else: the heavy tail, with its trips of almost 24
# hours, is part of the task. `drop_corrupted=True` keeps only trips that
#
# - take at least 1 and at most 180 minutes,
# - begin and end in the box 74.3 to 73.6 degrees west, 40.4 to 41.0 degrees north, and
# - have a great-circle distance / duration of at most 100 miles per hour.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# NYCommute, simulated: start, end and time of day -> minutes
#
# The usual time of a trip is known from its inputs:
#
#     median = 2 + 60 km / speed,   speed = 24 (1 + km / (km + 10)) / (1 + congestion) km/h
#     congestion = (rush hours + business hours) where the trip runs, highest in midtown
#
# and the time it takes has two heavy tails, with a spread that depends on the inputs too:
#
#     minutes = median exp(spread z)                            98.36 % of the trips
#             = median exp(detour + wide spread z)                1.5 %, errands and jams
#             ~ U(1380, 1440)                                    0.14 %, meters left on for a day
#
# z ~ N(0, 1) has a small part that all trips of a day share; an unseen day has z ~ N(0, 1) again,
# so the truth is exactly this mixture. The share of broken meters gives the standard deviation of
# the paper's data (52.8 min).
# --------------------------------------------------------------------------------------------------

TRIPS = 250  # of each day
DAY_SHARE = 0.04  # of the variance of z

BROKEN, ERRAND = 0.0014, 0.015
BROKEN_FROM, BROKEN_TO = 1380.0, 1440.0
DETOUR, ERRAND_SPREAD = 0.6, 0.7  # of log minutes

# Where trips begin and end: share, km east and north of Times Square, spread along and across
# the avenues, which run 29 degrees east of north.
TIMES_SQUARE = np.array([-73.985, 40.757])
KM_PER_DEGREE = np.array([84.3, 111.1])
AVENUES = np.deg2rad(29.0)
PLACES = np.array(
    [
        (0.62, 0.3, -0.2, 2.8, 0.8),  # midtown and downtown
        (0.16, 1.9, 3.6, 2.2, 0.9),  # uptown
        (0.12, 2.5, -7.5, 3.0, 2.5),  # Brooklyn
        (0.06, 9.4, 2.2, 0.5, 0.5),  # La Guardia
        (0.04, 17.4, -12.5, 0.6, 0.6),  # Kennedy
    ]
)
LOCAL = 0.8  # of the trips end this close to where they began, in km along and across
LOCAL_SPREAD = (1.7, 0.9)
# How many trips begin in each hour of the day.
BY_HOUR = np.array(
    [38, 28, 20, 15, 11, 10, 22, 40, 50, 50, 49, 50, 52, 52, 54, 53, 47, 54, 64, 64, 58, 56, 54, 48]
)


class TripMinutes(Distribution):
    """The mixture above, given the median and the spread of log minutes of each trip."""

    median: Array
    spread: Array

    def __init__(self, median: npt.ArrayLike, spread: npt.ArrayLike) -> None:
        middle, width = checks.broadcast(
            median=checks.positive("median", median), spread=checks.positive("spread", spread)
        )
        self._freeze(median=middle, spread=width)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.median.shape

    def _log_normals(self) -> tuple[tuple[float, Array, Array], ...]:
        """Return (share, mean, std) of log minutes, of usual trips and of errands."""
        usual, width = np.log(self.median), self.spread
        return (
            (1 - ERRAND - BROKEN, usual, width),
            (ERRAND, usual + DETOUR, np.full_like(width, ERRAND_SPREAD)),
        )

    @property
    def mean(self) -> Array:
        trips = [share * np.exp(m + s * s / 2) for share, m, s in self._log_normals()]
        return cast(Array, sum(trips) + BROKEN * (BROKEN_FROM + BROKEN_TO) / 2)

    @property
    def std(self) -> Array:
        squares = [share * np.exp(2 * m + 2 * s * s) for share, m, s in self._log_normals()]
        broken = (BROKEN_FROM**2 + BROKEN_FROM * BROKEN_TO + BROKEN_TO**2) / 3
        return np.sqrt(sum(squares) + BROKEN * broken - self.mean**2)

    def log_prob(self, y: npt.ArrayLike) -> Array:
        """Return the logarithm of the density at y minutes, -inf where no trip can end."""
        minutes = checks.numbers("y", y, self.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_y = np.where(minutes > 0, np.log(minutes), -np.inf)
            trips = [
                share * np.exp(-(((log_y - m) / s) ** 2) / 2) / (s * minutes * np.sqrt(2 * np.pi))
                for share, m, s in self._log_normals()
            ]
            broken = (minutes >= BROKEN_FROM) & (minutes <= BROKEN_TO)
            density = np.where(minutes > 0, sum(trips), 0.0)
            density += BROKEN / (BROKEN_TO - BROKEN_FROM) * broken
            return np.log(density)

    def cdf(self, y: npt.ArrayLike) -> Array:
        """Return P(a trip ends within y minutes)."""
        minutes = checks.numbers("y", y, self.shape)
        log_y = np.log(np.maximum(minutes, 1e-300))
        trips = [share * special.ndtr((log_y - m) / s) for share, m, s in self._log_normals()]
        broken = np.clip((minutes - BROKEN_FROM) / (BROKEN_TO - BROKEN_FROM), 0, 1)
        return cast(Array, sum(trips) + BROKEN * broken)

    def minutes(self, kind: Array, z: Array) -> Array:
        """Return the trip whose kind is chosen by kind ~ U(0, 1) and whose luck is z ~ N(0, 1)."""
        (_, usual, width), (_, errand, wide) = self._log_normals()
        share = kind / BROKEN  # below 1 for broken meters only, and uniform there
        broken = BROKEN_FROM + (BROKEN_TO - BROKEN_FROM) * share
        trip = np.where(kind < BROKEN + ERRAND, errand + wide * z, usual + width * z)
        return np.where(share < 1, broken, np.exp(trip))

    def sample(self, n: int, rng: Seed) -> Array:
        """Draw n independent values of every entry, of shape (n, *shape)."""
        source, shape = checks.generator(rng), (checks.count(n), *self.shape)
        return self.minutes(source.random(shape), source.standard_normal(shape))


def simulate(rows: int, seed: int) -> Task:
    """Draw `rows` trips, about 250 a day."""
    rng = task.seeded(rows, seed)
    days = -(-rows // TRIPS)
    day = rng.integers(days, size=rows)
    hour = rng.choice(24, rows, p=BY_HOUR / BY_HOUR.sum()) + rng.random(rows)
    start, end = km_places(rows, rng), km_places(rows, rng)
    near = start + km_along_streets(*LOCAL_SPREAD, rows, rng)
    end = np.where(rng.random(rows) < LOCAL, near, end)
    X = np.column_stack([*simulated_degrees(start), *simulated_degrees(end), hour]).astype(
        np.float32
    )
    truth = truth_at(X.astype(np.float64))
    z = np.sqrt(DAY_SHARE) * rng.standard_normal(days)[day]
    z += np.sqrt(1 - DAY_SHARE) * rng.standard_normal(rows)
    return Task(
        name="NYCommute",
        X=X,
        y=truth.minutes(rng.random(rows), z),
        features=FEATURES,
        targets=("duration",),
        unit="min",
        source=f"simulated taxi trips of {days} days, seed {seed}",
        simulated=True,
        groups=day.astype(np.int64),
        grouped_by="day",
        truth=truth,
    )


def km_places(rows: int, rng: np.random.Generator) -> Array:
    """Draw where trips begin or end, in km east and north of Times Square: shape (2, rows)."""
    chosen = PLACES[rng.choice(len(PLACES), rows, p=PLACES[:, 0])]
    km: Array = km_along_streets(chosen[:, 3], chosen[:, 4], rows, rng) + chosen[:, 1:3].T
    return km


def km_along_streets(
    along: Array | float, across: Array | float, rows: int, rng: np.random.Generator
) -> Array:
    """Draw Gaussian steps east and north, with these spreads along and across the avenues."""
    a, b = along * rng.standard_normal(rows), across * rng.standard_normal(rows)
    sin, cos = np.sin(AVENUES), np.cos(AVENUES)
    return np.array([a * sin + b * cos, a * cos - b * sin])


def simulated_degrees(km: Array) -> Array:
    """Return longitude and latitude."""
    place: Array = TIMES_SQUARE[:, None] + km / KM_PER_DEGREE[:, None]
    return place


def truth_at(X: Array) -> TripMinutes:
    """Return the distribution of the minutes given the five inputs."""
    km = ((X[:, :4] - np.tile(TIMES_SQUARE, 2)) * np.tile(KM_PER_DEGREE, 2)).T
    east, north = km[2] - km[0], km[3] - km[1]
    along = east * np.sin(AVENUES) + north * np.cos(AVENUES)
    across = east * np.cos(AVENUES) - north * np.sin(AVENUES)
    distance = np.abs(along) + np.abs(across)  # along streets and avenues
    from_centre = np.hypot((km[0] + km[2]) / 2, (km[1] + km[3]) / 2)
    midtown = np.exp(-((from_centre / 4) ** 2))
    rush = around(X[:, 4], 8.5, 1.5) + 1.2 * around(X[:, 4], 17.5, 2.0)
    busy = around(X[:, 4], 13.0, 4.5)
    congestion = (0.5 * rush + 0.7 * busy) * (0.35 + midtown)
    speed = 24 * (1 + distance / (distance + 10)) / (1 + congestion)
    spread = 0.14 + 0.10 * congestion + 0.25 * np.exp(-distance / 1.5)
    return TripMinutes(2 + 60 * distance / speed, spread)


def around(hour: Array, peak: float, width: float) -> Array:
    """Return 1 at this hour, falling to 0 over a width of hours, the same every day."""
    near: Array = np.exp((np.cos((hour - peak) * np.pi / 12) - 1) * (12 / np.pi / width) ** 2)
    return near
