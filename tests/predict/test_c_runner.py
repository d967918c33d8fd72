"""C answers as torch does, and a plan that runs C needs nothing else."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from predict.models import classifier, regressor, table

import rdeepsense as rds
from rdeepsense.deploy.c.build import compiler
from rdeepsense.errors import InputError
from rdeepsense.predict import plan as planning
from rdeepsense.predict import prepare
from rdeepsense.predict.columns import Answers, OutputColumns
from rdeepsense.predict.plan import Preparation
from rdeepsense.predict.prepare import torch_runner

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
KINDS = ["plain", "two", "texts", "conformal", "isotonic", "gaps", "classes"]


@pytest.mark.everyday(2, "compilers")
@pytest.mark.parametrize("kind", KINDS)
def test_c_is_torch_within_rounding(kind: str, tmp_path: Path) -> None:
    model = classifier() if kind == "classes" else regressor(kind)
    model.save(tmp_path / "m")
    wanted = OutputColumns(0.8, () if kind == "classes" else (0.05, 0.7))
    plan = Preparation(str(tmp_path / "m"), wanted, "C").plan()
    assert (plan.runner, plan.said) == ("C", "C")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, plan.known.inputs))
    X[::7, 0] = np.nan
    X[::11, 1] = 1e300
    X[::13, 1] = -np.inf
    if kind == "texts":
        X[:, 2] = rng.integers(-1, 4, 500)
    found = plan.answers().of(X)
    expected = Answers(plan.known, wanted, torch_runner(model, wanted)).of(X)
    assert found.tally == expected.tally
    np.testing.assert_array_equal(found.unanswered, expected.unanswered)
    answered = ~found.unanswered
    for name, values in expected.columns.items():
        own: Any = found.columns[name]
        if name == "status" or name.startswith("class"):
            assert (values.values[values.codes] == own.values[own.codes])[answered].all()
            continue
        unit = 1.0
        if kind != "classes":
            unit = expected.columns[f"std_{name.partition('_')[2]}"][answered]
        # Far beyond its range a mean is so large that float32 itself is coarser than the std.
        allowed = 1e-5 * unit + 1e-6 * np.abs(values[answered])
        assert (np.abs(own - values)[answered] <= allowed).all(), name


def test_a_process_that_runs_c_has_no_torch(tmp_path: Path) -> None:
    regressor().save(tmp_path / "m")
    plan = Preparation(str(tmp_path / "m"), OutputColumns(), "C").plan()
    (tmp_path / "plan").write_bytes(pickle.dumps((plan, table(50).drop("site").to_numpy())))
    code = (
        "import pickle, sys; plan, X = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(plan.answers().of(X).columns['mean_heat'].sum())\n"
        "assert not {'torch', 'sklearn', 'scipy'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "plan"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    here = regressor().predict(table(50).drop("site")).sum()
    assert float(done.stdout) == pytest.approx(here, rel=1e-4)


def test_what_only_torch_can_do(tmp_path: Path) -> None:
    regressor().save(tmp_path / "m")
    model = str(tmp_path / "m")
    with pytest.raises(InputError, match="runner = 'C': the column novelty is torch's"):
        Preparation(model, OutputColumns(further=("novelty",)), "C").plan()
    plan = Preparation(model, OutputColumns(samples=3), rows=10**9).plan()
    assert (plan.runner, plan.said) == ("torch", "torch: passes with dropout are torch's")
    X = table(20).drop("site").to_numpy()
    mean = plan.answers().of(X).columns["mean_heat"]
    np.testing.assert_array_equal(mean, regressor().predict_dist(X, samples=3).mean)
    ensemble = rds.SSPRegressor(hidden=(4,), epochs=1, random_state=0)
    ensemble.fit(X, X[:, 0]).save(tmp_path / "e")
    plan = Preparation(str(tmp_path / "e"), OutputColumns(), rows=10**9).plan()
    assert plan.runner == "torch"
    assert "takes more than one pass" in plan.said


def test_the_faster_one_runs_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    regressor().save(tmp_path / "m")
    few = Preparation(str(tmp_path / "m"), OutputColumns(), rows=planning.WORTH_IT - 1).plan()
    assert (few.runner, few.said) == ("torch", "torch")
    many = Preparation(str(tmp_path / "m"), OutputColumns(), rows=planning.WORTH_IT)
    for c, torch, runner, said in (
        (1.0, 2.1, "C", "C, 2.1 times as fast as torch"),
        (3.0, 2.0, "torch", "torch, 1.5 times as fast as C"),
    ):
        seconds = {"C": c, "torch": torch}
        monkeypatch.setattr(prepare, "_seconds", lambda own, rows, s=seconds: s[own.name])
        plan = many.plan()
        assert (plan.runner, plan.said) == (runner, said)
    monkeypatch.setattr(prepare, "FURTHEST", 0.0)
    assert "standard deviations from torch" in many.plan().said


@pytest.mark.slow
def test_a_library_that_is_gone_is_built_again(tmp_path: Path) -> None:
    regressor().save(tmp_path / "m")
    plan = Preparation(str(tmp_path / "m"), OutputColumns(), "C").plan()
    assert plan.library is not None
    X = table(20).drop("site").to_numpy()
    before = plan.answers().of(X).columns["std_heat"]
    Path(plan.library.path).unlink()
    answers = plan.answers()
    assert answers.runner.name == "C"
    np.testing.assert_array_equal(answers.of(X).columns["std_heat"], before)


def test_a_plan_is_kept_for_the_same_model_and_wishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    regressor().save(tmp_path / "m")
    asked = Preparation(str(tmp_path / "m"), OutputColumns(), "C")
    assert planning.kept_plan(asked) is None
    plan = asked.plan()
    planning.keep_plan(asked, plan)
    X = table(20).drop("site").to_numpy()
    (tmp_path / "m").rename(tmp_path / "moved")
    kept = planning.kept_plan(replace(asked, model=str(tmp_path / "moved")))
    assert kept is not None
    assert kept.model == str(tmp_path / "moved")
    expected = plan.answers().of(X).columns["std_heat"]
    np.testing.assert_array_equal(kept.answers().of(X).columns["std_heat"], expected)
    asked = replace(asked, model=kept.model)
    assert planning.kept_plan(replace(asked, wanted=OutputColumns(0.5))) is None
    monkeypatch.setattr(planning, "processor", lambda: "another")
    assert planning.kept_plan(asked) is None
    assert not kept.library.is_here
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (file,) = (tmp_path / "rdeepsense").glob("*.plan")
    file.write_bytes(b"broken")
    assert planning.kept_plan(asked) is None
    regressor("two").save(asked.model)
    planning.keep_plan(asked, plan)
    regressor().save(asked.model)
    assert planning.kept_plan(asked) is None  # the other model's is not taken for it
