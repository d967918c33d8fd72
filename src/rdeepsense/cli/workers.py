"""The workers of one fit: --engine, --workers, --use-gpu, --address and --storage."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rdeepsense.errors import InputError

if TYPE_CHECKING:
    from rdeepsense.engines import Ray


class FitEngine(StrEnum):
    """Where one fit is done."""

    local = "local"
    ray = "ray"


FitEngineOption = Annotated[
    FitEngine,
    typer.Option("--engine", help="Where a folder is trained on: here, or on a Ray cluster."),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, help="Ray: how many train together, each on a share of the rows; all by default."
    ),
]
Storage = Annotated[
    str | None,
    typer.Option(help="Ray: folder or URL that all machines see, for checkpoints of the workers."),
]

UseGpu = Annotated[bool, typer.Option("--use-gpu", help="Ray: each worker has a GPU of its own.")]


def workers_asked(
    engine: FitEngine,
    workers: int | None,
    address: str | None,
    storage: str | None,
    use_gpu: bool,
    is_folder: bool,
) -> Ray | None:
    """Return the engine of these options, None for this process."""
    if engine is FitEngine.local:
        asked = {"--workers": workers, "--address": address, "--storage": storage}
        given = [f"{option} {value}" for option, value in asked.items() if value is not None]
        for option in [*given, *(["--use-gpu"] if use_gpu else [])]:
            raise InputError(f"{option}: is for --engine ray; the engine is local")
        return None
    if not is_folder:
        raise InputError("--engine ray: is for a folder of Parquet files, which workers can share")
    from rdeepsense.engines import Ray

    return Ray(workers, use_gpu, address, storage)
