"""A program's connection with Ray: quiet, and with workers that see this very package."""

from __future__ import annotations

import importlib
import logging
import os
import re
import socket
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rdeepsense.errors import RDeepSenseError

SWITCH = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
PATIENCE = 10.0  # seconds
INSTALLED = ("site-packages", "dist-packages")


@contextmanager
def session(ray: Any, address: str | None) -> Iterator[None]:
    """Join the cluster at `address`, or start one of this machine alone; leave it at the end.

    Without an address a cluster that is there is joined. One that is started listens to this
    machine alone.
    """
    if address is not None:
        check_reachable(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else it reports to its makers
    with ExitStack() as stack:
        try:
            if address is not None or not _joined(ray):
                if address is None:
                    stack.enter_context(loopback())
                _init(ray, "local" if address is None else address)
        except (ConnectionError, ValueError, RuntimeError) as error:
            why = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise RDeepSenseError(f"Ray at address = {address!r} cannot be used: {why}") from error
        stack.callback(ray.shutdown)
        yield


def _joined(ray: Any) -> bool:
    """Join the cluster that RAY_ADDRESS names or that `ray start` started here, if there is one."""
    if os.environ.get("RAY_ADDRESS"):
        _init(ray, None)
        return True
    try:
        _init(ray, "auto")
    except ConnectionError:
        return False
    return True


def _init(ray: Any, address: str | None) -> None:
    ray.init(
        address=address,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        runtime_env=environment(),
    )


@contextmanager
def loopback() -> Iterator[None]:
    """Let a cluster that is started inside listen to this machine alone.

    Else Ray listens on all interfaces on Linux, and whoever reaches them may run code. It has a
    switch for that, which is off on Linux alone; Ray reads it when it is imported, and its
    processes do when they start.
    """
    constants: Any = importlib.import_module("ray._private.ray_constants")
    before, is_set = getattr(constants, "ENABLE_RAY_CLUSTER", None), SWITCH in os.environ
    if before is None:
        warnings.warn(
            "this version of Ray listens on all network interfaces of this machine: let a firewall "
            "close its ports, or set RAY_AUTH_MODE=token",
            UserWarning,
            stacklevel=2,
        )
    if before is None or is_set:  # whoever set it wants it so
        yield
        return
    os.environ[SWITCH] = "0"
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        del os.environ[SWITCH]
        constants.ENABLE_RAY_CLUSTER = before


def check_reachable(address: str) -> None:
    """Refuse the address of a machine where nobody answers; Ray itself would try for minutes."""
    found = re.fullmatch(r"(?:ray://)?(?P<host>[^/]+):(?P<port>\d{1,5})", address)
    if found is None:
        return  # "auto", or something that Ray refuses at once
    host = found["host"].strip("[]")
    try:
        socket.create_connection((host, int(found["port"])), PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise RDeepSenseError(f"Ray at address = {address!r} does not answer: {error}") from error


def environment(package: Path = Path(__file__).parents[1]) -> dict[str, dict[str, str]]:
    """Return what workers need in their environment, whatever version of Ray it is.

    Work that asks for no GPU sees none. A package that runs from a folder of source is found; one
    that is installed is left to each machine, whose folders are for its own Python.
    """
    variables = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1"}
    if package.parent.name not in INSTALLED:
        variables["PYTHONPATH"] = f"{package.parent}{os.pathsep}${{PYTHONPATH}}"
    return {"env_vars": variables}
