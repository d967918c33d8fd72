"""What `fit` reads: a table in memory, a sensor log, a folder of Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdeepsense._files import Remote
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
    some,
)
from rdeepsense.cli.inference import drop_unscorable_rows
from rdeepsense.cli.reading.columns import FEWEST_ROWS, Strays, is_named_id, moments_of, source_of
from rdeepsense.cli.reading.table import (
    MOST_CLASSES,
    Log,
    Table,
    check_classes,
    is_numbers,
    read_log,
    read_targets,
    with_truth,
)
from rdeepsense.cli.scores import (
    NAMES,
    ClosingScores,
    Score,
    Scores,
    caption,
    judged,
    report,
    report_groups,
    score_model,
    score_table,
)
from rdeepsense.errors import InputError, nearest

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rdeepsense.arrays import Booleans
    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.data.findings import Finding
    from rdeepsense.data.parquet import ParquetTable
    from rdeepsense.engines import Ray
    from rdeepsense.estimators import RDeepSenseClassifier, RDeepSenseRegressor
    from rdeepsense.estimators.loading import Estimator
    from rdeepsense.windowing import Recipe, Windows


# --------------------------------------------------------------------------------------------------
# Test rows, held out before any choice
# --------------------------------------------------------------------------------------------------

FEWEST_TRAINING_ROWS = 10  # the estimators' own limit
STRETCHES = 20
FREQUENT = 0.05  # of the rows


def split_off(
    inputs: pl.DataFrame,
    y: NDArray[np.generic],
    fraction: float,
    seed: int,
    groups: NDArray[np.generic] | None = None,
    classes: bool = False,
    time: NDArray[np.generic] | None = None,
) -> NDArray[np.bool_]:
    """Mark the rows for the test: about `fraction` of the groups, or of the rows; the last in time.

    Rows of one group, or with equal inputs, stay together. Every class keeps its share as nearly as
    whole rows and groups allow; `classes` tells whether y are labels.
    """
    import numpy as np

    from rdeepsense.data.splits import distinct, last_rows

    if not 0 <= fraction < 1:
        raise InputError(f"--test-fraction {fraction}: must be at least 0 and below 1")
    test = np.zeros(inputs.height, dtype=bool)
    if fraction == 0:
        return test
    if groups is not None and len(np.unique(groups)) < 2:
        raise InputError("--groups has only one value; at least two are needed, one for the test")
    if time is not None:
        test = last_rows(time, fraction)
    else:
        numbers = np.unique(y, return_inverse=True)[1] if classes else y
        labels = numbers if classes else None
        rows = distinct(inputs.to_numpy(), numbers, groups=groups, merge=False)
        test[rows.hold_out(fraction, seed, labels)[1].index] = True
    left = int((~test).sum())
    if left < FEWEST_TRAINING_ROWS:
        raise InputError(
            f"the table has {len(test)} rows; without {int(test.sum())} for the test {left} are "
            f"left, and at least {FEWEST_TRAINING_ROWS} are needed to fit"
        )
    if classes:
        _check_classes(y, test, "last part" if time is not None else "test groups")
    return test


def in_both(classes: NDArray[np.generic], test: NDArray[np.bool_]) -> bool:
    """Tell whether all classes of the test are trained on, and the test has all frequent ones."""
    import numpy as np

    names, counts = np.unique(classes, return_counts=True)
    frequent = names[counts >= FREQUENT * len(classes)]
    tested = np.unique(classes[test])
    return bool(np.isin(frequent, tested).all() and np.isin(tested, classes[~test]).all())


def stretches(time: NDArray[np.generic]) -> NDArray[np.int64]:
    """Number stretches of time of about equally many rows."""
    import numpy as np

    number = np.empty(len(time), dtype=np.int64)
    number[np.argsort(time, kind="stable")] = np.arange(len(time)) * STRETCHES // len(time)
    return number


def _check_classes(classes: NDArray[np.generic], test: NDArray[np.bool_], part: str) -> None:
    import numpy as np

    unseen = np.setdiff1d(classes[test], classes[~test])
    if len(unseen):
        raise InputError(
            f"class {unseen[0].item()!r} has rows in the {part} only, so it cannot be learnt; "
            "try another --seed or --test-fraction"
        )


# --------------------------------------------------------------------------------------------------
# Windows on the other side of a split share no sample
# --------------------------------------------------------------------------------------------------


def apart(windows: Windows, groups: str | None) -> tuple[NDArray[Any], Booleans, str | None]:
    """Return the group of each window, which windows are used, and what is to be said.

    Groups are those asked for; else recordings, and of few recordings stretches of time.
    """
    import numpy as np

    from rdeepsense.windowing.cut import apart as windows_apart

    if groups is not None:
        return windows.groups[groups], np.ones(len(windows), bool), None
    codes, kept, said = windows_apart(windows)
    return codes, kept, f"{said} (--groups names others)" if kept.all() else said


def split_groups(
    group: NDArray[Any], fraction: float, seed: int, labels: NDArray[Any] | None
) -> Booleans:
    """Mark the windows for the test: those of about `fraction` of the groups, drawn at random."""
    import numpy as np

    from rdeepsense.data.splits import Part

    if not 0 <= fraction < 1:
        raise InputError(f"--test-fraction {fraction}: must be at least 0 and below 1")
    if fraction == 0:
        return np.zeros(len(group), bool)
    codes = np.unique(group, return_inverse=True)[1].reshape(-1)
    if codes.max() < 1:
        raise InputError("all windows are of one group; at least two are needed, one for the test")
    part = Part(np.arange(len(codes)), np.ones(len(codes)), codes, mixed=True)
    numbers = None if labels is None else np.unique(labels, return_inverse=True)[1].reshape(-1)
    test = np.zeros(len(group), bool)
    test[part.hold_out(fraction, seed, numbers)[1].index] = True
    if labels is not None:
        unseen = np.setdiff1d(labels[test], labels[~test])
        if len(unseen):
            raise InputError(
                f"class {unseen[0].item()!r} has windows in the test groups only, so it cannot be "
                "learnt; try another --seed or --test-fraction"
            )
    return test


# --------------------------------------------------------------------------------------------------
# `rdeepsense fit TABLE`: a table in memory
# --------------------------------------------------------------------------------------------------

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
        test = test & drop_unscorable_rows(terminal, model, self.X, test)
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
        rows = self.known & drop_unscorable_rows(terminal, model, self.X, self.known)
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


# --------------------------------------------------------------------------------------------------
# `rdeepsense fit LOG --window 5s`: windows of a sensor log
# --------------------------------------------------------------------------------------------------

QUICK_DROP = 0.1  # people move differently: less than this learns those of the training by heart


@dataclass
class LogTable:
    """A log, how its windows are cut, and how they are split."""

    log: Log
    recipe: Recipe
    targets: list[str]
    groups: str | None
    test_fraction: float
    seed: int
    at: str | None  # where a window has its number
    constant: list[str] = field(default_factory=list)
    strays: Mapping[str, Strays] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    @classmethod
    def inspect(
        cls,
        path: Path,
        recipe: Recipe,
        targets: list[str],
        groups: str | None,
        test_fraction: float | None,
        seed: int,
        at: str | None,
        sentinels: list[str],
    ) -> LogTable:
        """Read the columns that options name; no other column is an input."""
        needed = [recipe.time, *recipe.channels, *recipe.by, *targets]
        log = read_log(path, needed, sentinels=sentinels)
        recipe = replace(recipe, label=tuple(targets), target="mean")
        fraction = TEST_FRACTION if test_fraction is None else test_fraction
        return cls(log, recipe, targets, groups, fraction, seed, at)

    @property
    def inputs(self) -> list[str]:
        """The channels of a window."""
        return list(self.recipe.channels)

    def kinds(self) -> dict[str, str]:
        """Return what each target holds, in words."""
        return {
            name: "numbers" if is_numbers(self.log.columns[name]) else "not numeric"
            for name in self.targets
        }

    def report(self, terminal: Terminal) -> None:
        """Print what the log has; its windows are told once they are cut."""
        for sensor, names in self.recipe.sensors.items():
            terminal.line(f"sensor    {sensor}: {', '.join(names)}")
        terminal.line(f"target    {', '.join(self.targets)}")
        used = {self.recipe.time, *self.recipe.channels, *self.recipe.by, *self.targets}
        if others := [name for name in self.log.names if name not in used]:
            terminal.line(f"not used  {', '.join(others)}")
        self._terminal = terminal

    def prepare(self, classes: bool, many: bool = False) -> None:
        """Cut the windows and split them: whole groups, recordings or stretches of time."""
        from rdeepsense.fitting.ladder import fitting_length
        from rdeepsense.windowing import cut
        from rdeepsense.windowing.cut import group_names

        if classes and self.at is not None:
            raise InputError(f"--window-target {self.at}: is for numbers; classes have a majority")
        target = "majority" if classes else self.at or "mean"
        recipe = replace(self.recipe, target=target)
        found = cut(recipe, self.log.columns)
        trimmed = fitting_length(found.recipe.length, found.recipe.rate)
        said = None
        if trimmed != found.recipe.length:
            assert found.recipe.rate is not None
            said = (
                f"{found.recipe.length} samples have no interval of about 0.25 s that divides them;"
                f" windows of {trimmed} are cut"
            )
            shorter = replace(found.recipe, window=trimmed / found.recipe.rate)
            found = cut(shorter, self.log.columns)
        self.windows, self.recipe = found, found.recipe
        for line in found.report.lines():
            self._terminal.line(line)
        if said:
            self._terminal.line(f"note      {said}")
        self.group, kept, what = apart(found, self.groups)
        self.names = self.group if self.groups else group_names(found, self.group)
        if what:
            self._terminal.line(f"note      {what}")
        assert found.y is not None
        self.y: NDArray[Any] = found.y
        if classes:
            check_classes(self.targets[0], len(set(self.y.tolist())), len(self.y), many)
        test = split_groups(self.group, self.test_fraction, self.seed, self.y if classes else None)
        self.test: Booleans = test & kept
        self.rest: Booleans = ~test & kept

    def fit(self, model: Estimator) -> None:
        """Fit the model on the windows that are not for the test."""
        from rdeepsense.fitting.ladder import usual
        from rdeepsense.networks import Flattened

        chosen = taken(self.windows, self.rest)
        parameters = model.get_params(deep=False)
        if parameters["hidden"] != "auto":
            model.set_params(network=Flattened(tuple(parameters["hidden"])))
        elif parameters["effort"] == "quick":
            model.set_params(network=usual(chosen.shape[1:], self.recipe))
            if parameters["drop_prob"] == "auto":
                model.set_params(drop_prob=QUICK_DROP)
        model.fit(chosen, self.y[self.rest], groups=self.group[self.rest])

    def score(self, terminal: Terminal, model: Estimator) -> ClosingScores:
        """Score the model on the windows of groups that no choice has seen."""
        from rdeepsense.reporting.baselines import compare, simple_models, trees_of
        from rdeepsense.reporting.verdict import constants_of

        test, training = self.test, model.training_
        rows = {"train": training["rows"], "validation": training["validation_rows"]}
        rows["test"] = int(test.sum())
        count = len(set(self.group[test].tolist()))
        terminal.line(
            f"used      {int(self.rest.sum()):,} windows to learn from ({training['validated']}), "
            f"{rows['test']:,} of {count} groups to test"
        )
        if not test.any():
            terminal.line("verdict   none: no window was kept for a test (--test-fraction)")
            return ClosingScores(rows, "held_out", {})
        y, groups = self.y[test], self.names[test]
        dist = model.predict_dist(self.windows.gather(test))
        scores = score_model(model, dist, y, self.targets, groups)
        title = f"Held-out metrics: {rows['test']:,} windows, not used in the fit"
        between = self.groups or "recording"
        terminal.table(score_table(title, scores, caption(hasattr(model, "classes_"), between)))
        figures = report_groups(terminal, dist, y, self.targets, between, groups)
        train, held = ((taken(self.windows, part), self.y[part]) for part in (self.rest, self.test))
        simple = simple_models(model, train, held[0], self.group[self.rest])
        known = constants_of(dist, train[1])
        status, trees = model.status(held[0]), trees_of(simple)
        verdicts = judged(dist, y, self.targets, known, groups, None, status, trees)
        report(terminal, verdicts, timed=False)
        peers = compare(model, simple, held, self.group[self.test])
        return ClosingScores(rows, "held_out", scores, verdicts, figures, peers)


def taken(windows: Windows, chosen: Booleans) -> Windows:
    """Return some of the windows, still to be gathered."""
    return replace(
        windows,
        first=windows.first[chosen],
        y=None if windows.y is None else windows.y[chosen],
        groups={name: values[chosen] for name, values in windows.groups.items()},
        starts=windows.starts[chosen],
    )


# --------------------------------------------------------------------------------------------------
# `rdeepsense fit FOLDER`: Parquet files that are larger than memory
# --------------------------------------------------------------------------------------------------

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
