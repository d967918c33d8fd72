"""What is said of a choice: exact lines for records that are written here by hand."""

from __future__ import annotations

from typing import Any

from rdeepsense.cli.fit import choice_lines


def trial(likelihood: str, alpha: float, drop_prob: float) -> dict[str, Any]:
    return {"likelihood": likelihood, "alpha": alpha, "drop_prob": drop_prob, "nll": 1.0}


def tried(name: str, nll: float, difference: float | None, **arguments: Any) -> dict[str, Any]:
    behind = None
    if difference is not None:
        behind = {"difference": difference, "standard_error": 0.0111}
    return {"name": name, "arguments": arguments, "nll": nll, "chosen": behind is None,
            "behind": behind, "parameters": 1}  # fmt: skip


def test_nothing_chosen_is_nothing_said() -> None:
    assert choice_lines(None) == []


def test_the_network_its_head_and_what_came_second() -> None:
    selection = {
        "how": "validation rows",
        "chosen": 1,
        "trials": [trial("student", 0.0, 0.05), trial("student", 0.5, 0.05)],
        "second": {"trial": 0, "behind": {"difference": 0.25, "standard_error": None}},
        "architectures": [
            tried("Dense", 1.0, None, hidden=[64, 64]),
            tried("Dense", 3.0, 2.0, hidden=[8]),
            tried("Periodic", 0.9, -0.0042, hidden=[128], std=0.1),
        ],
        "cut": True,
    }
    assert choice_lines(selection) == [
        "network   layers of 64-64, of 3 tried; next: layers of 128 on periodic embeddings (spread "
        "0.1), 0.004 ± 0.011 better (not significant)",
        "chosen    student head, alpha 0.5, drop probability 0.05: best of 2 by validation rows; "
        "next: alpha 0, 0.250 behind",
        "cut       the clock ended the search: another run may choose otherwise",
    ]
    selection["architectures"] = [tried("DeepSense", 1.0, None, filters=16, hidden=32)]
    assert choice_lines(selection)[0] == "network   DeepSense (filters 16, hidden 32)"
