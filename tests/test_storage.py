"""Files by URL: on a server that speaks S3's language, and in fsspec's memory; no credentials."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from predict.models import regressor, table

import rdeepsense as rds
from rdeepsense._files import Remote, is_url, path_or_url
from rdeepsense._progress import Silent
from rdeepsense.data.parquet import ParquetTable
from rdeepsense.errors import InputError
from rdeepsense.predict.columns import OutputColumns
from rdeepsense.predict.folder import predict_shards, shards_of, sources_of
from rdeepsense.predict.plan import Preparation

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI-secret"


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """Start an object server with the bucket "sensors"; return the environment that leads to it."""
    server = pytest.importorskip("moto.server")
    boto3 = pytest.importorskip("boto3")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    settings = {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ENDPOINT_URL_S3": f"http://{host}:{port}",
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",  # the server stores trailers as data
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        boto3.client("s3").create_bucket(Bucket="sensors")
    yield settings
    running.stop()


@pytest.fixture(params=["s3", "memory"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name an empty folder."""
    name = uuid.uuid4().hex
    if request.param == "memory":
        pytest.importorskip("fsspec")
        return f"memory://{name}"
    for variable, value in request.getfixturevalue("s3").items():
        monkeypatch.setenv(variable, value)
    return f"s3://sensors/{name}"


def put(url: str, data: bytes) -> None:
    with Remote.of(url).replacing() as file:
        file.write(data)


def put_half(url: str) -> None:
    with Remote.of(url).replacing() as file:
        file.write(b"half of the ne")
        raise KeyboardInterrupt


def test_objects(place: str) -> None:
    folder = Remote.of(place)
    assert folder.files(".parquet") == []
    for name in ("b.parquet", "a.parquet", "c.txt"):
        put(str(folder.child(name)), name.encode())
    found = folder.files(".parquet")
    assert [file.name for file in found] == ["a.parquet", "b.parquet"]
    assert found[1].read() == b"b.parquet"
    assert found[1].stat().st_size == 9
    assert found[1].is_file()
    assert not folder.child("d.parquet").is_file()
    assert pickle.loads(pickle.dumps(found[0])).read() == b"a.parquet"
    with pytest.raises(InputError, match=r"d\.parquet: "):
        folder.child("d.parquet").read()


def test_an_object_is_whole_or_as_it_was(place: str) -> None:
    url = f"{place}/x.bin"
    put(url, b"old")
    with pytest.raises(KeyboardInterrupt):
        put_half(url)
    assert Remote.of(url).read() == b"old"
    put(url, b"new")
    assert Remote.of(url).read() == b"new"


def test_models_and_tables_by_url(place: str, tmp_path: Path) -> None:
    model = regressor()
    model.save(tmp_path / "m")
    put(f"{place}/m.safetensors", (tmp_path / "m").read_bytes())
    X = table(40).drop("site")
    loaded = rds.load(f"{place}/m.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    frame = X.with_columns(y=pl.col("a") * 2)
    (tmp_path / "in").mkdir()
    for name, part in (("1", frame[:25]), ("2", frame[25:])):
        part.write_parquet(tmp_path / "in" / f"{name}.parquet")
        put(f"{place}/in/{name}.parquet", (tmp_path / "in" / f"{name}.parquet").read_bytes())
    there, here = ParquetTable(f"{place}/in"), ParquetTable(tmp_path / "in")
    assert (there.rows, there.columns) == (here.rows, here.columns)
    assert there.read(1, ["a"]).equals(here.read(1, ["a"]))
    options = {"hidden": (4,), "alpha": 0.5, "drop_prob": 0.0, "epochs": 2, "random_state": 0}
    one, two = (
        rds.RDeepSenseRegressor(likelihood="gaussian", **options).fit(folder, "y")
        for folder in (f"{place}/in", str(tmp_path / "in"))
    )
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    one.save(tmp_path / "fitted")
    held = (tmp_path / "fitted").read_bytes()
    assert SECRET.encode() not in held
    assert KEY.encode() not in held


def test_a_folder_into_another(place: str, tmp_path: Path) -> None:
    regressor().save(tmp_path / "m")
    X = table(40).drop("site")
    X.write_parquet(tmp_path / "1.parquet")
    put(f"{place}/m", (tmp_path / "m").read_bytes())
    put(f"{place}/in/1.parquet", (tmp_path / "1.parquet").read_bytes())
    plan = Preparation(f"{place}/m", OutputColumns(), "torch").plan()
    sources = sources_of(ParquetTable(f"{place}/in"))
    shards = shards_of(sources, Remote.of(f"{place}/out"), plan, (), 16, 2)
    assert predict_shards(shards, None, Silent(), False).tally.rows == 40
    made = bytes(Remote.of(f"{place}/out/1.parquet").read())
    np.testing.assert_allclose(pl.read_parquet(made)["mean_heat"], regressor().predict(X))
    assert SECRET.encode() not in made + pickle.dumps(plan)
    assert KEY.encode() not in made + pickle.dumps(plan)
    assert predict_shards(shards, None, Silent(), False).kept == 1


@pytest.mark.parametrize(
    "url",
    [f"s3://{KEY}:{SECRET}@sensors/x", f"s3://sensors/x?secret_key={SECRET}", f"gs://{SECRET}@x/y"],
)
def test_credentials_in_a_url_are_refused_and_not_repeated(url: str) -> None:
    for use in (Remote.of, path_or_url, ParquetTable, rds.load):
        with pytest.raises(InputError, match="has credentials in it") as caught:
            use(url)
        assert SECRET not in str(caught.value)
        assert KEY not in str(caught.value)


def test_what_is_a_url() -> None:
    assert is_url("s3://bucket/x")
    assert is_url("memory://x")
    assert not is_url("C:\\data")
    assert not is_url("data/x.csv")
    assert not is_url(Path("s3://x"))
    assert path_or_url("a/b") == Path("a/b")
    own = Remote.of("s3://bucket/in?endpoint_override=localhost%3A9000&scheme=http")
    assert str(own.child("x.parquet")) == (
        "s3://bucket/in/x.parquet?endpoint_override=localhost%3A9000&scheme=http"
    )
    assert (own.child("x.parquet").name, own.child("x.parquet").suffix) == ("x.parquet", ".parquet")


def test_an_unknown_protocol_is_named() -> None:
    with pytest.raises(InputError, match="nowhere://x/y: "):
        Remote.of("nowhere://x/y").read()
