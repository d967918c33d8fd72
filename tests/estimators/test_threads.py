"""Eight threads fit and sample as one does, and nobody's generators move but the library's own."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stopping import StopAt, StopError
from torch import Tensor, nn
from torch.nn import functional

import rdeepsense as rds
from rdeepsense.estimators.wrap import wrap  # now: some libraries draw as they are imported
from rdeepsense.networks import DeepSense
from rdeepsense.training import Rows, Schedule, stack, train
from rdeepsense.uncertainty import Laplace

LONG = bool(os.environ.get("RDEEPSENSE_LONG"))
THREADS, ROUNDS = 8, 20 if LONG else 2


def tables() -> tuple[np.ndarray, ...]:
    """Return rows, windows, numbers and classes."""
    rng = np.random.default_rng(0)
    # From 200 rows on nothing is shrunk; a fit of few rows may be a constant, whatever its seed.
    X, windows = rng.normal(size=(200, 4)), rng.normal(size=(200, 8, 3))
    noise = 0.3 * rng.normal(size=(2, 200))
    return X, windows, X[:, 0] + noise[0], (X[:, 1] + noise[1] > 0).astype(int)


X, WINDOWS, Y, LABELS = tables()
COMMON: dict[str, Any] = {"device": "cpu", "verbose": False}
SMALL: dict[str, Any] = {**COMMON, "hidden": (8,), "epochs": 3}


class Noisy(nn.Module):
    """A network of somebody's own, which draws from torch's default generator as it likes."""

    def __init__(self, always: bool = False) -> None:
        super().__init__()
        self.first, self.last, self.always = nn.Linear(4, 8), nn.Linear(8, 1), always

    def forward(self, x: Tensor) -> Tensor:
        drops = self.training or self.always
        h = self.first(x)
        if drops:
            h = h + 0.1 * torch.randn(len(x), 8).to(x)
        return self.last(functional.dropout(torch.relu(h), 0.2, drops))


def own(build: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return build()


# Of the bank of stacked weights, but with autograd's step, and a Dropout of the user's own.
TANH = own(lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 1)))
NOISY, ALWAYS = own(Noisy), own(lambda: Noisy(always=True))
TURNED = DeepSense((3,), interval=4, filters=3, depth=1, hidden=5, layers=1, rotation_std=0.2)

FITS: dict[str, Callable[[int], Any]] = {
    "RDeepSense": lambda s: rds.RDeepSenseRegressor(**SMALL, random_state=s, effort="quick").fit(
        X, Y
    ),
    "classes": lambda s: rds.RDeepSenseClassifier(**SMALL, random_state=s, effort="quick").fit(
        X, LABELS
    ),
    "grid": lambda s: rds.RDeepSenseRegressor(
        **SMALL, likelihood="auto", drop_prob="auto", random_state=s, alpha=0.5
    ).fit(X, Y),
    "MCDrop": lambda s: rds.MCDropRegressor(**SMALL, random_state=s).fit(X, Y),
    "MCDrop classes": lambda s: rds.MCDropClassifier(**SMALL, random_state=s).fit(X, LABELS),
    "SSP": lambda s: rds.SSPRegressor(**SMALL, members=2, random_state=s).fit(X, Y),
    "SSP adversarial": lambda s: rds.SSPClassifier(
        **SMALL, members=2, adversarial=True, random_state=s
    ).fit(X, LABELS),
    "GP": lambda s: rds.GPRegressor(**COMMON, steps=3, random_state=s).fit(X, Y),
    "GP variational": lambda s: rds.GPRegressor(
        **COMMON, method="variational", inducing=9, steps=5, batch_size=20, random_state=s
    ).fit(X, Y),
    "GP classes": lambda s: rds.GPClassifier(
        **COMMON, inducing=9, steps=5, batch_size=20, random_state=s
    ).fit(X, LABELS),
    "DeepSense": lambda s: rds.RDeepSenseRegressor(
        **SMALL, network=TURNED, drop_prob=0.2, random_state=s, effort="quick"
    ).fit(WINDOWS, Y),
    "own Sequential": lambda s: rds.RDeepSenseRegressor(
        **SMALL, network=TANH, random_state=s, effort="quick"
    ).fit(X, Y),
    "own ensemble": lambda s: rds.SSPRegressor(
        **SMALL, network=TANH, members=2, random_state=s
    ).fit(X, Y),
    "own that draws": lambda s: rds.RDeepSenseRegressor(
        **SMALL, network=NOISY, random_state=s, effort="quick"
    ).fit(X, Y),
    "own that always draws": lambda s: rds.SSPRegressor(
        **SMALL, network=ALWAYS, members=2, random_state=s
    ).fit(X, Y),
}
GP = ("GP", "GP variational", "GP classes")


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    return {name: fit(0) for name, fit in FITS.items()}


@pytest.fixture(autouse=True)
def _hasty() -> Iterator[None]:
    """Let threads take turns a thousand times as often as they do by default."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def numbers(dist: Any) -> bytes:
    """All that a distribution says, to the bit."""
    found = dist.probs if isinstance(dist, rds.Categorical) else np.stack([dist.mean, dist.std])
    return np.ascontiguousarray(found).tobytes()


