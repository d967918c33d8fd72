"""`rdeepsense fit FOLDER`: Parquet files that are larger than memory, trained on as a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rdeepsense._storage import Remote
from rdeepsense.cli.columns import report_left_out, some
from rdeepsense.cli.reading.ids import FEWEST_ROWS, is_named_id
from rdeepsense.cli.reading.numbers import Strays
from rdeepsense.cli.reading.targets import MOST_CLASSES, check_classes
from rdeepsense.cli.scores import NAMES, ClosingScores, Score, Scores, score_table
from rdeepsense.errors import InputError, nearest

if TYPE_CHECKING:
    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.data.parquet import ParquetTable
    from rdeepsense.engines import Ray
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
    engine: Ray | None = None

    @classmethod
    def inspect(
        cls,
        path: Path | Remote,
        targets: list[str],
        groups: str | None,
        ignore: Sequence[str],
        test_fraction: float | None,
        memory: int,
        forced: Sequence[str] = (),
        engine: Ray | None = None,
    ) -> Folder:
        """Take every column but these as an input, if it is numeric and not called an id."""
        if test_fraction:
            raise InputError(
                f"--test-fraction {test_fraction}: is for a table in memory; keep some of the "
                "files elsewhere and give them to rdeepsense evaluate"
            )
        from rdeepsense.data.parquet import ParquetTable

        source = ParquetTable(path, ignore)
        named = {*targets, *([groups] if groups else [])}
        asked = [("--target", t) for t in targets] + [("--groups", groups)]
        for option, name in asked + [("--input", name) for name in forced]:
            if name is not None and name not in source.columns:
                raise InputError(
                    f"{option} {name!r}: there is no such column{nearest(name, source.columns)}; "
                    f"the files have {some(list(source.columns))}"
                )
        dropped = {
            name: kind if kind not in NUMERIC else f"an id by its name; --input {name} takes it"
            for name, kind in source.columns.items()
            if name not in named
            and (kind not in NUMERIC or (name not in forced and _is_id(source, name)))
        }
        used = ParquetTable(path, [*ignore, *dropped])
        return cls(used, targets, groups, dropped, memory, engine)

    @property
    def inputs(self) -> list[str]:
        """The columns that are inputs."""
        named = {*self.targets, self.groups}
        return [name for name in self.source.columns if name not in named]

    @property
    def left_out(self) -> dict[str, str]:
        """The columns that are no inputs though nobody said so, and why."""
        return self.dropped

    @property
    def constant(self) -> list[str]:
        """The inputs that were said to be constant: none, before all rows are read."""
        return []

    @property
    def strays(self) -> Mapping[str, Strays]:
        """None: columns of files have types."""
        return {}

    def kinds(self) -> dict[str, str]:
        """Return what each target holds, in words."""
        return {name: self.source.columns[name] for name in self.targets}

    def report(self, terminal: Terminal) -> None:
        """Print what was found in the files."""
        files = len(self.source.files)
        terminal.line(f"rows      {self.source.rows:,} in {files:,} Parquet files, streamed")
        terminal.line(f"inputs    {len(self.inputs)}: {some(self.inputs)}")
        terminal.line(f"target    {some(self.targets)}")
        report_left_out(terminal, self.dropped)

    def prepare(self, classes: bool, many: bool = False) -> None:
        """Count the classes; other values are checked as they are read."""
        if not classes or many or self.kinds()[self.targets[0]] not in ("text", "numbers"):
            return
        found, rows = set[object](), 0
        for part, group in enumerate(self.source.groups):
            column = self.source.read(part, self.targets)[self.targets[0]]
            found.update(column.unique().to_pylist())
            rows += group.rows
            if len(found) > MOST_CLASSES:
                break
        check_classes(self.targets[0], len(found), rows, many)

    def fit(self, model: RDeepSenseRegressor | RDeepSenseClassifier) -> None:
        """Fit the model on the stream of rows."""
        y = self.targets[0] if len(self.targets) == 1 else self.targets
        model.fit(self.source, y, groups=self.groups, memory=self.memory, engine=self.engine)

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
        terminal.line(
            "verdict   none without test rows; rdeepsense evaluate gives one on other files"
        )
        return ClosingScores(rows, "validation", scores)


def _is_id(source: ParquetTable, name: str) -> bool:
    """Tell whether a column is called an id, and each of the first rows has its own number."""
    if not is_named_id(name) or not source.groups:
        return False
    column = source.read(0, [name])[name]
    rows = source.groups[0].rows
    return rows >= FEWEST_ROWS and len(column.unique()) == rows and not column.null_count
