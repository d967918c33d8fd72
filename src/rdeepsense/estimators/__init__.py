"""Estimators with scikit-learn's conventions, one file per method, and `load`."""

from rdeepsense.estimators.gp import GPClassifier, GPRegressor
from rdeepsense.estimators.loading import load
from rdeepsense.estimators.mcdrop import MCDropClassifier, MCDropRegressor
from rdeepsense.estimators.rdeepsense import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.estimators.ssp import SSPClassifier, SSPRegressor

__all__ = [
    "GPClassifier",
    "GPRegressor",
    "MCDropClassifier",
    "MCDropRegressor",
    "RDeepSenseClassifier",
    "RDeepSenseRegressor",
    "SSPClassifier",
    "SSPRegressor",
    "load",
]