def rows(name: str) -> Any:
    return WINDOWS if name == "DeepSense" else X


def said(name: str, model: Any) -> bytes:
    """Single passes, sampled ones and epistemic parts of a model."""
    parts = [numbers(model.predict_dist(rows(name)))]
    if name not in GP:
        parts.append(numbers(model.predict_dist(rows(name), samples=2)))
    if isinstance(model, rds.RDeepSenseRegressor):
        masks = () if name == "grid" else ("delta",)  # where it may choose to drop nothing
        for method in (*masks, "laplace", "sample"):
            parts.append(model.epistemic_std(rows(name), method).tobytes())
    return b"".join(parts)


def together(jobs: list[Callable[[], bytes]]) -> list[bytes]:
    """Run all jobs, in eight threads and in an order of no meaning."""
    order = random.Random(0).sample(range(len(jobs)), len(jobs))
    with ThreadPoolExecutor(THREADS) as pool:
        done = dict(zip(order, pool.map(lambda k: jobs[k](), order), strict=True))
    return [done[k] for k in range(len(jobs))]


def test_threads_sample_as_one_thread_does(fitted: dict[str, Any]) -> None:
    alone = {name: said(name, model) for name, model in fitted.items()}
    names = [name for name in fitted for _ in range(2 * ROUNDS)]
    found = together([lambda n=name: said(n, fitted[n]) for name in names])  # type: ignore[misc]
    assert [n for n, f in zip(names, found, strict=True) if f != alone[n]] == []


@pytest.mark.slow
def test_threads_fit_as_one_thread_does() -> None:
    jobs = [(name, seed) for name in FITS for seed in range(ROUNDS)]
    alone = [said(name, FITS[name](seed)) for name, seed in jobs]
    assert len(set(alone)) == len(alone)
    found = together([lambda n=n, s=s: said(n, FITS[n](s)) for n, s in jobs])  # type: ignore[misc]
    assert [job for job, a, f in zip(jobs, alone, found, strict=True) if a != f] == []


def test_threads_share_a_network_that_one_of_them_samples() -> None:
    """Neither modes nor hooks of a shared network change, so that no thread sees the others'."""
    network = rds.convert(own(lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))))
    network.eval()
    batches = [torch.from_numpy(X[k : k + 9]).float() for k in range(8)]
    laplace = Laplace.fit(network, [(torch.from_numpy(X).float(), torch.ones(len(X)))])

    def job(x: Tensor, method: str) -> bytes:
        if method == "single":
            with torch.no_grad():
                return network(x).mean.numpy().tobytes()
        variance = rds.epistemic_variance(network, x, method, fitted=laplace, samples=20)
        return variance.numpy().tobytes()

    methods = ("single", "delta", "moments", "laplace", "sample")
    jobs = [(x, method) for x in batches for method in methods] * ROUNDS
    alone = [job(*one) for one in jobs]
    assert together([lambda o=one: job(*o) for one in jobs]) == alone  # type: ignore[misc]
    assert not any(module.training for module in network.modules())


