"""Where the work of a command is done that is many pieces: --engine, --address and --jobs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rdeepsense.errors import InputError, require

if TYPE_CHECKING:
    from rdeepsense.engines import Engine


class EngineName(StrEnum):
    """Engines by name."""

    local = "local"
    joblib = "joblib"
    ray = "ray"


EngineOption = Annotated[
    EngineName,
    typer.Option(
        "--engine", help="Where work is done: local (this machine), joblib, or a Ray cluster."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(help="Ray cluster address (auto or HOST:6379); default: $RAY_ADDRESS or local."),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", min=1, help="Processes, of one thread each; else 1.")
]


def engine_asked(
    name: EngineName, address: str | None, jobs: int | None, usual_jobs: int = 1
) -> Engine:
    """Return the engine of these options; `usual_jobs` is of local where --jobs is not given."""
    from rdeepsense.engines import Joblib, Local, Ray

    if address is not None and name is not EngineName.ray:
        raise InputError(f"--address {address}: is for --engine ray; the engine is {name.value}")
    if name is EngineName.local:
        return Local(jobs or usual_jobs)
    if name is EngineName.joblib:
        return Joblib(jobs)
    if jobs is not None:
        raise InputError(f"--jobs {jobs}: is for local and joblib; Ray uses the cluster's cores")
    require("ray", "ray")
    return Ray(address=address)
