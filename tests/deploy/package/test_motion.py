"""Which channels a motion sensor fills, in which units and at what pace."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rdeepsense.deploy.package.export import pace, reading, units
from rdeepsense.windowing.recipe import Recipe


def read_by(channels: int, feature_units: tuple[str, ...] | None = None) -> Any:
    """As much of a model as is asked for."""
    features = tuple(f"c{k}" for k in range(channels))
    return SimpleNamespace(
        channels=channels, features=features, feature_units=feature_units, window=50
    )


def recipe(**sensors: int) -> Recipe:
    names = iter(f"c{k}" for k in range(99))
    columns = {name: tuple(next(names) for _ in range(count)) for name, count in sensors.items()}
    return Recipe("t", columns, window=1.0, hop=0.25, rate=40.0)


def test_sensors_are_known_by_name_wherever_they_stand() -> None:
    text = reading(read_by(7), recipe(Gyro_left=3, ppg=1, AccelerometerX=3))
    assert "!IMU.gyroscopeAvailable() || !IMU.accelerationAvailable()" in text
    assert "    sample[0] = DEGREE * x;\n    sample[1] = DEGREE * y;\n" in text
    assert "    sample[3] = NAN; // c3: your own sensor\n" in text
    assert text.index("readGyroscope") < text.index("sample[0]") < text.index("readAcceleration")
    assert "    sample[6] = G * z;\n" in text


def test_one_function_fills_one_sensor() -> None:
    """Of two accelerometers the board has one; and a pair of axes is no motion sensor."""
    text = reading(read_by(8), recipe(acc_wrist=3, acc_hip=3, gyro=2))
    assert text.count("readAcceleration") == 1
    assert text.count("NAN") == 5
    assert "your own" in reading(read_by(4), None)
    assert "IMU" not in reading(read_by(4), None)


def test_without_names_the_number_of_channels_says_it() -> None:
    assert "sample[2] = G * z;" in reading(read_by(3), None)
    six = reading(read_by(6), None)
    assert "sample[3] = DEGREE * x;" in six
    assert "NAN" not in six


def test_units_of_the_model_are_met() -> None:
    both = recipe(acc=3, gyro=3)
    assert units(read_by(6), both).startswith("static const float G = 9.80665f; //")
    told = units(read_by(6, ("g",) * 3 + ("deg/s",) * 3), both)
    assert "G = 1.0f;" in told
    assert "DEGREE = 1.0f;" in told
    assert "DEGREE" not in units(read_by(3), recipe(acc=3)), "no constant that nobody reads"


def test_the_pace_is_that_of_the_recipe() -> None:
    assert "#define PERIOD 25000u" in pace(read_by(3), recipe(acc=3))
    assert "#define HOP 10\n" in pace(read_by(3), recipe(acc=3))
    unknown = pace(read_by(3), None)
    assert "make it the rate of the training windows" in unknown
    assert "#define HOP 50\n" in unknown
