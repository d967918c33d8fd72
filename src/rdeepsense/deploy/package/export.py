"""`export(to='package')`: Arduino, CMake and Zephyr packages of the generated C."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense._files import write_folder
from rdeepsense.deploy.c.emit import Assembly, Source
from rdeepsense.deploy.c.export import C99, C99Report, check_folder, rows_in_range, tolerance
from rdeepsense.deploy.c.inputs import CModel, identifier, predicted, remark, table
from rdeepsense.deploy.c.readme import readme
from rdeepsense.errors import InputError
from rdeepsense.windowing.recipe import Recipe

# --------------------------------------------------------------------------------------------------
# Names and versions of packages that all four tools accept
# --------------------------------------------------------------------------------------------------

# Headers of C and of Arduino's core, in whatever case: ours would be found in their place.
HEADERS = frozenset(
    re.findall(
        r"\w+",
        """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal
        stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings
        tgmath threads time uchar unistd wchar wctype alloca malloc memory new
        binary client common hardwareserial ipaddress main pgmspace print printable server spi
        stream tone udp usb wire wstring replay stored""",
    )
)
SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*))*)?"
    r"(\+[\dA-Za-z-]+(\.[\dA-Za-z-]+)*)?"
)
LONGEST_VERSION = 20  # of PlatformIO
FIRST = "1.0.0"


def package_name(name: str) -> str:
    """Give a name that begins every C name and is that of the header and of the library.

    Lower-case letters, digits and underscores, at most 16, which all four tools take; Arduino keeps
    names that begin with its own for itself.
    """
    plain = identifier(name)
    if plain in HEADERS:
        raise InputError(f"name={name!r}: {plain}.h would hide a header of that name; give another")
    if "arduino" in plain or "library" in plain:
        raise InputError(f"name={name!r} has a word that Arduino keeps for itself; give another")
    return plain


def package_version(version: str | None, digest: str) -> str:
    """Give the version, or one that names the model by the first letters of its digest."""
    if version is None:
        return f"{FIRST}+{digest[:8]}" if digest else FIRST
    if not SEMVER.fullmatch(version) or len(version) > LONGEST_VERSION:
        raise InputError(
            f"version={version!r} is no semantic version of at most {LONGEST_VERSION} letters; "
            "accepted: such as '1.2.0' or '1.2.0-beta.1'"
        )
    return version


def registry_name(name: str) -> str:
    """Give the name as PlatformIO's registry spells it: dashes, no two in a row, none at an end."""
    return re.sub("_+", "-", name).strip("-")


# --------------------------------------------------------------------------------------------------
# Manifests of a package, in the format of each tool
# --------------------------------------------------------------------------------------------------

FILES = Path(__file__).parent / "files"
SITE = "https://doi.org/10.1145/3161181"  # the paper: a place that stays
BY = "exported by rdeepsense"
FUNCTION = re.compile(r"^(?:int|unsigned|void) (\w+)\(", re.MULTILINE)
TYPE = re.compile(r"^\} (\w+);", re.MULTILINE)
CONSTANT = re.compile(r"^#define (\w+) \S", re.MULTILINE)


def manifests(
    name: str, version: str, sentence: str, header: str, examples: dict[str, list[str]]
) -> dict[str, str]:
    """Give the files by path; `header` is the text of the model's header."""
    return {
        "library.properties": _arduino(name, version, sentence),
        "keywords.txt": _keywords(header),
        "library.json": _platformio(name, version, sentence, examples),
        "idf_component.yml": _espressif(version, sentence),
        "zephyr/module.yml": _zephyr(name),
        "zephyr/CMakeLists.txt": filled("zephyr.CMakeLists.txt", name),
        "zephyr/Kconfig": filled("zephyr.Kconfig", name),
        "CMakeLists.txt": filled("CMakeLists.txt", name),
    }


def filled(file: str, name: str) -> str:
    """Give a file of the package with the name in its places."""
    return (FILES / file).read_text().replace("@name@", name).replace("@NAME@", name.upper())


def _arduino(name: str, version: str, sentence: str) -> str:
    fields = {
        "name": name,
        "version": version,
        "author": BY,
        "maintainer": BY,
        "sentence": sentence,
        "paragraph": "Plain C99: no malloc, no other library. It says how sure it is, and abstains "
        "on inputs unlike those it was trained on.",
        "category": "Data Processing",
        "url": SITE,
        "architectures": "*",
        "includes": f"{name}.h",
    }
    return "".join(f"{key}={value}\n" for key, value in fields.items())


