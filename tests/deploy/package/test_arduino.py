"""The sketches of a package, compiled as C++ against stub headers, and what they print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.package.conftest import NAMES
from deploy.package.sketches import COMPILERS, build, run
from deploy.packages import RATE, model, package

import rdeepsense as rds

pytestmark = pytest.mark.skipif(not COMPILERS, reason="needs g++ or clang++")
both = pytest.mark.parametrize("compilers", COMPILERS, ids=lambda pair: pair[1])
GRAVITY, DEGREE = 9.80665, np.pi / 180


def printed(line: str) -> tuple[str, float]:
    """The word and the number of a line such as "walking 0.973"."""
    word, number = line.rsplit(" ", 1)
    return word, float(number)


@pytest.mark.everyday(1, "compilers")
@both
def test_a_table_is_predicted(packages: Path, compilers: tuple[str, str], tmp_path: Path) -> None:
    program = build(compilers, packages / "level", "predict", tmp_path / "level", 1)
    word, number = printed(run([program]).strip())
    assert word in ("high", "low")
    program = build(compilers, packages / "tank", "predict", tmp_path / "tank", 2)
    lines = run([program]).splitlines()
    assert lines[0] == lines[1]
    said = lines[0].split()
    assert said[:2] == ["output", "0"]
    source = (packages / "tank/examples/predict/predict.ino").read_text()
    typical = source.split("typical[TANK_INPUTS] = {")[1].split("}")[0].replace("f", "").split(",")
    mean, std = model("tank").predict(np.array([typical], float), return_std=True)
    np.testing.assert_allclose([float(said[2]), float(said[4])], [mean[0], std[0]], atol=0.006)
    assert number == pytest.approx(1.0, abs=0.5)


def _felt(count: int) -> Any:
    """The samples of the stub's motion sensor, in the units of the log."""
    k = np.arange(count)
    ones = np.ones(count)
    acceleration = [0.2 + 0.05 * (k * 7 % 11 - 5), 0.01 * (k * 5 % 7 - 3), ones]
    turning = [20.0 * (k * 3 % 5 - 2), 10 * ones, -10 * ones]
    return np.stack([*(GRAVITY * a for a in acceleration), *(DEGREE * t for t in turning)], 1)


@both
def test_a_motion_sensor_is_read_and_windows_decided_on(
    packages: Path, compilers: tuple[str, str], tmp_path: Path
) -> None:
    """Channels in their order and units: the sketch says what Python says of the same samples."""
    program = build(compilers, packages / "steps", "motion", tmp_path / "steps", 151)
    lines = run([program]).splitlines()
    fitted, X = model("steps"), _felt(150).reshape(3, 50, 6)
    assert (fitted.status(X) == 0).all()
    probs = fitted.predict_proba(X)
    assert [printed(line)[0] for line in lines] == list(fitted.classes_[probs.argmax(1)])
    np.testing.assert_allclose([printed(line)[1] for line in lines], probs.max(1), atol=0.0006)


def test_a_stream_that_runs_on_replays_whole_windows(tmp_path: Path) -> None:
    """It is another function than that of the stored answers, so these are of predict."""
    package("gait", tmp_path / "gait", stream="running")
    for example in ("replay", "motion"):
        program = build(COMPILERS[0], tmp_path / "gait", example, tmp_path / example, 60)
        assert run([program]).count("replay passed") == (60 if example == "replay" else 0)


@both
def test_a_motion_sensor_is_a_stream(
    packages: Path, compilers: tuple[str, str], tmp_path: Path
) -> None:
    """With a recipe the sketch pushes samples with their times, and says what rds.Stream says."""
    program = build(compilers, packages / "gait", "motion", tmp_path / "gait", 151)
    lines = [line.split(" ms: ") for line in run([program]).splitlines()]
    stream, began = rds.Stream(model("gait")), 4294.0
    told = [d for k, x in enumerate(_felt(151)) for d in stream.push(began + k / RATE, x)]
    assert [int(time) for time, _ in lines] == [round(1000 * d.end) for d in told]
    assert lines[0][1] == "abstains, not enough data"
    assert len(lines) == 1 + 5
    for (_, said), decision in zip(lines[1:], told[1:], strict=True):
        if decision.label is None:
            assert said == "abstains"
        else:
            assert printed(said)[0] == decision.label
            assert printed(said)[1] == pytest.approx(decision.probability, abs=0.0006)


@pytest.mark.everyday(2, "compilers")
@both
@pytest.mark.parametrize("name", NAMES)
def test_stored_rows_are_replayed(
    packages: Path, compilers: tuple[str, str], name: str, tmp_path: Path
) -> None:
    program = build(compilers, packages / name, "replay", tmp_path / name, 1)
    *lines, last = run([program]).splitlines()
    assert last == "replay passed"
    assert len(lines) >= 3
    for line in lines:
        found, wanted = line.split(": ")[1].split(", expected ")
        assert found.split()[0] == wanted.split()[0] or name == "tank"
    broken = (packages / name / "examples/replay/stored.h").read_text()
    assert f"[ROWS * {name.upper()}_OUTPUTS]" in broken


@both
def test_the_rows_are_really_compared(compilers: tuple[str, str], tmp_path: Path) -> None:
    package("level", tmp_path / "level")
    stored = tmp_path / "level/examples/replay/stored.h"
    before, after = stored.read_text().split("expected_probs[", 1)
    stored.write_text(f"{before}expected_probs[{after.replace('0.', '0.9', 1)}")
    program = build(compilers, tmp_path / "level", "replay", tmp_path / "build", 1)
    assert run([program]).splitlines()[-1] == "replay failed"


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize(
    ("name", "dtype"), [("tank", "float16"), ("tank", "int8"), ("steps", "int8")]
)
def test_every_type_of_weights_replays(name: str, dtype: str, tmp_path: Path) -> None:
    package(name, tmp_path / name, dtype)
    program = build(COMPILERS[0], tmp_path / name, "replay", tmp_path / "build", 1)
    assert run([program]).splitlines()[-1] == "replay passed"


@pytest.mark.compilers
def test_a_sensor_that_the_board_lacks_is_left_to_the_user(tmp_path: Path) -> None:
    """A number of windows, of a gyroscope and of something else: its channel is NAN, and said."""
    package("pulse", tmp_path / "pulse")
    sketch = (tmp_path / "pulse/examples/motion/motion.ino").read_text()
    assert "    sample[0] = DEGREE * x;\n" in sketch
    assert "    sample[3] = NAN; // ay: your own sensor\n" in sketch
    assert "acceleration" not in sketch
    program = build(COMPILERS[-1], tmp_path / "pulse", "motion", tmp_path / "motion", 60)
    assert "abstains" in run([program])
    program = build(COMPILERS[-1], tmp_path / "pulse", "replay", tmp_path / "replay", 1)
    assert run([program]).endswith("replay passed\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tank", "level", "steps"])
def test_rows_that_are_refused_are_replayed_all_the_same(name: str, tmp_path: Path) -> None:
    """A reject option flags half of the rows; their predictions are as expected, and it is told."""
    package(name, tmp_path / name, reject=0.5)
    program = build(COMPILERS[0], tmp_path / name, "replay", tmp_path / "build", 1)
    *lines, last = run([program]).splitlines()
    assert last == "replay passed"
    assert any(line.endswith(", unsure") for line in lines)
