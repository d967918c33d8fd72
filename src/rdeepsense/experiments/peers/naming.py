"""Methods given to a comparison: names of methods, objects of the user's own, or both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rdeepsense.errors import InputError
from rdeepsense.experiments.methods import ACCEPTED, Method, checked, parse

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
