"""Ray on one's own machine: what it starts is not open to the network."""

from __future__ import annotations

import os
import sys
from glob import glob
from pathlib import Path
from typing import Any

import pytest

from rdeepsense.engines import SWITCH, session

LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")


class FakeRay:
    """Says where it was asked to join, and what its processes would see."""

    def __init__(self, is_there: bool) -> None:
        self.is_there, self.asked, self.closed = is_there, [], False

    def init(self, address: str | None, **_: Any) -> None:
        self.asked.append((address, os.environ.get(SWITCH)))
        if address == "auto" and not self.is_there:
            raise ConnectionError

    def shutdown(self) -> None:
        self.closed = True


def forget(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Take variables out of the environment, whatever a test makes of them."""
    for name in names:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def test_a_cluster_of_this_machine_is_for_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    constants = pytest.importorskip("ray._private.ray_constants")
    before = constants.ENABLE_RAY_CLUSTER
    forget(monkeypatch, "RAY_ADDRESS", "RAY_USAGE_STATS_ENABLED", SWITCH)
    started = FakeRay(is_there=False)
    with session(started, None):
        assert not constants.ENABLE_RAY_CLUSTER
        assert not started.closed
    assert started.asked == [("auto", None), ("local", "0")]
    assert started.closed
    assert before == constants.ENABLE_RAY_CLUSTER
    assert SWITCH not in os.environ
    joined = FakeRay(is_there=True)
    with session(joined, None):
        assert before == constants.ENABLE_RAY_CLUSTER
    assert joined.asked == [("auto", None)]
    monkeypatch.setenv(SWITCH, "1")  # somebody wants it otherwise
    started = FakeRay(is_there=False)
    with session(started, None):
        assert started.asked[-1] == ("local", "1")


def listening() -> set[str]:
    """Return the addresses on which processes of Ray, and this one, listen."""
    addresses, found = {}, set()
    for family in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{family}").read_text().splitlines()[1:]:
            parts = line.split()
            if parts[3] == "0A":
                addresses[f"socket:[{parts[9]}]"] = parts[1].partition(":")[0]
    for link in glob("/proc/[0-9]*/fd/*"):
        try:
            target = os.readlink(link)
            process = Path(link).parents[1]
            is_ray = b"ray" in (process / "cmdline").read_bytes()
        except OSError:
            continue
        if target in addresses and (is_ray or process.name == str(os.getpid())):
            found.add(addresses[target])
    return found


@pytest.mark.ray
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's tables of sockets")
def test_nothing_listens_to_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    forget(monkeypatch, "RAY_ADDRESS", "RAY_USAGE_STATS_ENABLED", SWITCH, "PYTHONBREAKPOINT")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    before = listening()
    with session(ray, None):
        assert ray.get(ray.remote(num_cpus=0)(lambda: 3).remote()) == 3
        assert listening() - before <= set(LOOPBACK)
        assert listening() & set(LOOPBACK)
