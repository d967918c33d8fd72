"""The report of a reproduction: every figure, table and claim, whatever is missing."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from rdeepsense._files import write_whole
from rdeepsense.errors import InputError
from rdeepsense.pages.html import area, choices, number, span
from rdeepsense.pages.page import Text, report_page
from rdeepsense.pages.pictures import Picture, representatives, style, whole
from rdeepsense.paper import report
from rdeepsense.paper.claims import ClaimVerdict
from rdeepsense.paper.figures import (
    alpha_study,
    answered,
    calibration,
    cost,
    fault_map,
    flagged,
    groups,
    quality,
    risk_coverage,
    spread,
)
from rdeepsense.paper.report import escaped, markdown, sections, write
from rdeepsense.paper.run import StudyResults
from rdeepsense.paper.scores import EnergySource, TaskResults
from rdeepsense.paper.tables import (
    beyond,
    costs,
    datasets,
    glance,
    measurements,
    paper_table,
    verdicts,
)

pytestmark = pytest.mark.slow

REGRESSION = ("calibration", "cost", "quality-energy", "alpha", "spread", "groups", "risk",
              "examples", "faults")  # fmt: skip
CLASSES = ("cost", "quality-energy", "alpha", "spread", "groups", "risk", "faults")
FIGURES = {*(f"BPEst-{one}" for one in REGRESSION), *(f"HHAR-{one}" for one in CLASSES)}


class Page(HTMLParser):
    """What the page holds: tags, names, links, text; every tag must be closed by its own."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [
            value or "" for name, value in attrs if name in ("src", "href", "xlink:href")
        ]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words.append(data)


def texts(results: dict[str, Any]) -> tuple[str, str]:
    """The page and the Markdown file, without writing them."""
    parts = sections(StudyResults.from_json(results))
    return report_page("T", "", parts), markdown("T", "", parts)


def read(task: dict[str, Any]) -> TaskResults:
    """A task from what results.json holds of it."""
    return TaskResults.from_json(task)


def drawn(picture: Picture | None) -> Figure:
    assert picture is not None
    return whole(picture)


def test_every_figure_is_written_twice_and_whole(report: Path) -> None:
    folder = report / "figures"
    expected = {f"{name}.{suffix}" for name in FIGURES for suffix in ("png", "svg")}
    assert {path.name for path in folder.iterdir()} == expected
    for path in folder.glob("*.png"):
        content = path.read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        assert int.from_bytes(content[16:20], "big") >= 800  # pixels wide
    for path in folder.glob("*.svg"):
        ET.fromstring(path.read_text())


def test_the_page_is_well_formed_and_needs_nothing_else(report: Path) -> None:
    text = (report / "report.html").read_text()
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert set(page.links) <= {f"#{name}" for name in page.ids}  # nothing leads out of the page
    assert not {"link", "img", "iframe", "object", "embed"} & set(page.tags)
    assert not re.search(r'(?<!xmlns=")(?<!xmlns:xlink=")https?://', text)
    assert not re.search(r"url\((?!#)|@import|@font-face", text)
    assert page.tags.count("script") == 1
    assert page.tags.count("figure") == len(FIGURES)
    assert page.tags.count("svg") == 3 + 2 + 1 + 2 + 3 + 1 + 1 + 2 + 2 + 1 + 2 + 2 + 1 + 1 + 2
    assert set(page.ids) >= FIGURES
    assert str(report) not in text


def test_colours_follow_the_scheme_of_the_reader(report: Path) -> None:
    text = (report / "report.html").read_text()
    svgs = re.findall(r"<svg.*?</svg>", text, flags=re.S)
    assert not re.search(r"(fill|stroke): #", "".join(svgs))
    assert "prefers-color-scheme: dark" in text
    used = set(re.findall(r"var\(--([a-z]+)\)", "".join(svgs)))
    for name in used:
        assert text.count(f"--{name}: #") == 2, name  # light and dark


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_every_claim_and_method_is_there(report: Path, name: str) -> None:
    results = json.loads((report / "results.json").read_text())
    text = (report / name).read_text()
    shown = "".join(Page(text).words) if name.endswith("html") else text
    for claim in results["claims"]:
        for key in ("claim", "measured", "why", "verdict"):
            wanted = claim[key] if name.endswith("html") else escaped(claim[key])
            assert wanted in shown
    assert "3 verdicts: 1 yes, 1 no, 1 not decidable" in shown
    for task in results["tasks"].values():
        for method, cell in task["methods"].items():
            assert method in shown
            figures = cell["figures"]
            assert number(figures["nll"], figures["nll_se"]) in shown
    assert "rdeepsense reproduce all --preset quick" in shown
    assert "the kernel of GP hit its bound" in shown


