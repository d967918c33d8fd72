"""C that learns on: equal to `model.live()` on streams, whatever labels come and when."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from deploy.c.live_models import SETTINGS, InC, exported, fitted, rows
from deploy.c.runtime.configured import FILES, sections
from deploy.c.runtime.test_runtime import SANITISED
from deploy.c_models import COMPILERS, STRICT, run_cc, write
from deploy.watched import without_novelty

import rdeepsense as rds
from rdeepsense.adaptation.rates import Filters, Multiplicative, Rates
from rdeepsense.calibration import Isotonic
from rdeepsense.deploy.c import inputs
from rdeepsense.deploy.c.export import fold_live
from rdeepsense.deploy.fold import fold_fitted
from rdeepsense.deploy.options import LabelledRows, Options
from rdeepsense.deploy.quantise import as_float32
from rdeepsense.deploy.status import StatusRules
from rdeepsense.distributions import Gaussian, StudentT
from rdeepsense.errors import InputError
from rdeepsense.live import targets
from rdeepsense.live.targets import Numbers, Pending
from rdeepsense.status import Status

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")

KINDS = [("student", 1), ("gaussian", 1), ("student", 2), ("gaussian", 2)]
SCHEDULES = ["all", "third", "late"]
COUNT = 240


@pytest.fixture(scope="module")
def models() -> dict[tuple[str, int], Any]:
    return {kind: fitted(*kind) for kind in KINDS}


def due(schedule: str, step: int, count: int) -> list[int]:
    """Which rows' labels come after this row: late ones by twos, the later row first."""
    if schedule == "all":
        return [step]
    if schedule == "third":
        return [step] if step % 3 == 0 else []
    return [k for k in (step - 7, step - 8) if k >= 0] if step % 2 else []


def beside(model: Any, in_c: InC, schedule: str, **settings: Any) -> float:
    """The largest distance of mean, std, low and high on a stream that drifts, in stds."""
    outputs = in_c.source.model.outputs
    X, y = rows(COUNT, 1, outputs, drift=3.0)
    live = without_novelty(model).live(alarm=False, **settings)
    tickets, waiting, apart = [], [], 0.0
    in_c.begin()
    for step, x in enumerate(X):
        said = live.predict(x)
        status, out, row = in_c.predict(x)
        assert status == int(said.status)
        dist = said.distribution
        wanted = np.array([dist.mean, dist.std, *said.interval]).reshape(4, outputs)
        apart = max(apart, float(np.abs((out - wanted) / wanted[1]).max()))
        tickets.append(said.ticket)
        waiting.append(row)
        for k in due(schedule, step, COUNT):
            live.observe(y[k], tickets[k])
            assert in_c.observe(waiting[k], y[k]) == 0
    assert in_c.counts() == [COUNT, live.labels]
    return apart


@pytest.mark.everyday(2, "compilers")
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_it_is_what_python_says(models: Any, kind: tuple[str, int], tmp_path: Path) -> None:
    in_c = InC.built(exported(models[kind], "float32"), tmp_path / "model")
    every = kind == KINDS[0] or os.environ.get("RDEEPSENSE_LONG")
    own = SCHEDULES if every else [SCHEDULES[KINDS.index(kind) - 1]]
    for schedule in own:
        assert beside(models[kind], in_c, schedule) < 1e-4, schedule


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize("kind", [KINDS[0], KINDS[3]], ids=str)
def test_with_a_novelty_it_flags_widens_and_learns_as_python_does(
    models: Any, kind: tuple[str, int], tmp_path: Path
) -> None:
    model, outputs = models[kind], kind[1]
    known = LabelledRows(*rows(400, 0, outputs), "drawn")
    options = Options(live=True, novelty=True)
    source = exported(model, "float32", watch=StatusRules.of(model.fitted_, known, options))
    in_c, live = InC.built(source, tmp_path / "model"), model.live(alarm=False)
    X, y = rows(COUNT, 1, outputs, drift=3.0)
    X[::5, 1] = -2.5 * X[::5, 0]  # within the range of each input
    X[::31] += 60.0
    counts = {Status.UNLIKE: 0, Status.OUT_OF_RANGE: 0}
    for x, truth in zip(X, y, strict=True):
        said = live.predict(x)
        status, out, row = in_c.predict(x)
        assert status == int(said.status)
        dist = said.distribution
        wanted = np.array([dist.mean, dist.std, *said.interval]).reshape(4, outputs)
        assert np.abs((out - wanted) / wanted[1]).max() < 1e-4
        live.observe(truth, said.ticket)
        assert in_c.observe(row, truth) == 0
        for flag in counts:
            counts[flag] += bool(status & flag)
    assert all(3 < count < COUNT / 3 for count in counts.values())
    assert in_c.counts() == [COUNT, live.labels] == [COUNT, COUNT]


