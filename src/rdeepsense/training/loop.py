"""The one training loop: batches, scoring rule, AdamW, cosine schedule, the best step kept.

Everything a step does is a function of the state (weights, Adam's moments, random numbers, step
number), so equal seeds give equal bits and a resumed run cannot be told from an uninterrupted one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import torch
from torch import Tensor

from rdeepsense.errors import TrainingError
from rdeepsense.scoring import ScoringRule
from rdeepsense.training.bank import Bank
from rdeepsense.training.checkpoint import Checkpoint, fingerprint
from rdeepsense.training.interrupt import StopOnInterrupt
from rdeepsense.training.progress import Progress, Silent
from rdeepsense.training.schedule import Rows, Schedule, TrainingRecord
from rdeepsense.training.threads import sensible_threads

CLIP = 5.0
VALIDATION_ACTIVATIONS = 4_000_000  # of one layer, which bounds the memory of a pass


def train(
    bank: Bank,
    rule: ScoringRule,
    weight_decay: Sequence[float],
    rows: Rows,
    validation: Rows,
    schedule: Schedule,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    title: str = "training",
) -> TrainingRecord:
    """Train the bank in place; afterwards it has kept each member's best step by validation NLL.

    The weight decay is AdamW's, on weights only: W <- (1 - lr decay) W before each step, one per
    member. With a `checkpoint` path the state is saved there as training goes on, and a run whose
    state is found there goes on from it.
    """
    begin = time.monotonic()
    progress = progress or Silent()
    device = rows.x.device
    with (
        _random_numbers_of_our_own(device),
        sensible_threads(bank.size * schedule.batch_size * bank.width),
        StopOnInterrupt() as stop,
        closing(progress),
    ):
        run = _Run(bank.to(device), rule.to(device), weight_decay, rows, validation, schedule)
        saver = None if checkpoint is None else Checkpoint(checkpoint, run.fingerprint())
        resumed_at = run.resume(saver) if saver else None
        progress.start(title, schedule.last_step, run.steps)
        while not (run.finished() or stop.requested):
            run.step()
            if run.evaluation_due():
                run.evaluate()
                progress.update(run.steps, f"validation NLL {run.best_nll.min():.3f}")
            if saver and saver.due():
                run.save(saver)
        if not run.evaluated_at or stop.requested:
            run.evaluate()
        if saver:
            run.save(saver)
    if not torch.isfinite(run.best_nll).all():
        raise TrainingError(
            "training diverged: the validation NLL was never finite; lower learning_rate, or look "
            "for outliers in the targets"
        )
    return TrainingRecord(
        best_nll=run.best_nll.tolist(),
        best_step=run.best_step.tolist(),
        steps=run.steps,
        seconds=time.monotonic() - begin,
        interrupted=stop.requested,
        resumed_at=resumed_at,
        evaluated_at=run.evaluated_at,
        history=torch.stack(run.history).tolist(),
    )


def validation_nll(bank: Bank, rows: Rows) -> Tensor:
    """The mean NLL of each member's single deterministic pass, in float64 on the CPU."""
    bank.eval()
    total = torch.zeros(bank.size, dtype=torch.float64, device=rows.x.device)
    weight = torch.ones(1, len(rows)).to(rows.x) if rows.weight is None else rows.weight
    with torch.no_grad():
        chunk = max(256, VALIDATION_ACTIVATIONS // (bank.size * bank.width))
        for start in range(0, len(rows), chunk):
            part = slice(start, start + chunk)
            nll = bank(rows.x[part]).nll(rows.y[part])
            per_row = nll.reshape(*nll.shape[:2], -1).double().mean(-1)
            total += (per_row * weight[..., part]).sum(-1)
    return (total / weight.double().sum(-1)).cpu()


class _Run:
    """The state of a run and the steps that change it."""

    def __init__(
        self,
        bank: Bank,
        rule: ScoringRule,
        weight_decay: Sequence[float],
        rows: Rows,
        validation: Rows,
        schedule: Schedule,
    ) -> None:
        self.bank, self.rule = bank, rule
        self.rows, self.validation, self.schedule = rows, validation, schedule
        self.device = rows.x.device
        self.weight_decay = torch.tensor(list(weight_decay), device=self.device)
        self.optimiser = torch.optim.Adam(bank.parameters(), lr=1.0, fused=True)
        self.steps = 0
        self.best_nll = torch.full((bank.size,), torch.inf, dtype=torch.float64)
        self.best_step = torch.zeros(bank.size, dtype=torch.int64)
        self.stale = torch.zeros(bank.size, dtype=torch.int64)
        self.evaluated_at: list[int] = []
        self.history: list[Tensor] = []
        self._epoch = -1
        torch.manual_seed(schedule.seed)  # the masks; batches have a seed for each epoch

    def finished(self) -> bool:
        stopped = bool((self.stale >= self.schedule.patience).all())
        return stopped or self.steps >= self.schedule.last_step

    def step(self) -> None:
        lr = self.schedule.learning_rate_at(self.steps)
        index = self._batch()
        x, y = self.rows.x[index], self.rows.y[index]
        weight = None if self.rows.weight is None else self.rows.weight[..., index]
        self.bank.train()
        loss = self.rule(self.bank(x), y, weight)
        if self.schedule.adversarial:
            loss = loss + self.rule(self.bank(self._attacked(x, y), each=True), y, weight)
        self.optimiser.zero_grad()
        loss.sum().backward()
        self.bank.clip_gradients(CLIP)
        self.bank.decay_weights(1 - lr * self.weight_decay)
        self.optimiser.param_groups[0]["lr"] = lr
        self.optimiser.step()
        self.steps += 1

    def _attacked(self, x: Tensor, y: Tensor) -> Tensor:
        """x + eps sign(d loss / d x), for each member its own (fast gradient sign method)."""
        own = x.expand(self.bank.size, *x.shape).clone().requires_grad_()
        loss = self.rule(self.bank(own, each=True), y).sum()
        (gradient,) = torch.autograd.grad(loss, own)
        return own.detach() + self.schedule.adversarial * gradient.sign()

    def _batch(self) -> Tensor:
        """The rows of this step: shuffled without replacement, an odd last batch left out."""
        size = min(self.schedule.batch_size, len(self.rows))
        epoch, position = divmod(self.steps, len(self.rows) // size)
        if epoch != self._epoch:
            self._epoch = epoch
            generator = torch.Generator(self.device)
            generator.manual_seed(self.schedule.seed * 1_000_003 + epoch)
            self._order = torch.randperm(len(self.rows), generator=generator, device=self.device)
        return self._order[position * size : (position + 1) * size]

    def evaluation_due(self) -> bool:
        due = self.steps % self.schedule.evaluate_every == 0
        return due or self.steps == self.schedule.last_step

    def evaluate(self) -> None:
        """Score the members on the validation rows; keep those better than ever and not stopped."""
        nll = validation_nll(self.bank, self.validation)
        if self.schedule.together > 1:
            groups = nll.view(-1, self.schedule.together)
            nll = groups.mean(1, keepdim=True).expand_as(groups).flatten()
        better = (nll < self.best_nll) & (self.stale < self.schedule.patience)
        self.best_nll = torch.where(better, nll, self.best_nll)
        self.best_step[better] = self.steps
        self.stale = torch.where(better, 0, self.stale + 1)
        self.bank.keep(better.to(self.device))
        self.evaluated_at.append(self.steps)
        self.history.append(nll)

    def fingerprint(self) -> str:
        settings = (
            f"{self.schedule} {self.rule} {self.weight_decay.tolist()} {self.bank.describe()}"
        )
        given = (self.rows, self.validation)
        data = [tensor for r in given for tensor in (r.x, r.y, r.weight)]
        return fingerprint(settings, [*self.bank.state_dict().values(), *data])

    def save(self, saver: Checkpoint) -> None:
        tensors = {f"bank.{name}": value for name, value in self.bank.state_dict().items()}
        tensors |= {f"kept.{name}": value for name, value in self.bank.kept.items()}
        for number, moments in self.optimiser.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{name}": value for name, value in moments.items()}
        tensors |= {"best_nll": self.best_nll, "best_step": self.best_step, "stale": self.stale}
        if self.history:
            tensors["history"] = torch.stack(self.history)
        tensors["random.cpu"] = torch.get_rng_state()
        if self.device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self.device)
        saver.save({"steps": self.steps, "evaluated_at": self.evaluated_at}, tensors)

    def resume(self, saver: Checkpoint) -> int | None:
        """Take up the saved state of this run, if there is one; the step it was saved at."""
        saved = saver.load()
        if saved is None:
            return None
        header, tensors = saved
        self.steps, self.evaluated_at = header["steps"], list(header["evaluated_at"])
        self.bank.load_state_dict(_under("bank.", tensors))
        self.bank.kept = {k: v.to(self.device) for k, v in _under("kept.", tensors).items()}
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in _under("adam.", tensors).items():
            number, _, key = name.partition(".")
            moments.setdefault(int(number), {})[key] = value
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": moments, "param_groups": groups})
        self.best_nll, self.best_step = tensors["best_nll"], tensors["best_step"]
        self.stale = tensors["stale"]
        self.history = list(tensors["history"]) if "history" in tensors else []
        torch.set_rng_state(tensors["random.cpu"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(tensors["random.cuda"], self.device)
        return self.steps


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


@contextmanager
def _random_numbers_of_our_own(device: torch.device) -> Iterator[None]:
    """Leave the caller's random numbers as they were."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield
