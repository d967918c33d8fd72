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
    plural,
    report_left_out,
)
from rdeepsense.cli.reading.dates import source_of
from rdeepsense.cli.reading.numbers import Strays
from rdeepsense.cli.reading.table import Table
from rdeepsense.cli.reading.targets import check_classes, read_targets, with_truth
from rdeepsense.cli.reading.times import moments_of
from rdeepsense.cli.scores import ClosingScores, caption, score_model, score_table
from rdeepsense.cli.split import in_both, split_off, stretches
from rdeepsense.cli.verdict import judged, report

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.data.findings import Finding
    from rdeepsense.estimators.loading import Estimator

TEST_FRACTION = 0.2
TEST_GROUPS, MOST_TESTED = 10, 0.3  # of groups that were found
KNOWN_FRACTION, FEWEST_KNOWN = 0.1, 20  # of the rows of known groups, which test those alone
GOES_ON = "a time, which goes on beyond that of the training"
FLAGGED = "imputed, with a missing-value indicator"
HOLES = {"auto": FLAGGED, "indicator": FLAGGED, "mean": "imputed by the column's mean"}
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
    time: str | None = None  # the column by which the last rows are the test
    findings: tuple[Finding, ...] = ()
    are_found: bool = False  # whether the groups were found by the check
    found_column: str | None = None  # that they are the values of
    is_default: bool = False  # whether `test_fraction` is that of no option

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
        time: str | None = None,
    ) -> MemoryTable:
        """Take every column but these as an input whose role is that of one."""
        group = [groups] if groups else []
        for option, names in (
            ("--target", targets),
            ("--groups", group),
            ("--ignore", ignore),
            ("--input", forced),
            ("--time", [time] if time else []),
        ):
            check_known(table.frame, names, option)
        table = with_truth(table, targets)
        frame, read_as = read_targets(table, targets)
        aside, commas = [*targets, *group, *ignore], table.comma_separated
        found = inspect(frame, aside, forced, parts, commas, table.said, read_as)
        fraction = TEST_FRACTION if test_fraction is None else test_fraction
        frame = found.frame
        if time in found.inputs and time not in forced and len(found.inputs) > 1:
            found = found.without({time: f"{GOES_ON}; --input {time} takes it"})
        return cls(
            frame,
            targets,
            groups,
            found,
            missing,
            fraction,
            seed,
            aside,
            [*forced],
            is_checked,
            time,
            is_default=test_fraction is None,
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
        import numpy as np

        from rdeepsense.data.splits import checked_times

        self.X = inputs_of(self.frame, self.inputs, self.missing, self.found.categories)
        self.y = (
            labels(self.frame, self.targets[0])
            if classes
            else numeric_targets(self.frame, self.targets)
        )
        if classes:
            check_classes(self.targets[0], len(set(self.y.tolist())), len(self.y), many)
        self.group = labels(self.frame, self.groups, "--groups") if self.groups else None
        self.when = None if self.time is None else moments_of(self.frame, self.time)
        if self.is_checked:
            self._check(classes)
        rows = coded(self.X, self.found.categories)
        time = None if self.when is None else checked_times(self.when, len(self.y))
        fraction = self.test_fraction
        if self.are_found and self.group is not None and self.is_default:
            # Few groups can tell little: ten, or 30 % of them.
            fraction = max(fraction, min(TEST_GROUPS / len(set(self.group.tolist())), MOST_TESTED))
        self.test = split_off(rows, self.y, fraction, self.seed, self.group, classes, time)
        self.known = np.zeros(len(self.y), bool)
        if self.are_found and self.found_column is not None:
            rest = np.flatnonzero(~self.test)
            count = int(KNOWN_FRACTION * len(rest))
            if count >= FEWEST_KNOWN:
                chosen = np.random.default_rng(self.seed).permutation(rest)[:count]
                self.known[chosen] = True

    def _check(self, classes: bool) -> None:
        """Look for faults of the data, and act on those that have a cure here."""
        from rdeepsense.data.splits import last_rows

        report = check_columns(self.found, self.aside, self.y, classes, self.group, self.when)
        column = report.group_column
        naming = {*report.group_categories, *([column] if column else [])}
        known = [*self.forced, *report.leave_out, *(naming if self.group is not None else [])]
        self.findings = tuple(one.as_known(known) for one in report.findings)
        together = report.groups is not None and not naming & set(self.forced)
        follows = self.group is None and not together and report.time_column is not None
        why = dict.fromkeys(report.leave_out, "numbers or names rows or times")
        if together or self.group is not None:
            why |= dict.fromkeys(naming, "rows of a value stay together, and new ones have others")
        if follows and report.time_column is not None:
            why[report.time_column] = GOES_ON
        own = {n: text for n, text in why.items() if n in self.inputs and n not in self.forced}
        if len(own) == len(self.inputs):
            return
        self.found = self.found.without({n: f"{t}; --input {n} takes it" for n, t in own.items()})
        self.X = self.X.drop(list(own))
        if follows and report.time is not None and report.time_column is not None:
            last = last_rows(report.time, self.test_fraction or TEST_FRACTION)
            if classes and not in_both(self.y, last):
                self.groups, self.are_found = "stretch of time", True
                self.group = stretches(report.time)
            else:
                self.time = report.time_column
                self.when = moments_of(self.frame, self.time)
        elif together and report.groups is not None:
            self.groups, self.are_found, self.found_column = column or "block", True, column
            self.group = report.groups if column is None else _as_text(self.frame[column])

    def report_findings(self, terminal: Terminal) -> None:
        """Print what the check found, and what became of it."""
        if not self.findings:
            return
        report_findings(terminal, self.findings)
        report_left_out(terminal, self.found.left_out_late)
        how = "(--no-check splits row by row)"
        if self.are_found and self.group is not None:
            count = len(set(self.group.tolist()))
            tested = len(set(self.group[self.test].tolist()))
            terminal.line(
                f"groups    {self.groups}: found, not given; {count:,}, which no split divides; "
                f"{tested:,} of them are the test {how}"
            )
        elif self.when is not None:
            terminal.line(f"time      {self.time}: the last rows are the test {how}")

    def fit(self, model: Estimator) -> None:
        """Fit the model on the rows that are not for the test."""
        rest = ~(self.test | self.known)
        groups = None if self.group is None else self.group[rest]
        time = None if self.when is None else self.when.filter(rest)
        model.set_params(categorical=self.found.categories or None, check=False)
        model.fit(self.X.filter(rest), self.y[rest], groups=groups, time=time)
        training = replace(model.fitted_.training, findings=self.findings)
        made = (source_of(name) for name in self.inputs)
        dated = tuple(dict.fromkeys(one for one in made if one in self.left_out))
        inputs = replace(model.fitted_.inputs, dated=dated)
        model.fitted_ = replace(model.fitted_, training=training, inputs=inputs)

    def score(self, terminal: Terminal, model: Estimator) -> ClosingScores:
        """Score the model on the test rows, and print how many rows did what."""
        from rdeepsense.reporting.baselines import compare, simple_models, trees_of
        from rdeepsense.reporting.verdict import constants_of

        test, group = self.test, self.group
        rows = {
            "train": model.training_["rows"],
            "validation": model.training_["validation_rows"],
            "test": int(test.sum()),
        }
        tested = len(set(group[test])) if group is not None else None
        total = self.found.rows - int(self.known.sum())
        _report_rows(terminal, rows, model.training_["validated"], total, tested)
        if not test.any():
            terminal.line("verdict   none: no row was kept for a test (--test-fraction)")
            return ClosingScores(rows, "held_out", {})
        test = test & without_strange_gaps(terminal, model, self.X, test)
        groups = None if group is None else group[test]
        dist, y = model.predict_dist(self.X.filter(test)), self.y[test]
        scores = score_model(model, dist, y, self.targets, groups)
        which = f"{rows['test']:,} rows" if self.time is None else f"the last {rows['test']:,} rows"
        title = f"Held-out metrics: {which}, not used in the fit"
        note = caption(hasattr(model, "classes_"), self.groups)
        terminal.table(score_table(title, scores, note))
        figures = report_groups(terminal, dist, y, self.targets, self.groups, groups)
        rest = ~(self.test | self.known)
        own = None if self.group is None else self.group[rest]
        X_test, train = self.X.filter(test), (self.X.filter(rest), self.y[rest])
        simple = simple_models(model, train, X_test, own)
        known = constants_of(dist, train[1])
        status, trees = model.status(X_test), trees_of(simple)
        when = None if self.when is None else self.when.filter(test)
        verdicts = judged(dist, y, self.targets, known, groups, when, status, trees, self.findings)
        report(terminal, verdicts, timed=when is not None)
        peers = compare(model, simple, (X_test, y), groups)
        others = self._of_known_groups(terminal, model)
        return ClosingScores(rows, "held_out", scores, verdicts, figures, peers, others)

    def _of_known_groups(self, terminal: Terminal, model: Estimator) -> dict[str, float]:
        """Return, and print, how good the model is on further rows of groups it was trained on."""
        from rdeepsense.reporting.verdict import subjects_of

        if not self.known.any():
            return {}
        rows = self.known & without_strange_gaps(terminal, model, self.X, self.known)
        X, y = self.X.filter(rows), self.y[rows]
        found = {}
        for one in subjects_of(model.predict_dist(X), y, self.targets):
            found[one.name] = float(one.held.mean())
            own = f"{one.name}: " if len(self.targets) > 1 else ""
            what = "are right" if one.is_classes else "lie in their 90 % intervals"
            terminal.line(
                f"known     {own}{100 * found[one.name]:.0f} % of {len(y):,} further rows of known "
                f"values of {self.groups} {what}"
            )
        return found


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
    once = f"; {plural(repeated, 'repeated row')} counted as weight" if repeated else ""
    terminal.line(
        f"used      {rows['train']:,} rows to train, {validated}, "
        f"{rows['test']:,}{of} to test{once}"
    )
