"""kill -9 at random moments: the resumed run ends with the very weights of an undisturbed one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import rdeepsense as rds
from rdeepsense.modelfile import tensors as model_file

# A process that imports once and forks the runs it kills, because importing takes longer than
# fitting. SIGCHLD with a time limit waits for whichever comes first, the child's end or the moment
# to kill it.
PROGRAM = """
import json, os, random, signal, sys, time
from pathlib import Path
from rdeepsense import RDeepSenseRegressor
from rdeepsense.datasets import simulate
from rdeepsense.modelfile import tensors as model_file

whole, checkpoint, resumed = map(Path, sys.argv[1:])
task = simulate(600, seed=0)
RDeepSenseRegressor(effort="quick", epochs=1).fit(task.X, task.y)  # torch imports much here
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})

def start(checkpoint, target):
    child = os.fork()
    if child == 0:
        model = RDeepSenseRegressor(
            effort="quick", epochs=300, random_state=0, device="cpu", checkpoint=checkpoint
        )
        model.fit(task.X, task.y).save(target)
        os._exit(0)
    return child

begin = time.monotonic()
assert os.waitpid(start(None, whole), 0)[1] == 0
longest = (time.monotonic() - begin) / 8  # ten kills then come before the end, on any machine
chance, steps, kills = random.Random(7), [], 0
while kills < 10:
    signal.sigtimedwait({signal.SIGCHLD}, 0)  # forget the end of the child before
    child = start(checkpoint, resumed)
    signal.sigtimedwait({signal.SIGCHLD}, chance.uniform(0, longest))
    os.kill(child, signal.SIGKILL)
    kills += os.waitpid(child, 0)[1] == signal.SIGKILL
    if checkpoint.exists():  # then it is whole, or reading it raises
        steps.append(model_file.read(checkpoint)[0]["steps"])
    if resumed.exists():
        break
assert os.waitpid(start(checkpoint, resumed), 0)[1] == 0
print(json.dumps({"kills": kills, "steps": steps}))
"""


@pytest.mark.slow
def test_a_killed_run_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole, checkpoint, resumed = (tmp_path / n for n in ("whole", "run.ckpt", "resumed"))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, whole, checkpoint, resumed],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["kills"] == 10
    assert report["steps"] == sorted(report["steps"])
    assert report["steps"][-1] > 0, "no run lived to its first checkpoint"
    a, b = model_file.read(whole), model_file.read(resumed)
    for name in a[1]:
        assert a[1][name].tobytes() == b[1][name].tobytes(), name
    assert a[0]["training"]["history"] == b[0]["training"]["history"]
    assert b[0]["training"]["resumed_at"] is not None
    rds.load(resumed)
    # What a run that was killed while it wrote left beside, the next one swept.
    assert {path.name for path in tmp_path.iterdir()} == {"whole", "run.ckpt", "resumed"}