def test_tables_and_figures_say_where_the_data_is_from(report: Path) -> None:
    text = (report / "report.html").read_text()
    first, second = text.index('id="BPEst"'), text.index('id="HHAR"')
    pressure, activity = text[first:second], text[second : text.index('id="faults"')]
    for part, word, other in ((pressure, "simulated", "real"), (activity, "real", "simulated")):
        headings = re.findall(r"<h3>.*?</h3>|<figcaption>.*?</figcaption>", part)
        assert len(headings) >= 9
        assert all(f'<span class="badge {word}">{word} data</span>' in h for h in headings)
        assert f'class="badge {other}"' not in part
    failing = text[text.index('id="faults"') : text.index('id="run"')]
    titles = re.findall(r"<h3>(.*?)</h3>", failing)
    assert [title.partition(":")[0] for title in titles] == [
        "BPEst, simulated data"] * 2 + ["HHAR, real data"] * 2  # fmt: skip
    markdown_text = (report / "report.md").read_text()
    assert markdown_text.count("(simulated data)") >= 3 + 2 * 8
    assert "![HHAR: time and energy of one prediction (real data)](figures/HHAR-cost.png)" in (
        markdown_text
    )


def test_markdown_links_to_every_png(report: Path) -> None:
    text = (report / "report.md").read_text()
    linked = re.findall(r"!\[[^\]]*\]\((.*?)\)", text)
    assert set(linked) == {f"figures/{name}.png" for name in FIGURES}
    lines = text.splitlines()
    cells = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
    for (one, before), (_, after) in pairwise(zip(lines, cells, strict=True)):
        assert not (before and after) or before == after, one  # a table is a rectangle


def test_ours_stands_beside_the_papers_and_in_its_convention(results: dict[str, Any]) -> None:
    task = results["tasks"]["BPEst"]
    figures = task["methods"]["RDeepSense-paper"]["figures"]
    figures |= {"mae": 12.0, "mae_se": 0.1, "nll": 4.4189, "nll_se": 0.02}
    table = paper_table("BPEst", read(task))
    assert table.title.endswith("(the paper's table 3)")
    row = dict(zip(table.header[:6], table.rows[0], strict=False))
    assert table.rows[0][3] == "14.18"
    assert table.rows[0][6] == "3.46"
    assert row["MAE (mmHg)"] == "12.00 ± 0.10"
    assert row["NLL, full (nats)"] == "4.419 ± 0.020"
    assert row["NLL, paper's convention"] == "3.500 ± 0.020"
    recommended = list(task["methods"]).index("RDeepSense")
    assert table.rows[recommended][3] == "–"  # the paper has no such model
    assert table.strong == {(recommended, 0), (recommended, 2), (0, 4), (0, 5)}
    assert "0.9189" in table.caption


def test_classes_have_the_papers_four_figures(results: dict[str, Any]) -> None:
    table = paper_table("HHAR", read(results["tasks"]["HHAR"]))
    assert table.header[2::2] == ["Accuracy (%)", "F1", "NLL (nats)", "MEFP (nats)"]
    first = table.rows[0]
    assert first[2] == "88.5 ± 1.1"
    assert first[3::2] == ["83.98", "0.670", "0.161", "1.715"]
    assert not any(column == table.header.index("MEFP (nats)") for _, column in table.strong)


