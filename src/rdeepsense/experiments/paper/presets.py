"""Sizes of an evaluation: the paper's, or one for two cores and minutes."""

from __future__ import annotations

from dataclasses import dataclass

from rdeepsense.errors import InputError

TASKS = ("BPEst", "NYCommute", "GasSen", "HHAR")
ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)  # of the paper's study (section 4.6)
SAMPLES = (3, 5, 10, 20)  # k of RDeepSense-MCk and MCDrop-k (section 4.3)
MEMBERS = (1, 3, 5, 10)  # k of SSP-k
METHODS = (
    "RDeepSense-paper",
    *(f"RDeepSense-paper-MC{k}" for k in SAMPLES),
    *(f"MCDrop-{k}-paper" for k in SAMPLES),
    "MCDrop-20",
    *(f"SSP-{k}-paper" for k in MEMBERS),
    "GP",
    "RDeepSense",
)  # in the order of the tables


@dataclass(frozen=True)
class Preset:
    """The size of everything."""

    name: str
    hidden: tuple[int, ...]
    seeds: int  # trainings of everything, each from another seed, on the same rows
    rows: dict[str, int]  # of each task where it is simulated
    most_rows: int | None  # of real data, drawn at random; None for all
    steps: int | None  # of each training; None follows the default recipe
    batch_size: int | None
    shares: tuple[float, float, float]  # train, validation, test
    gp_rows: int  # of the training rows, drawn at random
    gp_steps: int | None
    rounds: int  # of the timing
    kl_draws: int  # from the known truth, for each test row


PRESETS = {
    "quick": Preset(
        name="quick",
        hidden=(64, 64, 64),
        seeds=4,
        rows={"BPEst": 5_000, "NYCommute": 8_000, "GasSen": 8_000, "HHAR": 5_000},
        most_rows=20_000,
        steps=1_500,
        batch_size=64,
        shares=(0.7, 0.15, 0.15),
        gp_rows=1_000,
        gp_steps=100,
        rounds=15,
        kl_draws=20,
    ),
    "paper": Preset(
        name="paper",
        hidden=(500, 500, 500),
        seeds=3,
        rows={"BPEst": 60_000, "NYCommute": 400_000, "GasSen": 200_000, "HHAR": 31_686},
        most_rows=None,
        steps=None,
        batch_size=None,
        shares=(0.9, 0.05, 0.05),
        gp_rows=3_000,
        gp_steps=None,
        rounds=51,
        kl_draws=20,
    ),
}


def preset(name: str) -> Preset:
    """Return the preset of that name."""
    if name not in PRESETS:
        raise InputError(f"preset {name!r} is unknown; accepted: {', '.join(PRESETS)}")
    return PRESETS[name]


def tasks_named(names: str) -> tuple[str, ...]:
    """Read `all`, or names of tasks separated by commas, in any case."""
    if names.strip().lower() == "all":
        return TASKS
    known = {task.lower(): task for task in TASKS}
    words = [word.strip() for word in names.split(",")]
    for word in words:
        if word.lower() not in known:
            raise InputError(f"task {word!r} is unknown; accepted: all, {', '.join(TASKS)}")
    return tuple(dict.fromkeys(known[word.lower()] for word in words))
