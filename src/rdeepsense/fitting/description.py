"""What the header of a model file may say: each field's kind and range, in one place.

Anyone may have written a file, checksum included. `check_header` holds its header to these fields
and to each other; `tensor_layout` says which tensors then belong to it. Both come before anything
is built or allocated. Fields that are not known here are left alone: a later version may have added
them. Tensors that are not known are refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rdeepsense.adaptation.rates import MOST_FILTERS, MOST_KEPT
from rdeepsense.calibration import KINDS
from rdeepsense.data.checks import KEPT
from rdeepsense.encoding import check_encoding, without_tables
from rdeepsense.errors import InputError
from rdeepsense.fitting.epistemic import TOTALS
from rdeepsense.fitting.peer_record import check_peers
from rdeepsense.fitting.process import MODELS
from rdeepsense.modelfile.container import Header
from rdeepsense.modelfile.schema import (
    DTYPE,
    MOST_LABELS,
    Json,
    Kind,
    check_fields,
    choice,
    either,
    label,
    maybe,
    number,
    several,
    text,
    whole,
)
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.stream import Smoothing

Fields = Mapping[str, Kind]
LONGEST_TEXT = 9_999
MOST_NUMBERS = 1 << 20  # of one row
MOST_AXES = 6
MOST_MEMBERS = 10_000
MOST_STEPS = 1 << 53
LARGEST = 1e300
SHORT = text(LONGEST_TEXT)
TEXTS = several(SHORT, MOST_LABELS)
LABELS = several(label(LONGEST_TEXT), MOST_LABELS, least=1)
ANY = Kind(lambda value: True, "anything")
OBJECT = Kind(lambda value: type(value) is dict, "an object")
YES_OR_NO = Kind(lambda value: type(value) is bool, "true or false")
COUNT = whole(0, MOST_STEPS)
FIGURE = maybe(number(-LARGEST, LARGEST))  # null where it was NaN or infinite
SHARE = Kind(lambda value: type(value) in (int, float) and 0 <= value < 1, "a number in [0, 1)")
DROPS = either(SHARE, several(SHARE, 10_000))
CALIBRATION = maybe(choice(*KINDS))
SCALAR = Kind(
    lambda value: value is None or type(value) in (bool, int, float) or SHORT.accepts(value),
    "null, a number or a text",
)

REQUIRED = {
    "estimator": SHORT,
    "params": OBJECT,
    "features": whole(1, MOST_NUMBERS),
    "feature_names": maybe(TEXTS),
    "target": OBJECT,
    "calibration": CALIBRATION,
    "training": OBJECT,
    "selection": maybe(OBJECT),
    "validation_scores": OBJECT,
}
OPTIONAL = {
    "input_shape": several(whole(1, MOST_NUMBERS), MOST_AXES, least=1),
    **dict.fromkeys(KEPT, maybe(TEXTS)),
    "conformal_groups": LABELS,
    "conformal_new_group": YES_OR_NO,
    "architecture": OBJECT,
    "method": choice(*MODELS),
    "epistemic": OBJECT,
    "missing": choice("refuse", "mean", "indicator"),  # before it was a parameter alone
    "encoding": OBJECT,
    "adaptation": OBJECT,
    "adapted": OBJECT,
    "live": OBJECT,
    "windows": OBJECT,
    "smoothing": OBJECT,
    "peers": OBJECT,
    "dates": TEXTS,
}
PARAMS = {"samples": whole(2, 10_000)}  # passes of one prediction, which all take memory
NUMBERS = {"shape": several(whole(1, MOST_LABELS), 1)}
CLASSES = {"classes": LABELS, "dtype": DTYPE}
TRAINING = {
    "seed": whole(0, 2**32 - 1),
    "rows": COUNT,
    "validation_rows": COUNT,
    "validated": SHORT,
}
TRAINING_OPTIONAL = {
    "teacher": SHORT,
    "constant_inputs": TEXTS,
    "budget": OBJECT,
    "findings": several(OBJECT, 10_000),
}
FINDING = {
    "code": SHORT,
    "severity": choice("info", "warning", "error"),
    "message": SHORT,
    "columns": TEXTS,
    "cure": SHORT,
    "option": SHORT,
}
SELECTION = {
    "by": choice("nll", "deviation_area"),
    "how": SHORT,
    "chosen": COUNT,
    "trials": several(OBJECT, 10_000, least=1),
}
TRIAL = {
    "likelihood": SHORT,
    "alpha": SHARE,
    "drop_prob": DROPS,
    "nll": FIGURE,
    "deviation_area": FIGURE,
    "calibration": FIGURE,
    "best_step": COUNT,
}
LENGTH = {"steps": COUNT, "nll": FIGURE}
TRIED = {
    "name": SHORT,
    "arguments": OBJECT,
    "parameters": COUNT,
    "nll": FIGURE,
    "chosen": YES_OR_NO,
}
BEHIND = {"difference": FIGURE, "standard_error": FIGURE}
SECOND = {"trial": COUNT, "behind": OBJECT}
NEED = dict.fromkeys(("flash", "ram", "multiply_adds"), COUNT)
NEEDED = Kind(
    lambda value: (
        type(value) is dict
        and value.keys() == NEED.keys()
        and all(NEED[name].accepts(one) for name, one in value.items())
    ),
    f"an object of whole numbers: {', '.join(NEED)}",
)
RECORDS: dict[str, tuple[Fields, Fields]] = {  # required and optional
    "trials": (TRIAL, {}),
    "lengths": (LENGTH, {}),
    "architectures": (TRIED, {"behind": maybe(OBJECT), "need": NEEDED}),
}
ARCHITECTURE = {
    "class": SHORT,
    "outputs": whole(1, MOST_LABELS),
    "members": whole(1, MOST_MEMBERS),
    "likelihood": SHORT,
    "alpha": SHARE,
    "drop_prob": DROPS,
    "input_drop_prob": SHARE,
}
ARGUMENTS = {"arguments": maybe(OBJECT)}
DENSE = {"hidden": several(whole(1, MOST_LABELS), 10_000)}  # of before architectures had classes
DIGEST = Kind(
    lambda value: type(value) is str and len(value) == 64 and set(value) <= set("0123456789abcdef"),
    "64 hexadecimal digits",
)
ADAPTATION = {"rows": number(1e-3, 1e9), "groups": COUNT}
LIVE = {
    "rows": number(1e-3, 1e9),
    "within": number(1e-6, 1.0),
    "between": number(0.0, LARGEST),
    "keep": several(number(1e-6, MOST_KEPT), MOST_FILTERS, least=1),
    "eta": number(1e-6, 1.0),
}
ADAPTED = {"labels": whole(1, MOST_STEPS), "source": DIGEST}
EPISTEMIC = {"prior": number(1e-300, LARGEST), "calibrations": OBJECT}


def check_header(header: Header) -> None:
    """Refuse a header with a field that is missing, of another kind or out of range."""
    check_fields(header, REQUIRED, OPTIONAL)
    features, shape = header["features"], shape_of(header)
    if math.prod(shape) > MOST_NUMBERS or shape[-1] != features:
        raise InputError(
            f"input_shape = {list(shape)} does not fit features = {features}, or a row has more "
            f"than {MOST_NUMBERS} numbers"
        )
    if "encoding" in header:
        if len(shape) != 1:
            raise InputError("encoding is there for windows, which have none")
        check_encoding(header["encoding"], features)
    if "windows" in header:
        recipe = Recipe.from_json(header["windows"])
        if (recipe.length, len(recipe.channels)) != shape:
            raise InputError(
                f"windows are of {recipe.length} samples of {len(recipe.channels)} channels, which "
                f"does not fit input_shape = {list(shape)}"
            )
    if "smoothing" in header:
        Smoothing.from_json(header["smoothing"])
    if "peers" in header:
        check_peers(header["peers"])
    names = header["feature_names"]
    if names is not None and len(names) != features:
        raise InputError(f"feature_names has {len(names)} names for {features} features")
    for name, value in header["params"].items():
        accepted = several(SCALAR, 10_000) if type(value) is list else SCALAR
        check_fields({name: value}, {name: PARAMS.get(name, accepted)}, at="params.")
    check_fields(
        header["target"], NUMBERS if "shape" in header["target"] else CLASSES, at="target."
    )
    _check_records(header)
    if "architecture" in header:
        _check_architecture(header)
    elif "method" not in header:
        raise InputError("lacks the field architecture")
    if "adaptation" in header:
        check_fields(header["adaptation"], ADAPTATION, at="adaptation.")
    if "live" in header:
        check_fields(header["live"], LIVE, at="live.")
    if "adapted" in header:
        check_fields(header["adapted"], ADAPTED, at="adapted.")
        if not {"adaptation", "epistemic", "architecture"} <= set(header):
            raise InputError("adapted is there without what a model adapts by")
    if "epistemic" in header:
        check_fields(header["epistemic"], EPISTEMIC, at="epistemic.")
        kinds = header["epistemic"]["calibrations"]
        own = {method: CALIBRATION for method in TOTALS if method in kinds}
        check_fields(kinds, {"laplace": CALIBRATION, **own}, at="epistemic.calibrations.")
        if strange := sorted(set(kinds) - set(TOTALS)):
            raise InputError(f"epistemic.calibrations names {strange[0]!r:.60}, unknown here")


def shape_of(header: Header) -> tuple[int, ...]:
    """Return the shape of a row; files of the first versions have the features alone."""
    return tuple(header.get("input_shape", (header["features"],)))


def missing_of(header: Header) -> str:
    """Return how missing values are treated; earlier files say so among the parameters alone."""
    said = header.get("missing", header["params"].get("missing", "refuse"))
    return said if said in ("mean", "indicator") else "refuse"


def network_shape_of(header: Header, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape of what networks read of a row; tables of levels have these shapes."""
    if "encoding" not in header:
        return shape_of(header)
    found = without_tables(header["encoding"], header["features"])
    wide = sum(shape[1] for shape in found.shapes(shapes).values())
    if not 0 < found.width + wide <= MOST_NUMBERS:
        raise InputError(f"encoding makes {found.width + wide} numbers of a row")
    return (found.width + wide,)


