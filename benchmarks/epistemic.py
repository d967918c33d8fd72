"""One-pass epistemic uncertainty: how right it is, what it costs, what it is good for.

    RDEEPSENSE_DATA=... OMP_NUM_THREADS=1 python benchmarks/epistemic.py [--out FILE] [--splits 3]

Prints four tables and writes them as JSON with --out. The first two use simulated data. The others
use UCI's concrete, energy, yacht and power plant with their published splits, and are left out
without RDEEPSENSE_DATA.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import platform
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr
from torch import Tensor, nn

import rdeepsense as rds
from rdeepsense import metrics
from rdeepsense._files import write_whole
from rdeepsense.datasets import simulate
from rdeepsense.dropout import StochasticNetwork, convert
from rdeepsense.networks import dense
from rdeepsense.paper import uci
from rdeepsense.scoring import ScoringRule
from rdeepsense.uncertainty import Laplace, epistemic_variance

SETS = ("concrete", "energy", "yacht", "power")
REFERENCE = 10_000  # samples
Row = dict[str, Any]


class LastState(nn.Module):
    """A GRU over 20 steps of 3 sensors, read at its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(3, 32, batch_first=True)
        self.out = nn.Linear(32, 1)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.gru(x)
        out: Tensor = self.out(states[:, -1])
        return out


def trained(network: nn.Module, x: Tensor, y: Tensor, steps: int) -> StochasticNetwork:
    """Converted with dropout 0.1 on hidden layers, and trained on x, y."""
    net = convert(network, drop_prob=0.1, example=x[:2]).train()
    optimiser = torch.optim.AdamW(net.parameters(), 2e-3)
    rule = ScoringRule(alpha=0.5)
    for _ in range(steps):
        some = torch.randint(len(x), (128,))
        optimiser.zero_grad()
        rule(net(x[some]), y[some]).mean().backward()
        optimiser.step()
    return net.eval()


def simulated_networks() -> dict[str, tuple[StochasticNetwork, Tensor]]:
    """Four trained networks and 64 rows to look at each."""
    torch.manual_seed(0)
    task = simulate(4_064, 0)
    x = torch.from_numpy(task.X).float()
    y = torch.from_numpy((task.y - 50) / 20).float()[:, None]
    waves = torch.randn(2_064, 20, 3).cumsum(1) / 4
    target = torch.sin(waves[..., 0]).mean(1, keepdim=True) + waves[:, -5:, 1].amax(1, keepdim=True)
    convolutions = nn.Sequential(
        nn.Conv1d(3, 16, 3),
        nn.ReLU(),
        nn.Conv1d(16, 16, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 16, 1),
    )
    channels = waves.transpose(1, 2).contiguous()
    parts: dict[str, tuple[nn.Module, Tensor, Tensor, int]] = {
        "1 x 64": (dense(4, (64,), 1), x, y, 600),
        "2 x 64": (dense(4, (64, 64), 1), x, y, 600),
        "3 x 500": (dense(4, (500, 500, 500), 1), x, y, 300),
        "2 convolutions": (convolutions, channels, target, 300),
        "GRU of 32": (LastState(), waves, target, 300),
    }
    return {
        name: (trained(network, x[:-64], y[:-64], steps), x[-64:])
        for name, (network, x, y, steps) in parts.items()
    }


def accuracy(networks: dict[str, tuple[StochasticNetwork, Tensor]]) -> list[Row]:
    """delta, moments and 20 samples against 10,000 samples."""
    rows = []
    for name, (net, x) in networks.items():
        reference = epistemic_variance(net, x, "sample", samples=REFERENCE, seed=1)
        for method in ("delta", "moments", "20 samples"):
            if method == "moments" and not isinstance(net.body, nn.Sequential):
                continue
            if method == "20 samples":
                found = epistemic_variance(net, x, "sample", samples=20, seed=2)
            else:
                found = epistemic_variance(net, x, method)
            ratio = found / reference
            rows.append(
                {
                    "network": name,
                    "method": method,
                    "median error": float((ratio - 1).abs().median()),
                    "median ratio": float(ratio.median()),
                    "Spearman": float(spearmanr(found[:, 0], reference[:, 0])[0]),
                }
            )
    return rows


def cost(networks: dict[str, tuple[StochasticNetwork, Tensor]]) -> list[Row]:
    """The processor time of each method, in single passes of the same batch."""
    rows = []
    for name in ("2 x 64", "3 x 500"):
        net, x = networks[name]
        fitted = Laplace.fit(net, [(x, torch.ones(len(x)))])
        for batch in (1, 1_024):
            many = x.repeat(16, 1)[:batch]
            with torch.no_grad():
                one = _seconds(lambda net=net, many=many: net(many))
            row: Row = {"network": name, "batch": batch, "one pass, us": 1e6 * one}
            for method in ("delta", "moments", "laplace", "sample"):
                spent = _seconds(
                    lambda net=net, many=many, method=method, fitted=fitted: epistemic_variance(
                        net, many, method, fitted=fitted, samples=20
                    ),
                    5 if method == "sample" else 100,
                )
                row["20 samples" if method == "sample" else method] = spent / one
            rows.append(row)
    return rows


def _seconds(call: Callable[[], object], times: int = 100) -> float:
    """The least processor time of a few calls: whatever else the machine does only adds."""
    call()
    spent = []
    for _ in range(times):
        start = time.process_time()
        call()
        spent.append(time.process_time() - start)
    return min(spent)


