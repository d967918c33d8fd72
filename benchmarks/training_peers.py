"""What a user would otherwise train with: Lightning, a DataLoader and a plain loop, scikit-learn.

All get the network, the scoring rule and the optimiser of the case (scikit-learn: its own, a point
estimate of the same widths, by squared error or cross-entropy, without dropout or clipping) and the
same rows, batch size and threads. None of them validates, which ours does.
"""

from __future__ import annotations

import logging
import math
import time
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset
from training_cases import CLIP, LEARNING_RATE, WEIGHT_DECAY, Case, synchronise

from rdeepsense.errors import require
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Rows


def lightning_seconds(case: Case, rows: Rows, epochs: int) -> float:
    """Seconds of `epochs` epochs of one network, from each epoch's start to its end."""
    lightning = require("lightning", "bench")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    steps = epochs * math.ceil(len(rows) / case.batch)
    loader = DataLoader(TensorDataset(rows.x, rows.y), batch_size=case.batch, shuffle=True)

    class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.network, self.rule = case.network(), ScoringRule(case.alphas[0])
            self.seconds = 0.0

        def training_step(self, batch: list[Tensor], number: int) -> Tensor:
            x, y = batch
            return self.rule(self.network(x), y)

        def configure_optimizers(self) -> dict[str, Any]:
            optimiser, rates = _adamw(self.network, steps)
            return {
                "optimizer": optimiser,
                "lr_scheduler": {"scheduler": rates, "interval": "step"},
            }

        def on_train_epoch_start(self) -> None:
            self._begin = time.perf_counter()

        def on_train_epoch_end(self) -> None:
            self.seconds += time.perf_counter() - self._begin

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a loader with workers may be faster, and the like
        trainer = lightning.Trainer(
            accelerator="cpu",
            max_epochs=epochs,
            gradient_clip_val=CLIP,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        module = Module()
        trainer.fit(module, loader)
    return module.seconds


def sklearn_seconds(case: Case, rows: Rows, epochs: int, threads: int) -> float:
    """Seconds of `epochs` epochs of scikit-learn's network of the same widths."""
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from threadpoolctl import threadpool_limits

    model = (MLPClassifier if case.classes else MLPRegressor)(
        hidden_layer_sizes=case.hidden,
        batch_size=case.batch,
        learning_rate_init=LEARNING_RATE,
        max_iter=epochs,
        n_iter_no_change=epochs + 1,
        random_state=0,
    )
    x, y = rows.x.numpy(), rows.y.squeeze(-1).numpy()
    with warnings.catch_warnings(), threadpool_limits(threads, user_api="blas"):
        warnings.simplefilter("ignore")  # that so few epochs did not converge
        begin = time.perf_counter()
        model.fit(x, y)
        return time.perf_counter() - begin


def loader_seconds_per_step(case: Case, rows: Rows, device: str, limit: float) -> dict[str, float]:
    """DataLoader with 4 workers and pinned memory, plain eager steps: seconds of one step.

    Steps are taken for `limit` seconds, from one epoch into the next where they are short; the
    start of the workers, the first order of the rows and the first 20 steps do not count.
    """
    network, rule = case.network().to(device), ScoringRule(case.alphas[0])
    optimiser, rates = _adamw(network, 10**6)
    loader = DataLoader(
        TensorDataset(rows.x, rows.y),
        batch_size=case.batch,
        shuffle=True,
        drop_last=True,
        num_workers=4,
        pin_memory=device == "cuda",
        persistent_workers=True,
    )
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")  # as ours
    steps, begin = -20, math.inf
    while steps <= 0 or time.perf_counter() - begin < limit:
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            optimiser.zero_grad(set_to_none=True)
            rule(network(x), y).backward()
            nn.utils.clip_grad_norm_(network.parameters(), CLIP)
            optimiser.step()
            rates.step()
            steps += 1
            if steps == 0:
                synchronise(device)
                begin = time.perf_counter()
            elif steps > 0 and time.perf_counter() - begin >= limit:
                break
    synchronise(device)
    seconds = time.perf_counter() - begin
    torch.set_float32_matmul_precision(before)
    return {"seconds_per_step": seconds / steps, "steps": steps}


def _adamw(network: nn.Module, steps: int) -> tuple[torch.optim.AdamW, CosineAnnealingLR]:
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True
    )
    return optimiser, CosineAnnealingLR(optimiser, T_max=steps)
