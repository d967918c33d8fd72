"""Where work is done that is many pieces: processes of this machine, or a cluster."""

from rdeepsense.engines.joblib import Joblib
from rdeepsense.engines.local import Local
from rdeepsense.engines.named import ENGINES, engine_of
from rdeepsense.engines.ray import Ray
from rdeepsense.engines.work import Engine, Failure, Work

__all__ = ["ENGINES", "Engine", "Failure", "Joblib", "Local", "Ray", "Work", "engine_of"]