def test_the_data_sets_stand_above_the_papers(results: dict[str, Any]) -> None:
    table = datasets(StudyResults.from_json(results).tasks)
    assert [row[0] for row in table.rows] == ["BPEst", "BPEst, paper", "HHAR", "HHAR, paper"]
    assert table.aside == {1, 3}
    assert table.rows[0] == ["BPEst", "simulated", "8,000", "1,000", "1,234", "250", "250",
                             "90.5", "25.25", "48 to 181", "mmHg"]  # fmt: skip
    assert table.rows[1][2:5] == ["1,281,098", "26,689", "26,689"]
    assert table.rows[1][7:10] == ["88.74", "25.01", "50 to 199.93"]
    assert table.rows[3][9] == "6 classes"


def test_at_a_glance(results: dict[str, Any]) -> None:
    pressure, activity = (glance(read(task)) for task in results["tasks"].values())
    assert pressure.header == ["", "RDeepSense", "RDeepSense-paper"]
    assert [row[0] for row in pressure.rows] == [
        "MAE (mmHg)", "NLL, full (nats)", "In the 90\u00a0% interval (%)", "Deviation area",
        "– its floor", "Passes",
    ]  # fmt: skip
    assert pressure.rows[0][1] == "11.80 ± 0.14"
    assert pressure.rows[4][1:] == ["0.0031", "0.0031"]
    assert activity.rows[0] == ["Accuracy (%)", "92.0 ± 1.1", "88.5 ± 1.1"]


def test_calibration_has_three_panels_with_what_belongs_there(results: dict[str, Any]) -> None:
    figure = drawn(calibration("BPEst", read(results["tasks"]["BPEst"]), "simulated"))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "MCDrop-k", "SSP-k", "RDeepSense-MCk",
    ]  # fmt: skip
    for axes, rivals in zip(figure.axes, (5, 4, 4), strict=True):
        labels = {text.get_text() for text in axes.get_legend().get_texts()} - {""}
        assert labels >= {"perfect", "RDeepSense", "RDeepSense-paper", "GP"}
        assert len(labels) == 4 + rivals
    narrow = next(line for line in figure.axes[0].lines if line.get_label() == "MCDrop-3-paper")
    assert (narrow.get_ydata()[1:] < narrow.get_xdata()[1:]).all()  # type: ignore[index,operator]
    assert "simulated data" in {text.get_text() for text in figure.texts}


def test_estimated_energy_is_said_on_the_axis(results: dict[str, Any]) -> None:
    task, device = results["tasks"]["BPEst"], EnergySource.from_json(results["device"])
    figure = drawn(cost("BPEst", read(task), "simulated", device))
    labels = [axes.get_xlabel() for axes in figure.axes]
    assert labels == ["time of one prediction (µs)", "energy (mJ), estimated for Intel Edison"]
    for cell in task["methods"].values():
        cell["cost"]["energy"] = "measured"
    figure = drawn(quality("BPEst", read(task), "simulated", device))
    assert figure.axes[0].get_xlabel().startswith("energy (mJ), measured on Intel Edison")


def test_one_slow_method_does_not_hide_the_others(results: dict[str, Any]) -> None:
    task = results["tasks"]["BPEst"]
    task["methods"]["GP"]["cost"]["microseconds"] = 1e6
    figure = drawn(cost("BPEst", read(task), "simulated", None))
    time, energy = figure.axes
    assert (time.get_xscale(), energy.get_xscale()) == ("log", "linear")
    assert "log scale" in time.get_xlabel()
    assert all(bar.get_width() > 0 for bar in time.patches)


def test_quality_of_classes_is_negative_mefp(results: dict[str, Any]) -> None:
    task = results["tasks"]["HHAR"]
    axes = drawn(
        quality("HHAR", read(task), "real", EnergySource.from_json(results["device"]))
    ).axes[0]
    assert axes.get_ylabel() == "negative MEFP (nats)"
    paper = next(line for line in axes.lines if line.get_label() == "RDeepSense-paper")
    assert list(paper.get_ydata()) == [-0.7]  # type: ignore[arg-type]


