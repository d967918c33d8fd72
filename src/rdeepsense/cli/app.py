"""The commands and the options that they share; a command's module is imported when it runs."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.completion import completion_init, get_completion_script  # type: ignore[attr-defined]
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo, OptionInfo

from rdeepsense import __version__
from rdeepsense.cli.options import plain_typer

# --------------------------------------------------------------------------------------------------
# Placeholders of values in --help
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
# `rdeepsense completion`: shell completion
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
# The commands and their shared options
# --------------------------------------------------------------------------------------------------

# In the order of `rdeepsense --help`: module, and the line that the help shows.
COMMANDS = {
    "check": (
        "check",
        "Look for leaks, copies, entities and other faults of a table before a fit.",
    ),
    "fit": (
        "fit",
        "Fit a network to a table and say how good its uncertainty is on rows it has not seen.",
    ),
    "predict": (
        "predict",
        "Predict mean, std and an interval (or class probabilities) for every row.",
    ),
    "evaluate": (
        "evaluate",
        "Score a model's predictions and their uncertainty on a labelled table.",
    ),
    "adapt": (
        "adapt",
        "Adapt a model to one person or sensor by a few labelled rows, without training.",
    ),
    "replay": (
        "replay",
        "Replay recorded data: the fixed model beside one that learns from every Nth label.",
    ),
    "inspect": (
        "inspect",
        "Show a model file: inputs, targets, metrics, settings, calibration, versions and sizes.",
    ),
    "compare": (
        "compare",
        "Fit several methods on random splits of a table and score them on rows they have not "
        "seen.",
    ),
    "export": (
        "export",
        "Write a model as plain layers for numpy, C99, a package for firmware, ONNX or a web page.",
    ),
    "profile": (
        "profile",
        "Measure time, instructions, memory and energy of one prediction in every form of a model.",
    ),
    "demo": (
        "demo",
        "Take the short tour: a simulated sensor beside its truth, then one task by all methods.",
    ),
    "reproduce": (
        "paper",
        "Repeat the paper's tables and figures and say which of its claims hold.",
    ),
    "completion": (
        "app",
        'Print a script for completion: eval "$(rdeepsense completion bash)" in ~/.bashrc.',
    ),
    "benchmark": (
        "paper",
        "Compare methods on data sets with fixed splits, and models in production.",
    ),
    "data": ("paper", "Get the data of the paper's tasks."),
}


class LazyGroup(TyperGroup):
    """Commands known by name and help line; the module of one is imported when it is asked for."""

    def __init__(self, **settings: Any) -> None:  # Any: what typer gives every group
        stubs = {name: TyperCommand(name, help=line) for name, (_, line) in COMMANDS.items()}
        super().__init__(**{**settings, "commands": stubs})

    def load(self, name: str) -> Any:  # Any: of typer's own copy of click
        """Import the module of a command and return the command."""
        found = getattr(importlib.import_module(f"rdeepsense.cli.{COMMANDS[name][0]}"), name)
        if not isinstance(found, typer.Typer):
            function, found = found, plain_typer()
            found.command(name)(function)
        for registered in found.registered_commands:
            say_types(registered.callback)
        command = typer.main.get_command(found)
        command.name = name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command and the arguments that are left, as typer wants them."""
        name, stub, left = super().resolve_command(ctx, args)
        return name, stub and self.load(stub.name or args[0]), left


app = plain_typer(
    cls=LazyGroup,
    help="Networks for sensor data that say how sure they are, in one forward pass.",
    no_args_is_help=True,
)


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
