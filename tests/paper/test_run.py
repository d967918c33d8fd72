"""A study: run once, found again, gone on with after a kill, complete against its contract."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rdeepsense.engines import Local
from rdeepsense.errors import InputError, TrainingError
from rdeepsense.paper import fits, run, study
from rdeepsense.paper.study import ALPHAS, METHODS, TASKS, Preset, Study, preset, tasks_named
from rdeepsense.paper.tasks.faults import FAULTS

pytestmark = pytest.mark.slow

WITH_FAULTS = ("RDeepSense", "RDeepSense-paper", "RDeepSense-paper-MC20", "MCDrop-20-paper",
               "MCDrop-20", "SSP-10-paper", "GP")  # fmt: skip
SOME = ("RDeepSense-paper", "RDeepSense-paper-MC3", "SSP-1-paper", "SSP-2-paper")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was really worked on."""
    made: list[str] = []

    def counted(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(study: Any, parts: Any, what: Any, *seed: int) -> Any:
            of = what if isinstance(what, float) else what[0].family
            made.append(name if name == "cost" else f"{name} {of} {seed[0]}")
            return work(study, parts, what, *seed)

        return call

    monkeypatch.setattr(fits, "fit_family", counted("family", fits.fit_family))
    monkeypatch.setattr(fits, "fit_alpha", counted("alpha", fits.fit_alpha))
    monkeypatch.setattr(fits, "measure_cost", counted("cost", fits.measure_cost))
    return made


def study_of(
    tiny: Preset, out: Path, methods: tuple[str, ...] = SOME, **more: Any
) -> run.StudyOutcome:
    return run.run(("GasSen",), tiny, out, methods=methods, engine=Local(), quiet=True, **more)


def test_finished_cells_are_not_run_again(tiny: Preset, tmp_path: Path, calls: list[str]) -> None:
    first = study_of(tiny, tmp_path)
    assert (first.cells, first.ran, first.failed) == (18, 18, [])
    assert calls == [f"{name} {seed}" for seed in (0, 1) for name in (
        "family RDeepSense-paper", "family SSP-paper", *(f"alpha {a}" for a in ALPHAS)
    )] + ["cost"]  # fmt: skip
    again = study_of(tiny, tmp_path)
    assert (again.ran, len(calls)) == (0, 17)
    assert again.results == first.results
    assert again.results.to_json() == json.loads((tmp_path / "results.json").read_text())

    cell = next((tmp_path / "cells").glob("GasSen-SSP-paper-seed-1-*.json"))
    cell.write_text(cell.read_text().replace('"nll": ', '"nll": 1', 1))
    with pytest.warns(UserWarning, match="GasSen-SSP-paper-seed-1-.*json: is damaged"):
        mended = study_of(tiny, tmp_path)
    assert (mended.ran, calls[17:]) == (1, ["family SSP-paper 1"])
    ours, theirs = (o.results.tasks["GasSen"].methods["SSP-2-paper"] for o in (mended, first))
    assert ours.figures == theirs.figures  # the same to the last bit

    more = study_of(replace(tiny, seeds=3), tmp_path)
    assert more.ran == 8  # the third seed alone
    assert more.results.seeds == 3


def test_figures_are_means_over_seeds_on_the_same_rows(tiny: Preset, tmp_path: Path) -> None:
    names = ("SSP-1-paper", "GP")
    both = study_of(tiny, tmp_path, names).results
    one, other = (study_of(replace(tiny, seeds=1), tmp_path / str(seed), names, seed=seed).results
                  for seed in (0, 1))  # fmt: skip
    method = both.tasks["GasSen"].methods["SSP-1-paper"]
    single = one.tasks["GasSen"].methods["SSP-1-paper"]
    assert method.by_seed["nll"][0] == single.figures["nll"]
    assert method.by_seed["nll"][1] != single.figures["nll"]
    assert method.figures["nll"] == pytest.approx(sum(method.by_seed["nll"]) / 2)
    assert method.figures["nll_se"] > single.figures["nll_se"] / 2
    assert "each from a seed of its own" in both.errors
    assert "trained once" in one.errors
    # another seed of the whole study is other rows too
    assert one.tasks["GasSen"].target != other.tasks["GasSen"].target


def test_killed_in_the_middle(
    tiny: Preset, tmp_path: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = fits.fit_family

    def killed(study: Any, parts: Any, methods: Any, seed: int) -> Any:
        if methods[0].family == "SSP-paper":
            raise KeyboardInterrupt
        return counted(study, parts, methods, seed)

    with monkeypatch.context() as patch:
        patch.setattr(fits, "fit_family", killed)
        with pytest.raises(KeyboardInterrupt):
            study_of(tiny, tmp_path)
    assert calls == ["family RDeepSense-paper 0"]
    assert not (tmp_path / "results.json").exists()
    outcome = study_of(tiny, tmp_path)
    assert outcome.ran == 16  # all but the data and the finished family
    assert calls.count("family RDeepSense-paper 0") == 1


def test_a_failed_cell_is_told_and_tried_again(
    tiny: Preset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(study: Any, parts: Any, alpha: float, seed: int) -> Any:
        raise TrainingError("no usable\nnetwork")

    with monkeypatch.context() as patch:
        patch.setattr(fits, "fit_alpha", failing)
        outcome = study_of(tiny, tmp_path)
    assert outcome.failed[0] == ("GasSen, alpha 0.0, seed 0", "no usable network")
    assert (len(outcome.failed), outcome.ran) == (12, 6)
    assert outcome.results.tasks["GasSen"].alpha_study == []
    assert study_of(tiny, tmp_path).ran == 12


def test_other_settings_are_other_cells(tiny: Preset, tmp_path: Path) -> None:
    names = ("SSP-1-paper",)
    first = study_of(tiny, tmp_path, names)
    assert study_of(tiny, tmp_path, names).ran == 0
    assert study_of(tiny, tmp_path, names, seed=1).ran == 4
    assert study_of(replace(tiny, hidden=(5,)), tmp_path, names).ran == 4
    assert study_of(tiny, tmp_path, names).results == first.results
    assert first.results.command == "rdeepsense reproduce GasSen --preset tiny"


def test_results_are_complete(tiny: Preset, tmp_path: Path) -> None:
    once = replace(tiny, seeds=1)
    study = run.run(("GasSen", "HHAR"), once, tmp_path, engine=Local(), quiet=True).results
    assert type(study).from_json(study.to_json()) == study
    results: dict[str, Any] = json.loads((tmp_path / "results.json").read_text())
    assert set(results) == {"preset", "command", "date", "machine", "versions", "seconds", "device",
                            "seeds", "errors", "tasks", "claims"}  # fmt: skip
    assert results["device"]["profile"] in ("Intel Edison", "this machine")
    for name, task in results["tasks"].items():
        assert list(task["methods"]) == list(METHODS)
        classes = name == "HHAR"
        assert task["kind"] == ("classification" if classes else "regression")
        assert (task["target"] is None) == (task["floor"] is None) == classes
        assert (task["examples"] is None) == classes
        assert sum(task["rows"].values()) == tiny.rows[name]
        assert [point["alpha"] for point in task["alpha_study"]] == list(ALPHAS)
        for key, method in task["methods"].items():
            wanted = {"nll", "nll_se", "kl", "kl_se"}
            wanted |= ({"accuracy", "accuracy_se", "f1", "mefp", "ece", "brier"} if classes else
                       {"mae", "mae_se", "rmse", "crps", "deviation_area", "deviation_area_signed",
                        "coverage_90", "sharpness"})  # fmt: skip
            assert wanted <= set(method["figures"]), key
            assert {"passes", "about", "fit_seconds", "chosen", "warnings", "calibration",
                    "risk_coverage", "group_coverage", "cost", "seeds", "by_seed",
                    "jackknife"} <= set(method)  # fmt: skip
            assert (method["cost"] is None) == (key == "GP")
            assert len(method["group_coverage"]) > 1
            assert ("faults" in method) == (key in WITH_FAULTS), key
        reacted = task["methods"]["RDeepSense-paper"]["faults"]
        assert set(reacted) == {"healthy", *FAULTS}
        assert set(reacted["stuck"]) == {
            "error", "flagged", "flagged_epistemic", "flagged_novelty",
            "auroc", "auroc_epistemic", "auroc_novelty"
        } | (set() if classes else {"coverage_90"})  # fmt: skip
        assert "flagged_epistemic" not in task["methods"]["SSP-10-paper"]["faults"]["stuck"]
        costs = {key: m["cost"]["multiply_adds"] for key, m in task["methods"].items() if m["cost"]}
        assert costs["RDeepSense-paper-MC20"] == 20 * costs["RDeepSense"]
        assert "40 of the training rows" in task["methods"]["GP"]["about"]


@pytest.mark.ray
def test_processes_give_the_same_figures(tiny: Preset, tmp_path: Path) -> None:
    names = ("SSP-1-paper", "MCDrop-3-paper")
    here = study_of(tiny, tmp_path / "here", names)
    there = run.run(
        ("GasSen",), tiny, tmp_path / "there", methods=names, engine=Local(2), quiet=True
    )
    for name in names:
        ours, theirs = (o.results.tasks["GasSen"].methods[name] for o in (here, there))
        assert ours.figures == theirs.figures


def test_groups_are_whole_and_no_test_row_is_learnt_from(tiny: Preset) -> None:
    parts = Study(tiny, None, 0).load("HHAR")
    assert parts.by == "groups"
    groups = parts.task.groups
    assert groups is not None
    sets = [set(groups[part]) for part in (parts.split.train, parts.split.validation,
                                           parts.split.test)]  # fmt: skip
    assert sum(map(len, sets)) == len(set.union(*sets)) == 30
    assert len(sets[2]) > 1
    few = parts.train(10, 0)
    assert len(few[0]) == 10


def test_real_data_is_known_by_its_files(tiny: Preset, tmp_path: Path) -> None:
    study = Study(tiny, tmp_path, 0)
    file = tmp_path / "gassen" / "ethylene_CO.txt"
    file.parent.mkdir()
    file.write_text("one")
    before = study.data_key("GasSen")
    assert study.data_key("GasSen") == before
    file.write_text("other")
    assert study.data_key("GasSen") != before
    with pytest.raises(InputError, match="data = .*absent: there is no such folder"):
        Study(tiny, tmp_path / "absent", 0).data_key("GasSen")


def test_rows_of_real_data_are_drawn_at_random(tiny: Preset) -> None:
    task = Study(tiny, None, 0).load("GasSen").task
    thin = study._thinned(task, 100, 0)
    assert (len(thin.X), len(thin.y), len(thin.groups)) == (100, 100, 100)
    assert thin.source.endswith("100 of 1,200 rows at random")
    assert study._thinned(task, 5_000, 0) is task


def test_names() -> None:
    assert tasks_named("all") == TASKS
    assert tasks_named("hhar, BPEST,hhar") == ("HHAR", "BPEst")
    with pytest.raises(InputError, match="task 'ECG' is unknown; accepted: all, BPEst"):
        tasks_named("ECG")
    with pytest.raises(InputError, match="preset 'long' is unknown; accepted: quick, paper"):
        preset("long")
    assert preset("paper").hidden == (500, 500, 500)


def test_reading_finished_cells_needs_no_torch(tiny: Preset, tmp_path: Path) -> None:
    code = "import sys, rdeepsense.paper.run; sys.exit('torch' in sys.modules)"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
    )


def test_a_warning_belongs_to_the_method_it_is_of(
    tiny: Preset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict = fits._predict

    def warning(model: Any, method: Any, parts: Any) -> Any:
        if method.samples == 2:
            warnings.warn("of two", stacklevel=2)
        return predict(model, method, parts)

    monkeypatch.setattr(fits, "_predict", warning)
    found = study_of(tiny, tmp_path, ("SSP-1-paper", "SSP-2-paper")).results.tasks["GasSen"]
    warned = {name: "of two" in method.warnings for name, method in found.methods.items()}
    assert warned == {"SSP-1-paper": False, "SSP-2-paper": True}


def test_peers_are_no_methods_of_the_paper(tiny: Preset, tmp_path: Path) -> None:
    """Refused by what they are, whether they are installed or not."""
    with pytest.raises(InputError, match="NGBoost is no method of the paper"):
        study_of(tiny, tmp_path, ("SSP-1", "ngboost"))
    assert not list(tmp_path.iterdir())
