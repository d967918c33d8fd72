"""`rdeepsense.deploy.load`: a folded file as a model that predicts, with numpy alone."""

from __future__ import annotations

import os

from rdeepsense.deploy.folded.deployed import DeployedModel
from rdeepsense.deploy.folded.runtime import load_folded


def load(path: str | os.PathLike[str], compile: bool = False) -> DeployedModel:
    """Load a folded model from its file, verified.

    With `compile` the generated C is built once by the system's compiler (`cc`, or what the
    environment's CC names), kept in the user's cache folder, and called instead of numpy.
    """
    folded = load_folded(path)
    if not compile:
        return DeployedModel(folded)
    # Only here: the generator of C would slow down every other start.
    from rdeepsense.deploy.c.compiled import compiled

    return DeployedModel(compiled(folded))
