"""What every test relies on: one thread, its own random numbers, a clean process, real data."""

from __future__ import annotations

import copy
import fcntl
import hashlib
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import joblib
import numpy as np
import pytest
from hypothesis import register_random, settings

# Before torch is imported: the workers of pytest-xdist would otherwise fight for the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# What a user's shell may hold that changes the output of the commands, or the code that runs.
SHELL = ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES", "RDEEPSENSE_DEBUG", "RDEEPSENSE_LEVEL")
for variable in SHELL:
    os.environ.pop(variable, None)

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


def _seed_process(name: str) -> None:
    """Seed the process-wide generators by the name of what will draw from them."""
    seed = _seed(name)
    random.seed(seed)
    np.random.seed(seed)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)


class TorchGenerator:
    """torch's generator in the form in which hypothesis resets `random` before each example."""

    def seed(self, seed: int) -> None:
        if (torch := sys.modules.get("torch")) is not None:
            torch.manual_seed(seed)

    def getstate(self) -> Any:
        return torch.get_rng_state() if (torch := sys.modules.get("torch")) is not None else None

    def setstate(self, state: Any) -> None:
        if state is not None:
            sys.modules["torch"].set_rng_state(state)


TORCH_GENERATOR = TorchGenerator()  # hypothesis keeps a weak reference only
register_random(TORCH_GENERATOR)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Give what a module makes at import, such as a network, the same numbers in every run."""
    _seed_process(collector.nodeid)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    """Seed a fixture that several tests share by its own name, whichever test is the first."""
    if fixturedef.scope != "function":
        _seed_process(f"{fixturedef.baseid}::{fixturedef.argname}")
    return (yield)


class OneAtATime:
    """A lock among the processes of this machine, held by a file of tests until its last one."""

    def __init__(self, name: str) -> None:
        self._path = Path(tempfile.gettempdir()) / name
        self._file: IO[str] | None = None
        self._holder: Path | None = None

    def hold(self, holder: Path) -> None:
        if self._file is None:
            self._file = self._path.open("w")
            fcntl.flock(self._file, fcntl.LOCK_EX)
        self._holder = holder

    def release(self, unless: Path | None) -> None:
        if self._file is not None and self._holder != unless:
            self._file.close()
            self._file = None


CLUSTER = OneAtATime("rdeepsense-tests-of-ray.lock")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Run the files that start Ray one after the other: Ray joins any cluster of the machine."""
    if item.get_closest_marker("ray") is not None:
        CLUSTER.hold(item.path)
    try:
        return (yield)
    finally:
        CLUSTER.release(unless=None if nextitem is None else nextitem.path)


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
    # A library linked with -ffast-math turns them off for the whole process when it is loaded.
    state["subnormal numbers"] = sys.float_info.min / 2 > 0
    state["signal.getsignal(SIGINT)"] = signal.getsignal(signal.SIGINT)
    state["np.geterr()"] = np.geterr()
    state["np.get_printoptions()"] = np.get_printoptions()
    if (heads := sys.modules.get("rdeepsense.heads")) is not None:
        state["rdeepsense.heads.HEADS"] = list(heads.HEADS)
    if (networks := sys.modules.get("rdeepsense.networks")) is not None:
        state["rdeepsense.networks"] = list(networks._ARCHITECTURES)  # noqa: SLF001
    if (torch := sys.modules.get("torch")) is not None:
        state |= {
            "torch.get_num_threads()": torch.get_num_threads(),
            "torch.get_num_interop_threads()": torch.get_num_interop_threads(),
            "torch.get_default_dtype()": torch.get_default_dtype(),
            "torch.get_default_device()": torch.get_default_device(),
            "torch.get_float32_matmul_precision()": torch.get_float32_matmul_precision(),
            "torch.is_grad_enabled()": torch.is_grad_enabled(),
            "torch.are_deterministic_algorithms_enabled()": (
                torch.are_deterministic_algorithms_enabled()
            ),
        }
    return state


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Compile models anew in every run, whatever the user's own cache folder holds of them."""
    before = os.environ.get("XDG_CACHE_HOME")
    users = Path(before) if before else Path.home() / ".cache"
    folder = tmp_path_factory.mktemp("cache")
    for other in users.iterdir() if users.is_dir() else ():
        if other.name != "rdeepsense":  # such as matplotlib's list of fonts
            (folder / other.name).symlink_to(other)
    os.environ["XDG_CACHE_HOME"] = str(folder)
    yield folder
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture(autouse=True)
def isolated(request: pytest.FixtureRequest) -> Iterator[None]:
    """Seed the process-wide generators, and fail a test that leaves process-wide state changed."""
    _seed_process(request.node.nodeid)
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
        if "torch.get_num_threads()" in before:
            sys.modules["torch"].set_num_threads(before["torch.get_num_threads()"])
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
