"""Cells here and in processes: what fails is kept apart, and workers end with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from rdeepsense.engines import Failure, Local
from rdeepsense.errors import RDeepSenseError, TrainingError

ENDLESS = """
from functools import partial
from types import SimpleNamespace
from rdeepsense.engines import Local
wait = partial(exec, "import signal; print('started', flush=True); signal.pause()", {})
if __name__ == "__main__":
    list(Local(2).run_each([SimpleNamespace(run=wait), SimpleNamespace(run=wait)]))
"""


def test_a_failure_is_told_and_does_not_stop_the_others() -> None:
    def failing() -> dict[str, Any]:
        raise TrainingError("no usable\nnetwork")

    cells = [SimpleNamespace(run=failing), SimpleNamespace(run=partial(dict, square=4))]
    assert list(Local(1).run_each(cells)) == [(0, Failure("no usable network")), (1, {"square": 4})]


@pytest.mark.ray
def test_a_process_that_dies_is_told() -> None:
    cells = [SimpleNamespace(run=partial(os._exit, 3))] * 2
    with pytest.raises(RDeepSenseError, match="run the same again to go on"):
        list(Local(2).run_each(cells))


@pytest.mark.ray
def test_workers_end_with_a_killed_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert [parent.stdout.readline() for _ in range(2)] == [b"started\n"] * 2
        parent.kill()
        assert parent.stdout.read() == b""  # ends when the last worker has closed its output


STOPPED = """
import os
from functools import partial
from types import SimpleNamespace
from rdeepsense.engines import Local
wait = partial(exec, "import signal; print('started', flush=True); signal.pause()", {})
if __name__ == "__main__":
    print(os.getpid(), flush=True)
    try:
        list(Local(2).run_each([SimpleNamespace(run=wait), SimpleNamespace(run=wait)]))
    except KeyboardInterrupt:
        print("stopped", flush=True)
"""


@pytest.mark.ray
@pytest.mark.parametrize("group", [False, True], ids=["the parent alone", "as at a terminal"])
def test_ctrl_c_ends_the_workers_without_a_word_of_theirs(group: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        number = int(parent.stdout.readline())
        assert [parent.stdout.readline() for _ in range(2)] == [b"started\n"] * 2
        (os.killpg if group else os.kill)(number, signal.SIGINT)
        assert parent.stdout.read() == b"stopped\n"  # ends when the last worker has ended
        assert parent.stderr.read() == b""
        assert parent.wait() == 0
