"""`rdeepsense data`: fetch from a server on this machine, prepare, and what they refuse."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import typer

from rdeepsense.cli.paper import data, run_fetch
from rdeepsense.cli.terminal import Terminal
from rdeepsense.errors import InputError
from rdeepsense.paper.tasks import catalogue

SENSORS = "  ".join(["1.50"] * 16)
GAS = (
    "Time (seconds), CO conc (ppm), Ethylene conc (ppm), sensor readings (16 channels)\n"
    f"0.00  10.00  2.00  {SENSORS}\n0.01  20.00  4.00  {SENSORS}\n"
)
TRIPS = (
    "tpep_pickup_datetime,tpep_dropoff_datetime,pickup_longitude,pickup_latitude,"
    "dropoff_longitude,dropoff_latitude\n"
    "2015-01-15 19:00:00,2015-01-15 19:12:00,-73.9,40.7,-73.9,40.7\n"
    "2015-01-15 19:00:00,2015-01-16 18:00:00,-73.9,40.7,-73.9,40.7\n"
)


def run(*args: object) -> None:
    app = typer.Typer()
    app.add_typer(data, name="data")
    app(args=["data", *map(str, args)], standalone_mode=False)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of tmp_path/site."""
    (tmp_path / "site").mkdir()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    handler = partial(Quiet, directory=str(tmp_path / "site"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def gas_archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("ethylene_CO.txt", GAS)
        archive.writestr("readme.txt", "no data")
    return buffer.getvalue()


def test_fetch_then_prepare_then_load(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = gas_archive()
    (tmp_path / "site" / "gas.zip").write_bytes(content)
    entry, checksum = catalogue.find("GasSen"), hashlib.sha256(content).hexdigest()
    run_fetch(entry, (f"{address}/gas.zip",), tmp_path / "raw", [checksum], Terminal(), None)
    printed = capsys.readouterr().out
    assert f"gas.zip: 0.0 MB, SHA-256 {checksum}" in printed
    assert "unpacked ethylene_CO.txt" in printed
    assert (tmp_path / "raw" / "gassen" / "ethylene_CO.txt").read_text() == GAS

    run("prepare", "gassen", "--data", tmp_path / "raw", "--out", tmp_path / "ready")
    printed = capsys.readouterr().out
    assert "source    UCI 322, ethylene_CO.txt: 2 of 2 lines" in printed
    assert "task      2 rows, 16 inputs, 2 targets" in printed
    assert f"wrote {tmp_path / 'ready' / 'gassen.parquet'}" in printed
    task = catalogue.load("GasSen", tmp_path / "ready")
    assert task.y.tolist() == [[10, 2], [20, 4]]


def test_an_archive_of_something_else(address: str, tmp_path: Path) -> None:
    (tmp_path / "site" / "gas.zip").write_bytes(gas_archive())
    entry = catalogue.find("BPEst")
    with pytest.raises(InputError, match=r"gas.zip: holds none of Part_\*.mat"):
        run_fetch(entry, (f"{address}/gas.zip",), tmp_path, [], Terminal(quiet=True), None)


def test_prepare_can_drop_corrupted_trips(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "yellow.csv").write_text(TRIPS)
    run("prepare", "NYCommute", "--data", tmp_path, "--out", tmp_path)
    assert "2 rows" in capsys.readouterr().out
    run("prepare", "NYCommute", "--data", tmp_path, "--out", tmp_path, "--drop-corrupted")
    assert "1 of 2 trips; dropped 1 corrupted" in capsys.readouterr().out
    assert catalogue.load("NYCommute", tmp_path).y.tolist() == [12.0]
    run("prepare", "NYCommute", "--data", tmp_path, "--out", tmp_path, "--quiet")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["fetch", "taxi"], "task 'taxi' is unknown; accepted: BPEst"),
        (["fetch", "NYCommute", "--sha256", "0" * 64], "give FILE=CHECKSUM, FILE of yellow_trip"),
        (["fetch", "GasSen", "--out", "file"], "is a file; give a folder"),
        (["prepare", "GasSen", "--data", ".", "--out", ".", "--drop-corrupted"], "is for NYComm"),
        (["prepare", "GasSen", "--data", ".", "--out", "."], "no data of GasSen: looked for"),
    ],
)
def test_refusals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=message):
        run(*args)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_without_files_the_command_that_fetches_them_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"`rdeepsense data fetch GasSen --out {tmp_path}` down"):
        run("prepare", "gassen", "--data", tmp_path, "--out", tmp_path)
