"""One step of training, as a function of tensors alone, so that a GPU can record and replay it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rdeepsense.scoring import ScoringRule
from rdeepsense.training.bank import Bank
from rdeepsense.training.peers import ALONE, Peers, statistics_of
from rdeepsense.training.schedule import Rows, Schedule

CLIP = 5.0
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Step:
    """Gather, forward, scoring rule, backward, the mean over peers, clipping, AdamW.

    Whatever changes from step to step is a tensor on the device: the order of the rows, the
    position in it, the number of steps taken (which sets the learning rate) and Adam's moments.
    """

    def __init__(
        self,
        bank: Bank,
        rule: ScoringRule,
        weight_decay: Sequence[float],
        rows: Rows,
        schedule: Schedule,
        peers: Peers = ALONE,
    ) -> None:
        device = rows.x.device
        self.bank, self.rule, self.rows, self.schedule = bank, rule, rows, schedule
        self.peers, self._statistics = peers, statistics_of(bank)
        self.device = device
        size = min(schedule.batch_size, len(rows))
        self.order = torch.arange(len(rows) // size * size, device=device).view(-1, size)
        self.position = torch.zeros(1, dtype=torch.int64, device=device)
        self.taken = torch.zeros(1, dtype=torch.int64, device=device)
        self.rates = schedule.learning_rates().to(device)
        self.weight_decay = torch.tensor(list(weight_decay), device=device)
        self.parameters = self._parameters()
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]

    def _parameters(self) -> list[Tensor]:
        return [p for p in self.bank.parameters() if p.requires_grad]

    def go_to(self, step: int) -> None:
        """Take up a run after this many steps."""
        self.taken.fill_(step)

    def __call__(self) -> None:
        self.bank.train()
        gradients = torch.autograd.grad(
            self.loss(), self.parameters, allow_unused=True, materialize_grads=True
        )
        self.update(self.peers.averaged(gradients, self._statistics))

    def shuffle(self, window: int, position: int) -> None:
        """Draw a new order of the rows, without replacement, an odd last batch left out."""
        generator = torch.Generator(self.device)
        generator.manual_seed(self.schedule.seed * 1_000_003 + window)
        order = torch.randperm(len(self.rows), generator=generator, device=self.device)
        self.order.copy_(order[: self.order.numel()].view_as(self.order))
        self.position.fill_(position)

    def loss(self) -> Tensor:
        """Return the sum of the members' losses on the batch at the present position."""
        index = self.order.index_select(0, self.position)[0]
        x, y = self.rows.x.index_select(0, index), self.rows.y.index_select(0, index)
        weight = self.rows.weight
        if weight is not None:
            weight = weight.index_select(-1, index)
        loss = self.rule(self.bank(x), y, weight)
        if self.schedule.adversarial:
            loss = loss + self.rule(self.bank(self._attacked(x, y), each=True), y, weight)
        return loss.sum()

    def _attacked(self, x: Tensor, y: Tensor) -> Tensor:
        """Return x + eps sign(d loss / d x) of each member (fast gradient sign method)."""
        own = x.expand(self.bank.size, *x.shape).clone().requires_grad_()
        loss = self.rule(self.bank(own, each=True), y).sum()
        (gradient,) = torch.autograd.grad(loss, own)
        return own.detach() + self.schedule.adversarial * gradient.sign()

    @torch.no_grad()
    def update(self, gradients: list[Tensor]) -> None:
        """Clip each member's gradient, decay its weights, and take Adam's step."""
        lr = self.rates.index_select(0, self.taken)
        self.taken.add_(1)
        self.bank.clip_gradients(gradients, CLIP)
        self.bank.decay_weights(1 - lr * self.weight_decay)
        if torch.compiler.is_compiling():
            self._adam(gradients, lr)
        else:
            self._fused_adam(gradients, lr)
        self.position.add_(1)

    def _fused_adam(self, gradients: list[Tensor], lr: Tensor) -> None:
        torch._fused_adam_(
            self.parameters,
            gradients,
            self.first,
            self.second,
            [],
            [self.taken.float().view(())] * len(gradients),
            lr=lr.view(()),
            beta1=BETA1,
            beta2=BETA2,
            weight_decay=0.0,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )

    def _adam(self, gradients: list[Tensor], lr: Tensor) -> None:
        """Take W <- W - lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps), which compilers fuse."""
        t = self.taken.float()
        rate, root = lr / (1 - BETA1**t), (1 - BETA2**t).sqrt()
        moments = zip(self.first, self.second, strict=True)
        for parameter, gradient, (m, v) in zip(self.parameters, gradients, moments, strict=True):
            m.lerp_(gradient, 1 - BETA1)
            v.lerp_(gradient * gradient, 1 - BETA2)
            parameter.sub_(rate * m / (v.sqrt() / root + EPSILON))
