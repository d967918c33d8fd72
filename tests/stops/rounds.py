"""Stop fits and writers at random, again and again, and compare with what was never stopped.

    python tests/stops/rounds.py [--interrupts 100] [--kills 100] [--seed 0]

Rounds of Ctrl-C send a real SIGINT to `rdeepsense fit`, at times a second one soon after, and call
the same command again. Half of the kills are SIGKILL to such a fit, up to three times in a row; the
other half are aimed at one of the calls that write (fsync, rename, mkdir, unlink, the exchange of
two folders) while a second model takes the place of a first. Prints a table; exits 1 if any round
failed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from aimed import Target
from fits import COMMANDS, OUTPUT, Fit, stop_after, write_tables
from writers import killed as in_a_child
from writers import one_thread, two_models, writers

MISSED = "ended before"
MOST_CALLS = 30  # that one write makes


def interrupted(fit: Fit, chance: random.Random) -> tuple[str, list[str]]:
    """Press Ctrl-C once or twice; then say how it ended, and what is wrong."""
    fit.begin()
    begin = time.monotonic()
    child = fit.start()
    stop_after(child, chance.uniform(0, fit.seconds), signal.SIGINT)
    if chance.random() < 0.3:
        stop_after(child, chance.uniform(0, 0.05), signal.SIGINT)
    code, said, wrong = fit.end(child), fit.said(), []
    if code == 0:  # the machine has become faster
        fit.seconds = min(fit.seconds, time.monotonic() - begin)
    if code not in (0, 130):
        wrong.append(f"exit code {code}: {said[-300:]}")
    if "Traceback" in said:
        wrong.append(f"a traceback: {said[-300:]}")
    partial = "holds the best step so far" in said
    if partial and (fit.work / OUTPUT).read_bytes() != fit.finished:
        wrong.append("the partial model took the place of a finished one")
    how = MISSED if code == 0 else "with a partial model" if partial else "without one"
    return how, wrong + fit.differences()


def killed(fit: Fit, chance: random.Random) -> tuple[str, list[str]]:
    """Kill one to three runs, one after the other."""
    fit.begin()
    kills = 0
    for _ in range(chance.randint(1, 3)):
        child = fit.start()
        stop_after(child, chance.uniform(0, 0.8 * fit.seconds), signal.SIGKILL)
        kills += fit.end(child) == -signal.SIGKILL
    return ("killed" if kills else MISSED), fit.differences()


def aimed(target: Target, chance: random.Random) -> tuple[str, list[str]]:
    """Kill a writer at one of its calls."""
    most = MOST_CALLS
    while True:
        nth = chance.randint(1, most)
        try:
            if target.round(nth, chance.random() < 0.5):
                return "killed", []
        except AssertionError as error:
            return "killed", [str(error)]
        most = nth - 1  # it makes fewer calls than that


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option, default in (("interrupts", 100), ("kills", 100), ("seed", 0)):
        parser.add_argument(f"--{option}", type=int, default=default)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    one_thread()
    # A shell lets what it runs in the background ignore Ctrl-C, and children would do so too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    place = Path(tempfile.mkdtemp(prefix="stops-"))
    rows: Counter[tuple[str, str, str]] = Counter()
    failed: list[str] = []

    def count(what: str, name: str, result: tuple[str, list[str]]) -> None:
        how, wrong = result
        rows[what, name, how] += 1
        failed.extend(f"{what}, {name}: {text}" for text in wrong)
        print(end="x" if wrong else ".", file=sys.stderr, flush=True)

    try:
        assert not in_a_child(lambda: write_tables(place))
        every = [Fit(name, place, place / f"fit of {name}") for name in COMMANDS]
        for number in range(asked.interrupts):
            fit = every[number % len(every)]
            count("Ctrl-C", fit.name, interrupted(fit, chance))
        for number in range(asked.kills - asked.kills // 2):
            fit = every[number % len(every)]
            count("kill -9 of a fit", fit.name, killed(fit, chance))
        kinds = list(writers(two_models()).items())
        for number in range(asked.kills // 2):
            kind, write = kinds[number % len(kinds)]
            target = Target(write, place / "written", at_once="renames" not in kind)
            count("kill -9 at a call", kind, aimed(target, chance))
    finally:
        shutil.rmtree(place)
    print(file=sys.stderr)
    missed = sum(n for (what, _, how), n in rows.items() if (what, how) == ("Ctrl-C", MISSED))
    if asked.interrupts >= 10 and missed > asked.interrupts / 2:
        failed.append(f"{missed} of {asked.interrupts} Ctrl-C came too late to stop a fit")
    width = max(len(name) for _, name, _ in rows)
    for (what, name, how), rounds in sorted(rows.items()):
        print(f"{what:<18} {name:<{width}} {how:<22} {rounds:>3}")
    print(f"{sum(rows.values())} rounds, {len(failed)} differences")
    for text in failed:
        print(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
