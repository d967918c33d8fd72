"""`rdeepsense.export(..., to="package")`: what is written, replaced and refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from deploy.packages import FIT, model, package
from hypothesis import example, given
from hypothesis import strategies as st

import rdeepsense as rds
from rdeepsense.deploy.package.export import (
    PackageReport,
    package_name,
    package_version,
    registry_name,
)
from rdeepsense.errors import InputError


def held(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_the_report_lists_what_is_there(packages: Path) -> None:
    for name in ("tank", "gait"):
        report = json.loads((packages / name / "report.json").read_text())
        assert set(report["files"]) == held(packages / name)
        assert report["name"] == name


def test_the_c_is_that_of_c99(packages: Path, tmp_path: Path) -> None:
    """Another layout, the same text: only the header's name is another."""
    report = rds.export(model("tank"), tmp_path / "c", to="c99", name="tank", max_nll_change=1.0)
    pairs = {"model.h": "tank.h", "model.c": "tank.c", "weights.c": "tank_weights.c"}
    for plain, packed in pairs.items():
        text = (tmp_path / "c" / plain).read_text().replace('"model.h"', '"tank.h"')
        assert (packages / "tank/src" / packed).read_text() == text
    again = package("tank", tmp_path / "p")
    assert isinstance(again, PackageReport)
    assert (again.to, again.bytes, again.quality) == ("package", report.bytes, report.quality)


def test_an_earlier_package_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    package("tank", folder)
    report = package("level", folder)
    assert held(folder) == set(report.files), "of the other name nothing is left"
    (folder / "examples/replay/notes.txt").write_text("mine")
    with pytest.raises(InputError, match="replay: holds 'notes.txt', which is no part of an exp"):
        package("tank", folder)
    assert (folder / "src/level.h").is_file()
    assert (folder / "examples/replay/notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"files": 3}', '{"files": [3, null, "../x"]}', "[" * 100_000]
)
def test_a_report_that_says_nonsense_makes_nothing_ours(text: str, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/report.json").write_text(text)
    with pytest.raises(InputError, match="holds 'report.json', which is no part of an export"):
        package("tank", tmp_path / "p")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"name": "Math"}, r"name='Math': math.h would hide a header of that name"),
    ({"name": "stream"}, "name='stream': stream.h would hide a header"),
    ({"name": "my arduino"}, "name='my arduino' has a word that Arduino keeps for itself"),
    ({"name": "?"}, "name='\\?' has no letter or digit"),
    ({"name": "a" * 17}, "is too long; at most 16 letters"),
    ({"version": "1.2"}, "version='1.2' is no semantic version of at most 20 letters; accepted: s"),
    ({"version": "01.2.3"}, "version='01.2.3' is no semantic version"),
    ({"version": "1.2.3\n"}, "is no semantic version"),
    ({"version": "1.2.3-" + "a" * 20}, "is no semantic version"),
    ({"features": True}, "features=True is not for to='package'; accepted there: .*version="),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_refusals(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        rds.export(model("tank"), tmp_path / "p", to="package", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_version_is_for_packages(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="version='1.0.0' is not for to='c99'"):
        rds.export(model("tank"), tmp_path / "p", to="c99", version="1.0.0")


def test_names_and_versions() -> None:
    assert package_name("Left Wrist-2") == "left_wrist_2"
    assert [registry_name(n) for n in ("left_wrist", "a__b", "a1")] == ["left-wrist", "a-b", "a1"]
    assert package_version("1.2.3-rc.1+b", "") == "1.2.3-rc.1+b"
    assert package_version(None, "00ffee1234") == "1.0.0+00ffee12"
    assert package_version(None, "") == "1.0.0"


@given(st.text(max_size=24))
@example("_-_")
@example("1 \u0131\ufb01")  # letters that change when they are made small or simple
@example("My ARDUINO")
@example("a_______________b")  # cut off at an underscore
def test_any_name_is_refused_or_fits_all_tools(text: str) -> None:
    try:
        name = package_name(text)
    except InputError:
        return
    assert re.fullmatch(r"[a-z][a-z0-9_]{0,15}", name)
    assert package_name(name) == name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", registry_name(name)), "PlatformIO's rule"
    assert "arduino" not in name


def test_no_label_becomes_code(tmp_path: Path) -> None:
    """In C, C++, properties, JSON and YAML: a label and a target are words, whatever they hold."""
    from deploy.package.sketches import COMPILERS, build, run

    X = np.random.default_rng(0).normal(size=(80, 2))
    evil = np.array(['"); system("true', "x\\", "\n#error evil", "%s%n ??/"])[np.arange(80) % 4]
    fitted = rds.RDeepSenseClassifier(hidden=(4,), epochs=1, **FIT)
    fitted.fit(X, pd.Series(evil, name='y"\nname=evil\r\n: ['))
    rds.export(fitted, tmp_path / "p", to="package", name="evil", max_nll_change=9.0)
    lines = (tmp_path / "p/library.properties").read_text().splitlines()
    assert len(lines) == 10
    assert (
        lines[4] == "sentence=Predicts y__name=evil__: [ (4 classes) from rows of 2 sensor values."
    )
    if COMPILERS:
        program = build(COMPILERS[0], tmp_path / "p", "replay", tmp_path / "b", 1)
        assert run([program]).endswith("replay passed\n")
        build(COMPILERS[0], tmp_path / "p", "predict", tmp_path / "c", 1)


@pytest.mark.slow
def test_what_c99_adds_goes_along(tmp_path: Path) -> None:
    """Laplace's part and learning on change what predict takes; the examples follow."""
    from deploy.package.sketches import COMPILERS, build, run

    laplace = {"epistemic": "laplace"}
    cases = [("tank", laplace), ("level", laplace), ("tank", {"live": True})]
    for number, (name, options) in enumerate(cases):
        folder = tmp_path / str(number)
        package(name, folder, **options)
        if COMPILERS:
            build(COMPILERS[0], folder, "predict", tmp_path / f"p{number}", 1)
            program = build(COMPILERS[0], folder, "replay", tmp_path / f"r{number}", 1)
            assert run([program]).endswith("replay passed\n")