def test_alpha_study_marks_the_choice_and_the_floor(results: dict[str, Any]) -> None:
    figure = drawn(alpha_study("BPEst", read(results["tasks"]["BPEst"]), "simulated"))
    above, below = figure.axes
    assert (above.get_ylabel(), below.get_ylabel()) == ("NLL, full (nats)", "deviation area")
    said = [text.get_text() for text in below.get_legend().get_texts()]
    assert said == ["floor 0.003", "chosen on validation rows: 0.2"]
    figure = drawn(alpha_study("HHAR", read(results["tasks"]["HHAR"]), "real"))
    assert figure.axes[1].get_ylabel() == "negative MEFP (nats)"


def test_one_method_of_each_family_where_all_would_crowd(results: dict[str, Any]) -> None:
    chosen = representatives(results["tasks"]["BPEst"]["methods"])
    assert chosen == ["RDeepSense-paper", "RDeepSense-paper-MC20", "MCDrop-20-paper", "MCDrop-20",
                      "SSP-10-paper", "GP", "RDeepSense"]  # fmt: skip
    looks = [(style(name).colour, style(name).marker) for name in chosen]
    assert len({look[0] for look in looks}) == len({look[1] for look in looks}) == len(chosen)


def test_no_text_leaves_a_figure_or_meets_the_badge(results: dict[str, Any]) -> None:
    """With all methods, the crowded case, and one so slow that the axes are logarithmic."""
    task, device = results["tasks"]["BPEst"], EnergySource.from_json(results["device"])
    task["methods"]["GP"]["cost"] |= {"microseconds": 90_000.0, "millijoules": 3_500.0}
    made = read(task)
    pictures = (calibration("BPEst", made, "simulated"), cost("BPEst", made, "simulated", device),
                risk_coverage("BPEst", made, "simulated"), groups("BPEst", made, "simulated"),
                spread("BPEst", made, "simulated"), quality("BPEst", made, "simulated", device),
                alpha_study("BPEst", made, "simulated"),
                fault_map("BPEst", made, "simulated"))  # fmt: skip
    for picture in pictures:
        figure = drawn(picture)
        whole_box = figure.bbox
        title, badge = (text.get_window_extent() for text in figure.texts)
        assert not badge.overlaps(title)
        for axes in figure.axes:
            box = axes.get_tightbbox()
            assert box.x0 >= 0
            assert box.y0 >= -1
            assert box.x1 <= whole_box.x1
            assert box.y1 <= badge.y0 + 2
            if axes.get_legend() is not None:
                label = axes.xaxis.label.get_window_extent()
                assert axes.get_legend().get_window_extent().y1 <= label.y0 + 2


def test_what_each_method_notices_and_says_when_a_sensor_fails(results: dict[str, Any]) -> None:
    task = results["tasks"]["BPEst"]
    table = flagged("BPEst", read(task), "simulated")
    assert table is not None
    assert table.header == ["Score", "healthy", "stuck", "dropped"]
    lines = {row[0]: row[1:] for row in table.rows}
    assert lines["RDeepSense-paper, laplace"] == ["6.0", "62.0 (0.81)", "100.0 (1.00)"]
    assert lines["RDeepSense-paper, novelty"] == ["5.0", "90.0 (0.95)", "100.0 (1.00)"]
    assert lines["RDeepSense-paper"][:2] == ["5.0", "35.0 (0.68)"]
    assert "MCDrop-20-paper, laplace" not in lines
    assert "MCDrop-3-paper" not in lines  # one of each family
    said = answered("BPEst", read(task), "simulated")
    assert said is not None
    assert len(said.rows) == len(table.rows) - 4
    assert said.rows[0][0] == "RDeepSense-paper"
    assert said.rows[0][2] == "20.0, 47.6"
    classes = answered("HHAR", read(results["tasks"]["HHAR"]), "real")
    assert classes is not None
    assert classes.rows[0][1:] == ["10.0", "30.0", "50.0"]

    axes = drawn(fault_map("BPEst", read(task), "simulated")).axes[0]
    written = [text.get_text() for text in axes.texts]
    assert written[3:6] == ["6", "62", "100"]
    shades = [patch.get_alpha() for patch in axes.patches][3:6]
    assert shades == sorted(shades)


