"""A page in Chromium: sensors that the browser itself overrides, its clock, and what a call costs.

    OMP_NUM_THREADS=1 python benchmarks/web.py [seconds]

Tests dispatch events of their own. Here Chromium makes them from overridden sensors, at its own
rate and rounding, so that axes, units and timestamps are the browser's. Prints which axis of the
gyroscope each part of rotationRate is, the rate and the gaps of events, the decisions of a phone
that lies still, and microseconds of a prediction of a 16-64-64-2 network in int8 and of a window.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

import rdeepsense as rds
from rdeepsense.cli.terminal import server_of
from rdeepsense.paper.demo import make_page

CHROMIUM = "/usr/bin/chromium"
KINDS = ("accelerometer", "linear-acceleration", "gyroscope")
LISTEN = """() => { window.heard = []; window.decided = [];
  addEventListener("devicemotion", e => heard.push([e.timeStamp, e.accelerationIncludingGravity?.z,
    e.rotationRate?.alpha, e.rotationRate?.beta, e.rotationRate?.gamma]));
  document.addEventListener("decision", e => decided.push(e.detail)); }"""
COST = """async count => {
  const model = await (await import("./rdeepsense.js")).load();
  const x = model.facts.example ?? Array.from(model.x, () => 0);
  for (let k = 0; k < 200; ++k) model.predict(x);
  const begin = performance.now();
  for (let k = 0; k < count; ++k) model.predict(x);
  return 1000 * (performance.now() - begin) / count; }"""


def overridden(session: Any, kind: str, x: float, y: float, z: float) -> None:
    reading = {"xyz": {"x": x, "y": y, "z": z}}
    session.send("Emulation.setSensorOverrideReadings", {"type": kind, "reading": reading})


def main(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as name, sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        make_page(Path(name) / "windows", users=4, epochs=4)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 16))
        model = rds.RDeepSenseRegressor(
            hidden=(64, 64), epochs=2, effort="quick", random_state=0, verbose=False
        ).fit(X, X[:, :2] + 0.1 * rng.normal(size=(400, 2)))
        rds.export(model, Path(name) / "table", to="web", dtype="int8", max_nll_change=5.0)
        for face in ("windows", "table"):
            server = server_of(Path(name) / face, 0)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            context = browser.new_context(permissions=["accelerometer", "gyroscope"])
            page = context.new_page()
            session = context.new_cdp_session(page)
            for kind in KINDS if face == "windows" else ():
                asked = {"enabled": True, "type": kind, "metadata": {"available": True}}
                session.send("Emulation.setSensorOverrideEnabled", asked)
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            page.wait_for_selector("[data-ready]")
            if face == "windows":
                sensed(page, session, seconds)
            print(f"{face}: {page.evaluate(COST, 2_000):.2f} microseconds a prediction")
            context.close()
            server.shutdown()
        browser.close()


def sensed(page: Any, session: Any, seconds: float) -> None:
    page.evaluate(LISTEN)
    overridden(session, "gyroscope", 1.0, 2.0, 3.0)
    overridden(session, "linear-acceleration", 0.0, 0.0, 0.0)
    overridden(session, "accelerometer", 0.12, 0.0, 9.81)
    page.get_by_role("button", name="Start the sensors").click()
    page.wait_for_timeout(1000 * seconds)
    heard = np.array(page.evaluate("heard"), dtype=float)
    axes = dict(zip(("alpha", "beta", "gamma"), np.radians(heard[-1, 2:]).round(2), strict=True))
    steps = np.diff(heard[:, 0])
    print(f"rotation of x 1, y 2, z 3 rad/s is heard as {axes}")
    rate = 1000 / np.median(steps)
    print(f"{len(heard)} events, {rate:.1f} a second, longest gap {steps.max():.0f} ms")
    print(f"9.81 m/s2 is heard as {heard[-1, 1]}")
    decided = page.evaluate("decided")
    print(f"{len(decided)} decisions, statuses {sorted({one['status'] for one in decided})}")
    print("the page says:", page.locator(".note").all_inner_texts())


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0)
