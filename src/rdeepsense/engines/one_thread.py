"""Pieces of work beside others on one machine: torch takes one thread for each."""

from __future__ import annotations

from rdeepsense.engines.work import Failure, Result, Work, attempt


def attempt_on_one_thread(work: Work[Result]) -> Result | Failure:
    """Return the result of a piece of work, or its failure; torch has one thread meanwhile."""
    from rdeepsense.process_wide import torch_threads  # late: it needs torch, giving out does not

    with torch_threads(1):
        return attempt(work)
