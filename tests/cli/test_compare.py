"""`rdeepsense compare`: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

METHODS = ("--methods", "RDeepSense-quick,SSP-1", "--hidden", "2", "--epochs", "1")


def test_page_figures_and_progress(run: Any, csv: Path) -> None:
    done = run("compare", csv, "--target", "y", "--ignore", "z", "--splits", 2, *METHODS,
               "--html", "page.html", "--json", "figures.json")  # fmt: skip
    assert done.code == 0, done.err
    assert "methods   RDeepSense-quick, SSP-1; 2 splits" in done.out
    assert "The stated uncertainty" in done.out
    assert "fit seconds" in done.out
    first, *_, last = done.err.splitlines()
    begin = r"comparing:   0 %, \d+ s so far, split 1 of 2, fitting RDeepSense-quick"
    assert re.fullmatch(begin, first)
    assert last.startswith("comparing: 100 %")
    written = json.loads(Path("figures.json").read_text())
    assert [row["method"] for row in written["rows"]] == ["RDeepSense-quick", "SSP-1"]
    assert written["table"] == "data.csv"
    assert written["inputs"] == ["a", "b [V]", "label", "user", "site", "same"]
    assert len(written["splits"]) == 4
    page = Path("page.html").read_text()
    assert "data.csv: 400 rows, 6 inputs, target y. Seed 0." in page
    assert page.count("<svg") == 2
    assert not re.search(r"(src|href)=\"(?!#)", page.replace("xlink:href", "href"))
    assert str(csv.parent) not in page
    assert f"{written['rows'][0]['nll']:.1f}" in page


def test_classes_and_groups(run: Any, csv: Path) -> None:
    done = run("compare", csv, "--target", "label", "--groups", "user", "--splits", 1, *METHODS,
               "--html", "page.html", "--quiet")  # fmt: skip
    assert (done.code, done.out, done.err) == (0, "", "")
    page = Path("page.html").read_text()
    assert "rows of one user kept together" in page
    assert "accuracy" in page
    assert page.count("<svg") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--target", "nothing"), "--target 'nothing': there is no such column"),
        (("--target", "y", "--groups", "y"), "cannot be both --target and --groups"),
        (("--target", "y", "--methods", "Forest"), "'Forest' is unknown; accepted"),
        (
            ("--target", "y", "--test-fraction", "2"),
            "--test-fraction 2.0: must lie between 0",
        ),
        (("--target", "y", "--html", "no/page.html"), "there is no folder no"),
        (("--target", "y", "--json", "data.csv"), "would overwrite the input"),
        (("--target", "y", "--hidden", "a"), "--hidden 'a'"),
    ],
)
def test_refusals_are_one_line(run: Any, csv: Path, options: tuple[str, ...], message: str) -> None:
    result = run("compare", csv, *METHODS, *options)
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert message in result.err


def test_a_peer_names_its_extra(run: Any, csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "catboost", None)
    result = run("compare", csv, "--target", "y", "--methods", "CatBoost")
    assert "pip install 'rdeepsense[peers]'" in result.err
    assert result.code == 1
