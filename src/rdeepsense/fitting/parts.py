"""The parts of a fitted model in its file.

To add a part, define a `FilePart` in the module of the part and add it to `PARTS`; it is then
checked, written and read with the others. `Fitted` has the part as the field of that name, or as an
item of `Fitted.parts`. This module has the formats of parts from packages below the model file's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from rdeepsense import encoding
from rdeepsense.adaptation.rates import MOST_FILTERS, MOST_KEPT, Rates
from rdeepsense.calibration.conformal import Conformal
from rdeepsense.compact_novelty import BYTE, LARGEST_SINGLE, CompactNovelty
from rdeepsense.compact_novelty import NUMBERS as NOVELTY_NUMBERS
from rdeepsense.data.rows import Pair
from rdeepsense.encoding import Encoding, without_tables
from rdeepsense.errors import InputError
from rdeepsense.fitting.epistemic import EPISTEMIC
from rdeepsense.fitting.fitted import ADAPTATION, CORRECTION, PEERS
from rdeepsense.guard import FURTHEST, Guard
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.modelfile.container import Header
from rdeepsense.modelfile.layout import (
    LABELS,
    LARGEST,
    LARGEST_FIGURE,
    Context,
    FilePart,
    Layout,
    Numbers,
    Record,
    Shape,
    length,
)
from rdeepsense.modelfile.schema import FLAG, Json, Kind, check_fields, number, several
from rdeepsense.modelfile.tensors import Tensors, tupled
from rdeepsense.uncertainty.novelty import SCORES, Novelty
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.stream import Smoothing


def missing_of(header: Header) -> str:
    """Return how missing values are treated; earlier files say so among the parameters alone."""
    said = header.get("missing", header["params"].get("missing", "refuse"))
    return said if said in ("mean", "indicator") else "refuse"


def columns_of(header: Header) -> Encoding | None:
    """Return what columns a checked header encodes, without tables; None where it encodes none."""
    if "encoding" not in header:
        return None
    return without_tables(header["encoding"], header["features"])


# --------------------------------------------------------------------------------------------------
# Parts with tensors: conformal scores, guard, novelty, held-out rows
#
#     conformal.scores, .group     (rows, outputs), of classes (rows, 1); (rows,)
#     guard.low, .high, .missing   (channels,), of the row itself; .levels too, with categories
#     guard.fallback               (outputs,), of classes their frequencies
#     novelty.*, unlike.*          columns, components and Gaussians that agree
#     rows.X, .y                   (rows, *input_shape), (rows, *target.shape)
# --------------------------------------------------------------------------------------------------


class ConformalPart(FilePart[Conformal]):
    name = "conformal"
    prefixes = ("conformal.scores", "conformal.group")
    before_model = True

    @property
    def fields(self) -> Mapping[str, Kind]:
        return {"conformal_groups": LABELS, "conformal_new_group": FLAG}

    def layout(self, context: Context) -> Layout:
        if "conformal_groups" not in context.header:
            raise InputError("lacks the field conformal_groups")
        rows = length(context.shapes, "conformal.scores")
        groups = len(context.header["conformal_groups"])
        outputs = 1 if context.is_classes else context.outputs
        yield "conformal.scores", Numbers((rows, outputs), 0.0)
        yield "conformal.group", Numbers((rows,), 0, groups - 1, "i")

    def to_file(self, part: Conformal, header: Header, tensors: Tensors) -> None:
        tensors["conformal.scores"], tensors["conformal.group"] = part.scores, part.group
        header["conformal_groups"] = list(part.labels)
        if part.new_group:
            header["conformal_new_group"] = True

    def from_file(self, tensors: Tensors, context: Context) -> Conformal:
        return Conformal(
            **model_file.under("conformal", tensors),
            labels=tuple(context.header["conformal_groups"]),
            new_group=context.header.get("conformal_new_group", False),
        )


class GuardPart(FilePart[Guard]):
    name = "guard"
    prefixes = ("guard.",)

    def is_in(self, header: Header, names: Any) -> bool:
        columns = columns_of(header)
        return super().is_in(header, names) or bool(columns and columns.categories)

    def layout(self, context: Context) -> Layout:
        columns, channels = columns_of(context.header), context.shape[-1:]
        if columns is not None and columns.categories:
            yield "guard.levels", Numbers(context.shape, 0.0, encoding.MOST_LEVELS)
        yield "guard.low", Numbers(channels, -FURTHEST, FURTHEST)
        yield "guard.high", Numbers(channels, -FURTHEST, FURTHEST)
        yield "guard.missing", Numbers(channels, 0.0, 1.0)
        most = 1.0 if context.is_classes else LARGEST
        yield "guard.fallback", Numbers((context.outputs,), 0.0, most)

    def check_numbers(self, tensors: Tensors, context: Context) -> None:
        """Refuse ranges without a number in them, and frequencies that are none."""
        if not (tensors["guard.low"] <= tensors["guard.high"]).all():
            raise InputError("guard.low lies above guard.high")
        if context.is_classes and abs(tensors["guard.fallback"].sum() - 1) > 1e-6:
            raise InputError("guard.fallback holds no frequencies of classes: their sum is not 1")
        columns, levels = columns_of(context.header), tensors.get("guard.levels")
        if levels is not None and columns and not np.array_equal(levels, columns.counts):
            raise InputError("guard.levels does not fit the encoding")

    def arrays(self, part: Guard) -> Tensors:
        return part.arrays()

    def built(self, arrays: Tensors) -> Guard:
        return Guard(**arrays)


class NoveltyPart(FilePart[Novelty]):
    name = "novelty"
    prefixes = ("novelty.",)

    def layout(self, context: Context) -> Layout:
        shape, shapes = context.network_shape, context.shapes
        columns = shape[0] if len(shape) == 1 else 5 * shape[-1]
        components, gaussians = length(shapes, "novelty.axes", 1), length(shapes, "novelty.shares")
        large = 1e30  # of what is stored in float32
        yield "novelty.mean", Numbers((columns,), -large, large)
        yield "novelty.std", Numbers((columns,), 1 / large, large)
        yield "novelty.knots", Numbers((len(SCORES), columns), -large, large)
        yield "novelty.centre", Numbers((columns,), -large, large)
        yield "novelty.axes", Numbers((columns, components), -large, large)
        yield "novelty.shares", Numbers((gaussians,), 0.0, 1.0 + 1e-3)
        yield "novelty.means", Numbers((gaussians, components), -large, large)
        yield "novelty.factors", Numbers((gaussians, components, components), -large, large)
        yield "novelty.held_out", Numbers((length(shapes, "novelty.held_out"),))

    def check_numbers(self, tensors: Tensors, context: Context) -> None:
        """Refuse scores that do not rise, and Gaussians without a width."""
        for name in ("novelty.knots", "novelty.held_out"):
            if not (np.diff(tensors[name], axis=0) >= 0).all():
                raise InputError(f"{name} is not in order")
        if not (np.diagonal(tensors["novelty.factors"], axis1=1, axis2=2) > 0).all():
            raise InputError("novelty.factors has a diagonal that is not positive")
        if not tensors["novelty.shares"].max() > 0:
            raise InputError("novelty.shares are all 0")

    def arrays(self, part: Novelty) -> Tensors:
        return vars(part)

    def built(self, arrays: Tensors) -> Novelty:
        return Novelty(**arrays)


class UnlikePart(FilePart[CompactNovelty]):
    """The tables of a compact novelty, which reads all inputs but categories."""

    name = "unlike"
    prefixes = ("unlike.",)

    def layout(self, context: Context) -> Layout:
        shape, shapes = context.shape, context.shapes
        encoded = columns_of(context.header)
        inputs = shape[-1] if encoded is None else len(encoded.numbers)
        columns = inputs * (NOVELTY_NUMBERS if len(shape) == 2 else 1)
        knots, size = length(shapes, "unlike.knots", 1), length(shapes, "unlike.axis_steps")
        gaussians = length(shapes, "unlike.constants")
        if knots < 2:
            raise InputError("unlike.knots has a single knot")
        own: dict[str, Shape] = {
            "centre": (inputs,),
            "lines": (columns, 4),
            "knots": (columns, knots),
            "axis_steps": (size,),
            "factor_steps": (gaussians, size),
            "means": (gaussians, size),
            "constants": (gaussians,),
            "threshold": (1,),
        }
        for name, numbers in own.items():
            yield f"unlike.{name}", Numbers(numbers, -LARGEST_SINGLE, LARGEST_SINGLE)
        yield "unlike.width", Numbers((1,), 1 / LARGEST_SINGLE, LARGEST_SINGLE)
        bytes_of = {
            "scores": (columns, knots),
            "axes": (columns, size),
            "factors": (gaussians, size, size),
        }
        for name, numbers in bytes_of.items():
            yield f"unlike.{name}", Numbers(numbers, -BYTE, BYTE, "i1")

    def check_numbers(self, tensors: Tensors, context: Context) -> None:
        if not (np.diff(tensors["unlike.knots"], axis=1) >= 0).all():
            raise InputError("unlike.knots are not in order")

    def arrays(self, part: CompactNovelty) -> Tensors:
        return part.stored()

    def built(self, arrays: Tensors) -> CompactNovelty:
        return CompactNovelty.restored(arrays)


class KeptRowsPart(FilePart[Pair]):
    name = "kept_rows"
    prefixes = ("rows.X", "rows.y")

    def layout(self, context: Context) -> Layout:
        rows = length(context.shapes, "rows.X")
        gaps = missing_of(context.header) != "refuse"
        yield "rows.X", Numbers((rows, *context.shape), -1e308, 1e308, gaps=gaps)
        if context.is_classes:
            yield "rows.y", Numbers((rows,), 0, context.outputs - 1, "i")
        else:
            yield "rows.y", Numbers((rows, *context.header["target"]["shape"]))

    def to_file(self, part: Pair, header: Header, tensors: Tensors) -> None:
        if len(part[0]):
            tensors["rows.X"], tensors["rows.y"] = part

    def from_file(self, tensors: Tensors, context: Context) -> Pair:
        return tensors["rows.X"], tensors["rows.y"]

    def absent(self, context: Context) -> Pair:
        return np.empty((0, *context.shape)), np.empty(0)


# --------------------------------------------------------------------------------------------------
# Parts that are one JSON object: live rates, window recipe, smoothing
# --------------------------------------------------------------------------------------------------

LIVE = {
    "rows": number(1e-3, 1e9),
    "within": number(1e-6, 1.0),
    "between": number(0.0, LARGEST_FIGURE),
    "keep": several(number(1e-6, MOST_KEPT), MOST_FILTERS, least=1),
    "eta": number(1e-6, 1.0),
}


def _check_recipe(value: Json, context: Context) -> None:
    recipe = Recipe.from_json(value)
    if (recipe.length, len(recipe.channels)) != context.shape:
        raise InputError(
            f"windows are of {recipe.length} samples of {len(recipe.channels)} channels, which "
            f"does not fit input_shape = {list(context.shape)}"
        )


RATES = Record(
    "rates",
    "live",
    check=lambda value, context: check_fields(value, LIVE, at="live."),
    write=lambda rates: model_file.to_plain(asdict(rates)),
    read=lambda value: Rates(**{name: tupled(own) for name, own in value.items()}),
)
RECIPE = Record(
    "recipe", "windows", check=_check_recipe, write=Recipe.to_json, read=Recipe.from_json
)
SMOOTHING = Record(
    "smoothing",
    "smoothing",
    check=lambda value, context: Smoothing.from_json(value),
    write=asdict,
    read=Smoothing.from_json,
)

# --------------------------------------------------------------------------------------------------
# All parts, in the order of their header fields
# --------------------------------------------------------------------------------------------------

PARTS: list[FilePart[Any]] = [
    ConformalPart(),
    GuardPart(),
    NoveltyPart(),
    UnlikePart(),
    KeptRowsPart(),
    EPISTEMIC,
    ADAPTATION,
    RATES,
    CORRECTION,
    RECIPE,
    SMOOTHING,
    PEERS,
]
