"""The outcome of `compare`: a row for each method, as text, HTML, JSON and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rdeepsense.experiments.methods import REFERENCE, Method
from rdeepsense.experiments.report.comparison_page import comparison_page
from rdeepsense.experiments.report.html import fragment
from rdeepsense.experiments.text_table import TextTable
from rdeepsense.experiments.uci.statistics import BySplit, Summary, summarise, with_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = {
    "regression": ("nll", "rmse", "mae", "crps", "coverage_90"),
    "classification": ("nll", "accuracy", "f1", "brier", "ece"),
}
NAMES = {"nll": "NLL", "rmse": "RMSE", "mae": "MAE", "crps": "CRPS", "coverage_90": "coverage 90 %",
         "accuracy": "accuracy", "f1": "F1", "brier": "Brier", "ece": "ECE"}  # fmt: skip

STATED = ("NLL", "coverage", "deviation", "Brier", "ECE")
"""How columns begin that judge the stated uncertainty."""


@dataclass(frozen=True)
class Comparison:
    """A table with a row for each method; prints as text, shows as HTML in a notebook.

    `scores[method][split]` holds the figures of each split, `rows` what they say together, and
    `warnings` what was warned of while a method's model was fitted.
    """

    task: str
    methods: tuple[Method, ...]
    scores: Mapping[str, BySplit]
    warnings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by family

    @property
    def rows(self) -> list[Summary]:
        """Means, standard errors, paired differences and cost of each method."""
        reference = self.scores.get(REFERENCE)
        return [
            summarise(method, self.scores[method.name], reference, self.task)
            for method in self.methods
        ]

    @property
    def caption(self) -> str:
        """How to read the table."""
        splits = len(next(iter(self.scores.values())))
        text = (
            f"{splits} random test splits; mean ± standard error over splits, which share rows "
            "and so are not quite independent."
        )
        if REFERENCE in self.scores:
            text += f" NLL - {REFERENCE}: paired, above 0 where the single pass is better."
        if any(row.means["nll"].value is None for row in self.rows):
            text += " -: not known, for want of a density or of a finite value."
        if self.task == "regression":
            text += " Deviation area: all splits pooled; a perfect model has the floor on average."
        return text

    def table(self) -> str:
        """Return aligned text, as `print` shows it."""
        whole = self.text_table()
        header, cells = whole.header, whole.rows
        widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
        lines = [
            "  ".join(
                text.rjust(width) if number else text.ljust(width)
                for number, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in [header, *cells]
        ]
        return "\n".join([*lines, "", self.caption])

    def to_json(self) -> dict[str, object]:
        """Return plain data, ready for `json.dumps`."""
        splits = [
            {"method": name, "split": split, **score.to_json()}
            for name, by_split in self.scores.items()
            for split, score in by_split.items()
        ]
        return {
            "task": self.task,
            "methods": {m.name: {"passes": m.passes, "about": m.about} for m in self.methods},
            "rows": [row.to_json() for row in self.rows],
            "splits": splits,
            "warnings": {family: list(texts) for family, texts in self.warnings.items()},
        }

    def html(self, title: str = "Comparison of methods", about: str = "") -> str:
        """Return a whole page that needs nothing but itself; `about` says what was compared."""
        notes = [f"{family}: {text}" for family, texts in self.warnings.items() for text in texts]
        first, second = self.text_tables()
        tables = [replace(first, caption=self.caption), second, self._by_split()]
        return comparison_page(title, about, self.methods, tables, self.rows, notes)

    def plot(self) -> Figure:
        """Draw NLL differences and, for regression, deviation areas with their floor."""
        from rdeepsense.experiments.report.comparison import comparison_figure

        return comparison_figure({"": self.rows})

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        table = self.text_table()
        return fragment(table.header, table.rows, table.caption)

    def text_table(self) -> TextTable:
        """Return header and cells as text; the best mean NLL stands out."""
        keys, paired = FIGURES[self.task], REFERENCE in self.scores
        header = ["method", "passes", "NLL", *([f"NLL - {REFERENCE}"] if paired else [])]
        header += [NAMES[key] for key in keys[1:]]
        header += ["deviation area (floor)"] * (self.task == "regression") + ["fit seconds"]
        cells, rows = [], self.rows
        for row in rows:
            line = [row.method, "-" if row.passes is None else str(row.passes)]
            line.append(with_error(*row.means["nll"]))
            if paired:
                difference = with_error(*row.differences["nll"], signed=True)
                line.append("" if row.method == REFERENCE else difference)
            line += [with_error(*row.means[key]) for key in keys[1:]]
            if row.pooled is not None:
                line.append(f"{row.pooled.pooled_area:.3f} ({row.pooled.pooled_floor:.3f})")
            cells.append([*line, f"{row.fit_seconds:.1f}"])
        nll = {number: row.means["nll"].value for number, row in enumerate(rows)}
        known = {number: value for number, value in nll.items() if value is not None}
        best = {(min(known, key=lambda number: known[number]), 2)} if known else set()
        return TextTable("Methods compared", self.caption, header, cells, best)

    def text_tables(self) -> tuple[TextTable, TextTable]:
        """Return the same as two tables that a terminal has room for, without the caption."""
        whole = self.text_table()
        stated = [name for name in whole.header if name.startswith(STATED)]
        rest = [name for name in whole.header[1:] if name not in stated]
        return (
            whole.only("The stated uncertainty, on rows that no choice has seen", "", stated),
            whole.only("Errors on the same rows, and cost", "", rest),
        )

    def _by_split(self) -> TextTable:
        """Return the NLL of each split."""
        splits = sorted({split for own in self.scores.values() for split in own})
        cells = []
        for name, own in self.scores.items():
            values = [own[split].score.figures["nll"] for split in splits]
            cells.append([name, *("-" if v is None else f"{v:.3f}" for v in values)])
        header = ["method", *(f"split {split + 1}" for split in splits)]
        caption = "What makes a split hard is in the figures of all methods."
        return TextTable("NLL split by split", caption, header, cells)
