"""What every test relies on: one thread, its own random numbers, a clean process, real data."""

from __future__ import annotations

import copy
import hashlib
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import settings

# Before torch is imported: the workers of pytest-xdist would otherwise fight for the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The first call of a torch kernel is slow, so a deadline per example would fail at random.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# A shell that starts the tests in the background has Ctrl-C ignored, and so would every test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What pytest sets for each test; and torch's compiler, polars, scikit-learn and Ray when they are
# first imported.
OWN_VARIABLES = (
    "KMP_DUPLICATE_LIB_OK",
    *("PYTEST_CURRENT_TEST", "TORCHINDUCTOR_CACHE_DIR", "_RJEM_MALLOC_CONF", "RAY_CLIENT_MODE"),
)
SLOW = "slow block"
CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--no-first-run"]  # fmt: skip


def _seed(name: str) -> int:
    """Return a seed that depends on a test's name alone, not on the tests before it."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A random generator seeded by the test's own id."""
    return np.random.default_rng(_seed(request.node.nodeid))


def _process_state() -> dict[str, Any]:
    """Return what all tests of a process share and a test could leave changed."""
    state: dict[str, Any] = {
        f"os.environ[{name!r}]": value
        for name, value in os.environ.items()
        if name not in OWN_VARIABLES
    }
    state["os.getcwd()"] = os.getcwd()
    if (torch := sys.modules.get("torch")) is not None:
        state |= {
            "torch.get_num_threads()": torch.get_num_threads(),
            "torch.get_default_dtype()": torch.get_default_dtype(),
            "torch.get_float32_matmul_precision()": torch.get_float32_matmul_precision(),
            "torch.is_grad_enabled()": torch.is_grad_enabled(),
            "torch.are_deterministic_algorithms_enabled()": (
                torch.are_deterministic_algorithms_enabled()
            ),
        }
    return state


@pytest.fixture(autouse=True)
def isolated(request: pytest.FixtureRequest) -> Iterator[None]:
    """Seed the process-wide generators, and fail a test that leaves process-wide state changed."""
    seed = _seed(request.node.nodeid)
    random.seed(seed)
    np.random.seed(seed)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)
    before, environment = _process_state(), dict(os.environ)
    yield
    after = _process_state()
    changed = {
        name: (before.get(name), after.get(name))
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
        and (name in before or name.startswith("os.environ"))  # torch may have been imported
    }
    if changed:
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(before["os.getcwd()"])
        if torch is not None:
            torch.set_num_threads(before["torch.get_num_threads()"])
        pytest.fail(f"the test left process-wide state changed (before, after): {changed}")


@pytest.fixture(scope="session")
def fitted() -> Callable[..., Any]:
    """Fit an estimator once per process: ``fitted(estimator, X, y)`` returns a copy of the model.

    Estimators of the same class and parameters and the same data share one fit. Use it in tests
    of what a fitted model does; a test of the fit itself calls ``fit``.
    """
    models: dict[str, Any] = {}

    def fit(estimator: Any, X: Any, y: Any) -> Any:
        key = joblib.hash((type(estimator), estimator.get_params(), X, y))
        if key not in models:
            models[key] = estimator.fit(X, y)
        return copy.deepcopy(models[key])

    return fit


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the real data sets, which are no part of this repository."""
    value = os.environ.get("RDEEPSENSE_DATA")
    if not value:
        pytest.skip("needs the real data sets: set RDEEPSENSE_DATA to their folder")
    folder = Path(value)
    if not folder.is_dir():
        pytest.fail(f"RDEEPSENSE_DATA is {value!r}, which is no folder; unset it or correct it")
    return folder


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium; one for all tests of a process, because Playwright's loop can run only once."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    if not CHROMIUM.exists():
        pytest.skip(f"no browser at {CHROMIUM}: install Debian's package chromium")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield started
        started.close()


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the first cases of a test marked `everyday(cases, reason)` to `make test`.

    All later cases of the parametrized test get the marker named by `reason`.
    """
    seen: Counter[str] = Counter()
    for item in items:
        if (everyday := item.get_closest_marker("everyday")) is not None:
            cases, reason = everyday.args
            function = item.nodeid.partition("[")[0]
            if seen[function] >= cases:
                item.add_marker(reason)
            seen[function] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the code blocks of the documentation that take long."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])]
    slow = [text for report in reports for name, text in report.user_properties if name == SLOW]
    if slow:
        terminalreporter.section("slow blocks of the documentation")
        for line in sorted(slow, reverse=True):
            terminalreporter.write_line(line)
