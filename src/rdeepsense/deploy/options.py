"""What can be asked of an export, and what each format takes."""

from __future__ import annotations

from dataclasses import dataclass, fields

from rdeepsense.adaptation.rates import Rates
from rdeepsense.calibration.reject import RejectOption
from rdeepsense.deploy.prepare import DTYPES
from rdeepsense.errors import InputError
from rdeepsense.windowing.stream import Smoothing

FORMATS = ("folded", "c99", "onnx", "package", "web")
# The types that weights may be stored in, and the other options that are heard.
STORED = {"folded": ("float32",), "c99": DTYPES, "onnx": ("float32", "int8")}
STORED["package"] = STORED["web"] = STORED["c99"]
STREAM = ("live", "coverage", "rates")
WATCH = ("reject", "novelty")
JUDGED = ("rows", "epistemic", "max_nll_change", "fine_tune")
HEARD = {
    "folded": ("epistemic", "smoothing", "hop", *WATCH),
    "c99": (*JUDGED, "name", "stream", "smoothing", "hop", *STREAM, *WATCH),
    "onnx": (*JUDGED, "features", "reject"),
    "web": (*JUDGED, "stream", "smoothing", *STREAM, *WATCH),
}
HEARD["package"] = (*HEARD["c99"], "version")


@dataclass(frozen=True)
class Options:
    """How to export; `rdeepsense.export` explains each."""

    dtype: str = "float32"
    epistemic: str | None = None
    max_nll_change: float = 0.02
    fine_tune: bool = False
    name: str = "model"
    live: bool = False
    coverage: float = 0.9
    rates: Rates | None = None
    features: bool = False
    stream: str | None = None
    smoothing: Smoothing | None = None
    hop: str | float | None = None
    version: str | None = None
    reject: RejectOption | float | None = None
    novelty: bool | None = None


def check_options(to: str, options: Options, rows_given: bool = False) -> None:
    """Refuse an unknown format, and what a format does not take."""
    if to not in FORMATS:
        raise InputError(f"to={to!r} is unknown; accepted: {_list(FORMATS)}")
    if options.dtype not in STORED[to]:
        what = f"is not for to={to!r}" if options.dtype in DTYPES else "is unknown"
        raise InputError(f"dtype={options.dtype!r} {what}; accepted: {_list(STORED[to])}")
    given = {
        field.name: repr(getattr(options, field.name))
        for field in fields(options)
        if field.name != "dtype" and getattr(options, field.name) != field.default
    }
    for name, value in [*([("rows", "")] if rows_given else []), *given.items()]:
        if name not in HEARD[to]:
            accepted = ", ".join(f"{one}=" for one in ("dtype", *HEARD[to]))
            raise InputError(f"{name}={value} is not for to={to!r}; accepted there: {accepted}")
    if options.fine_tune and options.dtype != "int8":
        raise InputError(
            f"fine_tune=True is for dtype='int8'; {options.dtype} is exported as it was trained"
        )
    for name in ("coverage", "rates"):
        if name in given and not options.live:
            raise InputError(f"{name}={given[name]} is for live=True")
    if options.live and options.epistemic is not None:
        raise InputError(
            f"epistemic={options.epistemic!r} is not for live=True, which learns what rows were "
            "unlike; leave one of them out"
        )
    if options.reject is not None and options.epistemic is not None:
        raise InputError(
            f"reject= is a threshold of the std without its epistemic part, and epistemic="
            f"{options.epistemic!r} exports it with that part; leave one of them out"
        )


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))
