"""The target of a table: which column it is, and whether its values are classes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from rdeepsense.errors import InputError


class TaskKind(StrEnum):
    """Ways to take the targets."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


def check_roles(
    targets: list[str], groups: str | None, ignore: list[str], forced: Sequence[str] = ()
) -> None:
    """Refuse a column that is to be two things."""
    left, own = set(ignore), set(targets)
    for name in targets:
        if name == groups:
            raise InputError(f"column {name!r} cannot be both --target and --groups")
        if name in left:
            raise InputError(f"column {name!r} cannot be both --target and --ignore")
    for name in forced:
        for option, taken in (("--target", own), ("--groups", {groups}), ("--ignore", left)):
            if name in taken:
                raise InputError(f"column {name!r} cannot be both {option} and --input")


def decide(task: TaskKind, kinds: dict[str, str]) -> tuple[bool, str]:
    """Decide whether the targets are classes, and say why."""
    if task is TaskKind.classification and len(kinds) > 1:
        raise InputError(f"classification has one target; --target names {len(kinds)}")
    if task is not TaskKind.auto:
        return task is TaskKind.classification, f"--task {task.value}"
    for name, kind in kinds.items():
        if kind == "numbers":
            continue
        if len(kinds) > 1:
            raise InputError(f"with several targets all must be numbers; {name!r} is not")
        what = kind if kind == "yes/no" else "not numeric"
        return True, f"{name} is {what}, so its values are classes"
    are = f"{next(iter(kinds))} is" if len(kinds) == 1 else "the targets are"
    hint = "; --task classification takes its values as classes" if len(kinds) == 1 else ""
    return False, f"{are} numeric{hint}"
