"""The places of New York's taxi zones: the centroid of each, in degrees.

Trips since July 2016 name zones instead of positions. A table `zones.csv` (zone id, longitude,
latitude) says where they are; without it, the TLC's own map `taxi_zones.shp` with `taxi_zones.dbf`
is read, and the area centroid of each zone is computed. A zone drawn as several shapes has the
centroid of all of them.
"""

from __future__ import annotations

import csv
import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rdeepsense.errors import InputError

Centroids = tuple[list[float], list[float], list[float]]  # zone ids, longitudes, latitudes
TABLE, MAP = "zones.csv", "taxi_zones.shp"
SPELLINGS = {
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
        for what, spellings in SPELLINGS.items():
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