def unlike(X: NDArray[Any], test: NDArray[Any], seed: int) -> dict[str, NDArray[Any]]:
    """Inputs unlike the training rows X, as many as test rows.

    noise k: N(0, k^2) in every standardised column; uniform: between each column's least and
    greatest value; permuted: the test rows with every column shuffled by itself.
    """
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(test.shape)
    return {
        **{f"noise {k}": X.mean(0) + k * X.std(0) * noise for k in (1, 2, 3)},
        "uniform": rng.uniform(X.min(0), X.max(0), test.shape),
        "permuted": np.column_stack([rng.permutation(column) for column in test.T]),
    }


def detection(sets: list[uci.DataSet], splits: int) -> list[Row]:
    """AUROC of the scores for inputs unlike the training rows, and NLL on those alike.

    The settings of novelty were chosen on splits 3 to 5 of the same sets. `novelty above 0.95` is
    the share of test rows, which are all alike: false alarms.
    """
    rows = []
    for data in sets:
        found: list[Row] = []
        for split in range(splits):
            X, y = data.x[~data.test[split]], data.y[~data.test[split]]
            Xt, yt = data.x[data.test[split]], data.y[data.test[split]]
            model = rds.RDeepSenseRegressor(
                effort="quick", likelihood="gaussian", random_state=split, device="cpu"
            ).fit(X, y)
            row: Row = {
                f"NLL {name or 'single pass'}": metrics.nll(
                    model.predict_dist(Xt, epistemic=name), yt
                )
                for name in (None, "delta", "laplace")
            }
            start = time.process_time()
            model.fit_novelty(X)
            row["fit_novelty, s"] = time.process_time() - start
            for kind, strange in unlike(X, Xt, split).items():
                row[kind] = metrics.auroc(model.epistemic_std(Xt), model.epistemic_std(strange))
                row[f"{kind}, novelty"] = metrics.auroc(model.novelty(Xt), model.novelty(strange))
                if kind in ("noise 2", "permuted"):
                    for name, score in (
                        ("delta", lambda x, m=model: m.epistemic_std(x, "delta")),
                        ("predicted std", lambda x, m=model: m.predict_dist(x).std),
                    ):
                        row[f"{kind}, {name}"] = metrics.auroc(score(Xt), score(strange))
            row["novelty above 0.95"] = float(np.mean(model.novelty(Xt) > 0.95))
            found.append(row)
        rows.append({"set": data.name, **_means(found)})
    return [*rows, {"set": "mean", **_means(rows)}]


def _means(rows: list[Row]) -> Row:
    return {k: float(np.mean([r[k] for r in rows])) for k in rows[0] if k != "set"}


def wrapped(sets: list[uci.DataSet], splits: int) -> list[Row]:
    """NLL of `wrap` and of MCDrop-100 with tuned noise: one network, the same validation rows."""
    rows = []
    for data in sets:
        found: list[Row] = []
        for split in range(splits):
            X, y = data.x[~data.test[split]], data.y[~data.test[split]]
            Xt, yt = data.x[data.test[split]], data.y[data.test[split]]
            network = nn.Sequential(
                nn.Linear(X.shape[1], 64),
                nn.ReLU(),
                nn.Dropout(),
                nn.Linear(64, 64),
                nn.ReLU(),
                nn.Dropout(),
                nn.Linear(64, 1),
            )
            rival = rds.MCDropRegressor(
                network=network,
                drop_prob=0.05,
                keep_rows=len(X),
                random_state=split,
                device="cpu",
            ).fit(X, y)
            inputs, target = rival.fitted_.inputs.scaler, rival.fitted_.target_scaler
            held, truth = rival.fitted_.kept_rows
            shift, scale = target.shift[0], target.scale[0]
            row: Row = {
                "MCDrop-100": metrics.nll(rival.predict_dist(Xt, samples=100), yt),
            }
            plain = copy.deepcopy(rival.network_.body)
            for method in ("delta", "moments"):
                fit = rds.wrap(plain, inputs.transform(held), (truth - shift) / scale, method)
                dist = fit.predict_dist(inputs.transform(Xt))
                row[f"wrap, {method}"] = metrics.nll(dist.affine(shift, scale), yt)
            found.append(row)
        rows.append({"set": data.name, **_means(found)})
    return rows


def show(title: str, rows: list[Row]) -> None:
    print(f"\n{title}\n")
    names = list(rows[0])
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))
    for row in rows:
        cells = (row.get(name, "") for name in names)
        print(
            "| " + " | ".join(f"{c:.3f}" if isinstance(c, float) else str(c) for c in cells) + " |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--splits", type=int, default=3, help="of each UCI set, from the first on")
    arguments = parser.parse_args()
    about = {
        "date": date.today().isoformat(),
        "machine": f"{_processor()}, {torch.get_num_threads()} thread(s)",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "splits": arguments.splits,
    }
    print(", ".join(f"{k} {v}" for k, v in about.items()))
    networks = simulated_networks()
    results: dict[str, Any] = {"about": about}
    title = (
        f"Variance of the mean against {REFERENCE:,} samples: simulated data, dropout 0.1, 64 rows"
    )
    results["accuracy"] = accuracy(networks)
    show(title, results["accuracy"])
    results["cost"] = cost(networks)
    show("Processor time in single passes of the same batch, float32", results["cost"])
    folder = os.environ.get("RDEEPSENSE_DATA")
    if folder is None:
        print("\nUCI is left out: RDEEPSENSE_DATA is not set")
    else:
        paths = uci.find(Path(folder) / "uci", list(SETS))
        sets = [uci.load(path) for path in paths]
        results["detection"] = detection(sets, arguments.splits)
        show("NLL alike; AUROC of the laplace score, where no other is named", results["detection"])
        results["wrap"] = wrapped(sets, arguments.splits)
        show("NLL of a network trained with dropout and the squared error", results["wrap"])
    if arguments.out:
        write_whole(arguments.out, json.dumps(results, indent=1).encode())


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "unknown")


if __name__ == "__main__":
    main()
