"""Parts of a model in its file: what a new one costs, and what reading one refuses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.hostile_files import File, opened

import rdeepsense as rds
from rdeepsense.arrays import Floats
from rdeepsense.errors import InputError, ModelFileError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.fitting.parts import PARTS
from rdeepsense.modelfile.layout import Context, FilePart, Layout, Numbers, length
from rdeepsense.modelfile.schema import check_fields, whole


@dataclass(frozen=True)
class Sensor:
    """A part that the library does not have: when a sensor was calibrated, and its gains."""

    year: int
    gains: Floats


class SensorFile(FilePart[Sensor]):
    name = section = "sensor"

    def check_header(self, context: Context) -> None:
        own = {"year": whole(1900, 2100)}
        check_fields(context.header["sensor"], own, at="sensor.", closed=True)

    def layout(self, context: Context) -> Layout:
        points = length(context.shapes, "sensor.gains", axis=1)
        yield "sensor.gains", Numbers((context.shape[-1], points), 0.0, 10.0)

    def check_numbers(self, tensors: dict[str, Any], context: Context) -> None:
        if not (np.diff(tensors["sensor.gains"], axis=1) > 0).all():
            raise InputError("sensor.gains do not rise")

    def to_file(self, part: Sensor, header: dict[str, Any], tensors: dict[str, Any]) -> None:
        header["sensor"] = {"year": part.year}
        tensors["sensor.gains"] = part.gains

    def from_file(self, tensors: dict[str, Any], context: Context) -> Sensor:
        return Sensor(context.header["sensor"]["year"], tensors["sensor.gains"])


GAINS = np.array([[0.5, 1.0], [0.25, 2.0], [1.0, 4.0]])


@pytest.fixture
def registered() -> Iterator[None]:
    PARTS.append(part := SensorFile())
    yield
    PARTS.remove(part)


@pytest.fixture
def plain(fitted: Callable[..., Any]) -> Any:
    X = np.random.default_rng(0).normal(size=(60, 3))
    options: dict[str, Any] = {"hidden": (4,), "epochs": 1, "random_state": 0, "device": "cpu"}
    return fitted(rds.RDeepSenseRegressor(**options, effort="quick"), X, X[:, 0])


@pytest.fixture
def file(registered: None, plain: Any, tmp_path: Path) -> File:
    """A file of a model with the new part."""
    plain.fitted_ = replace(plain.fitted_, parts={"sensor": Sensor(2024, GAINS)})
    plain.save(tmp_path / "m")
    return opened(tmp_path / "m")


def test_a_new_part_is_saved_and_loaded(file: File, plain: Any, tmp_path: Path) -> None:
    assert file.header["sensor"] == {"year": 2024}
    again = rds.load(tmp_path / "m")
    (found,) = again.fitted_.parts.values()
    assert isinstance(found, Sensor)
    assert found.year == 2024
    assert np.array_equal(found.gains, GAINS)
    assert again.fitted_.part("sensor") is found
    X = np.zeros((1, 3))
    assert again.predict_dist(X) == plain.predict_dist(X)
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize(
    ("header", "gains", "said"),
    [
        ([], GAINS, r"sensor = \[\] is garbled; it must be an object"),
        ({"year": 1_000}, GAINS, "sensor.year = 1000 is garbled"),
        ({"year": 2_000, "x": 1}, GAINS, "sensor.x is unknown here"),
        ({"year": 2_000}, GAINS[:2], r"sensor.gains has the shape \(2, 2\), .* \(3, 2\)"),
        ({"year": 2_000}, GAINS * 9, "sensor.gains holds 2.25 to 36; accepted: 0 to 10"),
        ({"year": 2_000}, GAINS[:, ::-1], "sensor.gains do not rise"),
        ({"year": 2_000}, None, "the tensor sensor.gains is missing or has no numbers"),
        (None, GAINS, "'sensor.gains' is no tensor of such a model"),
    ],
)
def test_a_new_part_is_checked(
    file: File, tmp_path: Path, header: Any, gains: Any, said: str
) -> None:
    changed = copy.deepcopy(file)
    for owner, name, value in (
        (changed.header, "sensor", header),
        (changed.tensors, "sensor.gains", gains),
    ):
        owner[name] = value
        if value is None:
            del owner[name]
    changed.write(tmp_path / "changed")
    with pytest.raises(ModelFileError, match=said):
        rds.load(tmp_path / "changed")


def test_what_reading_refuses_is_not_written(file: File, plain: Any, tmp_path: Path) -> None:
    plain.fitted_ = replace(plain.fitted_, parts={"sensor": Sensor(1_000, GAINS)})
    with pytest.raises(InputError, match="sensor.year = 1000 is garbled"):
        plain.save(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_without_the_part_its_tensors_are_unknown(file: File, tmp_path: Path) -> None:
    part = PARTS.pop()
    try:
        with pytest.raises(ModelFileError, match=r"'sensor.gains' is no tensor of such a model"):
            rds.load(tmp_path / "m")
    finally:
        PARTS.append(part)


def test_parts_have_names_and_sections_of_their_own() -> None:
    names = [part.name for part in PARTS]
    assert len(set(names)) == len(names)
    assert {*names} <= {one.name for one in fields(Fitted)}
    keys = [key for part in PARTS for key in part.fields]
    assert len(set(keys)) == len(keys)
