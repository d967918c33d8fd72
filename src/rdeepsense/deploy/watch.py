"""What an export says of rows beside the guard: `Status.UNSURE` and `Status.UNLIKE`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rdeepsense.deploy.export_novelty import export_novelty
from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.folded.novelty import CompactNovelty
from rdeepsense.deploy.folded.refusal import Refusal
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.novelty_quality import NoveltyReport
from rdeepsense.deploy.options import Options
from rdeepsense.deploy.refusal import export_refusal
from rdeepsense.fitting.fitted import Fitted


@dataclass(frozen=True)
class Watch:
    """A reject option's threshold and a compact novelty, where there are any."""

    refusal: Refusal | None = None
    novelty: CompactNovelty | None = None
    report: NoveltyReport | None = None

    @classmethod
    def of(cls, fitted: Fitted, rows: LabelledRows, options: Options) -> Watch:
        """Find what the options ask for."""
        refusal = export_refusal(fitted, rows, options.reject)
        found = export_novelty(fitted, rows, options.novelty)
        return cls(refusal) if found is None else cls(refusal, *found)

    def on(self, facts: Facts) -> Facts:
        """Return the facts of a model that is watched."""
        return replace(facts, refusal=self.refusal, novelty=self.novelty)


UNWATCHED = Watch()
