"""Folded files of networks of windows: torch's numbers by numpy alone, and nothing hostile runs."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.random_windows import DrawnWindows, draw_deepsense, draw_own
from fuzz.hostile_files import File, mutate, opened

import rdeepsense as rds
from rdeepsense.deploy import load
from rdeepsense.errors import InputError, ModelFileError

LONG = bool(os.environ.get("RDEEPSENSE_LONG"))
MODELS = range(50) if LONG else range(3)
CASES = 4_000 if LONG else 80
BOUND = 1e-5  # of the spread of what is predicted


@pytest.mark.parametrize("draw", [draw_deepsense, draw_own])
@pytest.mark.parametrize("seed", MODELS)
def test_files_predict_what_torch_does(
    draw: Callable[[int], DrawnWindows], seed: int, tmp_path: Path
) -> None:
    drawn = draw(seed)
    model, X = drawn.estimator, drawn.X.copy()
    rds.export(model, tmp_path / "m")
    found = load(tmp_path / "m")
    assert found.facts.window == X.shape[1:2]
    if hasattr(model, "classes_"):
        logits = [np.log(one.predict_proba(X)) for one in (found, model)]
        assert np.abs(logits[0] - logits[1]).max() < BOUND * logits[1].std(), drawn.name
        assert np.array_equal(found.predict(X), model.predict(X))
    else:
        for mine, wanted in zip(
            found.predict(X, return_std=True), model.predict(X, return_std=True), strict=True
        ):
            assert np.abs(mine - wanted).max() < BOUND * max(wanted.std(), 1e-3), drawn.name
    X[0, 1, 0], X[1, -1, -1] = 1e30, np.nan
    assert np.array_equal(found.status(X), model.status(X))
    assert np.array_equal(found.flagged_inputs(X), model.fitted_.beyond(X))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("folded") / "m"
    rds.export(draw_deepsense(1).estimator, place)
    return place


def test_numpy_is_all_it_needs(path: Path) -> None:
    program = (
        "import sys, rdeepsense.deploy as r, numpy as np\n"
        f"m = r.load({str(path)!r})\n"
        "m.predict(np.zeros((1, *m.facts.window, m.facts.inputs)))\n"
        "heavy = ('torch', 'scipy', 'sklearn', 'safetensors', 'polars', 'rdeepsense.deploy.c')\n"
        "print([n for n in heavy if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_rows_of_another_shape_or_infinite_are_refused(path: Path) -> None:
    model = load(path)
    shape = (*model.facts.window, model.facts.inputs)
    said = ", ".join(map(str, shape))
    for X in (np.zeros((2, 3)), np.zeros((2, shape[0] + 1, shape[1])), np.zeros(3)):
        with pytest.raises(InputError, match=rf"X has shape .*; the model takes \(rows, {said}\)"):
            model.predict(X)
    X = np.zeros((2, *shape))
    X[1, 2, 0] = np.inf
    with pytest.raises(InputError, match="X holds inf in row 1, time 2, column 0"):
        model.predict(X)


def changed(path: Path, change: Callable[[File], Any], to: Path) -> Path:
    file = opened(path)
    change(file)
    file.write(to)
    return to


def step(which: str, /, **fields: Any) -> Callable[[File], None]:
    """Changes the first step of a kind."""

    def change(file: File) -> None:
        steps = file.header["graph"]["steps"]
        next(one for one in steps if one["kind"] == which).update(fields)

    return change


def without(file: File) -> None:
    del file.tensors[next(name for name in file.tensors if name.endswith("weight"))]


def endless(file: File) -> None:
    steps = file.header["graph"]["steps"]
    for _ in range(5):
        steps.append({"kind": "concatenated", "reads": [len(steps)] * 64})


HOSTILE: list[tuple[Callable[[File], Any], str]] = [
    (step("spectrum", interval=10**9), "steps.0.interval = 1000000000 is garbled; it must"),
    (step("spectrum", interval=7, channels=100), "a step 'spectrum' does not fit: intervals of"),
    (step("convolution", padding=[1 << 20, 1 << 20]), "'convolution' does not fit: with a padding"),
    (step("convolution", stride=[0, 1]), "stride = \\[0, 1\\] is garbled"),
    (step("convolution", groups=3), "a step 'convolution' does not fit"),
    (step("gru", reads=[99]), "reads \\(99,\\), which are no values before it"),
    (step("gru", kind="magic"), "kind = 'magic' is garbled; it must be strided or conc"),
    (step("affine", reads=[]), "reads = \\[\\] is garbled"),
    (step("linear", relu=1), "relu = 1 is garbled"),
    (without, "has the shape None"),
    (endless, "step .* makes .* numbers; at most|all steps make"),
    (lambda file: file.header["graph"].update(shape=[1 << 20, 1 << 20]), "graph.shape has"),
    (lambda file: file.header["graph"].update(steps=[]), "it must be a list of 1 to 1000 steps"),
    (lambda file: file.header.update(layers=2), "a graph stands alone"),
    (lambda file: file.tensors.update({"layer.0.bias": np.zeros(2)}), "is no array of such a mod"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), HOSTILE)
def test_hostile_graphs_are_refused(
    change: Callable[[File], Any], message: str, path: Path, tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError, match=message):
        load(changed(path, change, tmp_path / "m"))


def test_a_mutated_file_is_refused_or_predicts(path: Path, tmp_path: Path) -> None:
    right, rng = opened(path), np.random.default_rng(0)
    refused, longest = 0, 0
    for number in range(CASES):
        file = copy.deepcopy(right)
        said = [mutate(file, rng) for _ in range(rng.integers(1, 3))]
        file.write(tmp_path / "m")
        try:
            model = load(tmp_path / "m")
            shape = (*model.facts.window, model.facts.inputs)
            with np.errstate(all="ignore"):
                model.runner.run(model.facts.guard.inside(np.zeros((2, *shape))))
        except ModelFileError as error:
            refused += 1
            longest = max(longest, len(str(error)))
        except Exception as error:
            error.add_note(f"case {number}: {said}")
            raise
    assert 0.5 * CASES < refused < CASES
    assert longest < 1_000
