"""NYCommute from files in the layouts that the TLC has published, with their damage."""

from __future__ import annotations

import struct
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rdeepsense.errors import InputError
from rdeepsense.paper.tasks import nycommute
from rdeepsense.paper.tasks.nycommute import load

YELLOW = (
    "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,"
    "pickup_longitude,pickup_latitude,RateCodeID,dropoff_longitude,dropoff_latitude,fare_amount\n"
)
TRIP = "2,{0},{1},1,1.59,-73.993896484375,40.750110626220703,1,-73.974784,40.750617,12\n"
GOOD = TRIP.format("2015-01-15 19:05:39", "2015-01-15 19:23:42")
DAY = 16450  # 2015-01-15
# As published: mixed capitals, a blank line after the header, two commas too many at the end.
GREEN = (
    "VendorID,lpep_pickup_datetime,Lpep_dropoff_datetime,Pickup_longitude,Pickup_latitude,"
    "Dropoff_longitude,Dropoff_latitude,Trip_type \n"
    "\n"
    "2,2014-01-01 00:30:00,2014-01-01 00:40:00,-73.9,40.7,-73.8,40.8,1,,\n"
)
ZONED = (
    "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,PULocationID,DOLocationID\r\n"
    "1,2017-01-09 11:13:28,2017-01-09 11:25:45,{},{}\r\n"
)
ZONES = "zone_id,lon,lat,borough,zone\n1,-74.174,40.692,EWR,Newark Airport\n4,-73.977,40.724,,\n"


def test_positions_time_and_minutes(tmp_path: Path) -> None:
    (tmp_path / "yellow_tripdata_2015-01.csv").write_text(YELLOW + GOOD)
    task = load(tmp_path)
    expected = [[-73.993896484375, 40.7501106, -73.974784, 40.750617, 19 + 5 / 60 + 39 / 3600]]
    np.testing.assert_allclose(task.X, expected, rtol=1e-7)
    np.testing.assert_allclose(task.y, [18 + 3 / 60], rtol=1e-7)
    assert task.X.dtype == task.y.dtype == np.float32
    assert task.groups is not None
    assert task.groups.tolist() == [DAY]
    assert (task.unit, task.grouped_by, task.split_by) == ("min", "day", "rows")
    assert task.source == ("TLC trips, yellow_tripdata_2015-01.csv: 1 of 1 trips")


def test_green_layout_with_its_oddities(tmp_path: Path) -> None:
    (tmp_path / "green_tripdata_2014-01.csv").write_text(GREEN)
    task = load(tmp_path)
    np.testing.assert_allclose(task.X, [[-73.9, 40.7, -73.8, 40.8, 0.5]], rtol=1e-6)
    assert task.y.tolist() == [10.0]
    assert "1 without position or time" in task.source  # the blank line


def test_spaces_before_names_and_the_open_data_sites_times(tmp_path: Path) -> None:
    (tmp_path / "yellow_2010.csv").write_text(
        "vendor_id, pickup_datetime, dropoff_datetime, pickup_longitude, pickup_latitude,"
        " dropoff_longitude, dropoff_latitude\n"
        "CMT, 01/07/2010 11:59:00 PM, 01/08/2010 12:04:30 AM, -73.9, 40.7, -73.8, 40.8\n"
    )
    task = load(tmp_path)
    assert task.y.tolist() == [5.5]
    assert task.X[0, 4] == pytest.approx(23 + 59 / 60)


@pytest.mark.parametrize("head", ["zone_id,lon,lat", "LocationID, Longitude, Latitude"])
def test_zones_get_their_centroids(tmp_path: Path, head: str) -> None:
    (tmp_path / "zones.csv").write_text(f"{head}\n4,-73.977,40.724\n1,-74.174,40.692\n")
    (tmp_path / "yellow_tripdata_2017-01.csv").write_text(ZONED.format(1, 4))
    task = load(tmp_path)
    np.testing.assert_allclose(task.X[0, :4], [-74.174, 40.692, -73.977, 40.724], rtol=1e-7)
    assert task.y[0] == pytest.approx(12 + 17 / 60)


def parquet_trips(**columns: object) -> pl.DataFrame:
    begin = datetime(2023, 1, 1, 6)
    rows: dict[str, object] = {
        "lpep_pickup_datetime": pl.Series([begin] * 4, dtype=pl.Datetime("ns")),
        "lpep_dropoff_datetime": pl.Series(
            [datetime(2023, 1, 1, 6, 15), None, datetime(2023, 1, 1, 6, 20), begin],
            dtype=pl.Datetime("ns"),
        ),
        "PULocationID": [1, 1, 264, 4],
        "DOLocationID": [4, 4, 4, 4],
    }
    return pl.DataFrame(rows | columns)


