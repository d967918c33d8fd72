"""Kill at every call, before and after it, for every kind: `python tests/stops/every_call.py`.

Kinds may be named; `c99/9` kills at each ninth call only. Prints one line for each kind; an
AssertionError says what was found in between.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import count
from pathlib import Path

from aimed import Target
from writers import one_thread, two_models, writers


def main(kinds: list[str]) -> None:
    one_thread()
    every = writers(two_models())
    with tempfile.TemporaryDirectory() as name:
        for named in kinds or every:
            kind, _, stride = named.partition("/")
            target = Target(every[kind], Path(name) / "work", at_once="renames" not in kind)
            rounds = 0
            for present in (True, False):
                for after in (False, True):
                    for nth in count(1, int(stride or 1)):
                        if not target.round(nth, after, present):
                            break
                        rounds += 1
            print(f"{kind}: {rounds} kills", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