def _keywords(header: str) -> str:
    """Words that Arduino's editor colours; tabs between them and their kind are its format."""
    kinds = {"KEYWORD1": TYPE, "KEYWORD2": FUNCTION, "LITERAL1": CONSTANT}
    lines = [
        f"{word}\t{kind}"
        for kind, pattern in kinds.items()
        for word in dict.fromkeys(pattern.findall(header))
    ]
    return "\n".join(lines) + "\n"


def _platformio(name: str, version: str, sentence: str, examples: dict[str, list[str]]) -> str:
    fields = {
        "$schema": "https://raw.githubusercontent.com/platformio/platformio-core/develop/"
        "platformio/assets/schema/library.json",
        "name": registry_name(name),
        "version": version,
        "description": sentence,
        "keywords": ["machine learning", "uncertainty", "sensors"],
        "homepage": SITE,
        "authors": [{"name": BY, "maintainer": True}],
        "frameworks": "*",
        "platforms": "*",
        "headers": f"{name}.h",
        "examples": [
            {"name": example, "base": f"examples/{example}", "files": files}
            for example, files in examples.items()
        ],
        "build": {"includeDir": "include", "srcDir": "src"},
    }
    return json.dumps(fields, indent=2) + "\n"


def _espressif(version: str, sentence: str) -> str:
    return f'version: "{version}"\ndescription: {json.dumps(sentence)}\nurl: {SITE}\n'


def _zephyr(name: str) -> str:
    return f'name: "{name}"\nbuild:\n  cmake: zephyr\n  kconfig: zephyr/Kconfig\n'


# --------------------------------------------------------------------------------------------------
# Licenses of the parts of a package
# --------------------------------------------------------------------------------------------------

NOTE = """The numbers of the model are yours: src/{name}_weights.c, the tables of src/{name}.c and
of examples/replay/stored.h, and the names that the files carry. Publish them under terms of your
own, or not at all.

The program text around them is that of rdeepsense, under the Apache License 2.0 as follows.

"""


def licence(name: str) -> str:
    """Give a note of what is the user's, and the licence of the rest."""
    return NOTE.format(name=name) + (FILES / "apache-2.0.txt").read_text().lstrip("\n")


# --------------------------------------------------------------------------------------------------
# The README of a package
# --------------------------------------------------------------------------------------------------

BUILT = "Build it with `model.c` and `weights.c`."
TESTED = "cc -std=c99 -O2 selftest.c model.c weights.c -o selftest && ./selftest"


def package_readme(source: Source, report: dict[str, Any], sketches: list[str]) -> str:
    """Give the README; what `to="c99"` says of the model follows, with the files' names here."""
    name, example = source.name, sketches[0]
    about = "reads sensor values, and prints predictions or that the model abstains"
    if example == "motion":
        about = "reads a motion sensor, and prints decisions or that the model abstains"
    front = filled("README.md", name).replace("@example@", example).replace("@about@", about)
    rest = readme(source, report).split("\n", 1)[1]  # less its title
    here = f"src/{name}.c src/{name}_weights.c"
    rest = rest.replace(BUILT, f"Tools build `src/{name}.c` and `src/{name}_weights.c`.")
    rest = rest.replace(
        TESTED, f"cc -std=c99 -O2 -Iinclude selftest/selftest.c {here} -o selftest && ./selftest"
    )
    return front + "## The model\n" + rest.replace("model.h", f"{name}.h")


# --------------------------------------------------------------------------------------------------
# Motion sensor functions of the example, by channel
# --------------------------------------------------------------------------------------------------

AXES = 3
ASSUMED_RATE = 50.0  # samples a second, where the model does not say


@dataclass(frozen=True)
class Function:
    """A function of Arduino's IMU libraries: what it tells, and what a log usually holds."""

    begins: tuple[str, ...]  # the sensor's name in the recipe
    available: str
    read: str
    constant: str
    factor: str
    same: tuple[str, ...]  # units that it tells
    about: str


FUNCTIONS = (
    Function(
        ("acc", "linear"),
        "accelerationAvailable",
        "readAcceleration",
        "G",
        "9.80665f",
        ("g", "G", "gn"),
        "the sensor tells g, the model reads m/s2; 1 for g",
    ),
    Function(
        ("gyr", "rot", "ang"),
        "gyroscopeAvailable",
        "readGyroscope",
        "DEGREE",
        "0.0174532925f",
        ("deg/s", "°/s", "dps"),
        "it tells degrees a second, the model reads radians; 1 for degrees",
    ),
)


def units(model: CModel, recipe: Recipe | None) -> str:
    """Factors from the sensor's units to the model's."""
    lines = []
    for first, function in _sensors(model, recipe):
        unit = "" if model.feature_units is None else model.feature_units[first]
        factor = "1.0f" if unit in function.same else function.factor
        lines.append(f"static const float {function.constant} = {factor}; // {function.about}\n")
    return "".join(dict.fromkeys(lines)) + ("\n" if lines else "")


