"""Methods by name: the estimator of each and how it predicts (section 4.3 of the paper)."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rdeepsense.errors import InputError, InterruptedTraining, require

# --------------------------------------------------------------------------------------------------
# Trainings that must be complete to count
# --------------------------------------------------------------------------------------------------


@contextmanager
def completing() -> Iterator[None]:
    """Let Ctrl-C in a training end all: half a training is no result of an experiment."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterruptedTraining)
        try:
            yield
        except InterruptedTraining as stopped:
            raise KeyboardInterrupt from stopped


# --------------------------------------------------------------------------------------------------
# Methods by name: estimator and prediction (section 4.3 of the paper)
#
# Methods of one family share one fitted model: RDeepSense and every RDeepSense-MCk, MCDrop-k for
# every k, SSP-k for every k from the bank of the largest. In a comparison the families have the
# same budget: the same layers and training, and whatever a family leaves open (head, alpha,
# dropout, noise, calibration) is chosen on validation rows. CatBoost and NGBoost are peers of other
# libraries.
# --------------------------------------------------------------------------------------------------

REFERENCE = "RDeepSense"  # the single pass, which paired differences are taken against
METHODS = ("RDeepSense-quick", "MCDrop-20", "SSP-5")  # those that take seconds on small tables
ACCEPTED = (
    "RDeepSense, RDeepSense-MCk, RDeepSense-quick, RDeepSense-paper, RDeepSense-paper-MCk, "
    "MCDrop-k, MCDrop-k-paper, SSP-k, SSP-k-paper, GP, CatBoost, NGBoost (k is a whole number, at "
    "least 2 for MCDrop)"
)
TASKS = ("regression", "classification")


@dataclass(frozen=True)
class Family:
    """One fitted model: its estimator and what is fixed or left open in it."""

    estimator: str  # "RDeepSense" stands for RDeepSenseRegressor and RDeepSenseClassifier
    about: str
    options: dict[str, object]  # arguments of the estimator
    regression_options: dict[str, object]
    passes_option: str | None = None  # the argument that fixes how many passes it is fitted for
    is_network: bool = True
    library: str | None = None  # what it needs beyond this package's own, and the extra with it
    extra: str = ""
    is_peer: bool = False  # made of another library's model
    chooses_network: bool = False  # where nothing is said about its layers


def _peer(library: str, about: str) -> Family:
    return Family("", about, {}, {}, None, False, library, "peers", True)


FAMILIES = {
    "RDeepSense": Family(
        "RDeepSense",
        "head, alpha, dropout and, unless it is given, the network chosen on validation rows",
        {"alpha": "auto", "drop_prob": "auto", "effort": "full"},
        {"likelihood": "auto"},
        chooses_network=True,
    ),
    "RDeepSense-quick": Family(
        "RDeepSense",
        "the quick recipe: Student-t head, dropout 0.05, alpha 0.5, nothing chosen",
        {"effort": "quick"},
        {},
    ),
    "RDeepSense-paper": Family(
        "RDeepSense",
        "the paper's own: Gaussian head, dropout 0.1, alpha by validation deviation area (for "
        "classes by validation NLL) on the paper's grid, no calibration after training",
        {"alpha": "paper", "drop_prob": 0.1, "input_drop_prob": 0.0, "calibrate": False},
        {"likelihood": "gaussian", "beta": 0.0},
    ),
    "MCDrop": Family(
        "MCDrop",
        "Gal's MC dropout; dropout and observation noise chosen on validation rows",
        {"drop_prob": "auto", "noise": "tuned"},
        {},
        "samples",
        chooses_network=True,
    ),
    "MCDrop-paper": Family(
        "MCDrop",
        "MC dropout as in the RDeepSense paper: dropout 0.05 and no observation noise",
        {"drop_prob": 0.05, "input_drop_prob": 0.0, "noise": "none"},
        {},
        "samples",
    ),
    "SSP": Family(
        "SSP",
        "deep ensemble; head chosen on validation rows",
        {},
        {"likelihood": "auto"},
        "members",
        chooses_network=True,
    ),
    "SSP-paper": Family(
        "SSP",
        "deep ensemble as in the RDeepSense paper: Gaussian heads trained by NLL alone (Brier "
        "score for classes), no calibration after training",
        {"adversarial": False, "calibrate": False},
        {"likelihood": "gaussian"},
        "members",
    ),
    "GP": Family(
        "GP",
        "Gaussian process: exact up to 3,000 rows, 256 inducing points and 300 steps beyond",
        {"inducing": 256, "steps": 300},
        {},
        None,
        False,
        "gpytorch",
        "gp",
    ),
    "CatBoost": _peer(
        "catboost",
        "boosted trees (CatBoost) of a Gaussian by RMSEWithUncertainty, or of classes; number of "
        "trees, and one scale or temperature, by validation rows",
    ),
    "NGBoost": _peer(
        "ngboost",
        "natural gradient boosting (NGBoost) of a Gaussian, or of classes; number of steps, and "
        "one scale or temperature, by validation rows",
    ),
}

