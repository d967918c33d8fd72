"""`rdeepsense fit TABLE`: a table in memory, some of its rows kept for the closing figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdeepsense.cli.columns import (
    InspectedColumns,
    check_known,
    inputs_of,
    inspect,
    is_numeric,
    labels,
    numeric_targets,
)
from rdeepsense.cli.scores import ClosingScores, Scores, caption, score_model, score_table
from rdeepsense.cli.split import split_off

if TYPE_CHECKING:
    import polars as pl

    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.estimators.loading import Estimator

TEST_FRACTION = 0.2


@dataclass
class MemoryTable:
    """A table in memory, what its columns are for, and how to split it."""

    frame: pl.DataFrame
    targets: list[str]
    groups: str | None
    found: InspectedColumns
    missing: str
    test_fraction: float
    seed: int

    @classmethod
    def inspect(
        cls,
        frame: pl.DataFrame,
        targets: list[str],
        groups: str | None,
        ignore: list[str],
        missing: str,
        test_fraction: float | None,
        seed: int,
    ) -> MemoryTable:
        """Take every column but these as an input, if it is numeric."""
        group = [groups] if groups else []
        for option, names in (("--target", targets), ("--groups", group), ("--ignore", ignore)):
            check_known(frame, names, option)
        found = inspect(frame, [*targets, *group, *ignore])
        fraction = TEST_FRACTION if test_fraction is None else test_fraction
        return cls(frame, targets, groups, found, missing, fraction, seed)

    @property
    def inputs(self) -> list[str]:
        """The columns that are inputs."""
        return self.found.inputs

    def kinds(self) -> dict[str, str]:
        """Return what each target holds, in words."""
        return {name: kind_of(self.frame[name]) for name in self.targets}

    def report(self, terminal: Terminal) -> None:
        """Print what was found in the table."""
        self.found.report(terminal, self.targets, filled=self.missing == "mean")

    def prepare(self, classes: bool) -> None:
        """Check the values and split the rows."""
        self.X = inputs_of(self.frame, self.found.inputs, self.missing)
        self.y = (
            labels(self.frame, self.targets[0])
            if classes
            else numeric_targets(self.frame, self.targets)
        )
        self.group = labels(self.frame, self.groups, "--groups") if self.groups else None
        self.test = split_off(self.X, self.y, self.test_fraction, self.seed, self.group, classes)

    def fit(self, model: Estimator) -> None:
        """Fit the model on the rows that are not for the test."""
        rest = ~self.test
        groups = None if self.group is None else self.group[rest]
        model.fit(self.X.filter(rest), self.y[rest], groups=groups)

    def score(self, terminal: Terminal, model: Estimator) -> ClosingScores:
        """Score the model on the test rows, and print how many rows did what."""
        test, group = self.test, self.group
        rows = {
            "train": model.training_["rows"],
            "validation": model.training_["validation_rows"],
            "test": int(test.sum()),
        }
        tested = len(set(group[test])) if group is not None else None
        _report_rows(terminal, rows, model.training_["validated"], self.found.rows, tested)
        scores: dict[str, Scores] = {}
        if test.any():
            groups = None if group is None else group[test]
            scores = score_model(model, self.X.filter(test), self.y[test], self.targets, groups)
            title = f"Held-out figures: {rows['test']:,} rows that no choice has seen"
            note = caption(hasattr(model, "classes_"), self.groups)
            terminal.table(score_table(title, scores, note))
        return ClosingScores(rows, "held_out", scores)


def kind_of(series: pl.Series) -> str:
    """Return what a target holds: numbers, yes/no, or what is not numeric."""
    import polars as pl

    if series.dtype == pl.Boolean:
        return "yes/no"
    return "numbers" if is_numeric(series) else "not numeric"


def _report_rows(
    terminal: Terminal, rows: dict[str, int], how: str, total: int, groups: int | None
) -> None:
    of = f" of {groups} groups" if groups is not None else ""
    validated, counted = f"{rows['validation']:,} to validate", sum(rows.values())
    if "cross-validation" in how or "then trained on all" in how:  # the same rows do both
        chose = f"{rows['validation']:,} of them kept apart to choose"
        validated = how if "cross-validation" in how else chose
        counted = rows["train"] + rows["test"]
    repeated = total - counted
    once = f"; {repeated:,} repeated rows counted as weight" if repeated else ""
    terminal.line(
        f"used      {rows['train']:,} rows to train, {validated}, "
        f"{rows['test']:,}{of} to test{once}"
    )