def reading(model: CModel, recipe: Recipe | None) -> str:
    """The body of `read_motion`: a call for each sensor that is known, NAN for other channels."""
    found = list(_sensors(model, recipe))
    lines = []
    if found:
        waits = " || ".join(f"!IMU.{function.available}()" for _, function in found)
        lines += ["float x, y, z;", f"if ({waits}) {{", "    return false;", "}"]
    for first, function in found:
        lines.append(f"IMU.{function.read}(x, y, z);")
        for k, axis in enumerate("xyz"):
            lines.append(f"sample[{first + k}] = {function.constant} * {axis};")
    known = {first + k for first, _ in found for k in range(AXES)}
    for k in range(model.channels):
        if k not in known:
            name = f"channel {k}" if model.features is None else remark(model.features[k])
            lines.append(f"sample[{k}] = NAN; // {name}: your own sensor")
    return "".join(f"    {line}\n" for line in lines)


def pace(model: CModel, recipe: Recipe | None) -> str:
    """The time between samples and the samples between decisions."""
    rate = ASSUMED_RATE if recipe is None or recipe.rate is None else recipe.rate
    said = f"{rate:g} samples a second" + (
        ": make it the rate of the training windows" if recipe is None else ""
    )
    hop = model.window if recipe is None else min(recipe.step, model.window)
    return f"#define PERIOD {round(1e6 / rate)}u // microseconds; {said}\n#define HOP {hop}\n"


