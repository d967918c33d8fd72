"""The README of a package: three lines for each tool, then what is said of the C."""

from __future__ import annotations

from typing import Any

from rdeepsense.deploy.c.readme import readme
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.package.manifests import filled

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
