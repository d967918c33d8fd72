"""Models of every kind, fitted once; their pages; and a browser that complains aloud."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rdeepsense as rds
from rdeepsense.cli.terminal import server_of
from rdeepsense.deploy.web.export import wasm_compiler
from rdeepsense.errors import InputError
from rdeepsense.networks import DeepSense
from rdeepsense.paper.demo import cut
from rdeepsense.paper.tasks.hhar import LOG_UNITS as UNITS
from rdeepsense.paper.tasks.hhar import simulate_log

FIT: dict[str, Any] = {"hidden": (16, 16), "epochs": 3, "random_state": 0, "verbose": False}
FIT |= {"effort": "quick", "drop_prob": 0.1, "alpha": 0.5}


@pytest.fixture(scope="session")
def compiler() -> tuple[str, ...]:
    try:
        return wasm_compiler()
    except InputError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed")
    return found


@pytest.fixture(scope="session")
def table() -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal((5, 100, 0, 3), (1, 30, 0.01, 2), (400, 4))
    y = X[:, 0] + 0.1 * rng.normal(size=400) * (1 + abs(X[:, 3]))
    return X, y


@pytest.fixture(scope="session")
def models(table: Any) -> dict[str, Any]:
    """A Gaussian, a Student-t of two outputs with a map, classes, and one that learns on."""
    X, y = table
    two, three = np.c_[y, y * X[:, 3]], np.where(y > 5.5, "high", np.where(y < 4.5, "low", "<i>m"))
    student = rds.RDeepSenseRegressor(**FIT, likelihood="student", calibrate="isotonic")
    gaussian = rds.RDeepSenseRegressor(**FIT, likelihood="gaussian", calibrate="scale").fit(X, y)
    return {
        "gaussian": gaussian.describe(target_names=["heat"], target_units=["W"]) or gaussian,
        "student": student.fit(X, two),
        "classes": rds.RDeepSenseClassifier(**FIT).fit(X, three),
    }


@pytest.fixture(scope="session")
def windows_model() -> Any:
    train = cut(simulate_log(range(5), 7.2, 0))
    model = rds.RDeepSenseClassifier(
        network=DeepSense((3, 3), filters=4, hidden=12, layers=1), epochs=12, batch_size=32,
        learning_rate=1e-2, drop_prob=0.1, alpha=0.5, effort="quick", random_state=0, verbose=False,
    ).fit(train, train.y)  # fmt: skip
    model.describe(target_names=["activity"], feature_units=list(UNITS))
    return model


@pytest.fixture(scope="session")
def page_of(
    compiler: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """The folder of an exported page; each is written once."""
    known: dict[str, Path] = {}

    def export(name: str, model: Any, **options: Any) -> Path:
        key = f"{name} {sorted(options.items())}"
        if key not in known:
            folder = tmp_path_factory.mktemp("page") / "page"
            rds.export(model, folder, to="web", max_nll_change=5.0, **options)
            known[key] = folder
        return known[key]

    return export


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a page from a server; what it complains of, and requests elsewhere, fail the test."""
    with closing_all() as later:
        complaints: list[str] = []
        asked: list[str] = []
        own: list[str] = []

        def opened(folder: Path, width: int = 1200, **context: Any) -> Any:
            server = server_of(folder, 0)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            later.append(lambda: (server.shutdown(), server.server_close()))
            made = browser.new_context(viewport={"width": width, "height": 800}, **context)
            later.append(made.close)
            page = made.new_page()
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("request", lambda request: asked.append(request.url))
            own.append(f"http://127.0.0.1:{server.server_port}/")
            return page, own[-1]

        yield opened
        assert complaints == []
        assert [url for url in asked if not url.startswith((*own, "blob:"))] == []


@contextmanager
def closing_all() -> Iterator[list[Callable[[], Any]]]:
    later: list[Callable[[], Any]] = []
    try:
        yield later
    finally:
        for close in reversed(later):
            close()


@pytest.fixture
def opened(visit: Callable[..., Any]) -> Callable[..., Any]:
    """The page, ready."""

    def ready(folder: Path, hash: str = "", before: str = "", **context: Any) -> Any:
        page, url = visit(folder, **context)
        if before:
            page.add_init_script(before)
        page.goto(url + hash)
        page.wait_for_selector("[data-ready]")
        return page

    return ready
