"""What the training benchmarks train: networks, simulated rows, counts, and the machine's ceilings.

Every network has dropout 0.1 before each layer but the first, a Gaussian or categorical head and
alpha 0.5; AdamW with decay 1e-2, gradients clipped at 5, cosine schedule. The rows are simulated:
a training step takes as long whatever the numbers are.
"""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import pairwise
from pathlib import Path

import torch

from rdeepsense.dropout import StochasticNetwork, convert
from rdeepsense.networks import dense
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Rows, Schedule

PAPER = (500, 500, 500)
ALPHA, DROP_PROB, LEARNING_RATE, WEIGHT_DECAY, CLIP = 0.5, 0.1, 1e-3, 1e-2, 5.0
SIX_ALPHAS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
FLOAT = 4  # bytes


@dataclass(frozen=True)
class Case:
    """A network, the rows it learns from, and how many of it side by side."""

    name: str
    inputs: int
    outputs: int
    rows: int
    batch: int
    hidden: tuple[int, ...] = PAPER
    classes: bool = False
    alphas: tuple[float, ...] = (ALPHA,)

    @property
    def members(self) -> int:
        return len(self.alphas)

    @property
    def steps_per_epoch(self) -> int:
        return max(1, self.rows // self.batch)

    @property
    def widths(self) -> tuple[int, ...]:
        """From the inputs to the columns of the head."""
        return (self.inputs, *self.hidden, self.outputs * (1 if self.classes else 2))

    def network(self, member: int = 0) -> StochasticNetwork:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(member)
            plain = dense(self.inputs, self.hidden, self.outputs)
        likelihood = "categorical" if self.classes else "gaussian"
        return convert(plain, likelihood=likelihood, drop_prob=DROP_PROB).train()

    def rule(self) -> ScoringRule:
        return ScoringRule(list(self.alphas))

    def draw(self, rows: int, device: str = "cpu", seed: int = 0) -> Rows:
        """Simulated rows in host memory; drawn on `device`, which a GPU does in no time."""
        generator = torch.Generator(device).manual_seed(seed)
        x = torch.randn(rows, self.inputs, generator=generator, device=device)
        weight = torch.randn(self.inputs, self.outputs, generator=generator, device=device)
        y = (x @ weight / math.sqrt(self.inputs)).sin()
        if self.classes:
            return Rows(x.cpu(), y.argmax(1).cpu())
        y += 0.1 * torch.randn(y.shape, generator=generator, device=device)
        return Rows(x.cpu(), y.cpu())

    def schedule(self, epochs: int, evaluate_every: int) -> Schedule:
        steps = epochs * self.steps_per_epoch
        return Schedule(steps, self.batch, LEARNING_RATE, evaluate_every, patience=steps, seed=0)

    def scaled(self, factor: float) -> Case:
        return replace(self, rows=max(4 * self.batch, round(factor * self.rows)))


# The shapes of the paper's four tasks, and as many rows as it has.
NYCOMMUTE = Case("NYCommute", 5, 1, 10_287_766, 1_024)
GASSEN = Case("GasSen", 16, 2, 2_840_000, 1_024)
BPEST = Case("BPEst", 250, 250, 1_280_000, 1_024)
HHAR = Case("HHAR", 840, 6, 28_000, 1_024, classes=True)
TASKS = (BPEST, NYCOMMUTE, GASSEN, HHAR)


def flops(case: Case) -> float:
    """Multiplications and additions of the matrix products for one row and network.

    2 in out for the forward pass and as many for each of the two gradients; the gradient by the
    inputs of the first layer is not needed.
    """
    products = [a * b for a, b in pairwise(case.widths)]
    return 6.0 * sum(products) - 2.0 * products[0]


def step_bytes(case: Case) -> int:
    """Bytes that a step reads and writes if every fused part touches each tensor once, float32.

    For a layer in -> out at batch B:
      forward    read the input (B in) and W, write the product (B out); between two layers, bias,
                 ReLU and dropout read it and write it back (2 B out)
      backward   by W: read the input and the gradient (B in + B out), write W's gradient;
                 by the input, but for the first layer: read the gradient and W, write (B in); ReLU
                 and dropout read it and the output they gave, and write it (3 B in)
      AdamW      read W, its gradient (twice, once for the norm) and both moments, write W and both
                 moments: 8 W
    Before that the batch is gathered: its rows and targets are read and written. Tensors that stay
    in a cache never reach memory, so a share above 100 % of the copy bandwidth is possible.
    """
    b, last = case.batch, len(case.widths) - 2
    floats = 2 * b * (case.inputs + (1 if case.classes else case.outputs))  # members share it
    for layer, (width_in, width_out) in enumerate(pairwise(case.widths)):
        weight = width_in * width_out + width_out
        own = b * (width_in + width_out) + weight  # forward
        own += 2 * b * width_out if layer < last else 0
        own += b * (width_in + width_out) + weight  # gradient by the weights
        own += b * (width_out + 4 * width_in) + weight if layer else 0
        floats += case.members * (own + 8 * weight)
    return FLOAT * floats


def synchronise(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def best_seconds(work: Callable[[], object], device: str, repeats: int) -> float:
    """The least time that one call takes, after one that does not count."""
    work()
    times = []
    for _ in range(repeats):
        synchronise(device)
        begin = time.perf_counter()
        work()
        synchronise(device)
        times.append(time.perf_counter() - begin)
    return min(times)


def matmul_peak(device: str, repeats: int = 2) -> float:
    """Operations a second of one large square product; float32 on a CPU, TF32 on a GPU."""
    size = 8_192 if device == "cuda" else 2_048
    a, b = torch.randn(size, size, device=device), torch.randn(size, size, device=device)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if device == "cuda" else "highest")
    seconds = best_seconds(lambda: a @ b, device, repeats)
    torch.set_float32_matmul_precision(before)
    return 2.0 * size**3 / seconds


def copy_bandwidth(device: str) -> float:
    """Bytes a second, read and written, of copying one large tensor."""
    source = torch.empty(2**28 if device == "cuda" else 2**25, device=device).normal_()
    target = torch.empty_like(source)
    seconds = best_seconds(lambda: target.copy_(source), device, 5)
    return 2.0 * FLOAT * source.numel() / seconds


def machine(device: str, threads: int | None = None) -> str:
    """What the figures belong to."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    words = [names[0] if names else platform.machine()]
    words.append(f"{os.cpu_count()} cores" + (f", {threads} threads" if threads else ""))
    if device == "cuda":
        words.insert(0, torch.cuda.get_device_name())
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    return ", ".join([*words, platform.system(), versions, f"{date.today()}"])


@dataclass
class Stamps:
    """Somebody to be told of progress, who notes when: at the start and at each evaluation."""

    device: str
    times: list[float] = field(default_factory=list)

    def start(self, title: str, total: int, done: int) -> None:
        self._stamp()

    def update(self, done: int, note: str) -> None:
        self._stamp()

    def close(self) -> None: ...

    def _stamp(self) -> None:
        synchronise(self.device)
        self.times.append(time.perf_counter())
