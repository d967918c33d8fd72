"""Record anew what users can observe: `python tests/golden/record.py [NAME ...]`, all by default.

Run it after a change that is intended, and commit the difference with the reason.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where `golden` is found

from golden import error_messages, exports, fits, help_texts, records, signatures

TEXTS = {
    "signatures": signatures.recorded,
    "help": help_texts.recorded,
    "errors": error_messages.recorded,
    "exports": exports.recorded,
}
NAMES = ("fits", *TEXTS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)}")
    parser.add_argument("--renew-models", action="store_true", help="write models/ anew as well")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in NAMES]:
        parser.error(f"{unknown[0]!r} is none of {', '.join(NAMES)}")
    for name in given.names or NAMES:
        if name == "fits":
            print(f"fits: {fits.write(given.renew_models)}")
        else:
            print(f"{name}: {records.write(name, TEXTS[name]())}")


if __name__ == "__main__":
    main()
