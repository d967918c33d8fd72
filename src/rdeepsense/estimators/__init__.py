"""One file per method, behind scikit-learn's conventions, and `load`."""

from rdeepsense.estimators.loading import load
from rdeepsense.estimators.rdeepsense import RDeepSenseClassifier, RDeepSenseRegressor

__all__ = ["RDeepSenseClassifier", "RDeepSenseRegressor", "load"]