def test_parquet_and_what_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text(ZONES)
    parquet_trips().write_parquet(tmp_path / "green_tripdata_2023-01.parquet")
    parquet_trips(PULocationID=[None, 1.0, 1.0, 4.0]).write_parquet(tmp_path / "green_2.parquet")
    task = load(tmp_path)
    assert task.y.tolist() == [20.0, 0.0, 15.0, 0.0]  # green_2 comes first by name
    assert task.source == (
        "TLC trips, 2 files (green_2.parquet to green_tripdata_2023-01.parquet): 4 of 8 trips; "
        "dropped 3 without position or time, 1 in zones without a centroid"
    )


def test_only_impossible_durations_and_missing_values_go_by_default(tmp_path: Path) -> None:
    rows = [
        GOOD,
        TRIP.format("2015-01-15 19:00:00", "2015-01-16 18:59:30"),  # the heavy tail: stays
        TRIP.format("2015-01-15 19:00:00", "2015-01-16 19:00:00"),  # 24 h
        TRIP.format("2015-01-15 19:00:00", "2015-01-15 18:59:59"),  # before it began
        TRIP.format("", "2015-01-15 19:00:00"),
        GOOD.replace("-73.974784", "0"),  # how a meter writes that it does not know
        GOOD.replace("-73.974784", "NaN"),
        GOOD.replace("-73.974784,40.750617,12", ""),  # a line that ends early
        TRIP.format("2015-01-10 00:00:00", "2015-01-10 00:00:00"),  # unsorted, and stays
    ]
    (tmp_path / "yellow.csv").write_text(YELLOW + "".join(rows))
    task = load(tmp_path)
    np.testing.assert_allclose(task.y, [18.05, 1439.5, 0], rtol=1e-6)
    assert task.groups is not None
    assert task.groups.tolist() == [DAY, DAY, DAY - 5]
    assert task.source.endswith(
        "3 of 9 trips; dropped 4 without position or time, 2 not within [0, 24) hours"
    )


def test_drop_corrupted(tmp_path: Path) -> None:
    def trip(seconds: int, lon: float = -73.97) -> str:
        end = f"2015-01-15 {12 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return TRIP.format("2015-01-15 12:00:00", end).replace("-73.974784", str(lon))

    # 0.03 degrees of longitude at 40.75 north are 1.57 miles: 56.5 s at 100 mph.
    # 0.19 degrees are 9.94 miles: 358 s.
    kept = [60, 180 * 60], [(300, -73.98), (370, -74.18)]
    gone = [59, 180 * 60 + 1], [(340, -74.18), (3600, -74.31), (3600, -73.59)]
    rows = [trip(seconds) for seconds in kept[0]] + [trip(*both) for both in kept[1]]
    rows += [trip(seconds) for seconds in gone[0]] + [trip(*both) for both in gone[1]]
    (tmp_path / "yellow.csv").write_text(YELLOW + "".join(rows))
    assert len(load(tmp_path).y) == 9
    task = load(tmp_path, drop_corrupted=True)
    np.testing.assert_allclose(task.y * 60, [60, 10800, 300, 370])
    assert task.source.endswith("4 of 9 trips; dropped 5 corrupted")


def test_a_broken_line_among_many_is_named_in_the_source(tmp_path: Path) -> None:
    path = tmp_path / "yellow.csv"
    path.write_text(YELLOW + GOOD * 200 + GOOD.replace("40.750617", "40.75x617") + GOOD)
    task = load(tmp_path)
    assert len(task.y) == 201
    assert task.source.endswith(f"dropped 1 unreadable; {path}: line 202 cannot be read")


