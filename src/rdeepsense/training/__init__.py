"""Training: one loop, over a bank of networks that are trained side by side."""

from rdeepsense.training.bank import Bank, DenseBank, ModuleBank, stack
from rdeepsense.training.loop import train, train_networks, validation_nll
from rdeepsense.training.parquet import StreamedRows, Windows
from rdeepsense.training.schedule import Rows, Schedule, TrainingRecord

__all__ = [
    "Bank",
    "DenseBank",
    "ModuleBank",
    "Rows",
    "Schedule",
    "StreamedRows",
    "TrainingRecord",
    "Windows",
    "stack",
    "train",
    "train_networks",
    "validation_nll",
]
