"""Model files of every estimator, and checkpoints."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from fuzz.folded_files import check_as_stated, encoded_file, file_of
from fuzz.hostile_files import File, mutate, opened
from fuzz.subject import Edit, Rng, Subject

import rdeepsense as rds
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.networks import DeepSense, Periodic

SMALL: dict[str, Any] = {"random_state": 0, "device": "cpu", "keep_rows": 12, "verbose": False}
NETWORK: dict[str, Any] = {**SMALL, "hidden": (6, 5), "epochs": 1}
FOLDED: dict[str, tuple[int, str | None]] = {
    "gaussian": (3, None),
    "student": (4, "laplace"),
    "categorical": (2, "laplace"),
    "periodic": (0, "laplace"),
}


def models() -> dict[str, Any]:
    """Fit a small model of every estimator; together they hold all that a file can."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=80)
    labels = np.array(["a", "bb", "c"])[np.digitize(y, [-0.5, 0.5])]
    groups = rng.integers(0, 2, 80)
    windows = rng.normal(size=(80, 8, 3))
    net = DeepSense(sensors=(3,), interval=4, filters=3, depth=1, hidden=4, layers=1)
    full = rds.RDeepSenseRegressor(
        **NETWORK, likelihood="student", missing="mean", effort="quick"
    ).fit(X, y)
    full.fit_novelty(X).conformalise(X, y, groups).describe(["y"], ["m"], ["a", "b", "c"])
    pair = np.column_stack([y, -y])
    coded = np.where(rng.random((80, 3)) < 0.1, np.nan, X).astype(object)
    coded[:, 1] = rng.choice(["x", "y", None], 80)
    many = coded.copy()
    many[:, 1] = [f"s{k % 20}" for k in range(80)]
    plain = rds.RDeepSenseRegressor(**NETWORK, effort="quick").fit(X, pair)
    named = rds.RDeepSenseClassifier(**NETWORK, effort="quick").fit(X, labels)
    return {
        "Adapted": plain.adapt(X[:4], pair[:4] + 1),
        "Adapted classes": named.adapt(X[:4], labels[:4]),
        "RDeepSense, all": full,
        "RDeepSense, selected": rds.RDeepSenseRegressor(
            **NETWORK, drop_prob="auto", alpha=0.5, calibrate="isotonic"
        ).fit(X, pair),
        "RDeepSense classes": rds.RDeepSenseClassifier(
            **NETWORK, calibrate="conformal", effort="quick"
        ).fit(X, labels),
        "MCDrop": rds.MCDropRegressor(**NETWORK, samples=3).fit(X, y),
        "MCDrop classes": rds.MCDropClassifier(**NETWORK, samples=3).fit(X, labels),
        "SSP": rds.SSPRegressor(**NETWORK, members=2).fit(X, y),
        "SSP classes": rds.SSPClassifier(**NETWORK, members=2).fit(X, y > 0),
        "GP exact": rds.GPRegressor(**SMALL, steps=2, method="exact").fit(X[:30], y[:30]),
        "GP variational": rds.GPRegressor(**SMALL, steps=2, method="variational", inducing=5).fit(
            X, pair
        ),
        "GP classes": rds.GPClassifier(**SMALL, steps=2, inducing=4).fit(X, labels),
        "Encoded": rds.RDeepSenseRegressor(**NETWORK, effort="quick")
        .fit(coded, y)
        .fit_novelty(coded),
        "Encoded, learnt": rds.SSPClassifier(**NETWORK, members=2).fit(many, labels),
        "Encoded GP": rds.GPRegressor(**SMALL, steps=2, method="exact").fit(coded[:40], y[:40]),
        "Periodic": rds.RDeepSenseRegressor(
            **NETWORK, network=Periodic((5,), 3, 2), effort="quick"
        ).fit(X, y),
        "DeepSense": rds.RDeepSenseClassifier(**NETWORK, network=net, effort="quick")
        .fit(windows, labels)
        .fit_novelty(windows),
    }