def test_a_folder_with_a_novelty_learns_on(models: Any, tmp_path: Path) -> None:
    known = rows(400, 0)
    model, folder = models["student", 1], tmp_path / "m"
    rds.export(model, folder, to="c99", rows=known, live=True, novelty=True, reject=0.9)
    header = (folder / "model.h").read_text()
    assert "int model_live(" in header
    assert "MODEL_UNLIKE" in header
    files = ("selftest.c", "model.c", "weights.c", "-lm", "-o", "s")
    run_cc(folder, "gcc", *STRICT, *SANITISED, *files)
    run_cc(folder, folder / "s")


def test_an_adapted_model_learns_on_from_what_it_has_learnt(models: Any, tmp_path: Path) -> None:
    few, truth = rows(6, 7)
    mine = models["student", 1].adapt(few, truth + 4)
    in_c = InC.built(exported(mine, "float32"), tmp_path / "model")
    assert beside(mine, in_c, "third") < 1e-4


def test_a_stored_state_goes_on_to_the_bit(models: Any, tmp_path: Path) -> None:
    in_c = InC.built(exported(models["student", 2], "int8"), tmp_path / "model")
    X, y = rows(40, 1, 2, drift=3.0)
    said = []
    for step, (x, truth) in enumerate(zip(X, y, strict=True)):
        if step == 20:
            stored = in_c.state.tobytes()
        said.append(in_c.predict(x))
        in_c.observe(said[-1][2], truth)
    in_c.begin()
    in_c.state = np.frombuffer(bytearray(stored), np.float32)
    for x, truth, (_, out, row) in zip(X[20:], y[20:], said[20:], strict=True):
        _, again, waiting = in_c.predict(x)
        assert np.array_equal(again, out)
        assert np.array_equal(waiting, row)
        in_c.observe(waiting, truth)


def test_several_rates_and_another_coverage(models: Any, tmp_path: Path) -> None:
    rates = Rates(rows=80, within=0.3, between=0.4, keep=(0.9, 0.99, 0.9999), eta=0.2)
    model = models["student", 2]
    in_c = InC.built(exported(model, "float32", 0.8, rates), tmp_path / "model")
    assert beside(model, in_c, "all", coverage=0.8, rates=rates) < 1e-4


def reference(in_c: InC) -> tuple[Filters, Numbers]:
    """Python's filters in C's own coordinates, in which the prior is the identity as well."""
    own, outputs = in_c.live, in_c.source.model.outputs
    numbers = Numbers((outputs,), own.unit, own.coverage, own.rates)
    return Filters.start(own.directions, outputs, own.rates), numbers


