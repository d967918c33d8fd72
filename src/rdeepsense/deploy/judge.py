"""The network that an export stores, and what labelled rows say of it."""

from __future__ import annotations

from dataclasses import replace

from rdeepsense._progress import Progress
from rdeepsense.deploy.fine_tune import quantise_or_tune
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.folded.runner import Runner
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.networks import FloatNetwork
from rdeepsense.deploy.options import Options
from rdeepsense.deploy.prepare import prepare
from rdeepsense.deploy.quality import FineTuning, Quality, check_change, quality
from rdeepsense.deploy.quantise import Int8Network
from rdeepsense.fitting.fitted import Fitted


def stored_network(
    fitted: Fitted,
    folded: Folded,
    rows: LabelledRows,
    options: Options,
    progress: Progress | None,
) -> tuple[FloatNetwork | Int8Network, FineTuning | None]:
    """Round the network, with `fine_tune` so that it stays within the bound."""
    if options.fine_tune:
        both, most = (rows.X, rows.y), options.max_nll_change
        return quantise_or_tune(fitted, folded, both, most, progress)
    return prepare(folded, options.dtype, rows.calibrating(options.dtype)), None


def judge(
    runner: Runner,
    fitted: Fitted,
    rows: LabelledRows,
    options: Options,
    tuned: FineTuning | None = None,
) -> Quality | None:
    """Measure what rounding changed and refuse too much of it; None where there are no rows."""
    X, y = rows.judging(options.dtype)
    if not len(y):
        return None
    found = quality(runner, fitted, X, y)
    check_change(found, options.max_nll_change, options.dtype, options.fine_tune)
    return replace(found, rows_from=rows.origin, fine_tuned=tuned)