def outputs_of(target: Json) -> int:
    """Return the number of outputs, or of classes."""
    return math.prod(target["shape"]) if "shape" in target else len(target["classes"])


def _check_records(header: Header) -> None:
    check_fields(header["training"], TRAINING, TRAINING_OPTIONAL, "training.")
    for place, finding in enumerate(header["training"].get("findings", ())):
        at = f"training.findings[{place}]."
        check_fields(finding, FINDING, at=at)
        if strange := sorted(set(finding) - set(FINDING)):
            raise InputError(f"{at}{strange[0]!s:.60} is unknown here")
    scores = header["validation_scores"]
    check_fields(scores, dict.fromkeys(scores, FIGURE), at="validation_scores.")
    selection = header["selection"]
    if selection is None:
        return
    more = dict.fromkeys(("lengths", "architectures"), maybe(several(OBJECT, 10_000)))
    more |= {"second": OBJECT, "cut": YES_OR_NO}
    check_fields(selection, SELECTION, more, "selection.")
    for name, (required, optional) in RECORDS.items():
        for number_of, record in enumerate(selection.get(name) or ()):
            at = f"selection.{name}[{number_of}]."
            check_fields(record, required, optional, at)
            if strange := sorted(set(record) - set(required) - set(optional)):
                raise InputError(f"{at}{strange[0]!s:.60} is unknown here")
            if record.get("behind") is not None:
                _check_behind(record["behind"], f"{at}behind.")
    tried = selection.get("architectures") or ()
    if len({"need" in one for one in tried}) > 1:
        raise InputError("selection.architectures has a need for some and not for all")
    numbers = {"chosen": selection["chosen"]}
    if "second" in selection:
        check_fields(selection["second"], SECOND, at="selection.second.")
        _check_behind(selection["second"]["behind"], "selection.second.behind.")
        numbers["second.trial"] = selection["second"]["trial"]
    for name, value in numbers.items():
        if value >= len(selection["trials"]):
            raise InputError(
                f"selection.{name} = {value} is none of {len(selection['trials'])} trials"
            )


def _check_behind(value: Json, at: str) -> None:
    check_fields(value, BEHIND, at=at)
    if strange := sorted(set(value) - set(BEHIND)):
        raise InputError(f"{at}{strange[0]!s:.60} is unknown here")


def _check_architecture(header: Header) -> None:
    saved, outputs = header["architecture"], outputs_of(header["target"])
    check_fields(saved, ARCHITECTURE, ARGUMENTS, "architecture.")
    if saved["class"] == "dense":
        check_fields(saved, DENSE, at="architecture.")
    if saved["outputs"] != outputs:
        raise InputError(
            f"architecture.outputs = {saved['outputs']} does not fit the target, which has "
            f"{outputs}"
        )
