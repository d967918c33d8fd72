"""The commands and the options they share."""

from __future__ import annotations

from typing import Annotated

import typer

from rdeepsense import __version__
from rdeepsense.cli.adapt import adapt
from rdeepsense.cli.benchmark import benchmark
from rdeepsense.cli.check import check
from rdeepsense.cli.compare import compare
from rdeepsense.cli.completion import completion, prepare_completion
from rdeepsense.cli.data import data
from rdeepsense.cli.demo import demo
from rdeepsense.cli.evaluate import evaluate
from rdeepsense.cli.export import export
from rdeepsense.cli.fit import fit
from rdeepsense.cli.inspect import inspect
from rdeepsense.cli.metavars import say_types
from rdeepsense.cli.predict import predict
from rdeepsense.cli.profile import profile
from rdeepsense.cli.replay import replay
from rdeepsense.cli.reproduce import reproduce

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
