"""Folded files that hold everything, and the check that one is what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from deploy.random_models import draw, give_laplace
from fuzz.hostile_files import File, opened

import rdeepsense as rds
from rdeepsense.deploy import load
from rdeepsense.deploy.fold import fold, save
from rdeepsense.deploy.options import LabelledRows, Options
from rdeepsense.deploy.status import StatusRules


def file_of(seed: int, epistemic: str | None, folder: Path, periodic: bool = False) -> File:
    """A file with everything that one can hold."""
    drawn = draw(seed, widest=6, most=5, periodic=periodic)
    folded = fold(give_laplace(drawn).estimator, epistemic)
    if epistemic is None:
        labels = drawn.estimator.predict(drawn.X)
        rows = LabelledRows.of(drawn.estimator.fitted_, (drawn.X, labels))
        watch = StatusRules.of(drawn.estimator.fitted_, rows, Options(reject=0.9, novelty=True))
        folded = replace(folded, facts=watch.on(folded.facts))
    save(folded, folder / "right")
    file = opened(folder / "right")
    if not folded.facts.is_classifier:
        shape = file.tensors["interval.low"].shape
        file.tensors["interval.conformal"] = np.full(shape, np.inf)
    outputs = 1 if folded.facts.is_classifier else folded.facts.outputs
    for name, count in (("features", folded.facts.inputs), ("targets", outputs)):
        file.header[name] = [f"{name} {k}" for k in range(count)]
    return file


def encoded_file(folder: Path) -> File:
    """A file with numbers that may be missing, few levels, and many."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((200, 3)) < 0.1, np.nan, rng.normal(size=(200, 3))).astype(object)
    X[:, 1] = rng.choice(["x", "y", None], 200)
    X[:, 2] = [f"s{k % 20}" for k in range(200)]
    common: dict[str, Any] = {"random_state": 0, "device": "cpu", "verbose": False}
    y = (X[:, 1] == "x") + 0.1 * rng.normal(size=200)
    model = rds.RDeepSenseRegressor(hidden=(6,), epochs=1, **common).fit(X, y)
    save(fold(model, "laplace"), folder / "right")
    return opened(folder / "right")


def check_as_stated(path: Path, file: File, rng: np.random.Generator) -> None:
    """Compare a loaded model with the shapes of its file, and predict three rows."""
    model = load(path)
    facts = model.facts
    centre, scale = (np.float64(file.tensors[name]) for name in ("centre", "scale"))
    X: Any = centre + scale * rng.uniform(-1, 1, (3, len(centre)))
    if facts.encoding is None:
        assert centre.shape == scale.shape == (facts.inputs,)
    else:
        assert facts.encoding.width == len(centre)
        assert facts.encoding.to_json() == file.header["encoding"]
        X = facts.encoding.rows_of(X[:, : len(facts.encoding.numbers)]).astype(object)
        for category in facts.encoding.categories:
            names = category.levels or ("",)
            X[:, category.column] = [names[0], names[-1], "never seen"]
    with np.errstate(all="ignore"):
        if facts.classes is not None:
            probs = model.predict_proba(X)
            assert probs.shape == (3, len(file.header["classes"]))
            assert np.allclose(probs.sum(1), 1)
            assert facts.classes.tolist() == file.header["classes"]
        else:
            shape = (3,) if facts.one_output else (3, len(file.tensors["spread"]))
            mean, std = model.predict(X, return_std=True)
            assert mean.shape == std.shape == shape
            assert np.isfinite(mean).all()
            assert np.isfinite(std).all()
            if file.header.get("link", {}).get("width", 0) is not None:
                assert (std > 0).all()
            for coverage in facts.intervals.coverages if facts.intervals else ():
                low, high = model.predict_interval(X, coverage)
                assert low.shape == shape
                assert (low <= high).all()
        if "doubt.root" in file.tensors:
            assert np.isfinite(model.epistemic_std(X)).all()