def test_results_without_faults_are_shown_as_before(results: dict[str, Any]) -> None:
    for task in results["tasks"].values():
        for cell in task["methods"].values():
            cell.pop("faults", None)
    page, text = texts(results)
    assert "When a sensor fails" not in page + text
    assert page.count("<figure") == len(FIGURES) - 2
    Page(page)


def test_missing_parts_are_left_out_and_said(results: dict[str, Any]) -> None:
    task = results["tasks"]["BPEst"]
    del results["tasks"]["HHAR"]
    task |= {"alpha_study": [], "examples": None, "floor": None, "target": None}
    for cell in task["methods"].values():
        cell |= {"cost": None, "calibration": None, "risk_coverage": None, "group_coverage": None,
                 "chosen": None, "faults": None}  # fmt: skip
    results["claims"] = []
    page, text = texts(results)
    assert "No time or energy was taken in this run." in page
    assert "No alpha study was made in this run." in text
    names = set(re.findall(r'<figure id="(.*?)"', page))
    assert names == {"BPEst-spread"}
    assert "What holds" not in page
    assert "When a sensor fails" not in page
    assert "floor" not in text
    Page(page)


def test_figures_that_are_not_finite_are_dashes(results: dict[str, Any]) -> None:
    task = results["tasks"]["BPEst"]
    del results["tasks"]["HHAR"]
    for name in ("GP", "RDeepSense-paper"):
        task["methods"][name]["figures"] = dict.fromkeys(task["methods"][name]["figures"])
    task["methods"]["MCDrop-3-paper"]["figures"] = {}
    keep = ("RDeepSense-paper", "MCDrop-3-paper", "GP", "RDeepSense")
    task["methods"] = {name: task["methods"][name] for name in keep}
    table = paper_table("BPEst", read(task))
    assert table.rows[0][2:] == ["–", "14.18", "–", "–", "3.46"]
    assert set(beyond("BPEst", read(task)).rows[0][1:-1]) == {"–"}
    page, _ = texts(results)
    assert "nan" not in "".join(Page(page).words).lower().split()


def test_only_one_method(results: dict[str, Any]) -> None:
    task = results["tasks"]["BPEst"]
    task["methods"] = {"RDeepSense": task["methods"]["RDeepSense"]}
    results["tasks"] = {"BPEst": task}
    assert glance(read(task)).header == ["", "RDeepSense"]
    page, _ = texts(results)
    assert page.count("<figure") == len(REGRESSION)


def test_no_cost_no_table(results: dict[str, Any]) -> None:
    task = results["tasks"]["BPEst"]
    assert costs("BPEst", read(task), None) is not None
    task["methods"]["GP"]["cost"] = None
    assert "GP" not in [row[0] for row in costs("BPEst", read(task), None).rows]  # type: ignore[union-attr]
    for cell in task["methods"].values():
        cell["cost"] = None
    assert costs("BPEst", read(task), None) is None
    assert cost("BPEst", read(task), "real", None) is None
    assert quality("BPEst", read(task), "real", None) is None


def test_text_is_escaped(results: dict[str, Any]) -> None:
    bad = '<img src=x onerror="a()"> | & `b`'
    del results["tasks"]["HHAR"]
    task = results["tasks"]["BPEst"]
    task |= {"title": bad, "source": bad, "split": bad, "alpha_study": [], "examples": None,
             "unit": "<b>", "grouped_by": "<i>"}  # fmt: skip
    for cell in task["methods"].values():
        cell |= {"calibration": None, "cost": None, "about": bad, "warnings": [bad]}
    results |= {"command": bad, "preset": bad}
    results["claims"] = [dict.fromkeys(("section", "claim", "task", "verdict", "measured", "why"),
                                       bad)]  # fmt: skip
    page, text = texts(results)
    assert not {"img", "b", "i"} & set(Page(page).tags)
    assert escape(bad, quote=False) in page or escape(bad) in page
    assert not re.search(r"(?<!\\)<img", text)


