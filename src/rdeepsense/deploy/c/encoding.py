"""Categories and flags of missing values in C: tables, sizes, and the names of levels."""

from __future__ import annotations

import re

import numpy as np

from rdeepsense.deploy.c.inputs import CModel
from rdeepsense.deploy.c.text import remark
from rdeepsense.encoding import Category, Encoding

LONGEST_MACRO = 63  # letters that C99 tells apart
ABOUT = """
/* Categories are given as the number of their level, as a float. Any other number is a level that
   was never seen. */"""


def encoding_switches(encoding: Encoding | None) -> dict[str, bool]:
    """What of the runtime's encoding a model needs."""
    return {
        "ENCODED": encoding is not None,
        "NUMBERED": encoding is not None and bool(encoding.numbers),
        "FLAGGED": encoding is not None and bool(encoding.flagged),
        "CODED": encoding is not None and bool(encoding.categories),
    }


def encoding_sizes(encoding: Encoding | None) -> list[str]:
    """The part of config.h that is the encoding's."""
    if encoding is None:
        return []
    found = (
        ("NUMBERS", len(encoding.numbers), "of a row"),
        ("FLAGS", len(encoding.flagged), "of numbers that may be missing"),
        ("CATEGORIES", len(encoding.categories), "of a row"),
    )
    return [f"#define {name} {count} /* {what} */" for name, count, what in found if count]


def encoding_arrays(model: CModel) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    """The tables of the encoding, by name: floats, and whole numbers of 32 bits."""
    encoding = model.encoding
    if encoding is None:
        return {}
    found = {"numbers": np.array(encoding.numbers, np.int32)}
    found["flags"] = np.array(encoding.flagged, np.int32)
    categories = encoding.categories
    found["categories"] = np.array([c.column for c in categories], np.int32)
    found["category_levels"] = np.array([len(c.levels) for c in categories], np.int32)
    found["category_width"] = np.array([c.width for c in categories], np.int32)
    tables: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {**found}
    if categories:
        tables["vectors"] = np.concatenate([c.vectors.ravel() for c in categories])
        if model.guard is not None:
            tables["levels"] = encoding.counts
    return {name: values for name, values in tables.items() if values.size}


def level_macros(model: CModel) -> list[str]:
    """The part of sizes.h that names levels: a macro for each, with its code."""
    if model.encoding is None or not model.encoding.categories:
        return []
    lines, used = [ABOUT], set[str]()
    for category in model.encoding.categories:
        feature = model.features[category.column] if model.features else f"x{category.column}"
        lines.append(f"/* x[{category.column}], {remark(feature)}: */")
        for code, level in enumerate(category.levels):
            macro = _macro(model.name, feature, level, code, used)
            lines.append(f"#define {macro} {code} /* {remark(level)} */")
    return lines


def about(category: Category) -> str:
    """What the header says of an input that is a category."""
    return f"the number of its level, one of {len(category.levels)}"


def _macro(name: str, feature: str, level: str, code: int, used: set[str]) -> str:
    parts = [re.sub(r"[^A-Za-z0-9]+", "_", part).strip("_") for part in (feature, level)]
    macro = "_".join([name, "LEVEL", *filter(None, parts)]).upper()
    if len(macro) > LONGEST_MACRO or macro in used or not parts[1]:
        macro = f"{macro[: LONGEST_MACRO - 8]}_{code}"
    while macro in used:
        macro = f"{macro}_"
    used.add(macro)
    return macro
