"""The rows of a table that are not as the model knows them, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdeepsense.cli.columns import some

if TYPE_CHECKING:
    from rdeepsense.cli.inference import Inputs
    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.estimators.loading import Estimator


@dataclass(frozen=True)
class FlaggedRows:
    """How many of some rows are flagged, and in how many each input was."""

    rows: int
    flagged: int
    inputs: Mapping[str, int]

    def report(self, terminal: Terminal) -> None:
        """Print one line, where any row is flagged."""
        if self.flagged:
            counts = some([f"{name} in {count:,}" for name, count in self.inputs.items()])
            terminal.line(
                f"{self.flagged:,} of {self.rows:,} rows are outside of the training data "
                f"({counts}); "
                "their uncertainty was widened to that of the training targets"
            )


def flagged_rows(model: Estimator, inputs: Inputs) -> FlaggedRows:
    """Find the flagged rows, and the inputs that they are flagged for."""
    import numpy as np

    from rdeepsense.status import DOUBTS

    beyond = model.flagged_inputs(inputs)
    names = getattr(model, "feature_names_in_", [str(k) for k in range(beyond.shape[1])])
    counts = {str(names[k]): int(beyond[:, k].sum()) for k in np.flatnonzero(beyond.any(0))}
    flagged = int(np.count_nonzero(model.status(inputs) & ~DOUBTS))
    return FlaggedRows(len(beyond), flagged, counts)
