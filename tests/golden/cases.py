"""What is fitted: small, short fits that together pass through every part of the library.

They are short so that another processor's rounding has no time to grow; see `test_golden`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import torch
from golden import tables
from golden.tables import FEATURES, columns, drawn, holed, labels, rounded, table, windows, written
from torch import nn

import rdeepsense as rds
from rdeepsense.training import schedule

ROWS = 12  # that are observed

X, Y = table(300)
CLASSES = labels(Y)
NEW = table(ROWS, seed=1)[0]
HELD = table(500, seed=2)
BOTH = rounded(np.column_stack([Y, 1e-3 * Y * X[:, 0]]))
W, SWING = windows(120)
NEW_W = windows(ROWS, seed=1)[0]
NEW_KINDS = np.where(NEW[:, 0] > 0, "loud", "quiet")
NAMED = pd.DataFrame(X, columns=list(FEATURES))
SENSE = {"interval": 4, "filters": 4, "depth": 1, "hidden": 6, "layers": 1}

Fit = Callable[[Path], Any]


@dataclass(frozen=True)
class Case:
    """How to fit a model, and the rows to observe it on."""

    fit: Fit
    X: Any = field(default_factory=lambda: NEW)
    groups: Any = None  # of the rows, for conformal prediction
    network: Callable[[], nn.Module] | None = None  # a new one of the user's own, to load into
    exported: bool = False  # to ONNX and C as well
    saved: bool = False  # whether the model file is part of the fixture
    bound: float = 1e-5  # on other machines, in standard deviations


def options(given: dict[str, Any]) -> dict[str, Any]:
    few = {"hidden": (8, 6), "epochs": 3, "keep_rows": 24, "random_state": 0}
    return {**few, "device": "cpu", "verbose": False, **given}


FIXED = {"drop_prob": 0.05, "alpha": 0.5}


def regressor(**given: Any) -> Any:
    return rds.RDeepSenseRegressor(**options({**FIXED, "likelihood": "gaussian", **given}))


def classifier(**given: Any) -> Any:
    return rds.RDeepSenseClassifier(**options({**FIXED, **given}))


def of_chosen_length(learning_rate: float, **more: Any) -> Fit:
    """Let a fit choose how long to train; without hidden units, rounding does not grow."""

    def fit(_: Path) -> Any:
        model = regressor(hidden=(), alpha="auto", epochs=None, learning_rate=learning_rate)
        with mock.patch.object(schedule, "STEPS", (250, 400)):  # a tenth of what users get
            return model.fit(X[:40], Y[:40], **more)

    return fit


def process(kind: Any, **given: Any) -> Any:
    few = {"steps": 8, "keep_rows": 8, "random_state": 0, "device": "cpu", "verbose": False}
    return kind(**{**few, **given})


def on_table(model: Any, **more: Any) -> Fit:
    return lambda _: model.fit(X, Y, **more)


def on_classes(model: Any, **more: Any) -> Fit:
    return lambda _: model.fit(X, CLASSES, **more)


def on_files(model: Any, named: dict[str, Any], y: Any, **more: Any) -> Fit:
    return lambda tmp_path: model.fit(written(tmp_path / "table", named), y, **more)


def one_of_each() -> Fit:
    """Names, units, novelty and thresholds by group on one model."""

    def fit(_: Path) -> Any:
        model = regressor().fit(NAMED, pd.Series(Y, name="load"))
        model.describe(target_units=["N"], feature_units={"x1": "°C", "x3": "m/s²"})
        model.fit_novelty(NAMED)
        held = pd.DataFrame(HELD[0], columns=list(FEATURES))
        groups = np.where(HELD[0][:, 0] > 0, "loud", "quiet")
        return model.conformalise(held, HELD[1], groups)

    return fit


def novel_windows(_: Path) -> Any:
    model = classifier(
        network=rds.networks.DeepSense(sensors=(3,), rotation_std=0.3, **SENSE), epochs=2
    )
    return model.fit(W, np.where(SWING > 20, "high", "low")).fit_novelty(W, held_out=W[:40])


def distilled(_: Path) -> Any:
    teacher = rds.SSPRegressor(**options({"members": 2, "epochs": 2})).fit(X[:60], Y[:60])
    # The order of rows follows from the bits of the teacher's values, so here it must not matter.
    return regressor(epochs=4, batch_size=4_096, drop_prob=0.0).distil(teacher, X[:60], Y[:60])


def distilled_classes(_: Path) -> Any:
    teacher = rds.SSPClassifier(**options({"members": 2, "epochs": 2})).fit(X[:60], CLASSES[:60])
    return classifier(epochs=1, batch_size=128).distil(teacher, X[:60])


def skewed(y: Any) -> Any:
    """A target for which a scale does not do."""
    return rounded(np.exp((y - 50) / 15))


def scaled(x: Any) -> Any:
    return (x - X.mean(0)) / X.std(0)


def wrapped(method: str) -> Fit:
    def fit(_: Path) -> Any:
        y = torch.from_numpy((Y - 50) / 20).float()[:, None]
        net = drawn(lambda: tables.with_dropout(1))
        net = tables.point_trained(net, scaled(X), y, nn.functional.mse_loss)
        return rds.wrap(net, scaled(HELD[0]), (HELD[1] - 50) / 20, method=method)

    return fit


def wrapped_classes(_: Path) -> Any:
    y = torch.from_numpy(np.digitize(Y, [40.0, 60.0]))
    net = drawn(lambda: tables.with_dropout(3))
    net = tables.point_trained(net, scaled(X), y, nn.functional.cross_entropy)
    return rds.wrap(net, scaled(HELD[0]), np.digitize(HELD[1], [40.0, 60.0]))


def _classes_in_files() -> dict[str, Any]:
    named = columns(450)
    return {**named, "x2": np.where(np.arange(450) % 9, named["x2"], np.nan)} | {
        "y": labels(named["y"])
    }


def _grouped_files() -> dict[str, Any]:
    named = columns(1_500)
    return {**named, "z": 0.1 * named["y"] + named["x0"], "who": np.repeat(np.arange(15), 100)}


GIVEN = {"validation": (HELD[0][:60], HELD[1][:60])}
MANY = {"validation": HELD}
WEIGHTS = np.where(np.arange(300) % 7, 0.5 + (X[:, 0] > 0), 0.0)

CASES: dict[str, Case] = {
    "gaussian": Case(on_table(regressor()), exported=True, saved=True),
    "student": Case(
        on_table(regressor(likelihood="student", calibrate="scale", alpha=0.0)), exported=True
    ),
    "open-head-cross-validated": Case(on_table(regressor(likelihood="auto", epochs=2))),
    "grid-cross-validated": Case(
        on_table(regressor(alpha="auto", drop_prob="auto", hidden=(8,), epochs=1))
    ),
    "grid-held-out": Case(
        on_table(
            regressor(alpha="auto", drop_prob="auto", likelihood="auto", hidden=(8,), epochs=2),
            **MANY,
        ),
    ),
    "held-out-of-5000-rows": Case(
        lambda _: regressor(alpha="auto", epochs=1, batch_size=256).fit(*table(5_000, seed=3))
    ),
    "papers-alpha": Case(on_table(regressor(alpha="paper", hidden=(8,), epochs=2))),
    "no-hidden-layer-shorter": Case(of_chosen_length(0.5, **MANY), exported=True),
    "no-hidden-layer-longer": Case(of_chosen_length(3e-3)),
    "uncalibrated-beta": Case(
        on_table(regressor(calibrate=False, beta=0.5, alpha=0.2)), exported=True
    ),
    "isotonic": Case(on_table(regressor(calibrate="isotonic")), exported=True, saved=True),
    "calibration-by-itself": Case(
        lambda _: regressor(calibrate="auto").fit(
            X, skewed(Y), validation=(HELD[0], skewed(HELD[1]))
        )
    ),
    "conformal": Case(on_table(regressor(calibrate="conformal"))),
    "drop-by-layer": Case(on_table(regressor(drop_prob=(0.2, 0.0), input_drop_prob=0.1))),
    "no-drop": Case(on_table(regressor(drop_prob=0.0, weight_decay=0.0, learning_rate=1e-2))),
    "sample-weights": Case(on_table(regressor(), sample_weight=WEIGHTS)),
    "groups": Case(on_table(regressor(), groups=np.arange(300) // 10)),
    "validation-given": Case(on_table(regressor(), **GIVEN)),
    "missing-constant-float32": Case(
        lambda _: regressor(missing="mean").fit(holed(X), Y), X=holed(NEW), exported=True
    ),
    "several-outputs": Case(
        lambda _: regressor(likelihood="student").fit(X, BOTH), exported=True, saved=True
    ),
    "one-column": Case(lambda _: regressor(hidden=(16,)).fit(X, Y[:, None])),
    "named-novelty-thresholds-by-group": Case(
        one_of_each(),
        X=pd.DataFrame(NEW, columns=list(FEATURES)),
        groups=NEW_KINDS,
        saved=True,
    ),
    "own-sequential": Case(
        on_table(regressor(network=drawn(tables.sequential))),
        network=tables.sequential,
        exported=True,
        saved=True,
    ),
    "own-recurrent": Case(
        lambda _: regressor(network=drawn(tables.Recurrent), epochs=2).fit(W, SWING),
        X=NEW_W,
        network=tables.Recurrent,
        exported=True,
        saved=True,
    ),
    "deepsense": Case(
        lambda _: regressor(
            network=rds.networks.DeepSense(sensors=(2, 1), pool="last", **SENSE),
            likelihood="student",
            epochs=2,
        ).fit(W, SWING),
        X=NEW_W,
        exported=True,
    ),
    "deepsense-turned-novelty": Case(novel_windows, X=NEW_W, saved=True),
    "files": Case(on_files(regressor(), columns(450), "y"), saved=True),
    "files-in-windows-groups": Case(
        on_files(regressor(epochs=2), _grouped_files(), ["y", "z"], groups="who", memory=60_000)
    ),
    "files-of-classes-conformal": Case(
        on_files(
            classifier(missing="mean", calibrate="conformal", epochs=2), _classes_in_files(), "y"
        )
    ),
    "distilled": Case(distilled),
    "distilled-classes": Case(distilled_classes),
    "classes": Case(on_classes(classifier()), exported=True),
    "classes-conformal": Case(on_classes(classifier(calibrate="conformal", alpha=0.0)), saved=True),
    "two-classes-uncalibrated": Case(
        lambda _: classifier(calibrate=False, hidden=(16,)).fit(X, (Y > 50).astype(int))
    ),
    "classes-cross-validated": Case(
        on_classes(
            classifier(alpha="auto", drop_prob="auto", hidden=(8,), epochs=1), sample_weight=WEIGHTS
        )
    ),
    "classes-held-out": Case(
        on_classes(
            classifier(alpha="paper", calibrate="temperature", hidden=(8,), epochs=2),
            validation=(HELD[0], labels(HELD[1])),
        )
    ),
    "mcdrop": Case(on_table(rds.MCDropRegressor(**options({"samples": 5}))), saved=True),
    "mcdrop-without-noise": Case(
        on_table(rds.MCDropRegressor(**options({"samples": 5, "noise": "none", "drop_prob": 0.5})))
    ),
    "mcdrop-classes": Case(
        on_classes(rds.MCDropClassifier(**options({"samples": 5, "drop_prob": "auto"})))
    ),
    "mcdrop-classes-without-noise": Case(
        on_classes(rds.MCDropClassifier(**options({"samples": 5, "noise": "none"})))
    ),
    "ssp-adversarial": Case(
        on_table(rds.SSPRegressor(**options({"members": 3, "adversarial": True})))
    ),
    "ssp-open-head": Case(
        on_table(rds.SSPRegressor(**options({"members": 3, "likelihood": "auto", "epochs": 2}))),
        saved=True,
    ),
    "ssp-own-network": Case(
        lambda _: rds.SSPRegressor(
            **options({"members": 3, "network": drawn(tables.Recurrent), "epochs": 1})
        ).fit(W, SWING),
        X=NEW_W,
        network=tables.Recurrent,
    ),
    "ssp-classes": Case(on_classes(rds.SSPClassifier(**options({"members": 3})))),
    "gp-exact": Case(
        lambda _: process(rds.GPRegressor).fit(X[:80], BOTH[:80], sample_weight=1 + WEIGHTS[:80])
    ),
    "gp-variational": Case(
        on_table(process(rds.GPRegressor, method="variational", inducing=12, batch_size=128)),
        saved=True,
    ),
    "gp-classes": Case(
        on_classes(process(rds.GPClassifier, inducing=12, batch_size=128, calibrate=False))
    ),
    "wrapped": Case(wrapped("delta"), X=scaled(NEW)),
    "wrapped-moments": Case(wrapped("moments"), X=scaled(NEW)),
    "wrapped-classes": Case(wrapped_classes, X=scaled(NEW)),
}
