"""`rdeepsense fit TABLE`: a table in memory, some of its rows kept for the closing figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rdeepsense.cli.answerable import without_strange_gaps
from rdeepsense.cli.by_group import report_groups
from rdeepsense.cli.check import check_columns, report_findings
from rdeepsense.cli.columns import (
    InspectedColumns,
    check_known,
    inputs_of,
    inspect,
    kind_of,
    labels,
    numeric_targets,
    report_left_out,
)
from rdeepsense.cli.reading.numbers import Strays
from rdeepsense.cli.reading.table import Table
from rdeepsense.cli.reading.targets import check_classes, read_targets
from rdeepsense.cli.scores import ClosingScores, caption, score_model, score_table
from rdeepsense.cli.split import split_off
from rdeepsense.cli.verdict import judged, report

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.data.findings import Finding
    from rdeepsense.estimators.loading import Estimator

TEST_FRACTION = 0.2
FLAGGED = "told to the network by a flag"
HOLES = {"auto": FLAGGED, "indicator": FLAGGED, "mean": "filled with the column's mean"}
HOLES["refuse"] = ""


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
    aside: list[str] = field(default_factory=list)  # columns that options gave another role
    forced: list[str] = field(default_factory=list)
    is_checked: bool = True
    findings: tuple[Finding, ...] = ()
    are_found: bool = False  # whether the groups were found by the check

    @classmethod
    def inspect(
        cls,
        table: Table,
        targets: list[str],
        groups: str | None,
        ignore: list[str],
        missing: str,
        test_fraction: float | None,
        seed: int,
        forced: Sequence[str] = (),
        parts: Sequence[str] = (),
        is_checked: bool = True,
    ) -> MemoryTable:
        """Take every column but these as an input whose role is that of one."""
        group = [groups] if groups else []
        for option, names in (
            ("--target", targets),
            ("--groups", group),
            ("--ignore", ignore),
            ("--input", forced),
        ):
            check_known(table.frame, names, option)
        frame, read_as = read_targets(table, targets)
        aside, commas = [*targets, *group, *ignore], table.comma_separated
        found = inspect(frame, aside, forced, parts, commas, table.said, read_as)
        fraction = TEST_FRACTION if test_fraction is None else test_fraction
        frame = found.frame
        return cls(
            frame, targets, groups, found, missing, fraction, seed, aside, [*forced], is_checked
        )

    @property
    def inputs(self) -> list[str]:
        """The columns that are inputs."""
        return self.found.inputs

    @property
    def left_out(self) -> dict[str, str]:
        """The columns that are no inputs though nobody said so, and why."""
        return self.found.left_out

    @property
    def constant(self) -> list[str]:
        """The inputs that were said to be constant."""
        return self.found.constant

    @property
    def strays(self) -> Mapping[str, Strays]:
        """The cells of inputs that are no numbers."""
        return self.found.strays

    def kinds(self) -> dict[str, str]:
        """Return what each target holds, in words."""
        return {name: kind_of(self.frame[name]) for name in self.targets}

    def report(self, terminal: Terminal) -> None:
        """Print what was found in the table."""
        self.found.report(terminal, self.targets, HOLES[self.missing])

    def prepare(self, classes: bool, many: bool = False) -> None:
        """Check the values and split the rows; `many` takes any number of classes."""
        self.X = inputs_of(self.frame, self.inputs, self.missing, self.found.categories)
        self.y = (
            labels(self.frame, self.targets[0])
            if classes
            else numeric_targets(self.frame, self.targets)
        )
        if classes:
            check_classes(self.targets[0], len(set(self.y.tolist())), len(self.y), many)
        self.group = labels(self.frame, self.groups, "--groups") if self.groups else None
        if self.is_checked:
            self._check(classes)
        rows = coded(self.X, self.found.categories)
        self.test = split_off(rows, self.y, self.test_fraction, self.seed, self.group, classes)

    def _check(self, classes: bool) -> None:
        """Look for faults of the data, and act on those that have a cure here."""
        report = check_columns(self.found, self.aside, self.y, classes, self.group)
        known = [*self.forced, *report.leave_out]
        self.findings = tuple(one.as_known(known) for one in report.findings)
        column = report.group_column
        together = report.groups is not None and column not in self.forced
        why = dict.fromkeys(report.leave_out, "numbers or names rows")
        if together and column is not None:
            why[column] = "its rows stay together, and new rows have other values"
        own = {n: text for n, text in why.items() if n in self.inputs and n not in self.forced}
        if len(own) == len(self.inputs):
            return
        self.found = self.found.without({n: f"{t}; --input {n} takes it" for n, t in own.items()})
        self.X = self.X.drop(list(own))
        if report.groups is None or not together:
            return
        self.groups, self.are_found = column or "block of near-copies", True
        self.group = report.groups if column is None else _as_text(self.frame[column])

    def report_findings(self, terminal: Terminal) -> None:
        """Print what the check found, and what became of it."""
        if not self.findings:
            return
        report_findings(terminal, self.findings)
        report_left_out(terminal, self.found.left_out_late)
        if self.are_found and self.group is not None:
            count = len(set(self.group.tolist()))
            tested = len(set(self.group[self.test].tolist()))
            terminal.line(
                f"groups    {self.groups}: found, not given; {count:,}, which no split divides; "
                f"{tested:,} of them are the test (--no-check splits row by row)"
            )

    def fit(self, model: Estimator) -> None:
        """Fit the model on the rows that are not for the test."""
        rest = ~self.test
        groups = None if self.group is None else self.group[rest]
        model.set_params(categorical=self.found.categories or None, check=False)
        model.fit(self.X.filter(rest), self.y[rest], groups=groups)
        training = replace(model.fitted_.training, findings=self.findings)
        model.fitted_ = replace(model.fitted_, training=training)

    def score(self, terminal: Terminal, model: Estimator) -> ClosingScores:
        """Score the model on the test rows, and print how many rows did what."""
        from rdeepsense.reporting.peers import compare, simple_models, trees_of
        from rdeepsense.reporting.verdict import constants_of

        test, group = self.test, self.group
        rows = {
            "train": model.training_["rows"],
            "validation": model.training_["validation_rows"],
            "test": int(test.sum()),
        }
        tested = len(set(group[test])) if group is not None else None
        _report_rows(terminal, rows, model.training_["validated"], self.found.rows, tested)
        if not test.any():
            terminal.line("verdict   none: no row was kept for a test (--test-fraction)")
            return ClosingScores(rows, "held_out", {})
        test = test & without_strange_gaps(terminal, model, self.X, test)
        groups = None if group is None else group[test]
        dist, y = model.predict_dist(self.X.filter(test)), self.y[test]
        scores = score_model(model, dist, y, self.targets, groups)
        title = f"Held-out figures: {rows['test']:,} rows that no choice has seen"
        note = caption(hasattr(model, "classes_"), self.groups)
        terminal.table(score_table(title, scores, note))
        figures = report_groups(terminal, dist, y, self.targets, self.groups, groups)
        rest = ~self.test
        own = None if self.group is None else self.group[rest]
        X_test, train = self.X.filter(test), (self.X.filter(rest), self.y[rest])
        simple = simple_models(model, train, X_test, own)
        known = constants_of(dist, train[1])
        status, trees = model.status(X_test), trees_of(simple)
        verdicts = judged(dist, y, self.targets, known, groups, None, status, trees, self.findings)
        report(terminal, verdicts, timed=False)
        peers = compare(model, simple, (X_test, y), groups)
        return ClosingScores(rows, "held_out", scores, verdicts, figures, peers)


def coded(frame: pl.DataFrame, categories: Sequence[str]) -> pl.DataFrame:
    """Return a table with numbers in place of texts, which tells equal rows from others."""
    import polars as pl

    if not categories:
        return frame
    return frame.with_columns(pl.col(list(categories)).rank("dense").cast(pl.Float64))


def _as_text(series: pl.Series) -> NDArray[np.generic]:
    """Return the levels of a column as text, one of them for missing values."""
    import polars as pl

    return series.cast(pl.String).fill_null("").to_numpy().astype(str)


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