def parts(in_c: InC, row: Any) -> tuple[Any, Any, Any]:
    """psi, mean and std of the network alone, out of a row that waits."""
    n, outputs = in_c.live.directions, in_c.source.model.outputs
    ends = np.cumsum([n, outputs, outputs])
    psi, mean, std = np.split(row.astype(np.float64)[: ends[-1]], ends[:-1])
    return psi, mean, std


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(("student", 1), "int8"), (("gaussian", 2), "int8"), (("student", 2), "float16")],
    ids=str,
)
def test_a_rounded_body_feeds_the_same_filters(
    models: Any, kind: tuple[str, int], dtype: str, tmp_path: Path
) -> None:
    """Python is given what the rounded body says, and learns the same from it."""
    outputs = kind[1]
    in_c = InC.built(exported(models[kind], dtype), tmp_path / "model")
    exact = InC.built(exported(models[kind], "float32"), tmp_path / "exact")
    own = in_c.live
    filters, numbers = reference(in_c)
    trackers = [Multiplicative(1 - own.coverage, own.rates.eta)] * outputs
    X, y = rows(COUNT, 1, outputs, drift=3.0)
    kernel, psis = [], []
    for x, truth in zip(X, y, strict=True):
        _, out, row = in_c.predict(x)
        psi, mean, std = parts(in_c, row)
        frozen: Any = Gaussian(mean[None], std[None])
        if own.freedom is not None:
            frozen = StudentT(mean[None], 1.0, own.freedom).with_moments(mean[None], std[None])
        outlook = filters.outlook(psi, own.rates)
        q = np.array([tracker.q for tracker in trackers])
        dist, (low, high) = numbers.answer(filters, frozen, outlook, q)
        wanted = np.array([dist.mean[0], dist.std[0], low, high])
        assert np.abs((out - wanted) / wanted[1]).max() < 1e-4
        assert in_c.observe(row, truth) == 0
        pending = Pending(x[None], frozen, psi, outlook, (low, high))
        filters = numbers.learnt(filters, pending, truth.reshape(outputs).astype(np.float64))
        missed = numbers.missed((low, high), truth.reshape(outputs))
        trackers = [t.after(bool(m)) for t, m in zip(trackers, missed, strict=True)]
        psis.append(psi)
        kernel.append(parts(exact, exact.predict(x)[2])[0])
    # Coordinates differ by a rotation, so products of rows are what the two have in common.
    found, true = (np.array(one) @ np.array(one).T for one in (psis, kernel))
    size = np.sqrt(np.outer(np.diag(true), np.diag(true)))
    assert np.abs((found - true) / size).max() < (2e-3 if dtype == "float16" else 5e-2)


def test_beyond_128_features_directions_are_kept(tmp_path: Path) -> None:
    model = fitted("student", 1, (8, 140))
    for dtype in ("float32", "int8"):
        in_c = InC.built(exported(model, dtype), tmp_path / dtype)
        assert in_c.live.directions == 65
        if dtype == "float32":
            assert beside(model, in_c, "all") < 1e-4


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize(
    ("kind", "dtype", "cc"),
    [
        (("student", 1), "int8", COMPILERS[0:1]),
        (("student", 2), "float16", COMPILERS[-1:]),
        (("gaussian", 1), "float32", COMPILERS),
    ],
    ids=str,
)
def test_the_runtime_learns_on_as_it_lies(
    models: Any, kind: tuple[str, int], dtype: str, cc: list[str], tmp_path: Path
) -> None:
    for name, text in sections(exported(models[kind], dtype), rows(20, 5)[0]).items():
        (tmp_path / name).write_text(text)
    for one in cc:
        run_cc(tmp_path, one, *STRICT, "-Wundef", "-O1", "-I.", *FILES, "-o", "selftest")
        run_cc(tmp_path, tmp_path / "selftest")


def test_the_same_numbers_bound_labels_here_and_there() -> None:
    assert inputs.FARTHEST == targets.FARTHEST
    assert inputs.FAR == targets.FAR


def test_absurd_labels_are_set_aside_here_and_there(models: Any, tmp_path: Path) -> None:
    model = models["student", 2]
    in_c, live = (
        InC.built(exported(model, "float32"), tmp_path / "model"),
        without_novelty(model).live(),
    )
    x = np.array([0.1, 0.2, 0.3], np.float32)
    before = in_c.state.copy()
    for label in ([1e30, 0.0], [0.0, -9e9], [3e38, 3e38]):
        row = in_c.predict(x)[2]
        live.observe(label, live.predict(x).ticket)
        assert in_c.observe(row, label) == 3
    assert np.array_equal(before[:-5], in_c.state[:-5])
    assert in_c.counts() == [3, live.labels] == [3, 0]
    assert live.set_aside == 3


