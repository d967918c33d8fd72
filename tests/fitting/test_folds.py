"""Weights that hide folds: by hand."""

from __future__ import annotations

import numpy as np
import torch

from rdeepsense.fitting.trainer import fold_weights
from rdeepsense.training import Rows


def test_weights_by_hand() -> None:
    rows = Rows(torch.zeros(4, 1), torch.zeros(4, 1), torch.tensor([1.0, 1.0, 2.0, 4.0]))
    inside, outside = fold_weights(rows, np.array([0, 2, 1, 0]), members=1, candidates=2, folds=3)
    seen = torch.tensor([[0, 1, 2, 0], [1, 1, 0, 4], [1, 0, 2, 4]], dtype=torch.float32)
    hidden = torch.tensor([[1, 0, 0, 4], [0, 0, 2, 0], [0, 1, 0, 0]], dtype=torch.float32)
    assert inside.weight is not None
    assert outside.weight is not None
    assert torch.equal(inside.weight, (seen / seen.mean(1, keepdim=True)).repeat(2, 1))
    assert torch.equal(outside.weight, hidden.repeat(2, 1))
