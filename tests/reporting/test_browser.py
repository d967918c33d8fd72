"""The page in a real browser: on a desk and a phone, light and dark, and for those who cannot see.

axe-core comes with the package axe-playwright-python; without it, names and contrast are checked
here alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

WAYS = [(1400, "light"), (390, "light"), (1400, "dark"), (390, "dark")]


@pytest.fixture
def opened(
    browser: Any, html: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Any]:
    """A page at a width in a colour scheme; whatever it asks for or complains of fails the test."""
    width, scheme = request.param
    path = tmp_path / "page.html"
    path.write_text(html["drifting"])
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, complaints, asked = context.new_page(), [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    yield page
    context.close()
    assert complaints == []
    assert asked == [path.as_uri()]


@pytest.mark.parametrize("opened", WAYS, indirect=True)
def test_nothing_overflows_and_everything_has_a_name(opened: Any) -> None:
    width = opened.evaluate("document.documentElement.clientWidth")
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    boxes = opened.eval_on_selector_all(
        "figure svg",
        "all => all.map(one => { const b = one.getBoundingClientRect();"
        " return [b.width, b.height, b.left, b.right, one.getAttribute('aria-label'),"
        " one.getAttribute('role')]; })",
    )
    assert len(boxes) == 12
    for wide, high, left, right, label, role in boxes:
        assert wide >= 250
        assert high >= 150
        assert left >= 0
        assert right <= width
        assert role == "img"
        assert len(label) > 20
    assert len({label for *_, label, _ in boxes}) == 12
    assert opened.locator(".banner strong").inner_text() == "Skill strong, calibration drifting"
    assert opened.locator(".banner").bounding_box()["y"] < 900  # at a glance
    colours = opened.eval_on_selector_all(
        ".banner strong, figcaption, figure p, td, th, a, li",
        """all => all.map(one => {
          const lit = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
            .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
            return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
          let back = one, seen = "rgba(0, 0, 0, 0)";
          while (back && seen === "rgba(0, 0, 0, 0)") {
            seen = getComputedStyle(back).backgroundColor; back = back.parentElement; }
          const [a, b] = [lit(getComputedStyle(one).color), lit(seen)];
          return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); })""",
    )
    assert min(colours) > 4.5  # WCAG's AA


@pytest.mark.everyday(1, "slow")
@pytest.mark.parametrize("opened", WAYS[::3], indirect=True)
def test_axe_finds_nothing(opened: Any) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="axe-core is not installed: pip install axe-playwright-python",
    )
    found = axe.Axe().run(opened)
    assert found.violations_count == 0, found.generate_report()
