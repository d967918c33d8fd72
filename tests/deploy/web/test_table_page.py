"""The page of a table's model, in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Page = Callable[..., Path]
CONTROLLED = """() => new Promise(done => navigator.serviceWorker.controller ? done()
  : navigator.serviceWorker.addEventListener("controllerchange", () => done()))"""


def shown(page: Any) -> list[float]:
    """The numbers of the page's first line: std, coverage, low, high."""
    text = page.locator(".output .soft").first.inner_text().replace("\u2212", "-")
    return [float(part) for part in text.replace("%", " ").replace("\u00a0", " ").split()
            if part.lstrip("-").replace(".", "", 1).isdigit()]  # fmt: skip


@pytest.mark.parametrize("kind", ["gaussian", "student"])
def test_sliders_move_mean_and_interval(
    kind: str, models: dict[str, Any], page_of: Page, opened: Callable[..., Any]
) -> None:
    page, model = opened(page_of(kind, models[kind])), models[kind]
    # The digits that a page shows are four; the test reads all of them.
    page.evaluate("Number.prototype.toPrecision = function () { return String(this); }")
    for place, value in ((0, 4.25), (3, 0.5)):
        slider = page.locator("input[type=range]").nth(place)
        slider.evaluate(
            "(one, v) => { one.value = v; one.dispatchEvent(new Event('input')); }", value
        )
    row = np.array([[float(one.input_value()) for one in page.locator("input[type=number]").all()
                     if (one.get_attribute("id") or "").startswith("input-")]])  # fmt: skip
    np.testing.assert_allclose(row[0, [0, 3]], [4.25, 0.5])
    for coverage in (0.9, 0.5):
        page.select_option("#coverage", str(coverage))
        low, high = model.predict_interval(row, coverage)
        mean, std = model.predict(row, return_std=True)
        means = page.locator(".big").all_inner_texts()
        for k, text in enumerate(means):
            found = float(text.replace("\u2212", "-").replace("\u00a0", " ").split()[0])
            assert found == pytest.approx(np.ravel(mean)[k], abs=1e-5 * np.ravel(std)[k])
        numbers = shown(page)
        wanted = [np.ravel(std)[0], 100 * coverage, np.ravel(low)[0], np.ravel(high)[0]]
        assert numbers == pytest.approx(wanted, abs=1e-5 * np.ravel(std)[0])


@pytest.mark.slow
def test_classes_have_bars_and_names_are_text(
    models: dict[str, Any], table: Any, page_of: Page, opened: Callable[..., Any]
) -> None:
    page, model = opened(page_of("classes", models["classes"])), models["classes"]
    row = np.array([[float(one.input_value()) for one in page.locator("input[type=number]").all()]])
    probs = model.predict_proba(row)[0]
    found = page.locator(".class .value").all_inner_texts()
    assert found == [f"{round(100 * p)} %" if p <= 0.995 else "> 99 %" for p in probs]
    assert page.locator(".class .name").all_inner_texts() == [str(c) for c in model.classes_]
    assert "<i>m" in model.classes_
    assert page.locator("i").count() == 0


def test_beyond_the_range_it_warns_and_names_the_input(
    models: dict[str, Any], page_of: Page, opened: Callable[..., Any]
) -> None:
    page = opened(page_of("gaussian", models["gaussian"]))
    assert page.locator(".warning").count() == 0
    field = page.locator("input[type=number]").nth(1)
    field.fill("100000")
    assert "x1 lies beyond what the model was trained on" in page.locator(".warning").inner_text()
    assert page.locator(".field.off label").inner_text() == "x1"
    field.fill("")
    assert "x1 is missing" in page.locator(".warning").inner_text()
    field.fill("100")
    assert page.locator(".warning").count() == 0