_FORMS = (
    (re.compile(r"RDeepSense-MC(\d+)", re.I), "RDeepSense", "RDeepSense-MC{}"),
    (
        re.compile(r"RDeepSense-paper-MC(\d+)", re.I),
        "RDeepSense-paper",
        "RDeepSense-paper-MC{}",
    ),
    (re.compile(r"MCDrop-(\d+)", re.I), "MCDrop", "MCDrop-{}"),
    (re.compile(r"MCDrop-(\d+)(?:-paper| \(paper\))", re.I), "MCDrop-paper", "MCDrop-{}-paper"),
    (re.compile(r"SSP-(\d+)", re.I), "SSP", "SSP-{}"),
    (re.compile(r"SSP-(\d+)(?:-paper| \(paper\))", re.I), "SSP-paper", "SSP-{}-paper"),
)
_SINGLE = {name.lower(): name for name, own in FAMILIES.items() if own.passes_option is None}


@dataclass(frozen=True)
class Method:
    """A way to predict: a family's fitted model, and the samples asked of it.

    An object of the user's own, `model`, is a family by itself.
    """

    name: str
    family: str
    samples: int | None  # of predict_dist; None is the model's one way
    model: object | None = field(default=None, compare=False)

    @property
    def passes(self) -> int | None:
        """Return the forward passes of one prediction; None for what is no network of ours."""
        if self.model is not None or not FAMILIES[self.family].is_network:
            return None
        return self.samples or 1

    @property
    def about(self) -> str:
        """Return one line for a legend."""
        if self.model is not None:
            return f"an object of your own, {type(self.model).__name__}, as it is"
        return FAMILIES[self.family].about


def parse(name: str) -> Method:
    """Return the method of that name."""
    text = " ".join(str(name).split())
    if text.lower() in _SINGLE:
        single = _SINGLE[text.lower()]
        return Method(single, single, None)
    for form, family, canonical in _FORMS:
        match = form.fullmatch(text)
        if match is None:
            continue
        count, least = int(match[1]), 2 if family.startswith("MCDrop") else 1
        if count < least:
            raise InputError(f"method {text!r}: k must be at least {least}")
        return Method(canonical.format(count), family, count)
    raise InputError(f"method {text!r} is unknown; accepted: {ACCEPTED}")


def parse_all(names: Iterable[str]) -> tuple[Method, ...]:
    """Return the methods of these names, each once; libraries they need are checked at once."""
    if isinstance(names, str):
        names = names.split(",")
    return checked(parse(name) for name in names)


def checked(methods: Iterable[Method]) -> tuple[Method, ...]:
    """Return the methods, each once; refuse none at all, and those without their library."""
    chosen = tuple(dict.fromkeys(methods))
    if not chosen:
        raise InputError(f"methods is empty; accepted: {ACCEPTED}")
    for family in {method.family for method in chosen if method.model is None}:
        if library := FAMILIES[family].library:
            require(library, FAMILIES[family].extra)
    return chosen


def by_family(methods: Sequence[Method]) -> dict[str, tuple[Method, ...]]:
    """Return the methods that share a fitted model, family by family in the order given."""
    families = dict.fromkeys(method.family for method in methods)
    return {
        family: tuple(method for method in methods if method.family == family)
        for family in families
    }


# --------------------------------------------------------------------------------------------------
# Methods of a comparison: names, or objects of the user
# --------------------------------------------------------------------------------------------------

Methods = str | Iterable[object] | Mapping[str, object]


def methods_of(given: Methods) -> tuple[Method, ...]:
    """Return the methods, each once.

    `given` has names of methods, objects, which are called as their class is, and pairs
    (name, object); a mapping has such pairs alone, in which a text is the name of a method.
    """
    methods = list(_each(given))
    names = Counter(method.name for method in methods if method.model is not None)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise InputError(
            f"two methods are called {twice[0]!r}; name them: {{'a name': object, ...}}"
        )
    return checked(methods)


def _each(given: Methods) -> Iterator[Method]:
    if isinstance(given, str):
        given = given.split(",")
    if isinstance(given, Mapping):
        given = list(given.items())
    elif not isinstance(given, Iterable):
        raise InputError(f"methods is a {type(given).__name__}; give a list of names and objects")
    for one in given:
        if isinstance(one, str):
            yield parse(one)
        elif isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str):
            yield _named(*one)
        else:
            yield _named((one if isinstance(one, type) else type(one)).__name__, one)


def _named(name: str, model: object) -> Method:
    if isinstance(model, str):
        method = parse(model)
        if name not in (model, method.name):
            raise InputError(f"methods[{name!r}]: {method.name} keeps its name; use it as the key")
        return method
    return Method(_free(name), name, None, model)


def _free(name: str) -> str:
    """Refuse a name that is none, or that of a method of this package."""
    if not name.strip():
        raise InputError("methods: a name is empty; give each object one")
    try:
        taken = parse(name).name
    except InputError:
        return name
    raise InputError(
        f"methods[{name!r}]: {taken} is the name of a method here; give the object another one "
        f"({{'a name': object}}). Names of methods: {ACCEPTED}"
    )