def test_verdicts_of_a_claim_stand_in_one_line() -> None:
    base = {"section": "4.4", "claim": "c", "measured": "m", "why": "w"}
    found = [ClaimVerdict(task=task, verdict=verdict, **base)
             for task, verdict in (("A", "yes"), ("B", "no"), ("C", "not decidable"))]  # fmt: skip
    found.append(replace(found[0], claim="d", task="C"))
    table = verdicts(found, "ABC")
    assert table.header == ["Claim", "Section", "A", "B", "C"]
    assert table.rows == [["c", "4.4", "yes", "no", "not decidable"], ["d", "4.4", "", "", "yes"]]
    assert table.caption == "4 verdicts: 2 yes, 1 no, 1 not decidable from this run."
    assert measurements(found).rows[1] == ["c", "4.4", "B", "no", "m", "w"]


def test_trainings_show_in_captions_choices_and_the_alpha_study(results: dict[str, Any]) -> None:
    task = results["tasks"]["BPEst"]
    assert "± standard error over test records; bold" in paper_table("BPEst", read(task)).caption
    for cell in task["methods"].values():
        cell["seeds"] = 3
    assert "over test records and 3 trainings" in paper_table("BPEst", read(task)).caption
    assert choices({"head": "student", "alpha": [0.2, 0.4]}) == "head student, alpha 0.2 / 0.4"
    task["methods"]["RDeepSense-paper"]["chosen"] = {"alpha": [0.4, 0.2, 0.4]}
    for row in task["alpha_study"]:
        row["by_seed"] = {"nll": [row["nll"] - 0.1, row["nll"] + 0.1]}
    above, below = drawn(alpha_study("BPEst", read(task), "simulated")).axes
    said = [text.get_text() for text in below.get_legend().get_texts()]
    assert said == ["floor 0.003", "chosen on validation rows: 0.2, 0.4"]
    dots = [line for line in above.lines if line.get_marker() == "."]
    assert sum(len(line.get_xdata()) for line in dots) == 20  # type: ignore[arg-type]


def test_warnings_that_differ_in_numbers_alone_stand_once(results: dict[str, Any]) -> None:
    methods = results["tasks"]["BPEst"]["methods"]
    methods["MCDrop-3-paper"]["warnings"] = ["1 of 9 floored", "8 of 9 floored"]
    methods["MCDrop-5-paper"]["warnings"] = ["1 of 9 floored"]
    last = next(
        part for part in sections(StudyResults.from_json(results)) if part.name == "BPEst"
    ).blocks[-1]
    assert isinstance(last, Text)
    assert last.points == ("MCDrop-k-paper: 1 of 9 floored (3 such warnings)",
                           "GP: the kernel of GP hit its bound")  # fmt: skip


def test_the_same_results_are_not_written_twice(results: dict[str, Any], tmp_path: Path) -> None:
    del results["tasks"]["HHAR"]
    task = results["tasks"]["BPEst"]
    task |= {"examples": None, "alpha_study": []}
    task["methods"] = {"RDeepSense": task["methods"]["RDeepSense"]}
    task["methods"]["RDeepSense"] |= {"cost": None, "risk_coverage": None, "group_coverage": None}

    def times(files: list[Path]) -> list[int]:
        return [file.stat().st_ino for file in files]  # every file written whole is a new one

    first = write(StudyResults.from_json(results), tmp_path)
    before = times(first)
    assert times(write(StudyResults.from_json(results), tmp_path)) == before
    (tmp_path / "report.md").unlink()
    assert times(write(StudyResults.from_json(results), tmp_path)) != before
    again = times(first)
    results["date"] = "2026-11-16"
    assert write(StudyResults.from_json(results), tmp_path) == first
    assert times(first) != again


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (12.345, 0.14, "12.35 ± 0.14"),
        (19995.6, 310.0, "19,996 ± 310"),
        (0.0123, 0.00001, "0.0123 ± 0.0000"),
        (0.5, None, "0.500"),
        (1234.5, None, "1,234"),
        (0.0, 0.0, "0.00"),
        (None, 0.1, "–"),
        (float("nan"), None, "–"),
        (float("inf"), None, "–"),
    ],
)
def test_numbers(value: float | None, error: float | None, text: str) -> None:
    assert number(value, error) == text