def test_a_file_of_broken_lines_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "yellow.csv"
    path.write_text(YELLOW + GOOD * 3 + TRIP.format("2015-13-45 00:00:00", "yesterday") * 2)
    with pytest.raises(InputError) as error:
        load(tmp_path)
    assert str(error.value) == f"{path}: line 5 cannot be read; 2 of its 5 lines cannot"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("yellow.csv", "", "is empty"),
        ("yellow.csv", YELLOW, "no usable rows"),
        ("yellow.csv", YELLOW.replace("tpep_d", "d_"), "line 1: no column for the drop-off time"),
        (
            "green.csv",
            GREEN.replace("Pickup_lat", "lat"),
            r"line 1: no column for the pick-up zone \(pulocationid; or all four of",
        ),
        ("yellow.parquet", "PAR1 and then nothing", "yellow.parquet: cannot be read"),
        ("yellow.csv", ZONED.format(1, 4), "zone ids, no positions, and .* neither zones.csv"),
        ("trips.csv", YELLOW + GOOD, "holds no trip files; their names begin with yellow or green"),
    ],
)
def test_what_cannot_be_read_is_named(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        load(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("zone,borough\n", "line 1: no column for the zone id"),
        ("zone_id,lat\n", "line 1: no column for the longitude"),
        ("zone_id,lon,lat\n1,2,3\n\n4,5\n", "line 4 has no number"),
        ("zone_id,lon,lat\n1,2,3\n1,2,4\n", "zone 1 occurs 2 times"),
        ("zone_id,lon,lat\n", "has no zones"),
    ],
)
def test_bad_zone_tables(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "zones.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        nycommute.centroids(tmp_path, tmp_path / "yellow.csv")


def test_map_projection_of_a_published_point() -> None:
    # The first vertex of zone 1 in the TLC's map, and in the city's table of the same polygons.
    assert nycommute.degrees(933100.9183527103, 192536.08569720192) == pytest.approx(
        (-74.18445299999996, 40.694995999999904), abs=1e-9
    )


def square(x: float, y: float, side: float) -> np.ndarray:
    corners = np.array([[0, 0], [0, 1], [1, 1], [1, 0], [0, 0]])  # clockwise, as outer rings are
    return np.array([x, y]) + side * corners


def write_map(folder: Path, shapes: list[tuple[int, list[np.ndarray]]]) -> None:
    """An ESRI shapefile and its dBase table with the columns zone and LocationID."""
    body = b""
    for number, (_, rings) in enumerate(shapes, start=1):
        points = np.concatenate(rings).astype("<f8")
        starts = np.cumsum([0, *map(len, rings)])[:-1].astype("<i4").tobytes()
        content = struct.pack("<i4d2i", 5, 0, 0, 0, 0, len(rings), len(points))
        content += starts + points.tobytes()
        body += struct.pack(">2i", number, len(content) // 2) + content
    (folder / "taxi_zones.shp").write_bytes(b"\0" * 100 + body)
    fields = b"".join(
        struct.pack("<11sc4xB15x", name, kind, size)
        for name, kind, size in ((b"zone", b"C", 6), (b"LocationID", b"N", 4))
    )
    head = struct.pack("<4xIHH20x", len(shapes), 32 + len(fields) + 1, 11)
    rows = b"".join(b" " + b"a zone" + f"{zone:4}".encode() for zone, _ in shapes)
    (folder / "taxi_zones.dbf").write_bytes(head + fields + b"\r" + rows + b"\x1a")


def test_centroids_of_the_map(tmp_path: Path) -> None:
    hole = square(1_000_000, 200_000, 300)[::-1]
    write_map(
        tmp_path,
        [
            (7, [square(1_000_000, 200_000, 600), hole]),
            (56, [square(990_000, 210_000, 100)]),
            (56, [square(990_300, 210_000, 200)]),
        ],
    )
    ids, lon, lat = nycommute.centroids(tmp_path, tmp_path / "yellow.csv")
    assert ids == [7, 56]
    # A square with a quarter cut out, and one zone of two squares with areas 1 and 4.
    expected = [(1_000_350, 200_350), (990_000 + (50 + 4 * 400) / 5, 210_000 + (50 + 4 * 100) / 5)]
    for place, (x, y) in zip(zip(lon, lat, strict=True), expected, strict=True):
        assert place == pytest.approx(nycommute.degrees(x, y), abs=1e-10)
    (tmp_path / "yellow.csv").write_text(ZONED.format(7, 56))
    np.testing.assert_allclose(load(tmp_path).X[0, :4], [lon[0], lat[0], lon[1], lat[1]], rtol=1e-7)


def test_a_damaged_map_is_named(tmp_path: Path) -> None:
    write_map(tmp_path, [(7, [square(0, 0, 1)])])
    path = tmp_path / "taxi_zones.shp"
    path.write_bytes(path.read_bytes()[:150])
    with pytest.raises(InputError, match="taxi_zones.shp: cannot be read as a map of zones"):
        nycommute.centroids(tmp_path, tmp_path / "yellow.csv")


def test_the_real_zones(data_dir: Path) -> None:
    ids, lon, lat = nycommute.centroids(data_dir / "nycommute", Path("yellow.csv"))
    assert len(ids) == 260
    assert min(lon) > -74.3
    assert max(lon) < -73.6
    assert min(lat) > 40.4
    assert max(lat) < 41.0
