"""GasSen from files as published, with the damage that copies of them have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rdeepsense.errors import InputError
from rdeepsense.paper.tasks.gassen import load

TITLES = "Time (seconds), {} conc (ppm), Ethylene conc (ppm), sensor readings (16 channels) \n"


def line(seconds: float, first: float = 533.33, ethylene: float = 16.67) -> str:
    """Numbers with two decimals, several spaces apart, as in the published files."""
    sensors = [seconds - 50.85 * channel for channel in range(16)]
    return "   ".join(f"{value:7.2f}" for value in (seconds, first, ethylene, *sensors)) + "  \n"


def write(folder: Path, *lines: str, name: str = "ethylene_CO.txt", titles: str = "CO") -> Path:
    path = folder / name
    path.write_text(TITLES.format(titles) + "".join(lines))
    return path


def test_sensors_concentrations_and_groups(tmp_path: Path) -> None:
    write(tmp_path, line(0), line(599.99, 0, 10), line(600), line(1800.01))
    task = load(tmp_path)
    seconds = np.array([0, 599.99, 600, 1800.01])
    np.testing.assert_allclose(
        task.X, seconds[:, None] - 50.85 * np.arange(16), rtol=1e-5, atol=0.006
    )
    np.testing.assert_allclose(task.y, [[533.33, 16.67], [0, 10], *[[533.33, 16.67]] * 2])
    assert task.X.dtype == task.y.dtype == np.float32
    assert task.groups is not None
    assert task.groups.tolist() == [0, 0, 1, 3]
    assert (task.targets, task.unit, task.grouped_by) == (
        ("CO", "ethylene"),
        "ppm",
        "ten-minute block",
    )
    assert task.source == "UCI 322, ethylene_CO.txt: 4 of 4 lines"


def test_the_other_mixture(tmp_path: Path) -> None:
    write(tmp_path, line(0, 100, 5), name="ethylene_methane.txt", titles="Methane")
    task = load(tmp_path, mixture="methane")
    assert task.targets == ("methane", "ethylene")
    assert task.y.tolist() == [[100, 5]]


def test_every_nth_line_over_several_batches(tmp_path: Path) -> None:
    lines = [line(second) for second in range(30)]
    write(tmp_path, *lines)
    assert load(tmp_path, batch=4).X[:, 0].tolist() == list(range(30))
    task = load(tmp_path, every=3, batch=4)
    assert task.X[:, 0].tolist() == list(range(0, 30, 3))
    assert task.source == "UCI 322, ethylene_CO.txt, one line in 3: 10 of 10 lines"


def test_unsorted_time_blank_lines_other_line_ends_and_no_titles(tmp_path: Path) -> None:
    text = line(700) + "\n" + line(5) + "\n\n"
    (tmp_path / "ethylene_CO.txt").write_bytes(text.replace("\n", "\r\n").encode())
    task = load(tmp_path)
    assert task.X[:, 0].tolist() == [700, 5]
    assert task.groups is not None
    assert task.groups.tolist() == [1, 0]
    assert task.source.endswith(": 2 of 2 lines")


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (line(1)[:60] + "\n", "has 6 fields instead of 19"),
        (line(1).rstrip() + " 7.00\n", "has 20 fields instead of 19"),
        (line(1).replace("533.33", "NaN"), "holds 'NaN' for a number"),
        (line(1).replace("533.33", "5#3.33"), "holds '5#3.33' for a number"),
        (line(1).replace("533.33", "1e99"), "holds '1e99' for a number"),
        (line(1).replace("533.33", "53\x003.33"), r"holds '53\x003.33' for a number"),
    ],
)
@pytest.mark.parametrize("batch", [7, 50_000])
def test_a_damaged_line_is_dropped_and_named(
    tmp_path: Path, bad: str, fault: str, batch: int
) -> None:
    path = write(tmp_path, *[line(2)] * 150, bad, *[line(3)] * 49, bad)
    task = load(tmp_path, batch=batch)
    assert len(task.X) == 199
    assert task.source == (
        "UCI 322, ethylene_CO.txt: 199 of 201 lines; dropped 2 unreadable, "
        f"the first: {path}: line 152 {fault}"
    )


def test_the_damaged_line_is_counted_in_the_file_where_lines_are_left_out(tmp_path: Path) -> None:
    lines = [line(second) for second in range(800)]
    lines[303] = lines[302] = "cut\n"
    path = write(tmp_path, *lines)
    task = load(tmp_path, every=3)
    assert f"{path}: line 305 has 1 fields" in task.source  # titles, then the 304th line
    assert len(task.X) == 266


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, *[line(1).rsplit(None, 1)[0] + "\n"] * 3, line(2))
    with pytest.raises(InputError) as error:
        load(tmp_path)
    assert str(error.value) == (
        f"{path}: line 2 has 18 fields instead of 19; 3 of 4 lines cannot be read"
    )


@pytest.mark.parametrize("text", ["", "\n\n", TITLES.format("CO")])
def test_an_empty_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "ethylene_CO.txt").write_text(text)
    with pytest.raises(InputError, match="ethylene_CO.txt: has no lines of numbers"):
        load(tmp_path)


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no file ethylene_CO.txt"):
        load(tmp_path)
    with pytest.raises(InputError, match="mixture = 'butane' is unknown; accepted: CO, methane"):
        load(tmp_path, mixture="butane")
    with pytest.raises(InputError, match="every = 0"):
        load(tmp_path, every=0)
