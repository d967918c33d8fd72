"""Writing of a package: the C of a model, laid out for four tools at once."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rdeepsense._files import write_folder
from rdeepsense.deploy.c.export import C99, check_folder
from rdeepsense.deploy.c.report import C99Report
from rdeepsense.deploy.c.text import remark
from rdeepsense.deploy.package.examples import examples
from rdeepsense.deploy.package.licence import licence
from rdeepsense.deploy.package.manifests import manifests
from rdeepsense.deploy.package.names import package_name, package_version
from rdeepsense.deploy.package.readme import package_readme
from rdeepsense.windowing.recipe import Recipe

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
