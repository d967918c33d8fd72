"""The command line. `main` is the console entry; every error ends as one line and an exit code."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from rdeepsense.cli.terminal import (
    BROKEN_PIPE,
    RED,
    YELLOW,
    BrokenPipeSafeOutput,
    print_line,
    silence_stdout,
)
from rdeepsense.errors import RDeepSenseError, require

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line on `args` (those of the process by default) and exit."""
    options = {"debug": bool(os.environ.get("RDEEPSENSE_DEBUG"))}
    stdout, patient = sys.stdout, BrokenPipeSafeOutput(sys.stdout)
    sys.stdout = patient
    try:
        _answer(args, options)
    except SystemExit as end:
        patient.flush()
        if patient.broken:
            silence_stdout()
            sys.exit(end.code or BROKEN_PIPE)
        raise
    finally:
        sys.stdout = stdout


def _answer(args: Sequence[str] | None, options: dict[str, bool]) -> NoReturn:
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            _run(args, options)
    except KeyboardInterrupt:
        sys.exit(130)
    # ValueError as well: scikit-learn refuses bad input with it.
    except (RDeepSenseError, ValueError, OSError) as error:
        if options["debug"]:
            raise
        print_line("error", RED, _one_line(error))
        sys.exit(1)
    sys.exit(0)


def _run(args: Sequence[str] | None, options: dict[str, bool]) -> None:
    for library in ("typer", "rich"):
        require(library, "cli")
    import typer

    from rdeepsense.cli.app import app

    try:
        code = app(args=args, obj=options, prog_name="rdeepsense", standalone_mode=False)
    except typer.Abort:
        sys.exit(1)
    except Exception as error:
        message = getattr(error, "format_message", None)  # of what typer refuses
        if message is None:
            raise
        _refuse_usage(error, message())
    if isinstance(code, int):  # of typer.Exit
        sys.exit(code)


def _refuse_usage(error: Any, message: str) -> NoReturn:  # Any: of typer's own copy of click
    """Print what is wrong with the options, as other errors are, and where they are described."""
    if not message or type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        sys.exit(2)
    # Typer passes on how pydantic begins.
    print_line("error", RED, " ".join(message.replace("Value error, ", "").split()))
    context = getattr(error, "ctx", None)
    if context is not None:
        print(f"Try '{context.command_path} --help'.", file=sys.stderr)
    sys.exit(2)


def _one_line(error: Exception) -> str:
    """Return the message without the line breaks that some libraries put into theirs."""
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    return " ".join(text.split()) or type(error).__name__


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print_line("warning", YELLOW, " ".join(str(message).split()))