def _sensors(model: CModel, recipe: Recipe | None) -> Iterator[tuple[int, Function]]:
    """The first channel of each sensor that the IMU has; without a recipe, by their number."""
    if recipe is None:
        for k in range(min(model.channels // AXES, len(FUNCTIONS))):
            if model.channels % AXES == 0:
                yield k * AXES, FUNCTIONS[k]
        return
    first, left = 0, list(FUNCTIONS)
    for sensor, columns in recipe.sensors.items():
        for function in list(left):
            if len(columns) == AXES and sensor.lower().startswith(function.begins):
                left.remove(function)
                yield first, function
        first += len(columns)


# --------------------------------------------------------------------------------------------------
# Examples of a package: a sketch that reads sensors, and a replay
# --------------------------------------------------------------------------------------------------

MOST_ROWS, MOST_WINDOWS = 8, 3  # a window takes kilobytes of flash
LONGEST_WORD = 24
MOST_DIGITS = 6


def examples(source: Source, X: NDArray[Any], recipe: Recipe | None) -> dict[str, dict[str, str]]:
    """Give the files of each example by name."""
    model = source.model
    rows = _chosen(source, rows_in_range(source, X))
    told = predicted(source.folded, source.network, rows)
    digits = 3 if model.is_classifier else _digits(told[1])
    switches = dict(source.switches)
    # A stream that runs on is another function than the one whose answers are stored.
    runs_on = switches["STEPWISE"] and not switches["STEPWISE_EXACT"]
    switches["REPLAYED"] = switches["SAMPLED"] and not runs_on
    sections = {
        "named.h": _names(source) + ("" if model.is_classifier else f"#define DIGITS {digits}\n"),
        "typical.h": _table(source, "typical", rows[0], "    static "),
        "units.h": units(model, recipe),
        "reading.h": reading(model, recipe),
        "pace.h": pace(model, recipe),
    }

    def assembled(file: str) -> str:
        text = Assembly(source.name, switches, sections).text(FILES / file)
        return text.replace("model.h", f"{source.name}.h")

    for shared in ("why.h", "saying.h"):
        sections[shared] = assembled(shared)
    first = "predict" if model.window == 1 else "motion"
    return {
        first: {f"{first}.ino": assembled(f"{first}.ino")},
        "replay": {
            "replay.ino": assembled("replay.ino"),
            "replay.c": assembled("replay.c"),
            "replay.h": assembled("replay.h"),
            "stored.h": _stored(source, rows, told, digits),
        },
    }


def _chosen(source: Source, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Take few rows, of classes one of each that is predicted first."""
    most = MOST_ROWS if source.model.window == 1 else MOST_WINDOWS
    if not source.model.is_classifier:
        return rows[:most]
    best = predicted(source.folded, source.network, rows)[0].argmax(1).tolist()
    order = sorted(range(len(rows)), key=lambda k: (best[k] in best[:k], k))
    return rows[order[:most]]


def _stored(
    source: Source, rows: NDArray[np.float32], told: list[NDArray[np.float64]], digits: int
) -> str:
    """stored.h: rows, and what the exported model says of them."""
    name = source.name.upper()
    tables = [table("float", "rows", rows, f"ROWS * {name}_INPUTS")]
    for result, values in list(zip(source.model.results, told, strict=True))[:2]:
        if result != "epistemic":
            tables.append(table("float", f"expected_{result}", values, f"ROWS * {name}_OUTPUTS"))
    lines = [
        f"#define ROWS {len(rows)}",
        f"#define TOLERANCE {tolerance(source)}",
        f"#define DIGITS {digits} /* behind the point */",
        f"#define SCALE {10**digits}u",
        "",
        _names(source),
    ]
    return source.banner() + "\n".join(lines + [f"static {one}" for one in tables])


def _names(source: Source) -> str:
    """The words for what comes out: labels, or names of targets."""
    model, name = source.model, source.name.upper()
    if model.classes is not None:
        words = [remark(str(label))[:LONGEST_WORD] for label in model.classes]
    elif model.targets is not None:
        words = [remark(target)[:LONGEST_WORD] for target in model.targets]
    else:
        words = [f"output {k}" for k in range(model.outputs)]
    quoted = ", ".join(f'"{word}"' for word in words)
    return f"static const char *const names[{name}_OUTPUTS] = {{{quoted}}};\n"


def _table(source: Source, name: str, row: NDArray[np.float32], before: str) -> str:
    return before + table("float", name, row, f"{source.name.upper()}_INPUTS")


def _digits(std: NDArray[np.float64]) -> int:
    """Digits behind the point that show a hundredth of the standard deviation."""
    least = float(np.min(std))
    return min(MOST_DIGITS, max(0, 2 - math.floor(math.log10(least)))) if least > 0 else MOST_DIGITS


# --------------------------------------------------------------------------------------------------
# Writing of a package for four tools
# --------------------------------------------------------------------------------------------------

FORWARD = '/* The header lies in src, where Arduino looks for it. */\n#include "../src/{name}.h"\n'
LARGEST_REPORT = 1 << 20  # bytes


@dataclass(frozen=True)
class PackageReport(C99Report):
    """What was found out about the C, the package's version, and its files by path."""

    version: str = ""
    files: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Give the content of report.json."""
        return super().to_json() | {"version": self.version, "files": list(self.files)}


def check_package(folder: Path, name: str, version: str | None) -> None:
    """Refuse a name, a version or a folder that a package cannot have."""
    package_name(name)
    package_version(version, "")
    check_folder(folder, _earlier(folder))


def write_package(
    made: C99, X: NDArray[Any], recipe: Recipe | None, version: str | None
) -> PackageReport:
    """Write the folder; the sketch that replays rows takes them from X."""
    source, name = made.source, made.source.name
    number = package_version(version, source.model.source)
    c = {file: text.replace('"model.h"', f'"{name}.h"') for file, text in made.files.items()}
    sketches = examples(source, X, recipe)
    files = {
        f"src/{name}.h": c["model.h"],
        f"src/{name}.c": c["model.c"],
        f"src/{name}_weights.c": c["weights.c"],
        f"include/{name}.h": FORWARD.format(name=name),
        "selftest/selftest.c": c["selftest.c"],
        **{
            f"examples/{example}/{file}": text
            for example, own in sketches.items()
            for file, text in own.items()
        },
        **manifests(
            name,
            number,
            _sentence(made),
            c["model.h"],
            {example: list(own) for example, own in sketches.items()},
        ),
        "LICENSE": licence(name),
    }
    whole = (*files, "README.md", "report.json")
    known = {field.name: getattr(made.report, field.name) for field in fields(made.report)}
    report = PackageReport(**(known | {"to": "package"}), version=number, files=whole)
    content = report.to_json()
    files["README.md"] = package_readme(source, content, list(sketches))
    files["report.json"] = json.dumps(content, indent=2, allow_nan=False) + "\n"
    folder = made.report.path
    write_folder(folder, files, {*_earlier(folder), *whole})
    return report


def _sentence(made: C99) -> str:
    """What the model does, in the words of its file."""
    model = made.source.model
    what = ", ".join(remark(target) for target in model.targets or ()) or "its target"
    if model.classes is not None:
        what += f" ({len(model.classes)} classes)"
    read = "windows" if model.window > 1 else "rows"
    return f"Predicts {what} from {read} of {model.channels} sensor values."[:200]


def _earlier(folder: Path) -> list[str]:
    """The files that an earlier package in this folder says are its own."""
    try:
        with (folder / "report.json").open("rb") as file:
            found = json.loads(file.read(LARGEST_REPORT))["files"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return []
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
