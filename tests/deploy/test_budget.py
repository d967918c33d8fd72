"""Budgets: what they read and refuse, what they count, and whole fits within one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c_models import COMPILERS
from deploy.random_models import draw
from fuzz.hostile_files import opened
from sklearn.base import clone
from torch import nn

import rdeepsense as rds
from rdeepsense import Budget, InputError
from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.c.layout import Dimensions, Memory, flash_bytes, struct_bytes, tables
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.quantise import DTYPES, NetworkRunner, prepare
from rdeepsense.fitting.records import DeviceCost, front
from rdeepsense.networks import DeepSense, Dense, Periodic

FIXED = {"drop_prob": 0.05, "alpha": 0.5, "likelihood": "gaussian"}
SMALL: dict[str, Any] = {"epochs": 1, "random_state": 0, "verbose": False, "device": "cpu", **FIXED}
LONG = bool(os.environ.get("RDEEPSENSE_LONG"))
needs_cc = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")


def bent(rows: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (rows, 3))
    return X, np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=rows)


def assert_promised(model: Any, budget: Budget, report: Any) -> None:
    """The export has the tables and the scratch memory that were counted before training."""
    folded, architecture = fold(model), model.fitted_.networks.architecture
    facts, layers, shift = folded.facts, folded.layers, folded.output.shift
    embedding = None
    if isinstance(architecture, Periodic):
        embedding = architecture.frequencies, architecture.width
    planned = Dimensions.planned(
        layers.inputs, facts.outputs, layers.widths[1:], budget.dtype, embedding, layers.encoding
    )
    memory, need = Memory.of(planned, budget.dtype), model.training_["budget"]["need"]
    assert need == DeviceCost(memory.flash, memory.ram, report.multiply_adds).to_json()
    assert budget.allows(DeviceCost(**need))
    own = replace(
        planned,
        shifted=shift is not None and bool(shift.any()),
        takes_nan=facts.missing != "refuse",
        guard=facts.guard is not None,
    )
    found = Memory.of(own, budget.dtype)
    assert (report.bytes.tables_in_flash, report.bytes.ram_scratch) == (found.tables, found.scratch)
    assert 0 <= memory.tables - found.tables <= 4 * facts.outputs + facts.inputs + 3


@pytest.mark.parametrize(
    ("text", "size"),
    [("64 kB", 65_536), ("64kB", 65_536), ("64 KiB", 65_536), ("64KB", 65_536), ("1 MB", 1 << 20),
     ("0.5 kB", 512), (" 700 ", 700), ("700 B", 700), (700, 700), (np.int64(9), 9)],
)  # fmt: skip
def test_sizes(text: Any, size: int) -> None:
    assert Budget(flash=text) == Budget(flash=size)
    assert Budget(ram=text).to_json() == {
        "flash": None, "ram": size, "multiply_adds": None, "dtype": "int8"
    }  # fmt: skip


@pytest.mark.parametrize("bad", ["64 kg", "kB", "-1 kB", "", 0, "0 kB", 1.5, True, [], "1e3"])
def test_what_is_no_size(bad: Any) -> None:
    with pytest.raises(InputError, match=r"flash = .*; accepted: bytes, or a text such as '64 kB'"):
        Budget(flash=bad)


def test_other_refusals() -> None:
    with pytest.raises(InputError, match="limits something; give flash, ram or multiply_adds"):
        Budget(dtype="int8")
    with pytest.raises(InputError, match=r"dtype = 'int4' is unknown; accepted: 'float32'"):
        Budget(flash=1, dtype="int4")
    for bad in (0, 1.5, "9", True):
        with pytest.raises(InputError, match="multiply_adds = .* is not a whole number"):
            Budget(multiply_adds=bad)


def test_the_command_line_reads_the_same() -> None:
    found = Budget.parse("flash=64kB, ram=8 kB,multiply_adds=200_000,dtype=float32")
    assert found == Budget("64 kB", "8 kB", 200_000, "float32")
    assert Budget.parse("ram=8kB") == Budget(ram=8192, dtype="int8")
    for bad, words in [
        ("64kB", "'64kB' is not understood; known: flash=, ram=, multiply_adds=, dtype="),
        ("flash=1,rom=2", "'rom=2' is not understood"),
        ("flash=1,flash=2", "flash is given twice"),
        ("multiply_adds=many", "multiply_adds=many is not a whole number"),
        ("flash=many", "flash = 'many' is no size"),
        ("dtype=int8", "limits something"),
    ]:
        with pytest.raises(InputError, match=words):
            Budget.parse(bad)


def test_words_and_limits() -> None:
    need = DeviceCost(42_189, 1_126, 12_345)
    assert (
        Budget("64 kB", "8 kB", 200_000).words(need)
        == "flash 41.2 of 64 kB, ram 1.1 of 8 kB, 12,345 of 200,000 multiply-adds, int8"
    )
    told = Budget(ram=2048, dtype="float32").words(need)
    assert told == "flash 41.2 kB, ram 1.1 of 2 kB, 12,345 multiply-adds, float32"
    assert Budget(42_189, 1_126, 12_345).allows(need)
    for short in (Budget(42_188), Budget(ram=1_125), Budget(multiply_adds=12_344)):
        assert not short.allows(need)


@pytest.mark.everyday(2, "slow")
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("seed", range(30 if LONG else 3))
def test_the_count_is_that_of_the_export(seed: int, periodic: bool) -> None:
    """Exact for scratch memory and for tables, with all that training may add; above for code."""
    drawn = draw(seed, widest=90, most=9, periodic=periodic)
    folded, fitted = fold(drawn.estimator), drawn.estimator.fitted_
    inputs, outputs = folded.facts.inputs, folded.facts.outputs
    for dtype in DTYPES:
        network = prepare(folded, "float32" if dtype == "float16" else dtype, drawn.X)
        source = Source(folded, network)
        need = Budget(flash=1, dtype=dtype).need(
            fitted.networks.architecture, (inputs,), outputs, folded.layers.widths[-1]
        )
        own = source.dimensions
        whole = replace(own, shifted=True, guard=True, takes_nan=True)
        memory = Memory.of(whole, dtype)
        assert need.multiply_adds == folded.layers.multiply_adds
        assert (need.flash, need.ram) == (memory.flash, memory.ram)
        assert memory.scratch == source.scratch_bytes() == struct_bytes(source.scratch())
        assert Memory.of(own, dtype).tables == flash_bytes(tables(own)) == source.table_bytes
        if dtype == "float16":
            halves = Source(folded, prepare(folded, dtype, drawn.X))
            assert halves.table_bytes <= memory.tables


def test_networks_without_a_counted_form_are_refused() -> None:
    X = np.random.default_rng(0).normal(size=(80, 8, 3))
    budget = Budget(flash="1 MB")
    for network, rows in (
        (DeepSense(sensors=(3,), interval=4), X),
        (nn.Sequential(nn.Linear(8, 1)), X[:, :, 0]),
    ):
        with pytest.raises(InputError, match="is for tables and networks of Dense or Periodic"):
            rds.RDeepSenseRegressor(network=network, budget=budget, **SMALL).fit(rows, X[:, 0, 0])
    model = rds.RDeepSenseRegressor(network=Periodic((8,)), budget=budget, **SMALL)
    assert model.fit(X[:, :, 0], X[:, 0, 0]).training_["budget"]["need"]["multiply_adds"] > 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_predictions_are_judged_in_the_stored_form(dtype: str) -> None:
    X, y = bent(300)
    arguments = {**SMALL, "hidden": (16, 16), "calibrate": False, "epochs": 20}
    rows = (X[200:], y[200:])
    model = rds.RDeepSenseRegressor(budget=Budget("1 MB", dtype=dtype), **arguments)
    model.fit(X[:200], y[:200], validation=rows)
    plain = rds.RDeepSenseRegressor(**arguments).fit(X[:200], y[:200], validation=rows)
    assert model.predict_dist(X) == plain.predict_dist(X)  # the same network, and its own pass
    folded = fold(model)
    assert folded.facts.guard is not None
    inside = NetworkRunner(folded, prepare(folded, dtype, X[:200].astype(np.float32)))
    found: Any = inside.run(rows[0].astype(np.float32))
    assert not found.status.any()
    stored = rds.Gaussian(found.mean[:, 0], found.std[:, 0])
    nll = model.validation_scores_["nll"]
    np.testing.assert_allclose(nll, rds.metrics.evaluate(stored, rows[1])["nll"], rtol=1e-4)
    moved = abs(nll - plain.validation_scores_["nll"])
    assert (1e-6 < moved < 0.05) if dtype == "int8" else moved < 1e-3


@pytest.mark.slow
@needs_cc
@pytest.mark.parametrize("classes", [False, True])
def test_whole_fits(classes: bool, tmp_path: Path) -> None:
    X, y = bent(260)
    kind = rds.RDeepSenseClassifier if classes else rds.RDeepSenseRegressor
    y = y > 0 if classes else y
    own = {name: value for name, value in SMALL.items() if not classes or name != "likelihood"}
    rows, needs = {"X": X[60:], "y": y[60:], "validation": (X[:60], y[:60])}, []
    for flash in ("64 kB", "16 kB") if not classes else ("16 kB",):
        budget = Budget(flash=flash, ram="2 kB", multiply_adds=200_000)
        model = kind(hidden="auto", budget=budget, **own)
        assert clone(model).get_params()["budget"] == budget
        model.fit(**rows)
        report: Any = rds.export(model, tmp_path / "c", to="c99", dtype="int8", max_nll_change=1)
        assert_promised(model, budget, report)
        assert model.training_["budget"]["need"]["multiply_adds"] <= 200_000
        tried, found = model.selection_["architectures"], model.selection_["front"]
        assert all(budget.allows(DeviceCost(**one["need"])) for one in tried)
        points = [(t["nll"], t["need"]["flash"], t["need"]["multiply_adds"]) for t in tried]
        assert [tried[k] for k in sorted(front(points), key=lambda k: points[k][1:])] == found
        assert min(tried, key=lambda one: one["nll"])["chosen"]
        assert [one["chosen"] for one in found].count(True) == 1
        needs.append(max(one["need"]["flash"] for one in tried))
    assert classes or needs[1] < 16 * 1024 < needs[0]
    again = kind(hidden="auto", budget=budget, **own).fit(**rows)
    assert again.selection_ == model.selection_
    assert again.predict_dist(X) == model.predict_dist(X)
    model.save(tmp_path / "m")
    loaded = rds.load(tmp_path / "m")
    assert loaded.budget is None
    assert loaded.selection_ == model.selection_
    assert loaded.training_["budget"] == model.training_["budget"]
    assert loaded.predict_dist(X) == model.predict_dist(X)


def test_cross_validation_judges_in_the_stored_form_too() -> None:
    X, y = bent(220)
    arguments = {**SMALL, "hidden": "auto", "calibrate": False}
    found = [
        rds.RDeepSenseRegressor(budget=Budget("5 kB", dtype=dtype), **arguments).fit(X, y)
        for dtype in ("int8", "float32")
    ]
    for model in found:
        assert model.selection_["how"] == "5-fold cross-validation"
    int8, single = (
        next(one["nll"] for one in tried if one["arguments"] == {"hidden": [8, 8]})
        for tried in (model.selection_["architectures"] for model in found)
    )
    assert 1e-6 < abs(int8 - single) < 0.05


def test_an_impossible_budget_says_what_the_smallest_needs() -> None:
    X, y = bent(260)
    words = (
        r"too small for Dense\(hidden=\(8, 8\)\), which needs flash 3\.9 of 2 kB, ram 0\.6 kB, "
        "104 multiply-adds"
    )
    with pytest.raises(InputError, match=words):
        rds.RDeepSenseRegressor(hidden="auto", budget=Budget("2 kB"), **SMALL).fit(X, y)


def test_garbled_files(tmp_path: Path) -> None:
    X, y = bent(100)
    model = rds.RDeepSenseRegressor(hidden="auto", budget=Budget("16 kB"), **SMALL).fit(X, y)
    model.save(tmp_path / "m")
    for value, words in [
        ([1, 2, 3], r"architectures\[0\].need = \[1, 2, 3\] is garbled"),
        ({"flash": 1, "ram": 1}, "garbled; it must be an object of whole numbers: flash, ram"),
        ({"flash": 1, "ram": 1, "multiply_adds": -1}, "garbled"),
        ({"flash": 1, "ram": 1, "multiply_adds": 1, "more": 1}, "garbled"),
        (None, "garbled"),
    ]:
        file = opened(tmp_path / "m")
        file.header["selection"]["architectures"][0]["need"] = value
        file.write(tmp_path / "bad")
        with pytest.raises(rds.ModelFileError, match=words):
            rds.load(tmp_path / "bad")
    file = opened(tmp_path / "m")
    file.header["selection"]["architectures"][0]["parameters"] = 5_000_000  # of a wide table
    file.write(tmp_path / "good")
    assert len(rds.load(tmp_path / "good").selection_["front"]) == 1
    (tried,) = file.header["selection"]["architectures"]
    file.header["selection"]["architectures"] += [{k: v for k, v in tried.items() if k != "need"}]
    file.write(tmp_path / "bad")
    with pytest.raises(rds.ModelFileError, match="a need for some and not for all"):
        rds.load(tmp_path / "bad")
    file.header["training"]["budget"] = [1]
    file.write(tmp_path / "bad")
    with pytest.raises(rds.ModelFileError, match=r"training.budget = \[1\] is garbled"):
        rds.load(tmp_path / "bad")


@pytest.mark.everyday(1, "slow")
@needs_cc
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_categories_and_holes_count(dtype: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(260, 3)).astype(object)
    table[:, 2] = [f"level {k % 40}" for k in range(260)]
    table[::9, 0] = np.nan
    y = table[:, 1].astype(float) + np.arange(260) % 40 / 20 + 0.1 * rng.normal(size=260)
    budget = Budget(flash="24 kB", ram="4 kB", dtype=dtype)
    model = rds.RDeepSenseRegressor(hidden="auto", budget=budget, **SMALL).fit(table, y)
    report: Any = rds.export(model, tmp_path / "c", to="c99", dtype=dtype, max_nll_change=1)
    assert_promised(model, budget, report)
    encoding = model.fitted_.inputs.encoding
    (site,) = encoding.categories
    alone, both = (
        budget.need(Dense((8, 8)), (encoding.width,), 1, 2, given) for given in (None, encoding)
    )
    assert both.flash - alone.flash > 4 * site.block * site.width
    assert both.ram - alone.ram == 4 * encoding.width