def test_areas_keep_their_sign_and_error() -> None:
    figures = {"deviation_area": 0.01234, "deviation_area_signed": 0.01234,
               "deviation_area_se": 0.0011}  # fmt: skip
    assert area(figures) == "0.0123 ± 0.0011"
    assert area(figures, "deviation_area_signed") == "+0.0123"
    assert area({}) == "–"


def test_ranges() -> None:
    assert span(0.0, 1439.5) == "0 to 1,439.5"
    assert span(None, 1.0) == "–"


def test_results_are_read_back_as_they_were(report: Path) -> None:
    content = json.loads((report / "results.json").read_text())
    results = StudyResults.from_json(content)
    assert StudyResults.from_json(results.to_json()) == results
    assert results.seeds is None  # these are of a version that trained everything once
    content["tasks"]["BPEst"]["methods"]["GP"]["figures"]["nll"] = "1.5"
    with pytest.raises(InputError, match=r"MethodResults.figures\['nll'\]: '1.5' is not accepted"):
        StudyResults.from_json(content)


def test_the_same_results_give_the_same_bytes(results: dict[str, Any], tmp_path: Path) -> None:
    task = results["tasks"]["BPEst"]
    task |= {"examples": None, "alpha_study": []}
    results["tasks"] = {"BPEst": task}
    keep = ("RDeepSense", "RDeepSense-paper")
    task["methods"] = {name: task["methods"][name] for name in keep}
    for cell in task["methods"].values():
        cell |= {"cost": None, "risk_coverage": None, "group_coverage": None}
    first, second = (write(StudyResults.from_json(results), tmp_path / name) for name in "ab")
    assert [path.name for path in first] == [path.name for path in second]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second, strict=True))
    assert {path.name for path in first} >= {"report.html", "report.md", "BPEst-calibration.svg"}


def test_a_report_that_was_stopped_half_way_is_not_taken_for_an_old_one(
    results: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One report, half of another, and the first again: its stamp must not outlive its files."""
    monkeypatch.setattr(report, "sections", lambda found: [])
    monkeypatch.setattr(report, "report_page", lambda title, opening, parts: opening)
    first = StudyResults.from_json(results)
    write(first, tmp_path)
    page = (tmp_path / "report.html").read_text()

    def stopped(path: Path, text: str) -> None:
        if path.name == "report.md":
            raise KeyboardInterrupt
        write_whole(path, text)

    with monkeypatch.context() as patch:
        patch.setattr(report, "write_whole", stopped)
        with pytest.raises(KeyboardInterrupt):
            write(replace(first, preset="other"), tmp_path)
    assert (tmp_path / "report.html").read_text() != page
    write(first, tmp_path)
    assert (tmp_path / "report.html").read_text() == page


def test_the_first_sentence_says_what_was_found(report: Path) -> None:
    """How many claims hold, and how many intervals; the table at a glance has these too."""
    results = json.loads((report / "results.json").read_text())
    verdicts_ = [claim["verdict"] for claim in results["claims"]]
    opening = (report / "report.md").read_text().splitlines()[2]
    assert opening.startswith(
        f"Of {len(verdicts_)} claims of the paper, {verdicts_.count('yes')} hold, "
        f"{verdicts_.count('no')} do not, and {verdicts_.count('not decidable')} cannot be decided"
    )
    share = results["tasks"]["BPEst"]["methods"]["RDeepSense"]["figures"]["coverage_90"]
    assert f"of the 90 % intervals of RDeepSense, {100 * share:.1f} % (BPEst) hold" in opening
    shown = glance(read(results["tasks"]["BPEst"])).rows
    held = next(row for row in shown if row[0].startswith("In the 90"))
    assert held[1] == f"{100 * share:.1f}"


def test_a_section_of_fewer_rows_says_so(report: Path) -> None:
    results = json.loads((report / "results.json").read_text())
    for name, one in results["tasks"].items():
        table = answered(name, read(one), "simulated")
        assert table is not None
        assert "are of 150 of the 1,234 test rows" in table.caption
