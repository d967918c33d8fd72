"""Starting up: quickly, with clear words where something is missing."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import rdeepsense
from rdeepsense.cli import main

HEAVY = "[m for m in ('torch', 'numpy', 'polars', 'matplotlib', 'sklearn') if m in sys.modules]"


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("args", [["--help"], ["fit", "--help"], ["demo", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(args: list[str]) -> None:
    done = python(
        "import sys, rdeepsense.cli\n"
        f"try: rdeepsense.cli.main({args!r})\n"
        f"except SystemExit as e: print(); print('heavy', {HEAVY}); sys.exit(e.code)"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "heavy []"


def test_help_names_the_commands(run) -> None:
    shown = run("--help").out
    assert all(command in shown for command in ("fit", "predict", "evaluate", "demo"))


def test_version(run) -> None:
    assert run("--version").out == f"rdeepsense {rdeepsense.__version__}\n"


def test_python_dash_m() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rdeepsense", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert rdeepsense.__version__ in done.stdout


@pytest.mark.parametrize("library", ["typer", "rich"])
def test_a_core_install_names_the_extra(library: str) -> None:
    done = python(
        f"import sys; sys.modules[{library!r}] = None\n"
        "from rdeepsense.cli import main; main(['demo'])"
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"error: {library} is not installed; it comes with: pip install 'rdeepsense[cli]'\n"
    )


def test_demo_without_matplotlib_names_the_extra_and_writes_nothing(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("demo", "--out", "demo")
    assert result.code == 1
    assert "pip install 'rdeepsense[report]'" in result.err
    assert not (tmp_path / "demo").exists()


def test_debug_shows_the_traceback(run, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(rdeepsense.InputError):
        main(["--debug", "fit", "nowhere.csv", "--target", "y"])
    monkeypatch.setenv("RDEEPSENSE_DEBUG", "1")
    with pytest.raises(rdeepsense.InputError):
        main(["fit", "nowhere.csv", "--target", "y"])


@pytest.mark.parametrize("where", ["rdeepsense.cli.fit.read_table", "rdeepsense.cli.require"])
def test_ctrl_c_exits_with_130(run, csv: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupted)
    assert run("fit", "--quick", csv, "--target", "y").code == 130


def test_other_errors_are_one_line_without_traceback(
    run, csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(error: Exception):
        def read(*_: object) -> None:
            raise error

        return read

    for error, line in (
        (PermissionError(13, "Permission denied", "data.csv"), "data.csv: Permission denied"),
        (ValueError("two\n  lines"), "two lines"),
    ):
        monkeypatch.setattr("rdeepsense.cli.fit.read_table", fails(error))
        result = run("fit", "--quick", csv, "--target", "y")
        assert (result.code, result.err) == (1, f"error: {line}\n")


def test_warnings_are_one_line(run, csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def warns(*_: object) -> None:
        warnings.warn("careful", stacklevel=1)
        raise rdeepsense.InputError("stop here")

    monkeypatch.setattr("rdeepsense.cli.fit.read_table", warns)
    assert run("fit", "--quick", csv, "--target", "y").err == "warning: careful\nerror: stop here\n"
