"""Every code block of the README and of docs/ runs, in the order of its page, as a reader would.

A page is one test, in an empty folder; its Python blocks share one namespace. A block with a title
becomes that file. Shell blocks (sh, console) run in bash, and what the page shows as their output
must have the same words; numbers differ from machine to machine.

Markers in the Markdown, which no reader sees:

- ``<!--- skip: next "reason" -->`` before a block that cannot run here,
- ``<!--- skip: next if(quick, reason="...") -->`` before one that takes long: a second test runs
  the whole of such a page, and ``-m "not docs"`` leaves it out,
- ``<!--- invisible-code-block: python ... -->`` for data that a block assumes; `hurry(most_rows)`
  there makes a long program short: few simulated rows, and one epoch on them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from unittest import SkipTest

import pytest
from sybil import Document, Example, Region, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import SkipParser
from sybil.parsers.markdown.lexers import DirectiveInHTMLCommentLexer, RawFencedCodeBlockLexer

import rdeepsense as rds
from rdeepsense import datasets

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LONG = ("watch", "windows", "in-life", "cluster")  # pages that take more than a few seconds
SLOW_BLOCK = 5.0  # seconds
PROGRESS = re.compile(r"^.*: +\d+ %, \d+ s (?:left|so far).*$", re.MULTILINE)  # of slow machines
INFO = re.compile(r'(?P<language>[\w-]*)(?: title="(?P<title>[\w.]+)")?[ \t]*$\n', re.MULTILINE)


def words(text: str) -> list[str]:
    """Take out the numbers, and with them the spaces and rules that tables draw around them."""
    text = PROGRESS.sub("", text)
    return re.sub(r"[+-]?\d[\d.,]*(e-?\d+)?|[─━]+", "#", text).split()


def shell(commands: str) -> str:
    """Run commands in bash, in the present folder, and return all they print."""
    programs = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    text = f"{done.stdout}\n"
    return text if done.returncode == 0 else f"{text}[exit status {done.returncode}]\n"


def run_sh(example: Example) -> None:
    """Run a block of commands; none may fail."""
    printed = shell(example.parsed)
    assert "[exit status" not in printed, f"{example.parsed}\n{printed}"
    example.namespace["printed"] = (example.end, printed)


def run_console(example: Example) -> None:
    """Run each command behind a `$` and compare with the lines below it, where there are any."""
    for part in re.split(r"^\$ ", example.parsed, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        printed = shell(command)
        if shown.strip():
            printed = re.sub(r"\[exit status \d+\]\n$", "", printed)
            assert words(printed) == words(shown), f"$ {command}\n{printed}"
        else:
            assert "[exit status" not in printed, f"$ {command}\n{printed}"


def compare(example: Example) -> None:
    """Compare a text with what the shell block right before it printed; others are pictures."""
    end, printed = example.namespace.get("printed", (0, ""))
    if end and not example.document.text[end : example.start].strip():
        assert words(printed) == words(example.parsed), printed


def write(title: str) -> Callable[[Example], None]:
    """Return an evaluator that writes a block to a file."""
    return lambda example: Path(title).write_text(example.parsed) and None


EVALUATORS: dict[str, Callable[[Example], None]] = {
    "python": PythonEvaluator(),
    "sh": run_sh,
    "console": run_console,
    "text": compare,
}


def blocks(document: Document) -> Iterable[Region]:
    """Find fenced blocks, and those hidden in comments."""
    hidden = DirectiveInHTMLCommentLexer("invisible-code-block", "python")
    for region in [*RawFencedCodeBlockLexer(INFO)(document), *hidden(document)]:
        title = region.lexemes.get("title")
        language = region.lexemes.get("language", "python")
        region.parsed = region.lexemes["source"]
        region.evaluator = write(title) if title else EVALUATORS[language]
        yield region


PARSER = Sybil(parsers=[SkipParser(), blocks])


SLOW_PAGES = [page for page in PAGES if "if(quick" in page.read_text()]
Record = Callable[[str, object], None]


def run(page: Path, quick: bool, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a page in the present folder; `quick` leaves out what its markers call slow."""

    regressor, simulate = rds.RDeepSenseRegressor, datasets.simulate

    def hurry(most_rows: int) -> None:
        monkeypatch.setattr(rds, "RDeepSenseRegressor", partial(regressor, epochs=1))
        fewer = lambda rows, seed: simulate(min(rows, most_rows), seed)  # noqa: E731
        monkeypatch.setattr(datasets, "simulate", fewer)

    document = PARSER.parse(page)
    document.namespace |= {"quick": quick, "hurry": hurry}
    for example in document:
        place = f"{page.relative_to(ROOT)}, line {example.line}"
        began = time.perf_counter()
        try:
            example.evaluate()
        except SkipTest:
            continue
        except Exception as error:
            raise AssertionError(place) from error
        seconds = time.perf_counter() - began
        if seconds > SLOW_BLOCK:
            record("slow block", f"{seconds:6.1f} s  {place}")


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.docs) if p.stem in LONG else p for p in PAGES],
    ids=lambda page: page.stem,
)
def test_every_block_of_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    monkeypatch.chdir(tmp_path)
    run(page, True, record_property, monkeypatch)


@pytest.mark.docs
@pytest.mark.parametrize("page", SLOW_PAGES, ids=lambda page: page.stem)
def test_the_slow_blocks_run_too(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    monkeypatch.chdir(tmp_path)
    run(page, False, record_property, monkeypatch)
