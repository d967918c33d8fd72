"""The search for how long to train a winner.

One whose best step came late is trained for three times the epochs, and again, while that pays:
targets with little noise need it. One whose best step came early is trained for half of them, on
validation rows in plenty (cross-validation gained 0.003 nats by it). The allowance for this is
counted in networks, so an ensemble of five gets no more training for it than a single network.
"""

from __future__ import annotations

from rdeepsense.fitting.candidates import Trial
from rdeepsense.fitting.records import TriedLength
from rdeepsense.fitting.trainer import Length
from rdeepsense.training import Schedule

WORTH = 0.01  # nats that a longer training must gain
# Of the schedule: a best step after it says that the network was still learning, and one before it
# that its learning rate fell too late.
HALFWAY = 1 / 2
LONGER, SHORTER = 3.0, 0.5  # times the epochs; longer ones in batches of twice the size
ALLOWANCE = 40  # trainings of one network, of the first length, that may go into longer ones


class LengthSearch:
    """Other lengths of training for a winner, tried while each gains more than it must.

    Longer ones where the best step came late, and with `shorter` half the epochs where it came
    early, so that the learning rate has fallen by then.
    """

    def __init__(
        self, schedule: Schedule, rows: int, networks: int, trial: Trial, shorter: bool = False
    ) -> None:
        self.length = self.first = Length.of(schedule, rows)
        self.rows, self.networks, self.spent = rows, networks, 0.0
        self.trial, self.best_at = trial, trial.best_step / schedule.steps
        self.tried = [TriedLength(schedule.steps, trial.nll)]
        self.kept: Length | None = None
        self._ways = {LONGER, SHORTER} if shorter else {LONGER}
        self._paid = True

    @property
    def best(self) -> Length:
        """The length of the best training."""
        return self.kept or self.first

    @property
    def per_epoch(self) -> int:
        """The steps of an epoch of the best training."""
        return max(1, self.rows // self.best.batch_size)

    def next(self) -> Length | None:
        """Return the next length to try, or None when further ones would not pay."""
        way = LONGER if self.best_at >= HALFWAY else SHORTER
        if not self._paid or way not in self._ways:
            return None
        epochs = max(1, int(way * self.length.epochs))
        cost = self.networks * epochs / self.first.epochs
        if epochs == self.length.epochs or self.spent + cost > ALLOWANCE:
            return None
        self._ways = {way}  # never back again
        self.spent += cost
        batch_size = self.length.batch_size
        if way == LONGER:
            batch_size = min(2 * batch_size, max(batch_size, self.rows // 8))
        self.length = Length(epochs, batch_size)
        return self.length

    def accept(self, trial: Trial, schedule: Schedule) -> bool:
        """Tell whether this training was worth it, and remember it if so."""
        self.tried.append(TriedLength(schedule.steps, trial.nll))
        self._paid = trial.nll <= self.trial.nll - WORTH
        if self._paid:
            self.trial, self.kept = trial, self.length
            self.best_at = trial.best_step / schedule.steps
        return self._paid
