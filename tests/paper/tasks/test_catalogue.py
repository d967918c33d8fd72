"""The tasks by name, and where their data is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdeepsense.errors import InputError
from rdeepsense.paper.tasks import catalogue
from rdeepsense.paper.tasks import task as prepared

TRIPS = (
    "tpep_pickup_datetime,tpep_dropoff_datetime,pickup_longitude,pickup_latitude,"
    "dropoff_longitude,dropoff_latitude\n"
    "2015-01-15 19:00:00,2015-01-15 19:12:00,-73.9,40.7,-73.8,40.8\n"
)


def test_names_are_found_in_any_case() -> None:
    assert catalogue.NAMES == ("BPEst", "NYCommute", "GasSen", "HHAR")
    for name in catalogue.NAMES:
        entry = catalogue.find(name.upper())
        assert entry is catalogue.find(name.lower())
        assert entry.name == name
        assert entry.load.__module__ == f"rdeepsense.paper.tasks.{entry.folder}"
        assert all(address.startswith("https://") for address in entry.addresses)
    with pytest.raises(InputError, match="'taxi' is unknown; accepted: BPEst, NYCommute, GasSen"):
        catalogue.find("taxi")


@pytest.mark.parametrize("folder", [".", "nycommute"])
def test_original_files_in_the_folder_or_in_one_of_their_own(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / folder / "yellow.csv").write_text(TRIPS)
    assert catalogue.load("nycommute", tmp_path).y.tolist() == [12.0]


def test_a_prepared_file_comes_first(tmp_path: Path) -> None:
    (tmp_path / "yellow.csv").write_text(TRIPS)
    task = catalogue.load("NYCommute", tmp_path)
    prepared.write(task, tmp_path / "nycommute.parquet")
    (tmp_path / "yellow.csv").write_text("damaged since")
    assert catalogue.load("NYCommute", tmp_path).X.tobytes() == task.X.tobytes()


def test_it_says_what_it_looked_for(tmp_path: Path) -> None:
    with pytest.raises(catalogue.MissingDataError) as error:
        catalogue.load("gassen", tmp_path)
    assert str(error.value) == (
        f"no data of GasSen: looked for {tmp_path}/gassen.parquet, and in {tmp_path}/gassen and "
        f"{tmp_path} for ethylene_CO.txt"
    )
    assert error.value.task == "GasSen"


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_without_data_it_is_simulated(name: str) -> None:
    task = catalogue.load(name, rows=64, seed=3)
    assert task.name == name
    assert task.simulated
    assert len(task.X) == 64
