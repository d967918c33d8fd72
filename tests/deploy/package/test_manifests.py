"""What tools read first: by the published rules of each, and by the tools themselves if there."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from deploy.package.conftest import NAMES
from deploy.package.sketches import run

from rdeepsense.deploy.package.export import manifests

HERE = Path(__file__).parent
every = pytest.mark.parametrize("name", NAMES)


def check(kind: str, found: Any) -> None:
    jsonschema.validate(found, json.loads((HERE / "schemas" / f"{kind}.json").read_text()))


def properties(text: str) -> dict[str, str]:
    """A file of lines key=value, as Arduino reads it."""
    pairs = [line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#")]
    return {key: value for key, value in pairs}  # noqa: C416 (a line without = must fail)


@every
def test_arduino(packages: Path, name: str) -> None:
    folder = packages / name
    found = properties((folder / "library.properties").read_text())
    check("library_properties", found)
    assert found["name"] == name
    assert (folder / "src" / found["includes"]).is_file(), "Arduino looks for headers in src alone"
    assert not list(folder.glob("*.[ch]")), "with src/ there, sources beside it are forgotten ones"
    for example in (folder / "examples").iterdir():
        assert (example / f"{example.name}.ino").is_file()
    for line in (folder / "keywords.txt").read_text().splitlines():
        word, kind = line.split("\t")
        assert re.fullmatch(f"({name}|{name.upper()})_\\w+", word)
        assert kind in ("KEYWORD1", "KEYWORD2", "LITERAL1")
    assert f"{name}_predict\tKEYWORD2\n" in (folder / "keywords.txt").read_text()


@every
def test_platformio(packages: Path, name: str) -> None:
    folder = packages / name
    found = json.loads((folder / "library.json").read_text())
    check("library_json", found)
    for place in found["build"].values():
        assert (folder / place).is_dir()
    assert (folder / "include" / found["headers"]).is_file()
    listed = {f"{e['base']}/{file}" for e in found["examples"] for file in e["files"]}
    there = {p.relative_to(folder).as_posix() for p in folder.glob("examples/*/*")}
    assert listed == there


@every
def test_zephyr(packages: Path, name: str) -> None:
    folder = packages / name
    found = yaml.safe_load((folder / "zephyr/module.yml").read_text())
    check("module_yml", found)
    assert (folder / found["build"]["cmake"] / "CMakeLists.txt").is_file()
    option = re.search(r"^config (\w+)\n\tbool ", (folder / found["build"]["kconfig"]).read_text())
    assert option is not None
    assert f"if(CONFIG_{option[1]})" in (folder / "zephyr/CMakeLists.txt").read_text()


@every
def test_espressif(packages: Path, name: str) -> None:
    found = yaml.safe_load((packages / name / "idf_component.yml").read_text())
    check("idf_component", found)
    assert (packages / name / "LICENSE").is_file(), "asked for where the manifest names none"


def test_all_say_one_version(packages: Path) -> None:
    folder = packages / "gait"
    report = json.loads((folder / "report.json").read_text())
    assert report["version"] == f"1.0.0+{report['model_sha256'][:8]}"
    for file in ("library.properties", "library.json", "idf_component.yml"):
        assert report["version"] in (folder / file).read_text()


def test_words_of_yaml_stay_words() -> None:
    for name in ("no", "on", "null", "y1e3"):
        files = manifests(name, "1.0.0", "Predicts [a]: {b} # c", "", {"predict": ["x"]})
        found = yaml.safe_load(files["zephyr/module.yml"])
        check("module_yml", found)
        assert found["name"] == name
        described = yaml.safe_load(files["idf_component.yml"])["description"]
        assert described == "Predicts [a]: {b} # c"


def _tool(name: str) -> list[str]:
    found = shutil.which(name) or shutil.which(name, path=Path(sys.executable).parent)
    if found is None:
        pytest.skip(f"{name} is not installed; the schemas stand in (extra `packagers`)")
    return [found]


def test_platformio_packs_it(packages: Path, tmp_path: Path) -> None:
    archive = tmp_path / "gait.tar.gz"
    run([*_tool("pio"), "pkg", "pack", "-o", archive, packages / "gait"])
    listed = run(["tar", "tzf", archive]).splitlines()
    report = json.loads((packages / "gait/report.json").read_text())
    assert sorted(listed) == sorted(report["files"]), "nothing is left out of the archive"


def test_espressif_packs_it(packages: Path, tmp_path: Path) -> None:
    command = [*_tool("compote"), "component", "pack", "--name", "gait", "--dest-dir", tmp_path]
    run(command, packages / "gait")
    assert list(tmp_path.glob("gait_1.0.0+*.tgz"))


def test_kconfig_reads_it(packages: Path) -> None:
    if importlib.util.find_spec("kconfiglib") is None:
        pytest.skip("kconfiglib is not installed (extra `packagers`)")
    import kconfiglib

    found = kconfiglib.Kconfig(str(packages / "gait/zephyr/Kconfig"))
    assert found.syms["RDEEPSENSE_GAIT"].str_value == "n"
    assert found.warnings == []


def test_the_licence_says_what_is_whose(packages: Path) -> None:
    text = (packages / "gait/LICENSE").read_text()
    assert text.startswith("The numbers of the model are yours: src/gait_weights.c")
    own = (HERE.parents[2] / "LICENSE").read_text().lstrip("\n")
    assert text.endswith(own), "the copy among the package's files is that of the project"
