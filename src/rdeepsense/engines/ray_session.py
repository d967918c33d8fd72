"""A program's connection with Ray: quiet, and with workers that see this very package."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rdeepsense.errors import RDeepSenseError

PATIENCE = 10.0  # seconds
INSTALLED = ("site-packages", "dist-packages")


@contextmanager
def session(ray: Any, address: str | None) -> Iterator[None]:
    """Join the cluster at `address`, or start one of this machine alone; leave it at the end."""
    if address is not None:
        check_reachable(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else it reports to its makers
    try:
        ray.init(
            address=address,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            runtime_env=environment(),
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise RDeepSenseError(f"Ray at address = {address!r} cannot be used: {why}") from error
    try:
        yield
    finally:
        ray.shutdown()


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
