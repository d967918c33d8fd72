"""The rows of a table that are not as the model knows them, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdeepsense.cli.columns import some

if TYPE_CHECKING:
    from rdeepsense.cli.inference import Inputs
    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.estimators.loading import Estimator


@dataclass(frozen=True)
class FlaggedRows:
    """The status of each row in words, and how many rows each input was flagged in."""

    words: list[str]
    inputs: dict[str, int]

    @property
    def rows(self) -> int:
        """How many rows are flagged."""
        return sum(words != "ok" for words in self.words)

    def report(self, terminal: Terminal) -> None:
        """Print one line, where any row is flagged."""
        if self.rows:
            counts = some([f"{name} in {count:,}" for name, count in self.inputs.items()])
            terminal.line(
                f"{self.rows:,} of {len(self.words):,} rows are beyond what the model was trained "
                f"on, and as unsure as if it knew the training targets alone: {counts}"
            )


def flagged_rows(model: Estimator, inputs: Inputs) -> FlaggedRows:
    """Find the flagged rows, and the inputs that they are flagged for."""
    import numpy as np

    from rdeepsense.status import status_words

    beyond = model.flagged_inputs(inputs)
    names = getattr(model, "feature_names_in_", [str(k) for k in range(beyond.shape[1])])
    words = status_words(model.status(inputs))
    for row in np.flatnonzero(beyond.any(1)):
        words[row] += f": {some([str(names[k]) for k in np.flatnonzero(beyond[row])])}"
    counts = {str(names[k]): int(beyond[:, k].sum()) for k in np.flatnonzero(beyond.any(0))}
    return FlaggedRows(words, counts)
