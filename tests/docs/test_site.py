"""The site: formulas are set when it is built, nothing is fetched, search works from disk.

The whole site is built with RDEEPSENSE_LONG=1; its formulas are tried in every run.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.fixture(scope="module")
def hook() -> Any:
    pytest.importorskip("latex2mathml", reason="not installed: pip install latex2mathml")
    spec = importlib.util.spec_from_file_location("mathml", ROOT / "docs" / "mathml.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def formulas(text: str) -> list[str]:
    """The formulas of a page, as GitHub reads them; code is none."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.M | re.S)
    blocks = re.findall(r"\$\$(.+?)\$\$", text, re.S)
    return blocks + re.findall(r"\$([^$\n]+?)\$", re.sub(r"\$\$.+?\$\$", "", text, flags=re.S))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_formulas_are_written_as_github_reads_them(page: Path) -> None:
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.M | re.S)
    assert not re.search(r"\\\(|\\\[", text)


def test_every_formula_becomes_mathml(hook: Any) -> None:
    found = [one for page in PAGES for one in formulas(page.read_text())]
    assert len(found) > 60
    for tex in found:
        escaped = tex.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        html = hook.on_page_content(f'<p><span class="arithmatex">\\({escaped}\\)</span></p>')
        math = ET.fromstring(html.replace("&nbsp;", " "))[0]
        assert math.tag.endswith("math")
        assert math.attrib["alttext"] == " ".join(tex.split())
        # a command that the converter does not know would stay in the text
        assert "\\" not in "".join(math.itertext()).replace("\\", "", tex.count("\\\\"))


def test_blocks_and_lines_are_told_apart(hook: Any) -> None:
    html = hook.on_page_content('<div class="arithmatex">\\[\na^2 &lt; b\n\\]</div>')
    assert html.startswith('<div class="formula"><math alttext="a^2 &lt; b"')
    assert 'display="block"' in html
    assert hook.on_page_content("<p>2 $ and 3 $</p>") == "<p>2 $ and 3 $</p>"


@pytest.mark.skipif("RDEEPSENSE_LONG" not in os.environ, reason="builds the site: a minute")
def test_the_site_from_disk(hook: Any, browser: Any, tmp_path: Path) -> None:
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(site)],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    asked, complaints = [], []
    page = browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((site / "method.html").as_uri())
    assert page.locator("math").count() > 40
    assert page.locator(".arithmatex").count() == 0
    page.locator("iframe[title=search]").wait_for(state="attached")  # scripts have run
    page.locator(".md-search__input").click()
    page.locator(".md-search__input").press_sequentially("conformal")
    page.locator(".md-search-result__item").first.wait_for(timeout=20_000)
    page.goto((site / "api.html").as_uri())
    for name in ("predict_dist", "predict_interval", "conformalise", "epistemic_std", "distil"):
        anchor = page.locator(f"[id='rdeepsense.RDeepSenseRegressor.{name}']")
        assert anchor.count() == 1, name
    page.close()
    assert [url for url in asked if not url.startswith("file:")] == []
    assert complaints == []
