"""The tables that are refused, each with the reason in one line."""

from __future__ import annotations

import gzip

from cli.reading.zoo import ROWS, Animal, add, csv, lines, put, text, zipped

REFUSED = [
    Animal("nothing", lambda: b"", said=("is empty",)),
    Animal("a header alone", lambda: b"a,b,y\n", said=("has a header but no rows",)),
    Animal("no header", text(header=False), said=("it must hold the columns' names",)),
    Animal(
        "a name twice",
        lambda: csv().replace("a,b", "a,a", 1).encode(),
        said=("two columns named 'a' (1 and 2)",),
    ),
    Animal(
        "a short row",
        lambda: csv().encode() + b"1,2\n",
        said=("line 42 has 2 fields, the header has 3",),
    ),
    Animal(
        "a title",
        lambda: b"Log of sensor 7\n" + csv().encode(),
        said=("line 2 has 3 fields, the header has 1; the header must be the first line",),
    ),
    Animal(
        "a short row below comments",
        lambda: b"# a logger\n\n" + csv().encode() + b"1,2\n",
        said=("line 44 has 2 fields, the header has 3",),
    ),
    Animal(
        "a long row",
        lambda: csv().encode() + b"1,2,3,4\n",
        said=("line 42 has 4 fields, the header has 3",),
    ),
    Animal(
        "decimal commas between commas",
        lambda: b"a,b,y\n" + b"1,5,2,5,3,5\n" * ROWS,
        said=("numbers with decimal commas need another separator",),
    ),
    Animal(
        "a stray target",
        text(change=put("y", r30="error")),
        said=("--target 'y' holds numbers, and text in 1 of 40 cells: row 30 'error'",),
    ),
    Animal(
        "a row of units",
        lambda: csv().replace("\n", "\nV,V,m\n", 1).encode(),
        said=("--target 'y'", "row 0 'm'"),
    ),
    Animal(
        "a target with many strays",
        text(change=put("y", r1="x", r2="x", r3="x", r4="x")),
        said=("would have", "classes in 40 rows", "--many-classes"),
    ),
    Animal(
        "a missing input where it is refused",
        text(change=put("a", r9="?")),
        said=("missing values in 1 of 40 rows, first in row 9", "'a' (1); --missing auto"),
        options=("--missing", "refuse"),
    ),
    Animal("infinity", text(change=put("a", r9="inf")), said=("infinity in 1 of 40 rows",)),
    Animal(
        "days and months that could be exchanged",
        text(change=add("day", lambda k: f"0{1 + k % 9}/0{1 + k % 7}/2024")),
        said=("column 'day'", "could be day or month first"),
        options=("--datetime", "weekday"),
    ),
    Animal("a zip of two", zipped("a.csv", "b.csv"), said=("holds 2 files, such as 'a.csv'",)),
    Animal("half a gzip", lambda: gzip.compress(csv().encode())[:60], said=("as gzip",)),
    Animal("a bomb", lambda: gzip.compress(bytes(80 << 20)), said=("unpacks to more than",)),
    Animal("a web page", lambda: b"<!DOCTYPE html><html>", said=("is a web page",)),
    Animal("old Excel", lambda: b"\xd0\xcf\x11\xe0" + bytes(600), said=("save it as .xlsx",)),
    Animal("HDF5", lambda: b"\x89HDF\r\n\x1a\n" + bytes(600), said=("is an HDF5 file",)),
    Animal("bytes", lambda: bytes(range(256)) * 9, said=("is not a table",)),
    Animal("half a Parquet file", lambda: b"PAR1 and no more", said=("cannot be read as Parquet",)),
    Animal("broken JSON lines", lambda: lines() + b"\n{", said=("line 41 is no JSON",)),
    Animal(
        "only texts of which each row has its own",
        lambda: b"b,y\n" + b"".join(b"x%d,%d\n" % (k, k % 3) for k in range(40)),
        said=("no column is left as an input; left out: b (each row its own text, such as 'x0')",),
    ),
]
