"""`rdeepsense fit FOLDER`: Parquet files that are larger than memory, trained on as a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rdeepsense.cli.columns import some
from rdeepsense.cli.scores import NAMES, ClosingScores, Score, Scores, score_table
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.data.parquet import ParquetTable
    from rdeepsense.estimators import RDeepSenseClassifier, RDeepSenseRegressor

NUMERIC = ("numbers", "yes/no")
USES = {"train": "", "validation": "validation_"}


@dataclass(frozen=True)
class Folder:
    """Parquet files, what their columns are for, and the bytes that rows may take at once."""

    source: ParquetTable
    targets: list[str]
    groups: str | None
    dropped: dict[str, str]
    memory: int

    @classmethod
    def inspect(
        cls,
        path: Path,
        targets: list[str],
        groups: str | None,
        ignore: Sequence[str],
        test_fraction: float | None,
        memory: int,
    ) -> Folder:
        """Take every column but these as an input, if it is numeric."""
        if test_fraction:
            raise InputError(
                f"--test-fraction {test_fraction}: is for a table in memory; keep some of the "
                "files elsewhere and give them to rdeepsense evaluate"
            )
        from rdeepsense.data.parquet import ParquetTable

        source = ParquetTable(path, ignore)
        named = {*targets, *([groups] if groups else [])}
        for option, name in [("--target", t) for t in targets] + [("--groups", groups)]:
            if name is not None and name not in source.columns:
                raise InputError(
                    f"{option} {name!r}: there is no such column; the files have "
                    f"{some(list(source.columns))}"
                )
        dropped = {
            name: kind
            for name, kind in source.columns.items()
            if name not in named and kind not in NUMERIC
        }
        return cls(ParquetTable(path, [*ignore, *dropped]), targets, groups, dropped, memory)

    @property
    def inputs(self) -> list[str]:
        """The columns that are inputs."""
        named = {*self.targets, self.groups}
        return [name for name in self.source.columns if name not in named]

    def kinds(self) -> dict[str, str]:
        """Return what each target holds, in words."""
        return {name: self.source.columns[name] for name in self.targets}

    def report(self, terminal: Terminal) -> None:
        """Print what was found in the files."""
        files = len(self.source.files)
        terminal.line(f"rows      {self.source.rows:,} in {files:,} Parquet files, streamed")
        terminal.line(f"inputs    {len(self.inputs)}: {some(self.inputs)}")
        terminal.line(f"target    {some(self.targets)}")
        if self.dropped:
            why = some([f"{name} ({kind})" for name, kind in self.dropped.items()])
            terminal.line(f"dropped   {len(self.dropped)} not numeric: {why}")

    def prepare(self, classes: bool) -> None:
        """Do nothing: values are checked as they are read."""

    def fit(self, model: RDeepSenseRegressor | RDeepSenseClassifier) -> None:
        """Fit the model on the stream of rows."""
        y = self.targets[0] if len(self.targets) == 1 else self.targets
        model.fit(self.source, y, groups=self.groups, memory=self.memory)

    def score(
        self, terminal: Terminal, model: RDeepSenseRegressor | RDeepSenseClassifier
    ) -> ClosingScores:
        """Return the figures on the validation rows, which are no test, and print them."""
        rows = {name: model.training_[f"{key}rows"] for name, key in USES.items()}
        terminal.line(
            f"used      {rows['train']:,} rows to train, {rows['validation']:,} to validate"
        )
        figures = model.validation_scores_
        scores: Scores = {key: Score(figures[key], None, None) for key in NAMES if key in figures}
        terminal.line("below: figures on the validation rows, which had a part in the choices")
        terminal.table(score_table("Validation figures", {"all": scores}))
        return ClosingScores(rows, "validation", scores)