def test_rows_are_pasted_and_come_back_as_a_file(
    models: dict[str, Any], table: Any, page_of: Page, opened: Callable[..., Any], tmp_path: Path
) -> None:
    page, model, X = opened(page_of("gaussian", models["gaussian"])), models["gaussian"], table[0]
    lines = [";".join(f"{v:.6f}".replace(".", ",") for v in row[::-1]) for row in X[:20]]
    page.fill("#rows", "\r\n".join(["x3;x2;x1;x0", *lines]) + "\r\n")
    page.get_by_role("button", name="Predict", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download predictions").click()
    path = tmp_path / "predictions.csv"
    waiting.value.save_as(path)
    text = path.read_text().splitlines()
    assert text[0] == "mean_heat,std_heat,low_90_heat,high_90_heat,status"
    found = np.array([line.split(",") for line in text[1:]], dtype=float)
    rounded = np.round(X[:20], 6)
    mean, std = model.predict(rounded, return_std=True)
    low, high = model.predict_interval(rounded, 0.9)
    np.testing.assert_allclose(found[:, :4], np.c_[mean, std, low, high], rtol=1e-4, atol=1e-5)
    page.fill("#rows", "a,b\n1,2\n")
    page.get_by_role("button", name="Predict", exact=True).click()
    assert "the table has no column x0, x1, x2 and 1 more" in page.inner_text(".warning")


def test_teaching_moves_the_prediction_and_can_be_undone(
    models: dict[str, Any], page_of: Page, opened: Callable[..., Any]
) -> None:
    page = opened(page_of("gaussian", models["gaussian"], live=True))
    first = page.inner_text(".big")
    page.fill("#truth-0", "12")
    page.get_by_role("button", name="Learn").click()
    page.get_by_role("button", name="Learn").click()
    assert page.inner_text(".big") != first
    assert "2 labels." in page.inner_text("text=/labels/")
    for _ in range(2):
        page.get_by_role("button", name="Undo").click()
    assert page.inner_text(".big") == first


@pytest.mark.slow
def test_a_state_of_somebody_else_or_damaged_is_refused(
    models: dict[str, Any], page_of: Page, opened: Callable[..., Any], tmp_path: Path
) -> None:
    page = opened(page_of("gaussian", models["gaussian"], live=True))
    page.fill("#truth-0", "12")
    page.get_by_role("button", name="Learn").click()
    taught = page.inner_text(".big")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save").click()
    path = tmp_path / "personal.state"
    waiting.value.save_as(path)
    kept = path.read_bytes()
    page.get_by_role("button", name="Undo").click()
    first = page.inner_text(".big")
    load = page.locator("input[type=file][aria-label=Load]")
    hostile = np.frombuffer(kept, "<f4").copy()
    hostile[3] = np.nan
    for wrong in (hostile.tobytes(), kept[:9] + bytes([kept[9] ^ 1]) + kept[10:], bytes(len(kept))):
        path.write_bytes(wrong)
        load.set_input_files(path)
        page.wait_for_selector("text=it is damaged, or was learnt by another model")
        assert page.inner_text(".big") == first
    path.write_bytes(kept[:-4])
    load.set_input_files(path)
    page.wait_for_selector("text=/a state of .* bytes; this model's has/")
    path.write_bytes(kept)
    load.set_input_files(path)
    page.wait_for_selector("text=The personal state was loaded.")
    assert page.inner_text(".big") == taught
    page.fill("#truth-0", "1e30")
    page.get_by_role("button", name="Learn").click()
    assert "lies 100 standard deviations off" in page.inner_text("text=/Nothing was learnt/")
    assert page.inner_text(".big") == taught


@pytest.mark.slow
def test_classes_with_an_empty_field_have_no_prediction(
    models: dict[str, Any], page_of: Page, opened: Callable[..., Any]
) -> None:
    page = opened(page_of("classes", models["classes"]))
    page.locator("input[type=number]").first.fill("")
    assert "x0 is missing" in page.locator(".warning").inner_text()
    said = page.inner_text(".verdict")
    assert said.strip() == "No prediction"
    assert "undefined" not in page.inner_text("main")
    page.wait_for_selector("[aria-live=polite]:not(:empty)", state="attached")
    assert "undefined" not in (page.locator("[aria-live=polite]").text_content() or "")
    assert set(page.locator(".class .value").all_inner_texts()) == {"–"}


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (360, "dark")])
def test_it_fits_the_screen_and_the_keyboard_reaches_all(
    width: int, scheme: str, models: dict[str, Any], page_of: Page, opened: Callable[..., Any]
) -> None:
    folder = page_of("student", models["student"])
    page = opened(folder, width=width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, dark[4:-1].split(","))) < 200) == (scheme == "dark")
    page.locator("input[type=range]").first.focus()
    before = page.inner_text(".big >> nth=0")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert page.inner_text(".big >> nth=0") != before
    aloud = page.locator("[aria-live=polite]")
    page.wait_for_selector("[aria-live=polite]:not(:empty)", state="attached")
    assert "of the time between" in (aloud.text_content() or "")


def test_the_page_opens_without_a_network_the_second_time(
    models: dict[str, Any], page_of: Page, visit: Callable[..., Any]
) -> None:
    page, url = visit(page_of("gaussian", models["gaussian"]))
    page.goto(url)
    page.wait_for_selector("[data-ready]")
    page.evaluate(CONTROLLED)
    page.context.set_offline(True)
    page.reload()
    page.wait_for_selector("[data-ready]")
    page.locator("input[type=number]").first.fill("4")
    assert page.inner_text(".big")


def test_the_policy_allows_own_scripts_and_wasm_alone(
    models: dict[str, Any], page_of: Page, opened: Callable[..., Any]
) -> None:
    folder = page_of("gaussian", models["gaussian"])
    page = opened(folder)
    policy = page.get_attribute("meta[http-equiv]", "content")
    assert "default-src 'none'" in policy
    assert "connect-src 'self';" in policy  # nothing can be sent elsewhere
    assert "script-src 'self' 'wasm-unsafe-eval'" in policy
    assert "unsafe-inline" not in policy
    assert "'unsafe-eval'" not in policy
    assert page.evaluate("Boolean(document.querySelector('style').sheet)")  # its hash is right
