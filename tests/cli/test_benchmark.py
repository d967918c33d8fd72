"""`rdeepsense benchmark uci`: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rdeepsense.cli.paper import _numbers, run_uci
from rdeepsense.errors import InputError
from rdeepsense.paper.uci import BenchmarkResults

METHODS = ["RDeepSense", "RDeepSense-MC3", "MCDrop-3-paper", "SSP-2"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "sets"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in ("yacht", "other"):
        x = rng.normal(size=(40, 2))
        test = np.argsort(rng.random((2, 40)), axis=1) < 8
        y = x[:, 0] + 0.2 * rng.normal(size=40)
        np.savez(folder / f"{name}.npz", x=x, y=y, test_mask=np.packbits(test, axis=1))
    return folder


def benchmark(data: Path, out: Path, **options: Any) -> BenchmarkResults:
    settings: dict[str, Any] = {"datasets": None, "splits": None, "methods": METHODS}
    return run_uci(data=data, out=out, hidden=(4,), epochs=1, **settings | options)


@pytest.mark.slow
def test_results_and_report(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    out = tmp_path / "out"
    results = benchmark(data, out)
    printed = capsys.readouterr()
    assert "12 cells run now, 0 found finished" in printed.out
    assert "Test NLL" in printed.out
    assert "Deep Ensembles (5), published" in printed.out
    assert "Lakshminarayanan" in printed.out
    assert "benchmark: 100 %, 0 s left, 12 of 12 cells" in printed.err

    written = json.loads((out / "results.json").read_text())
    assert written == json.loads(json.dumps(results.to_json()))
    assert len(written["summary"]) == 2 * len(METHODS)
    assert len(written["cells"]) == 2 * 2 * len(METHODS)
    row = next(r for r in written["summary"] if (r["dataset"], r["method"]) == ("yacht", "SSP-2"))
    assert (row["splits"], row["passes"], row["pooled_rows"]) == (2, 2, 16)
    cells = {(c["split"], c["method"]): c for c in written["cells"] if c["dataset"] == "yacht"}
    differences = [
        cells[split, "SSP-2"]["nll"] - cells[split, "RDeepSense"]["nll"] for split in (0, 1)
    ]
    assert row["nll_difference"] == pytest.approx(np.mean(differences))
    for key in ("rmse", "mae", "nll", "crps", "deviation_area", "deviation_area_signed",
                "deviation_floor", "coverage_90", "fit_seconds", "passes"):  # fmt: skip
        assert key in cells[0, "SSP-2"]
    assert [row["nll"] for row in written["published"]] == [{"yacht": 1.55}, {"yacht": 1.18}]

    assert benchmark(data, out).summary == results.summary
    assert "0 cells run now, 12 found finished" in capsys.readouterr().out


class Page(HTMLParser):
    """The tags and attributes of a page, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.slow
def test_the_page_needs_nothing_else(data: Path, tmp_path: Path) -> None:
    benchmark(data, tmp_path / "out", methods=["RDeepSense-quick", "SSP-1"], quiet=True)
    text = (tmp_path / "out" / "report.html").read_text()
    page = Page(text)
    assert not page.open
    assert page.tags.count("table") == 8  # no differences without the single pass
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert all(link.startswith("#") for link in page.links)
    assert not re.search(r"(?<!xmlns=\")(?<!xmlns:xlink=\")https?://", text)
    assert "@import" not in text
    assert "prefers-color-scheme: dark" in text
    assert "width=device-width" in text
    for name in ("report.html", "results.json"):
        assert str(tmp_path) not in (tmp_path / "out" / name).read_text()


@pytest.mark.slow
def test_the_command(run: Any, data: Path) -> None:
    """Through the command line, with layers so small that the default training is short."""
    options = ("--datasets", "yacht", "--splits", "1", "--methods", "RDeepSense-quick")
    done = run("benchmark", "uci", "--data", data, *options, "--hidden", "2", "--out", "o")
    assert done.code == 0, done.err
    assert "wrote o/report.html" in done.out
    assert [path.name[:25] for path in Path("o/cells").iterdir()] == ["yacht-01-RDeepSense-quick"]
    quiet = run("benchmark", "uci", "--data", data, *options, "--hidden", "2", "--out", "o",
                "--quiet")  # fmt: skip
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_help_says_the_layout(run: Any) -> None:
    text = " ".join(run("benchmark", "uci", "--help").out.split())
    for word in ("test_mask", "packed bits", "RDeepSense-MCk", "--jobs"):
        assert word in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--data", "nowhere"), "nowhere: there is no such folder"),
        (("--data", "sets", "--datasets", "kin8nm"), "'kin8nm' is not there"),
        (("--data", "sets", "--splits", "0-9"), "has splits 0 to 1; got 2"),
        (("--data", "sets", "--splits", "5-3"), "--splits '5-3'"),
        (("--data", "sets", "--methods", "Forest"), "'Forest' is unknown; accepted"),
        (("--data", "sets", "--hidden", "64,x"), "--hidden '64,x'"),
        (("--data", "sets", "--out", "sets/yacht.npz"), "is a file"),
    ],
)
def test_refusals_are_one_line(
    run: Any, data: Path, options: tuple[str, ...], message: str
) -> None:
    result = run("benchmark", "uci", "--methods", "SSP-1", *options)
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert message in result.err


def test_numbers() -> None:
    assert _numbers("0-2,7, 9") == [0, 1, 2, 7, 9]
    assert _numbers(None) is None
    for bad in ("", "a", "-3", "1-", "0-99999999"):
        with pytest.raises(InputError, match="--splits"):
            _numbers(bad)
