"""kill -9 in the middle of a stream: the file is whole, and what follows is the same to the bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rdeepsense as rds

ROUNDS = 10 if os.environ.get("RDEEPSENSE_LONG") else 1
CHILD = """
import sys
import numpy as np
import torch
import rdeepsense as rds

torch.set_num_threads(1)
model = rds.load(sys.argv[1])
rows = np.load(sys.argv[3])
live = model.live()
for k, row in enumerate(rows):
    live.predict(row[:-1])
    if k % 3:
        live.observe(row[-1])
    live.save(sys.argv[2])
    print(k, flush=True)
"""


@pytest.mark.slow
def test_killed_and_resumed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + 0.2 * rng.normal(size=200)
    model = rds.RDeepSenseRegressor(
        effort="quick", hidden=(6,), epochs=2, random_state=0, device="cpu", verbose=False
    ).fit(X, y)
    model.save(tmp_path / "model")
    rows = np.c_[X, 2 * y + 1]
    np.save(tmp_path / "rows.npy", rows)
    whole = model.live()
    said = []
    for k, row in enumerate(rows):
        said.append(whole.predict(row[:-1]))
        if k % 3:
            whole.observe(row[-1])
    for last in rng.integers(1, 60, ROUNDS):
        state = tmp_path / f"state{last}"
        names = (str(tmp_path / "model"), str(state), str(tmp_path / "rows.npy"))
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, *names], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        for line in child.stdout:
            if int(line) == last:
                child.send_signal(signal.SIGKILL)
                break
        child.stdout.close()
        assert child.wait() == -signal.SIGKILL
        again = rds.load(tmp_path / "model").live(state=state)
        assert again.rows > last
        for k in range(again.rows, len(rows)):
            now = again.predict(rows[k, :-1])
            assert now.distribution == said[k].distribution
            assert now.interval == said[k].interval
            assert (now.status, now.ticket) == (said[k].status, said[k].ticket)
            if k % 3:
                again.observe(rows[k, -1])
