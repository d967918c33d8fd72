"""What an export says of rows beside the guard: `Status.UNSURE` and `Status.UNLIKE`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rdeepsense.compact_novelty import CompactNovelty
from rdeepsense.deploy.export_novelty import export_novelty
from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.novelty_quality import NoveltyReport
from rdeepsense.deploy.options import HEARD, Options
from rdeepsense.deploy.refusal import export_refusal
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.refusal import Refusal


@dataclass(frozen=True)
class Watch:
    """A reject option's threshold and a compact novelty, where there are any.

    `left_out` says why a novelty that was fitted does not go along.
    """

    refusal: Refusal | None = None
    novelty: CompactNovelty | None = None
    report: NoveltyReport | None = None
    left_out: str | None = None

    @classmethod
    def of(cls, fitted: Fitted, rows: LabelledRows, options: Options) -> Watch:
        """Find what the options ask for; unasked, a novelty goes along where one was fitted."""
        refusal = export_refusal(fitted, rows, options.reject)
        if options.novelty is False or (options.novelty is None and fitted.novelty is None):
            return cls(refusal)
        try:
            return cls(refusal, *export_novelty(fitted, rows))
        except InputError as error:
            if options.novelty:
                raise
            return cls(refusal, left_out=str(error))

    def on(self, facts: Facts) -> Facts:
        """Return the facts of a model that is watched."""
        return replace(facts, refusal=self.refusal, novelty=self.novelty)


def watched(fitted: Fitted, to: str, options: Options) -> Fitted:
    """Return the model that an export is compared with: unlike rows are flagged where it does it.

    Unasked, an export takes the novelty of `fit_novelty` along; what every fit learns is for those
    who ask.
    """
    asked = fitted.novelty is not None if options.novelty is None else options.novelty
    if asked and "novelty" in HEARD[to]:
        return fitted
    return replace(fitted, novelty=None, unlike=None)


UNWATCHED = Watch()
