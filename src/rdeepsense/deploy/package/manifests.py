"""What each tool reads first: names, versions and files of a package, in the tool's own format."""

from __future__ import annotations

import json
import re
from pathlib import Path

from rdeepsense.deploy.package.names import registry_name

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
