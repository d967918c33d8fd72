"""Plans: blocks of rows predicted by compiled C, without torch."""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from rdeepsense import __version__
from rdeepsense._files import Remote, is_url, write_whole
from rdeepsense.deploy.c.build import FUNCTION, CompiledRunner, cache_folder, processor
from rdeepsense.deploy.folded.model import Facts, Probabilities
from rdeepsense.modelfile import container
from rdeepsense.predict.columns import (
    EPISTEMIC,
    NOVELTY,
    Answers,
    ModelSchema,
    OutputColumns,
    Predicted,
    Values,
    tails,
)
from rdeepsense.status import Statuses

# --------------------------------------------------------------------------------------------------
# Compiled C of a model over many rows, without torch
#
# Of a model that folds, every row's distribution is one and the same standard one, shifted and
# stretched, so that a quantile is
#
#     mean + f_q std,   f_q = (quantile_q - mean) / std of any one row
#
# with one f_q for each output, computed once.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CRunner:
    """Compiled C, and f_q of each quantile that will be asked for."""

    compiled: CompiledRunner
    factors: Mapping[float, Values]
    name: str = "C"

    def run(self, X: Values) -> tuple[Predicted, Statuses]:
        """Predict in float32; what lies beyond its range is out of the model's range anyway."""
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(X, np.float32)
        found = self.compiled.run(rows)
        assert found.status is not None
        if isinstance(found, Probabilities):
            return Predicted(found.probs), found.status
        mean, std = found.mean, found.std

        def quantile(level: float) -> Values:
            return np.asarray(mean + self.factors[level] * std)

        def interval(coverage: float) -> tuple[Values, Values]:
            low, high = tails(coverage)
            return quantile(low), quantile(high)

        return Predicted(mean, std, quantile, interval), found.status


# --------------------------------------------------------------------------------------------------
# The plan: everything that a process needs to predict rows
#
# A plan is light: with the C runner a process that follows it needs numpy and pyarrow alone, so
# that rows have the memory that torch would take.
# --------------------------------------------------------------------------------------------------

WORTH_IT = 200_000  # rows for which a compiler is called
MEANING = 3  # another number where a plan of the same model says something else of a row


@dataclass(frozen=True)
class Library:
    """The C of a model in a library of this machine, and what its runner must know."""

    path: str
    processor: str
    facts: Facts
    factors: Mapping[float, Values]

    @property
    def is_here(self) -> bool:
        """Whether it can be loaded: folders may be shared by machines of several kinds."""
        return Path(self.path).exists() and self.processor == processor()

    def runner(self) -> CRunner:
        """Load it into this process."""
        return CRunner(CompiledRunner.of(Path(self.path), self.facts), self.factors)


@dataclass(frozen=True)
class Plan:
    """A model by its file, what is wanted of it, and what runs it."""

    model: str
    digest: str
    wanted: OutputColumns
    known: ModelSchema
    library: Library | None = None  # None where torch runs it
    said: str = ""  # which runner, and why

    @property
    def runner(self) -> str:
        """What runs the model: "C" or "torch"."""
        return "torch" if self.library is None else "C"

    def answers(self) -> Answers:
        """Start the runner in this process."""
        if self.library is not None and self.library.is_here:
            return Answers(self.known, self.wanted, self.library.runner())
        # Late: a process that runs C alone has no torch in its memory.
        from rdeepsense.predict.prepare import runner_of

        return Answers(self.known, self.wanted, runner_of(self))


@dataclass(frozen=True)
class Preparation:
    """A model's file and what is wanted, from which a plan is made."""

    model: str
    wanted: OutputColumns
    runner: str = "auto"  # "auto", "C" or "torch"
    rows: int = 0  # that will come, as far as is known; few are not worth a choice

    @property
    def needs_torch(self) -> str | None:
        """Why nothing but torch can give what is wanted, or None."""
        if self.wanted.samples is not None:
            return "passes with dropout are torch's"
        names = (name for name in (NOVELTY, EPISTEMIC) if name in self.wanted.further)
        column = next(names, None)
        return None if column is None else f"the column {column} is torch's"

    @property
    def may_run_c(self) -> bool:
        """Whether it is worth to compile the model."""
        if self.needs_torch is not None or self.runner == "torch":
            return False
        return self.runner == "C" or self.rows >= WORTH_IT

    def plan(self) -> Plan:
        """Make the plan in a process of its own, whose memory is free when it has ended.

        Where torch is in this process already, or will be, there is nothing to be saved.
        """
        if "torch" in sys.modules or not self.may_run_c:
            return _prepared(self)
        kept = kept_plan(self)
        if kept is not None:
            return kept
        # spawn: a forked child would have this process's threads without their locks.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            made = pool.submit(_prepared, self).result()
        keep_plan(self, made)
        return made


def kept_plan(preparation: Preparation) -> Plan | None:
    """Return the plan that was made of the same before, if its library is still there."""
    try:
        plan = pickle.loads(_kept(preparation).read_bytes())
    except (OSError, EOFError, pickle.UnpicklingError, AttributeError, ImportError, TypeError):
        return None  # none, or one of another version
    here = isinstance(plan, Plan) and plan.library is not None and plan.library.is_here
    return replace(plan, model=preparation.model) if here else None


def keep_plan(preparation: Preparation, plan: Plan) -> None:
    """Keep a plan for C beside its library, whose code is trusted as far."""
    if plan.library is not None:
        with suppress(OSError):
            write_whole(_kept(preparation), pickle.dumps(plan))


def _kept(preparation: Preparation) -> Path:
    """Name the file of a plan by all that it depends on."""
    model = preparation.model
    remote = Remote.of(model).read() if is_url(model) else None
    digest = container.read(model, remote)[0]["sha256"]
    wanted = preparation.wanted.to_json()
    said = json.dumps(
        [digest, wanted, preparation.runner, __version__, MEANING, FUNCTION, processor()]
    )
    return cache_folder() / f"{hashlib.sha256(said.encode()).hexdigest()[:32]}.plan"


def _prepared(preparation: Preparation) -> Plan:
    from rdeepsense.predict.prepare import prepare

    return prepare(preparation)
