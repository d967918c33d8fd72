"""The options of a fit on workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdeepsense.cli.options import FitEngine, workers_asked
from rdeepsense.engines import Ray
from rdeepsense.estimators import RDeepSenseRegressor


@pytest.fixture
def folder(parquet: Path, tmp_path: Path) -> Path:
    (tmp_path / "tables").mkdir()
    return parquet.rename(tmp_path / "tables" / "0.parquet").parent


def test_the_engine_of_options() -> None:
    asked = workers_asked(FitEngine.ray, 4, "auto", "s3://b/fits", True, True)
    assert asked == Ray(4, True, "auto", "s3://b/fits")
    assert workers_asked(FitEngine.local, None, None, None, False, False) is None


def test_fit_hands_them_on(run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {}

    def fit(self, X, y, **options: object) -> None:
        given.update(options)
        raise ValueError("enough")

    monkeypatch.setattr(RDeepSenseRegressor, "fit", fit)
    run("fit", folder, "--target", "y", "--engine", "ray", "--workers", 3, "--storage", "kept")
    assert given["engine"] == Ray(workers=3, storage="kept")
    given.clear()
    run("fit", folder, "--target", "y")
    assert given["engine"] is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--workers", 2), "--workers 2: is for --engine ray; the engine is local"),
        (("--address", "auto"), "--address auto: is for --engine ray; the engine is local"),
        (("--storage", "s"), "--storage s: is for --engine ray; the engine is local"),
        (("--use-gpu",), "--use-gpu: is for --engine ray; the engine is local"),
    ],
)
def test_options_of_ray_need_it(run, folder: Path, options: tuple[object, ...], said: str) -> None:
    result = run("fit", folder, "--target", "y", *options)
    assert result.code == 1
    assert said in " ".join(result.err.split())


def test_a_table_in_memory_is_not_shared(run, csv: Path) -> None:
    result = run("fit", csv, "--target", "y", "--engine", "ray")
    assert result.code == 1
    assert "--engine ray: is for a folder of Parquet files" in " ".join(result.err.split())
