"""The commands and the options that they share; a command's module is imported when it runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.completion import completion_init, get_completion_script  # type: ignore[attr-defined]
from typer.models import ArgumentInfo, OptionInfo

from rdeepsense import __version__
from rdeepsense.cli.adapt import adapt
from rdeepsense.cli.check import check
from rdeepsense.cli.compare import compare
from rdeepsense.cli.demo import demo
from rdeepsense.cli.evaluate import evaluate
from rdeepsense.cli.export import export
from rdeepsense.cli.fit import fit
from rdeepsense.cli.inspect import inspect
from rdeepsense.cli.paper import benchmark, data, reproduce
from rdeepsense.cli.predict import predict
from rdeepsense.cli.profile import profile
from rdeepsense.cli.replay import replay

# --------------------------------------------------------------------------------------------------
# The words that stand for values in --help, in place of the names of Python's types
# --------------------------------------------------------------------------------------------------

WORDS: dict[object, str] = {bool: "", Path: "FILE", int: "NUMBER", float: "NUMBER", str: "TEXT"}
COLUMNS = ("target", "groups", "ignore", "inputs", "time")


def say_types(command: Callable[..., Any] | None) -> None:
    """Give every argument and option of a command a word, where it has none."""
    assert command is not None
    # Evaluated once and kept: evaluated again, each would be new and without its word.
    hints = get_type_hints(command, include_extras=True)
    for name, hint in hints.items():
        kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        for info in notes:
            if isinstance(info, ArgumentInfo) and info.metavar is None:
                info.metavar = name.upper()
            elif isinstance(info, OptionInfo) and info.metavar is None:
                info.metavar = "COLUMN" if name in COLUMNS else _word(kind)
    command.__annotations__ = hints


def _word(kind: object) -> str:
    """Return the word of a type, of a list of it, or of it or None."""
    if kind in WORDS:
        return WORDS[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(member.value) for member in kind)
    return next((_word(own) for own in get_args(kind) if own is not type(None)), "TEXT")


# --------------------------------------------------------------------------------------------------
# `rdeepsense completion`: the script that lets a shell complete commands and options
# --------------------------------------------------------------------------------------------------

PROGRAM, VARIABLE = "rdeepsense", "_RDEEPSENSE_COMPLETE"


class Shell(StrEnum):
    """Shells that there is a script for."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.")],
) -> None:
    """Print a script for completion: eval "$(rdeepsense completion bash)" in ~/.bashrc.

    For zsh the same line goes to ~/.zshrc; for fish: rdeepsense completion fish | source.
    """
    script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value)
    typer.echo(script)


def prepare_completion() -> None:
    """Let the script's questions be answered, where one is asked."""
    if VARIABLE in os.environ:
        completion_init()


# --------------------------------------------------------------------------------------------------
# The commands and the options they share
# --------------------------------------------------------------------------------------------------

app = typer.Typer(
    help="Networks for sensor data that say how sure they are, in one forward pass.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help: rich would name types of Python
    pretty_exceptions_enable=False,  # with --debug, Python's own traceback
)
WITH_MODELS = (check, fit, predict, evaluate, adapt, replay, inspect, compare, export, profile)
for command in (*WITH_MODELS, demo, reproduce, completion):
    app.command()(command)
app.add_typer(benchmark, name="benchmark")
app.add_typer(data, name="data")
for group in (app, benchmark, data):
    for registered in group.registered_commands:
        say_types(registered.callback)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rdeepsense {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error (RDEEPSENSE_DEBUG=1).")
    ] = False,
) -> None:
    if debug and context.obj is not None:
        context.obj["debug"] = True


say_types(options)
prepare_completion()
