"""`rdeepsense fit LOG --window 5s`: windows of a log, some groups kept for the closing figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdeepsense.cli.by_group import report_groups
from rdeepsense.cli.memory_table import TEST_FRACTION
from rdeepsense.cli.reading.log import Log, is_numbers, read_log
from rdeepsense.cli.reading.numbers import Strays
from rdeepsense.cli.reading.targets import check_classes
from rdeepsense.cli.scores import ClosingScores, caption, score_model, score_table
from rdeepsense.cli.split_windows import apart, split_groups
from rdeepsense.cli.verdict import judged, report
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rdeepsense.arrays import Booleans
    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.estimators.loading import Estimator
    from rdeepsense.windowing import Recipe, Windows


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
