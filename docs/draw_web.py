"""Draw the pictures of docs/web.md: exported pages in Chromium, light, at 1400 pixels.

    python docs/draw_web.py [--all FOLDER]

With --all also every face at 1400, 390 and 360 pixels, light and dark, into a folder to look at.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

import rdeepsense as rds
from rdeepsense.cli.terminal import server_of
from rdeepsense.paper.demo import make_page

IMAGES = Path(__file__).parent / "images"
CHROMIUM = "/usr/bin/chromium"
SHOWN, SHAKEN = 116, 128  # decisions: of somebody who rides, and of a phone that is shaken
# Plays fast up to a decision, then at its own speed.
UNTIL = """count => new Promise(done => {
  const speed = document.getElementById("speed");
  const at = value => { speed.value = value; speed.dispatchEvent(new Event("change")); };
  let heard = 0;
  document.addEventListener("decision", () => {
    if (++heard === count) { at("1"); setTimeout(done, 400); }
  });
  at("16");
  [...document.querySelectorAll("button")].find(b => b.textContent === "Replay an example").click();
})"""


def table_page(folder: Path) -> None:
    """A sensor of gas whose two outputs are unsure in different ways."""
    rng = np.random.default_rng(0)
    X = rng.normal((22, 45, 2.1, 0.4), (4, 12, 0.5, 0.1), (2_000, 4))
    level = 40 * X[:, 2] + 1.5 * (X[:, 0] - 22)
    y = np.column_stack([level + rng.standard_t(4, 2_000) * (2 + 0.1 * X[:, 1]),
                         0.2 * level + rng.normal(0, 3, 2_000) * X[:, 3]])  # fmt: skip
    model = rds.RDeepSenseRegressor(
        hidden=(64, 64),
        epochs=20,
        effort="quick",
        random_state=0,
        likelihood="student",
        verbose=False,
    ).fit(X, y)
    names = {"target_names": ["CO", "NO2"], "target_units": ["ppm", "ppb"]}
    model.describe(**names, feature_units=["°C", "%", "V", "V"])
    rds.export(model, folder, to="web", dtype="int8", max_nll_change=1.0)


def wave_page(folder: Path) -> None:
    """A pulse wave in, a pressure wave out."""
    rng = np.random.default_rng(0)
    t, start = np.linspace(0, 2, 80), rng.uniform(0, 6.28, (800, 1))
    size = rng.uniform(0.5, 2, (800, 1))
    beat = np.sin(6.28 * 1.2 * t + start) + 0.4 * np.sin(12.56 * 1.2 * t + start)
    y = 95 + 18 * size * beat + rng.normal(0, 4, (800, 1)) * (1 + (beat > 0.8))
    model = rds.RDeepSenseRegressor(
        hidden=(64, 64), epochs=20, effort="quick", random_state=0, verbose=False
    ).fit(size * beat, y)
    model.describe(target_names=["pressure", *(f"{k}" for k in range(1, 80))])
    rds.export(model, folder, to="web", dtype="int8", max_nll_change=1.0)


def activity_page(folder: Path) -> None:
    make_page(folder)


FACES: dict[str, tuple[Any, int]] = {
    "activity": (activity_page, SHOWN),
    "table": (table_page, 0),
    "wave": (wave_page, 0),
}


def pictured(page: Page, url: str, count: int, path: Path, whole: bool) -> None:
    page.goto(url)
    page.wait_for_selector("[data-ready]")
    if count:
        page.evaluate(UNTIL, count)
    page.screenshot(path=path, full_page=whole)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path)
    everything = parser.parse_args().all
    with tempfile.TemporaryDirectory() as name, sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for face, (make, count) in FACES.items():
            folder = Path(name) / face
            make(folder)
            server = server_of(folder, 0)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_port}/"
            if face != "wave":
                page = browser.new_page(viewport={"width": 1400, "height": 900})
                pictured(page, url, count, IMAGES / f"web-{face}.png", False)
                page.close()
            for width in (1400, 390, 360) if everything else ():
                for scheme in ("light", "dark"):
                    page = browser.new_page(
                        viewport={"width": width, "height": 800}, color_scheme=scheme
                    )
                    at = (SHAKEN if scheme == "dark" else SHOWN) if count else 0
                    path = everything / f"{face}-{width}-{scheme}.png"
                    pictured(page, url, at, path, True)
                    page.close()
            server.shutdown()
        browser.close()


if __name__ == "__main__":
    main()
