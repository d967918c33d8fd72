"""Run a benchmark on a Ray cluster of four nodes, and take away parts of it at random.

    python tests/engines/cluster.py [--rounds 10] [--seed 0]

The nodes are simulated: processes of this machine, with one core each. A benchmark of 40 cells
runs here, then on the cluster, undisturbed: the results are the same but for seconds. Then in each
round, after a random number of finished cells, one of three is killed: a worker process, a whole
node, or the program that gave out the work, which is then run again. No cell that was finished may
be lost or run again, and the results are the same. Prints a table; exits 1 if any round failed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import numpy as np
import ray
from ray.cluster_utils import Cluster

import rdeepsense as rds
from rdeepsense.cli.paper import run_uci
from rdeepsense.engines import Engine

NODES, CELLS = 4, 40
NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
BUSY = "ray::_attempt"  # what Ray calls a process that runs one of our tasks
KINDS = ("worker", "node", "driver")
METHODS = ["RDeepSense-quick", "MCDrop-3-paper"]


def write_data(folder: Path) -> None:
    """Write two data sets of ten splits: with two methods, 40 cells."""
    folder.mkdir()
    for number, name in enumerate(("one", "two")):
        rng = np.random.default_rng(number)
        x = rng.normal(size=(60, 3))
        test = np.argsort(rng.random((10, 60)), axis=1) < 10
        y = x[:, 0] + 0.2 * rng.normal(size=60)
        np.savez(folder / f"{name}.npz", x=x, y=y, test_mask=np.packbits(test, axis=1))


class Striking:
    """An engine that does something after a number of finished cells."""

    def __init__(self, engine: Engine, after: int, strike: Callable[[], None]) -> None:
        self.engine, self.after, self.strike = engine, after, strike

    def run_each(self, work: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        for count, found in enumerate(self.engine.run_each(work), 1):
            if count == self.after:
                self.strike()
            yield found


def benchmark(place: Path, out: Path, engine: Engine) -> None:
    run_uci(place / "data", None, None, METHODS, out, engine, (4,), quiet=True, epochs=2)


def cells(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "cells").glob("*.json")}


def results(out: Path) -> object:
    """Read the results without all that is about seconds."""
    timeless = lambda record: {k: v for k, v in record.items() if "seconds" not in k}  # noqa: E731
    return json.loads((out / "results.json").read_text(), object_hook=timeless)


class Rounds:
    """A cluster, the results that all runs must have, and ways to disturb a run."""

    def __init__(self, cluster: Cluster, place: Path, chance: random.Random) -> None:
        self.cluster, self.place, self.chance = cluster, place, chance
        self.engine = rds.Ray(address=cluster.address)
        self.before: dict[str, bytes] = {}
        self.how = ""
        benchmark(place, place / "local", rds.Local())
        self.truth = results(place / "local")

    def undisturbed(self, out: Path, _: int) -> None:
        benchmark(self.place, out, self.engine)
        self.how = "as it is"

    def worker(self, out: Path, after: int) -> None:
        """Kill a worker process, one at work if there is one."""

        def strike() -> None:
            self.before = cells(out)
            found = [pid for node in self.cluster.list_all_nodes() for pid in workers(node)]
            busy = [pid for pid in found if title(pid).startswith(BUSY)]
            os.kill(self.chance.choice(sorted(busy or found)), signal.SIGKILL)
            self.how = "at work" if busy else "idle"

        benchmark(self.place, out, Striking(self.engine, after, strike))

    def node(self, out: Path, after: int) -> None:
        """Kill all processes of a node, one at work if there is one; not of the head."""

        def strike() -> None:
            self.before = cells(out)
            own = ray.get_runtime_context().get_node_id()
            others = [n for n in self.cluster.worker_nodes if n.node_id != own]
            busy = [n for n in others if any(title(pid).startswith(BUSY) for pid in workers(n))]
            chosen = self.chance.choice(sorted(busy or others, key=lambda node: node.node_id))
            self.cluster.remove_node(chosen, allow_graceful=False)
            self.how = "at work" if busy else "idle"

        benchmark(self.place, out, Striking(self.engine, after, strike))
        self.cluster.add_node(**NODE)
        self.cluster.wait_for_nodes()

    def driver(self, out: Path, after: int) -> None:
        """Kill the program that gives out the work, and run it again."""
        words = [__file__, "--driver", self.cluster.address, self.place, out, str(after)]
        code = subprocess.run([sys.executable, *words], check=False).returncode
        self.before = cells(out)
        self.how = "killed" if code == -signal.SIGKILL else f"ended with {code}"
        benchmark(self.place, out, self.engine)

    def run(self, kind: str) -> list[str]:
        """Do one round; return what is wrong."""
        out, after = self.place / "out", self.chance.randint(1, CELLS - NODES)
        self.before = {}
        getattr(self, kind)(out, after)
        wrong, found = [], cells(out)
        if results(out) != self.truth:
            wrong.append("the results are others than here")
        if len(found) != CELLS or len(list((out / "cells").iterdir())) != CELLS:
            wrong.append(f"{len(found)} cells, and {sorted(os.listdir(out / 'cells'))}")
        if kind != "undisturbed" and len(self.before) < after:
            wrong.append(f"{after} cells were told of, {len(self.before)} were kept")
        lost = [name for name, data in self.before.items() if found.get(name) != data]
        wrong += [f"finished, then lost or run again: {name}" for name in lost]
        shutil.rmtree(out)
        return wrong


def workers(node: Any) -> list[int]:
    """Return the processes that a node does its work in."""
    (raylet,) = node.all_processes["raylet"]
    tasks = Path(f"/proc/{raylet.process.pid}/task").iterdir()
    children = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    return [pid for pid in children if title(pid).startswith(("ray::IDLE", BUSY))]


def title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")[0].strip()
    except OSError:
        return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--driver", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.driver:
        address, place, out, after = asked.driver
        die = lambda: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
        benchmark(Path(place), Path(out), Striking(rds.Ray(address=address), int(after), die))
        return 0
    place = Path(tempfile.mkdtemp(prefix="cluster-"))
    write_data(place / "data")
    counts: Counter[tuple[str, str]] = Counter()
    failed: list[str] = []
    cluster = Cluster(True, head_node_args={**NODE, "include_dashboard": False})
    try:
        for _ in range(NODES - 1):
            cluster.add_node(**NODE)
        cluster.wait_for_nodes()
        rounds = Rounds(cluster, place, random.Random(asked.seed))
        kinds = ["undisturbed", *(KINDS[number % len(KINDS)] for number in range(asked.rounds))]
        with rounds.engine.connected():  # once: workers that have imported torch are kept
            for kind in kinds:
                wrong = rounds.run(kind)
                counts[kind, rounds.how] += 1
                failed += [f"{kind}: {text}" for text in wrong]
                print(end="x" if wrong else ".", file=sys.stderr, flush=True)
    finally:
        cluster.shutdown()
        shutil.rmtree(place)
    print(file=sys.stderr)
    for (kind, how), times in sorted(counts.items()):
        print(f"{kind:<12} {how:<10} {times:>3}")
    print(f"{sum(counts.values())} runs of {CELLS} cells, {len(failed)} differences")
    for text in failed:
        print(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