def test_what_c_cannot_learn_is_refused(models: Any, tmp_path: Path) -> None:
    model = models["student", 1]
    stated = np.linspace(0, 1, 5)
    bent = replace(model.fitted_, calibration=Isotonic(1.0, stated, stated**2))
    old = replace(model.fitted_, epistemic=None)
    X, y = rows(200, 0)
    sorter = rds.RDeepSenseClassifier(hidden=(8,), **{**SETTINGS, "calibrate": True})
    kinds = sorter.fit(X, (y > 0).astype(int)).fitted_
    straight = fitted("gaussian", 1, ()).fitted_
    for one, said in [
        (bent, 'calibrate="scale"'),
        (old, "fit the model again"),
        (kinds, "predicts classes"),
        (straight, "hidden layer"),
    ]:
        network = as_float32(fold_fitted(one))
        with pytest.raises(InputError, match=said):
            fold_live(one, network, 0.9, Rates())


def test_layers_without_a_relu_between_them_become_one(tmp_path: Path) -> None:
    """Then the last layer of C reads other numbers than that of the network."""
    sizes = torch.nn.Linear(3, 12), torch.nn.Linear(12, 20), torch.nn.Linear(20, 1)
    layers = [sizes[0], torch.nn.ReLU(), *sizes[1:]]
    own = rds.RDeepSenseRegressor(network=torch.nn.Sequential(*layers), **SETTINGS)
    model = own.fit(*rows(300, 0))
    in_c = InC.built(exported(model, "float32"), tmp_path / "model")
    assert in_c.live.directions == 13
    assert beside(model, in_c, "all") < 1e-4


def test_nan_is_refused_and_changes_nothing(models: Any, tmp_path: Path) -> None:
    in_c = InC.built(exported(models["student", 2], "float32"), tmp_path / "model")
    _, _, row = in_c.predict([0.1, 0.2, 0.3])
    assert in_c.observe(row, [1.0, 2.0]) == 0
    before = in_c.state.copy()
    for bad in ([np.nan, 1.0], [1.0, np.inf], [-np.inf, np.nan]):
        assert in_c.observe(row, bad) == 1
    assert np.array_equal(before.view(np.uint32), in_c.state.view(np.uint32))
    status, out, unknown = in_c.predict([np.nan, 0, 0])
    assert status == 1
    assert np.isnan(out).all()
    assert in_c.observe(unknown, [1.0, 2.0]) == 2
    assert in_c.counts() == [1, 1]


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize("keep", [0.9, 0.9999])
def test_hostile_labels_leave_a_state_that_predicts(
    models: Any, keep: float, tmp_path: Path
) -> None:
    """All of it under sanitisers; RDEEPSENSE_LONG makes it a million labels of each kind."""
    source = exported(models["student", 2], "float32", rates=Rates(keep=(keep,)))
    folder = write(source, tmp_path / "model")
    (folder / "hostile.c").write_text((HERE / "hostile.c").read_text())
    times = 1_000_000 if os.environ.get("RDEEPSENSE_LONG") else 2_000
    flags = [*SANITISED, f"-DTIMES={times}", "hostile.c", "model.c", "weights.c", "-lm"]
    run_cc(folder, "gcc", *STRICT, *flags, "-o", "hostile")
    done = subprocess.run([folder / "hostile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    in_c = InC.built(source, tmp_path / "built")
    states = np.array(done.stdout.split(), np.float64).reshape(-1, len(in_c.state) - 5)
    assert len(states) == 5
    for state in states:
        assert np.isfinite(state).all()
        in_c.state[:-5] = state
        for covariance in in_c.covariances():
            eigenvalues = np.linalg.eigvalsh(covariance)
            assert eigenvalues.min() > 0.5 * (1 - keep)
            assert eigenvalues.max() < 1 + 1e-4
        assert abs(in_c.trust().sum() - 1) < 1e-5
        assert in_c.trust().min() > 0