def use_model(path: Path, rng: Rng) -> None:
    """Load a model, and hold it to its file."""
    model = rds.load(path)
    header, tensors = model_file.read(path)
    shape = tuple(header.get("input_shape", [header["features"]]))
    shift, scale = tensors["input.shift"], tensors["input.scale"]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "encoding" in header:
            X = _coded_rows(header, shift, scale, rng)
        else:
            X = np.clip(shift + scale * rng.uniform(-1, 1, (3, *shape)), -1e307, 1e307)
        _predict(model, header["target"], X)
        if "adapted" in header:
            again = model.adapt(X, model.predict(X))
            _predict(again, header["target"], X)
        elif hasattr(model, "epistemic_std") and "epistemic" in header:
            assert np.isfinite(model.epistemic_std(X)).all()
            _predict(model, header["target"], X, epistemic="laplace")
        if "novelty.mean" in tensors:
            share = model.novelty(X)
            assert ((share >= 0) & (share <= 1)).all()
        if "conformal.scores" in tensors:
            labels = header["conformal_groups"]
            groups = None if labels == ["all"] else [labels[0]] * 3
            if hasattr(model, "predict_set"):
                assert model.predict_set(X, 0.5, groups=groups).shape[0] == 3
            else:
                low, high = model.predict_interval(X, 0.5, method="conformal", groups=groups)
                assert (low <= high).all()


def _coded_rows(header: Any, shift: Any, scale: Any, rng: Rng) -> Any:
    """Rows of numbers, and of levels by name, one that is unknown among them."""
    X = np.empty((3, header["features"]), dtype=object)
    levels = {c["column"]: c["levels"] for c in header["encoding"]["categories"]}
    numbers = [k for k in range(header["features"]) if k not in levels]
    for at, k in enumerate(numbers):
        X[:, k] = np.clip(shift[at] + scale[at] * rng.uniform(-1, 1, 3), -1e307, 1e307)
    for k, names in levels.items():
        X[:, k] = [names[0] if names else "", names[-1] if names else "", "never seen"]
    return X


def _predict(model: Any, target: Any, X: Any, **how: Any) -> None:
    if "classes" in target:
        probs = model.predict_dist(X, **how).mean
        assert probs.shape == (3, len(target["classes"]))
        assert np.allclose(probs.sum(1), 1)
        assert model.classes_.tolist() == target["classes"]
        return
    dist = model.predict_dist(X, **how)
    assert dist.mean.shape == dist.std.shape == (3, *target["shape"])
    assert np.isfinite(dist.mean).all()
    assert np.isfinite(dist.std).all()
    assert (dist.std > 0).all()


def edit_of(right: File) -> Edit:
    """Return what changes one thing or two in such a file, and signs it again."""

    def edit(rng: Rng) -> tuple[str, bytes]:
        file = copy.deepcopy(right)
        said = [mutate(file, rng) for _ in range(rng.integers(1, 3))]
        return "; ".join(said), file.signed()

    return edit


def subjects(folder: Path) -> list[Subject]:
    """Return all kinds of files that a model or a training is kept in."""
    path = folder / "right"
    found = []
    for name, model in models().items():
        model.save(path)
        right = path.read_bytes()
        found.append(Subject(f"model: {name}", right, use_model, edit_of(opened(path))))
    for name, (seed, epistemic) in FOLDED.items():
        file = file_of(seed, epistemic, folder, name == "periodic")
        use = _use_folded
        found.append(Subject(f"folded: {name}", file.signed(), use, edit_of(file)))
    coded = encoded_file(folder)
    found.append(Subject("folded: encoded", coded.signed(), _use_folded, edit_of(coded)))
    return [*found, _checkpoint(folder)]


def _use_folded(path: Path, rng: Rng) -> None:
    check_as_stated(path, opened(path), rng)


def _checkpoint(folder: Path) -> Subject:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=40)
    common = {**NETWORK, "hidden": (4,), "epochs": 3, "keep_rows": 0}

    def use(path: Path, rng: Rng) -> None:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            model = rds.RDeepSenseRegressor(**common, checkpoint=path, effort="quick").fit(X, y)
            _predict(model, {"shape": []}, X[:3])

    use(folder / "run", rng)
    return Subject(
        "checkpoint", (folder / "run").read_bytes(), use, edit_of(opened(folder / "run"))
    )
