"""`rdeepsense completion`: the script that lets a shell complete commands and options."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import completion_init, get_completion_script  # type: ignore[attr-defined]

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
