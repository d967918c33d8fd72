"""Whose the parts of a package are."""

from __future__ import annotations

from rdeepsense.deploy.package.manifests import FILES

NOTE = """The numbers of the model are yours: src/{name}_weights.c, the tables of src/{name}.c and
of examples/replay/stored.h, and the names that the files carry. Publish them under terms of your
own, or not at all.

The program text around them is that of rdeepsense, under the Apache License 2.0 as follows.

"""


def licence(name: str) -> str:
    """Give a note of what is the user's, and the licence of the rest."""
    return NOTE.format(name=name) + (FILES / "apache-2.0.txt").read_text().lstrip("\n")
