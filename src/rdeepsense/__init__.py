"""RDeepSense: networks for mobile and embedded sensing that know how sure they are.

Everything named here is imported on first use, so that ``import rdeepsense`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rdeepsense import datasets, deploy, heads, metrics, networks, plot
    from rdeepsense.calibration.reject import RejectOption
    from rdeepsense.comparison.compare import Comparison, compare
    from rdeepsense.data.check import check
    from rdeepsense.data.findings import CheckReport, Finding
    from rdeepsense.deploy.budget import Budget
    from rdeepsense.deploy.export import export
    from rdeepsense.deploy.profile.forms import profile
    from rdeepsense.distributions import Categorical, Gaussian, Mixture, StudentT
    from rdeepsense.dropout import convert
    from rdeepsense.engines import Joblib, Local, Ray
    from rdeepsense.errors import (
        CheckpointError,
        ColumnWarning,
        ConversionError,
        DataWarning,
        InputError,
        InterruptedTraining,
        LabelWarning,
        MissingExtraError,
        ModelFileError,
        RDeepSenseError,
        TrainingError,
    )
    from rdeepsense.estimators import (
        GPClassifier,
        GPRegressor,
        MCDropClassifier,
        MCDropRegressor,
        RDeepSenseClassifier,
        RDeepSenseRegressor,
        SSPClassifier,
        SSPRegressor,
        load,
    )
    from rdeepsense.estimators.wrap import wrap
    from rdeepsense.live import Live, Prediction
    from rdeepsense.plot.selection import plot_front, plot_selection
    from rdeepsense.reporting.report import ModelReport, report
    from rdeepsense.scoring import ScoringRule
    from rdeepsense.status import Status
    from rdeepsense.streaming import Decision, Stream
    from rdeepsense.uncertainty import epistemic_variance
    from rdeepsense.windowing import Recipe, WindowReport, Windows, windows
    from rdeepsense.windowing.stream import Smoothing

_EXPORTS = {
    "Budget": "deploy.budget",
    "CheckReport": "data.findings",
    "Finding": "data.findings",
    "check": "data.check",
    "Comparison": "comparison.compare",
    "compare": "comparison.compare",
    "Categorical": "distributions",
    "Gaussian": "distributions",
    "Mixture": "distributions",
    "StudentT": "distributions",
    "epistemic_variance": "uncertainty",
    "export": "deploy.export",
    "profile": "deploy.profile.forms",
    "CheckpointError": "errors",
    "ColumnWarning": "errors",
    "ConversionError": "errors",
    "DataWarning": "errors",
    "InputError": "errors",
    "InterruptedTraining": "errors",
    "LabelWarning": "errors",
    "MissingExtraError": "errors",
    "ModelFileError": "errors",
    "RDeepSenseError": "errors",
    "TrainingError": "errors",
    "GPClassifier": "estimators",
    "GPRegressor": "estimators",
    "MCDropClassifier": "estimators",
    "MCDropRegressor": "estimators",
    "RDeepSenseClassifier": "estimators",
    "RDeepSenseRegressor": "estimators",
    "SSPClassifier": "estimators",
    "SSPRegressor": "estimators",
    "load": "estimators",
    "Joblib": "engines",
    "Local": "engines",
    "Ray": "engines",
    "Live": "live",
    "Prediction": "live",
    "convert": "dropout",
    "RejectOption": "calibration.reject",
    "plot_front": "plot.selection",
    "plot_selection": "plot.selection",
    "ModelReport": "reporting.report",
    "report": "reporting.report",
    "ScoringRule": "scoring",
    "Status": "status",
    "Decision": "streaming",
    "Stream": "streaming",
    "Smoothing": "windowing.stream",
    "Recipe": "windowing",
    "WindowReport": "windowing",
    "Windows": "windowing",
    "windows": "windowing",
    "wrap": "estimators.wrap",
}
_MODULES = ("datasets", "deploy", "heads", "metrics", "networks", "plot")

__all__ = [
    "Budget",
    "Categorical",
    "CheckReport",
    "CheckpointError",
    "ColumnWarning",
    "Comparison",
    "ConversionError",
    "DataWarning",
    "Decision",
    "Finding",
    "GPClassifier",
    "GPRegressor",
    "Gaussian",
    "InputError",
    "InterruptedTraining",
    "Joblib",
    "LabelWarning",
    "Live",
    "Local",
    "MCDropClassifier",
    "MCDropRegressor",
    "MissingExtraError",
    "Mixture",
    "ModelFileError",
    "ModelReport",
    "Prediction",
    "RDeepSenseClassifier",
    "RDeepSenseError",
    "RDeepSenseRegressor",
    "Ray",
    "Recipe",
    "RejectOption",
    "SSPClassifier",
    "SSPRegressor",
    "ScoringRule",
    "Smoothing",
    "Status",
    "Stream",
    "StudentT",
    "TrainingError",
    "WindowReport",
    "Windows",
    "__version__",
    "check",
    "compare",
    "convert",
    "datasets",
    "deploy",
    "epistemic_variance",
    "export",
    "heads",
    "load",
    "metrics",
    "networks",
    "plot",
    "plot_front",
    "plot_selection",
    "profile",
    "report",
    "windows",
    "wrap",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"rdeepsense.{name}")
    if name in _EXPORTS:
        value = getattr(importlib.import_module(f"rdeepsense.{_EXPORTS[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'rdeepsense' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
