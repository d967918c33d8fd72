"""Pieces of work as tasks of a Ray cluster, a few more at a time than it has cores."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from rdeepsense.engines.one_thread import attempt_on_one_thread
from rdeepsense.engines.work import Failure, Result, Work
from rdeepsense.errors import RDeepSenseError

AHEAD = 2  # tasks given out for each core: the next one lies ready, thousands do not


def run_tasks(
    ray: Any, work: Sequence[Work[Result]], most: int | None, options: Mapping[str, object]
) -> Iterator[tuple[int, Result | Failure]]:
    """Yield the number of each piece and its result as they finish.

    Ray itself runs a task again whose worker or machine was lost, `max_retries` times. Tasks that
    are not finished when nobody waits any longer are ended.

    Parameters
    ----------
    ray : the module, connected.
    most : tasks at a time; None is twice the cores that the cluster has at the moment.
    options : of `ray.remote`.
    """
    task = ray.remote(**options)(_attempt)
    waiting = enumerate(work)
    running: dict[Any, int] = {}
    try:
        while True:
            room = (most or AHEAD * _cores(ray)) - len(running)
            for number, piece in islice(waiting, max(room, 0)):
                # As bytes: Ray would hand out arrays that cannot be written to.
                running[task.remote(ray.cloudpickle.dumps(piece))] = number
            if not running:
                return
            for reference in ray.wait(list(running))[0]:
                number = running.pop(reference)
                yield number, ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # a mistake in the work itself
        raise (error.cause or error) from None
    except ray.exceptions.RayError as error:
        why = (str(error).strip() or "no reason given").splitlines()[0]
        raise RDeepSenseError(
            f"Ray gave up on a piece of work ({type(error).__name__}: {why}); what is finished is "
            "kept, run the same again to go on"
        ) from error
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def _cores(ray: Any) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 0)))


def _attempt(pickled: bytes) -> object:
    work: Work[object] = pickle.loads(pickled)
    return attempt_on_one_thread(work)
