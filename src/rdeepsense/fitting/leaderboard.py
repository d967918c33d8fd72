"""The candidates tried so far, and which of them leads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rdeepsense.fitting.candidates import Candidate, Criterion, Trial, best
from rdeepsense.fitting.records import Behind, Second, Selection
from rdeepsense.fitting.trainer import Judgement


@dataclass
class Leaderboard:
    """The candidates tried so far, with their results."""

    by: Criterion
    judged: list[Judgement] = field(default_factory=list)

    @property
    def trials(self) -> list[Trial]:
        return [judgement.trial for judgement in self.judged]

    @property
    def leader(self) -> int:
        return best(self.trials, self.by, [judgement.losses for judgement in self.judged])

    def groups(self, grid: Sequence[Candidate]) -> Iterator[list[Candidate]]:
        """Yield, head by head, the candidates that are still worth a trial."""
        for likelihood in dict.fromkeys(candidate.likelihood for candidate in grid):
            group = [candidate for candidate in grid if candidate.likelihood == likelihood]
            if self.judged and self.by == "nll":
                drop_prob = self.judged[self.leader].trial.candidate.drop_prob
                group = [c for c in group if c.drop_prob == drop_prob]
            yield group

    def selection(self, how: str) -> Selection:
        """Return what the model and its file keep."""
        return Selection(self.by, how, self.leader, tuple(self.trials), second=self._second())

    def _second(self) -> Second | None:
        """Return what would have been chosen if the leader had not been there."""
        leader = self.leader
        others = [number for number in range(len(self.judged)) if number != leader]
        if not others:
            return None
        own = [self.judged[number] for number in others]
        number = others[best([one.trial for one in own], self.by, [one.losses for one in own])]
        first, second = self.judged[leader], self.judged[number]
        if self.by == "nll":
            return Second(number, Behind.of(second.losses, first.losses))
        first_area, area = first.trial.deviation_area, second.trial.deviation_area
        assert first_area is not None
        assert area is not None
        return Second(number, Behind(area - first_area, None))
