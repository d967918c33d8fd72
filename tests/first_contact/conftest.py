"""The command line, called in-process."""

from cli.conftest import Result, Run, run

__all__ = ["Result", "Run", "run"]
