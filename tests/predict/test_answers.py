"""Columns of answers are what Python says of the same rows; problems are marked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from predict.models import classifier, regressor, table

import rdeepsense as rds
from rdeepsense.errors import InputError
from rdeepsense.predict.columns import Answers, Coded, OutputColumns
from rdeepsense.predict.folder import as_table, rows_of
from rdeepsense.predict.prepare import known_of, torch_runner
from rdeepsense.status import status_words

ALL = ("status", "novelty", "epistemic", "reject")


def answers(model: Any, wanted: OutputColumns) -> Answers:
    return Answers(known_of(model, wanted), wanted, torch_runner(model, wanted))


def test_every_column_is_what_python_says() -> None:
    model, X = regressor("two"), table(seed=3).drop("site")
    wanted = OutputColumns(0.8, (0.05, 0.5), ALL)
    columns = answers(model, wanted).of(X.to_numpy()).columns
    figures = ("mean", "std", "low", "high", "q0.05", "q0.5")
    assert list(columns) == [
        *(f"{name}_{target}" for target in ("heat", "cold") for name in figures),
        *("epistemic_heat", "epistemic_cold", "novelty", "reject", "status"),
    ]
    dist = model.predict_dist(X)
    low, high = model.predict_interval(X, 0.8)
    for k, target in enumerate(("heat", "cold")):
        np.testing.assert_array_equal(columns[f"mean_{target}"], dist.mean[:, k])
        np.testing.assert_array_equal(columns[f"std_{target}"], dist.std[:, k])
        np.testing.assert_array_equal(columns[f"low_{target}"], low[:, k])
        np.testing.assert_array_equal(columns[f"high_{target}"], high[:, k])
        np.testing.assert_array_equal(columns[f"q0.05_{target}"], dist.quantile(0.05)[:, k])
        epistemic = model.epistemic_std(X)[:, k]
        np.testing.assert_array_equal(columns[f"epistemic_{target}"], epistemic)
    np.testing.assert_array_equal(columns["novelty"], model.novelty(X))


@pytest.mark.parametrize("kind", ["two", "plain"])
def test_reject_is_that_of_the_reject_option(kind: str) -> None:
    model, X = regressor(kind), table(seed=3).drop("site")
    wanted = OutputColumns(further=("reject",), accept=0.7)
    refused = answers(model, wanted).of(X.to_numpy()).columns["reject"]
    option = rds.RejectOption(target_coverage=0.7).fit(model, *model.fitted_.kept_rows)
    np.testing.assert_array_equal(refused, ~option.accept(X))
    assert 0 < np.sum(refused) < len(X)


def test_the_status_is_that_of_the_model_and_of_the_reject_option() -> None:
    model, X = regressor(), table(400, seed=3).drop("site").to_numpy().copy()
    X[::40, 1] = 9.0  # beyond the range
    X[::7] *= [1.4, -1.4]  # some are strange in both together
    X[3] = np.nan
    option = rds.RejectOption(target_coverage=0.7).fit(model, *model.fitted_.kept_rows)

    def flags(answer: Any) -> Any:
        words = answer.columns["status"]
        named = {status_words(np.array([k]))[0]: k for k in range(32)}
        return np.array([named[words.values[c].partition(":")[0]] for c in words.codes])

    told = answers(model, OutputColumns()).of(X)
    np.testing.assert_array_equal(flags(told), model.status(X))
    assert {0, 1, 2, 16} <= set(flags(told))
    assert told.tally.flagged == np.sum((flags(told) & 2) > 0)  # not those that are unlike alone
    both = answers(model, OutputColumns(further=("status", "reject"), accept=0.7)).of(X)
    np.testing.assert_array_equal(flags(both), option.status(X))
    assert {8, 24} <= set(flags(both))
    assert flags(both)[3] == 1 | 8  # a row without an answer is rejected
    assert both.tally == told.tally


def test_conformal_intervals_are_taken_where_there_are_any() -> None:
    model, X = regressor("conformal"), table(seed=3).drop("site")
    columns = answers(model, OutputColumns()).of(X.to_numpy()).columns
    low, high = model.predict_interval(X, 0.9, method="conformal")
    np.testing.assert_array_equal(columns["low_heat"], low)
    np.testing.assert_array_equal(columns["high_heat"], high)


def test_classes() -> None:
    model, X = classifier(), table(seed=3).drop("site")
    columns = answers(model, OutputColumns(further=("epistemic",))).of(X.to_numpy()).columns
    assert list(columns) == ["class_level", "p_high", "p_low", "p_mid", "epistemic"]
    coded = columns["class_level"]
    assert isinstance(coded, Coded)
    np.testing.assert_array_equal(coded.values[coded.codes], model.predict(X))
    np.testing.assert_array_equal(columns["p_mid"], model.predict_proba(X)[:, 2])
    np.testing.assert_array_equal(columns["epistemic"], model.mutual_information(X))


def test_problems_are_marked_and_other_rows_answered() -> None:
    model = regressor()
    X = np.array([[0.1, 0.2], [np.nan, 0.2], [np.inf, 0.2], [99.0, -99.0], [0.1, 0.2]])
    answer = answers(model, OutputColumns()).of(X)
    found = as_table(answer, {}).to_pydict()
    assert found["status"] == [
        *("ok", "missing: a", "out of range: a", "out of range: a, b", "ok"),
    ]
    assert [value is None for value in found["mean_heat"]] == [False, True, True, False, False]
    np.testing.assert_allclose(found["mean_heat"][3:], model.predict(X[3:]), rtol=1e-6)
    tally = answer.tally
    assert (tally.rows, tally.missing, tally.infinite, tally.flagged) == (5, 1, 1, 1)
    assert (tally.answered, dict(tally.inputs)) == (3, {"a": 1, "b": 1})


def test_levels_become_codes_and_unknown_ones_are_said() -> None:
    model, X = regressor("texts"), table(6, seed=3)
    X = X.with_columns(site=np.array(["north", "mars", None, "east", "mars", "south"]))
    known = known_of(model, OutputColumns())
    rows = rows_of(X.to_arrow(), ["a", "b", "site"], known)
    answer = answers(model, OutputColumns()).of(rows)
    found = as_table(answer, {}).to_pydict()
    assert found["status"][1] == "unknown level: site"
    assert found["status"][2] == "missing: site"
    some = X[[0, 3, 5]]
    np.testing.assert_array_equal(np.array(found["mean_heat"])[[0, 3, 5]], model.predict(some))


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (classifier, {"quantiles": (0.5,)}, "classes have none"),
        (classifier, {"further": ("novelty",)}, "model.fit_novelty"),
    ],
)
def test_what_a_model_cannot_say_is_refused(model: Any, options: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        known_of(model(), OutputColumns(**options))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"coverage": 1.0}, "coverage = 1.0: must lie between 0 and 1"),
        ({"quantiles": (0.5, 0.0)}, "quantiles = 0: each must lie"),
        ({"further": ("colour",)}, "with = 'colour' is unknown; accepted: status, novelty"),
    ],
)
def test_strange_wishes_are_refused(options: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        OutputColumns(**options)