def test_threads_share_a_wrapped_network() -> None:
    network = own(
        lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))
    )
    models = [wrap(network, X, LABELS), wrap(network, X, np.column_stack([Y, Y]))]
    jobs = [(model, k) for model in models for k in range(20 * ROUNDS)]
    alone = [numbers(model.predict_dist(X[k % 40 :])) for model, k in jobs]
    found = together([lambda m=m, k=k: numbers(m.predict_dist(X[k % 40 :])) for m, k in jobs])  # type: ignore[misc]
    assert found == alone


def states() -> list[Any]:
    """The caller's generators: Python's, numpy's and torch's."""
    kind, keys, *rest = np.random.get_state()
    return [random.getstate(), kind, keys.tobytes(), rest, torch.get_rng_state().numpy().tobytes()]


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_the_callers_generators_stay_where_they_are(
    name: str, fitted: dict[str, Any], tmp_path: Path
) -> None:
    """A property of every public call: the fit, each prediction, saving, loading and exporting."""
    model, table = fitted[name], rows(name)
    truth = LABELS if hasattr(model, "classes_") else Y
    network = getattr(FITS[name](1), "network", None)
    network = network if isinstance(network, nn.Module) else None
    path = tmp_path / "model"
    calls: dict[str, Callable[[], object]] = {
        "fit": lambda: FITS[name](1),
        "said": lambda: said(name, model),
        "interval": lambda: model.predict(table),
        "novelty": lambda: model.fit_novelty(table).novelty(table),
        "conformalise": lambda: model.conformalise(table, truth),
        "save": lambda: model.save(path),
        "load": lambda: rds.load(path, network=network),
    }
    if name in ("RDeepSense", "classes"):
        calls |= {
            "folded": lambda: rds.export(model, tmp_path / "folded", to="folded"),
            "c": lambda: rds.export(model, tmp_path / "c", to="c99", dtype="int8", fine_tune=True),
            "onnx": lambda: rds.export(model, tmp_path / "onnx", to="onnx"),
        }
    if name == "RDeepSense" and LONG:
        calls["profile"] = lambda: rds.profile(model, rounds=1)
    if name == "RDeepSense":
        calls["moments"] = lambda: model.epistemic_std(table, "moments")
    if name == "DeepSense":
        calls["onnx"] = lambda: rds.export(model, tmp_path / "onnx", to="onnx")
    moved = []
    for call, function in calls.items():
        before = states()
        function()
        if states() != before:
            moved.append(call)
    assert moved == []


def test_networks_of_ones_own_leave_the_generators_alone() -> None:
    """Conversion, wrapping and the training loop itself, with a network that always draws."""
    before = states()
    x = torch.from_numpy(X).float()
    for network in (TANH, NOISY, ALWAYS):
        converted = rds.convert(network, drop_prob=0.2, example=x)
        assert converted.noisy == (network is ALWAYS)
        assert states() == before
        for method in ("delta", "sample"):
            rds.epistemic_variance(converted, x, method, samples=5)
            assert states() == before
        held = Rows(x, torch.from_numpy(Y[:, None]).float())
        schedule = Schedule(4, 30, 1e-2, 2, 9, seed=0)
        train(stack([converted]), rds.ScoringRule([0.0]), [0.0], held, held, schedule)
        assert states() == before
    wrap(TANH, X, Y).predict_dist(X)
    assert states() == before


@pytest.mark.parametrize("network", [TANH, NOISY], ids=["its own layers", "somebody's own"])
def test_a_run_broken_off_goes_on_with_the_same_numbers(network: nn.Module, tmp_path: Path) -> None:
    """Whichever generators the masks come from, and whatever was drawn in between."""
    x, y = torch.from_numpy(X).float(), torch.from_numpy(Y[:, None]).float()
    schedule = Schedule(20, 30, 1e-2, 5, 9, seed=0)

    def run(**options: Any) -> dict[str, Tensor]:
        bank = stack([rds.convert(network, drop_prob=0.2, example=x)])
        held = Rows(x, y)
        train(bank, rds.ScoringRule([0.0]), [0.0], held, held, schedule, **options)
        return bank.state_dict()

    whole, path = run(), tmp_path / "state"
    with pytest.raises(StopError):
        run(checkpoint=path, progress=StopAt(10))
    torch.rand(3)
    resumed = run(checkpoint=path)
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)
