"""State of the whole process: nobody finds it changed by another thread, or hangs in a child."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import warnings

import pytest
import torch

from rdeepsense import _torch
from rdeepsense._torch import exclusive, quiet, tensor_cores, threads_outside, torch_threads


def overlapping(enter: object, settings: object) -> list[object]:
    """Let a second thread enter while the first one is inside, and leave after it.

    Where the state has a lock the second one waits for the first, and both see the same.
    """
    inside, leave = threading.Event(), threading.Event()
    seen: list[object] = []

    def first() -> None:
        with enter():  # type: ignore[operator]
            inside.set()
            leave.wait(10)

    def second() -> None:
        inside.wait(10)
        threading.Timer(0.05, leave.set).start()
        with enter():  # type: ignore[operator]
            leave.wait(10)
            seen.append(settings())  # type: ignore[operator]

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen


def test_filters_of_warnings_come_back_whoever_leaves_first() -> None:
    before = list(warnings.filters)
    overlapping(quiet, lambda: None)
    assert list(warnings.filters) == before
    with warnings.catch_warnings(record=True) as caught, quiet(DeprecationWarning):
        for category in (DeprecationWarning, UserWarning):
            warnings.warn("said", category, stacklevel=1)
    assert [warning.category for warning in caught] == [UserWarning]


def test_the_precision_holds_until_the_last_one_leaves_and_comes_back() -> None:
    before = torch.get_float32_matmul_precision()
    assert overlapping(tensor_cores, torch.get_float32_matmul_precision) == ["high"]
    assert torch.get_float32_matmul_precision() == before


def test_threads_of_torch_come_back_whoever_leaves_first() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert overlapping(lambda: torch_threads(1), torch.get_num_threads) == [1]
        assert torch.get_num_threads() == 3
        with torch_threads(1):  # which new threads begin with
            found = overlapping(lambda: torch_threads(None), torch.get_num_threads)
            assert in_new_thread(threads_outside) == 3
        assert found == [3]
        assert in_new_thread(torch.get_num_threads) == 3
    finally:
        torch.set_num_threads(before)


def in_new_thread(call: object) -> object:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(call()))  # type: ignore[operator]
    thread.start()
    thread.join()
    return found[0]


def test_one_thread_may_enter_twice() -> None:
    for state in _torch.STATES:
        with exclusive(state), exclusive(state):
            pass


CHILD = """
    import os, signal, threading
    import numpy as np, torch
    torch.set_num_threads(2)
    import rdeepsense as rds
    from rdeepsense._torch import exclusive
    X = np.random.default_rng(0).normal(size=(300, 4))
    big = torch.ones(3_000_000)

    def work():
        big.exp().sum(), big.view(1500, 2000).T @ big.view(1500, 2000)  # which torch shares out
        model = rds.MCDropRegressor(epochs=2, device="cpu", random_state=0).fit(X, X[:, 0])
        return model.predict(X[:5]).tolist()

    here, held, leave = work(), threading.Event(), threading.Event()
    def hold():
        with exclusive("generators"), exclusive("threads"), exclusive("warnings"):
            held.set()
            leave.wait()
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if work() == here and torch.get_num_threads() == 1 else 3)
    status = os.waitpid(child, 0)[1]
    leave.set()
    assert torch.get_num_threads() == 2
    print("ended with", os.waitstatus_to_exitcode(status))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_fits_and_predicts_after_torch_used_its_threads() -> None:
    """Torch itself hangs there; the child also has no holder of its parent's locks."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(CHILD)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
    )
    assert done.stdout == "ended with 0\n", done.stdout + done.stderr
