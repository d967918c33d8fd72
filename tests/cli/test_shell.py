"""Pipes, exit codes, completion and help, as a shell sees them."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import polars as pl
import pytest
import typer

from rdeepsense import load
from rdeepsense.cli import main
from rdeepsense.cli.app import COMMANDS, app

QUICK = ("--quick", "--target", "y", "--epochs", 1, "--hidden", 2)
LONG = os.environ.get("RDEEPSENSE_LONG")


def program(*command: str, stdout: Any = subprocess.PIPE, **variables: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "rdeepsense", *command],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


@contextmanager
def no_reader() -> Iterator[TextIO]:
    """Give a stream that is closed at its other end."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        yield stream


def unread(monkeypatch: pytest.MonkeyPatch, *command: object) -> int:
    """Run a command whose output nobody reads; its exit code."""
    with no_reader() as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in command])
    return int(ended.value.code or 0)


def test_work_is_finished_though_nobody_reads_on(
    run: Any, csv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert unread(monkeypatch, "fit", csv, *QUICK) == 141
    assert load("model.safetensors").n_features_in_ == 7
    assert unread(monkeypatch, "predict", "model.safetensors", csv, "-o", "p.csv") == 141
    assert len(Path("p.csv").read_text().splitlines()) == 401
    for command in (
        ("predict", "model.safetensors", csv, "-o", "-", "--quiet"),
        ("predict", "model.safetensors", csv),
        ("evaluate", "model.safetensors", csv),
        ("inspect", "model.safetensors", "--json", "-"),
        ("--help",),
    ):
        assert unread(monkeypatch, *command) == 141
    assert capsys.readouterr().err == ""
    # An error is one whether anybody reads or not.
    assert unread(monkeypatch, "fit", csv, *QUICK, "--overwrite", "--drop-prob", "all") == 1
    assert capsys.readouterr().err == "error: --drop-prob 'all': give a number, or auto\n"


def test_a_process_ends_quietly_too() -> None:
    for command in (("--help",), ("completion", "zsh")):
        with no_reader() as stream:
            done = program(*command, stdout=stream)
        assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not LONG, reason="starts torch; RDEEPSENSE_LONG=1 runs it")
def test_head(run: Any, csv: Path) -> None:
    assert run("fit", csv, *QUICK, "--quiet").code == 0
    own = f"{sys.executable} -m rdeepsense predict model.safetensors data.csv -o -"
    done = subprocess.run(
        ["bash", "-c", f"{own} | head -n 1; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[0] == "mean,std,low,high,status"
    assert done.stdout.splitlines()[1] in ("0", "141")
    assert "rror" not in done.stderr


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_stdin_and_stdout(
    run: Any, csv: Path, monkeypatch: pytest.MonkeyPatch, pack: Any, name: str
) -> None:
    """Packed or not, the table comes from a pipe, and CSV alone goes to the next one."""

    def given(*command: object) -> Any:
        packed = pack(csv.read_bytes())
        if name == "-":
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
            return run(*command)
        # What a shell makes of <(command): a pipe that can be read once.
        os.mkfifo("pipe")
        writer = threading.Thread(target=Path("pipe").write_bytes, args=(packed,))
        writer.start()
        try:
            return run(*[word if word != name else "pipe" for word in command])
        finally:
            writer.join()
            Path("pipe").unlink()

    fitted = given("fit", name, *QUICK, "--json", "-", "-o", "m")
    assert json.loads(fitted.out)["rows"]["test"] == 80
    found = given("predict", "m", name, "-o", "-")
    assert "wrote stdout: 400 rows" in found.err
    table = pl.read_csv(found.out.encode())
    assert table.shape == (400, 5)
    assert table.columns == ["mean_y", "std_y", "low_y", "high_y", "status"]
    assert given("predict", "m", name, "-o", "-", "--quiet").err == ""


def test_exit_codes(run: Any, csv: Path) -> None:
    assert run("--version").code == 0
    assert run("fit", "nowhere.csv", "--target", "y").code == 1
    assert run("fit", csv).code == 2
    assert run("fit", csv, "--target", "y", "--epochs", "many").code == 2
    assert run("no-such-command").code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_files(run: Any, shell: str) -> None:
    script = run("completion", shell)
    assert script.code == 0
    assert f"_RDEEPSENSE_COMPLETE=complete_{shell}" in script.out
    assert run("completion", "tcsh").code == 2


def test_bash_reads_the_script() -> None:
    script = program("completion", "bash").stdout
    done = subprocess.run(
        ["bash", "-c", f"{script}\ncomplete -p rdeepsense"], capture_output=True, text=True
    )
    assert done.stdout == "complete -o default -F _rdeepsense_completion rdeepsense\n"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("rdeepsense ins", ["inspect"]),
        ("rdeepsense fit --many", ["--many-classes"]),
        ("rdeepsense fit --likelihood ", ["gaussian", "student", "auto"]),
        ("rdeepsense benchmark ", ["uci"]),
    ],
)
def test_completions(words: str, found: list[str]) -> None:
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    done = program(**asked, _RDEEPSENSE_COMPLETE="complete_bash")
    assert set(found) <= set(done.stdout.split())


def test_help_has_no_types_of_python(run: Any) -> None:
    group: Any = typer.main.get_command(app)
    commands = [
        (name, *inner)
        for name in COMMANDS
        for inner in [[own] for own in getattr(group.load(name), "commands", ())] or [[]]
    ]
    assert len(commands) > len(COMMANDS)
    for command in commands:
        shown = run(*command, "--help")
        assert shown.code == 0
        options = shown.out.partition("Options:")[2]
        assert not any(odd in options for odd in ("list[", "<", "RANGE", " range", "INTEGER"))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_shows_their_own_help(name: str) -> None:
    """The list has a copy of the line, because a command is imported only when it runs."""
    group: Any = typer.main.get_command(app)
    listed = group.commands[name].get_short_help_str(200)
    assert listed == group.load(name).get_short_help_str(200)
