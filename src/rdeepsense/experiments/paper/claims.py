"""The claims of sections 4.4 to 4.6 of the paper, each with the rule that decides it here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rdeepsense.experiments.paper.evidence import (
    NO,
    OPEN,
    Evidence,
    Finding,
    NotMeasuredError,
    alpha_name,
)
from rdeepsense.experiments.paper.presets import ALPHAS, MEMBERS, SAMPLES, TASKS
from rdeepsense.experiments.paper.rules import (
    Rule,
    all_of,
    beats,
    by_quality,
    cheapest,
    costs_times,
    falls,
    off_diagonal,
    saves,
    second_best,
    settled,
    similar,
    some_beats,
    trend,
)
from rdeepsense.experiments.paper.task_results import TaskResults
from rdeepsense.experiments.records import Record

RDS = "RDeepSense-paper"
MC = tuple(f"{RDS}-MC{k}" for k in SAMPLES)
DROP = tuple(f"MCDrop-{k}-paper" for k in SAMPLES)
SSP = tuple(f"SSP-{k}-paper" for k in MEMBERS)
ALPHA = tuple(map(alpha_name, ALPHAS))
RIVALS = (*MC[:-1], *DROP, *SSP, "GP")  # all but RDeepSense-MC20, which the paper excepts
ONE = ("BPEst",)
REGRESSION = ("BPEst", "NYCommute", "GasSen")
CLASSES = ("HHAR",)
NLL_MARGIN, AREA_MARGIN, MEFP_MARGIN = 0.05, 0.02, 0.1  # what "slightly" and "similar" are taken as


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, the tasks it is about, and the rule that decides it."""

    section: str
    tasks: tuple[str, ...]
    text: str
    rule: Rule


def _alike(quality: str) -> Rule:
    return similar(quality, RDS, MC, MEFP_MARGIN if quality == "mefp" else AREA_MARGIN)


CLAIMS = (
    # -- BPEst and what all regressions share
    Claim("4.4", ONE, "RDeepSense has the best NLL, but for RDeepSense-MC20",
          beats("nll", RDS, RIVALS)),
    Claim("4.4", ONE, "RDeepSense is the second best algorithm in MAE",
          second_best("mae", RDS, {"MCDrop": DROP, "SSP": SSP, "RDeepSense-MCk": MC[:-1],
                                   "GP": ("GP",)})),
    Claim("4.4", ("BPEst", "GasSen"), "RDeepSense-MC20 beats RDeepSense in NLL, only slightly",
          all_of(beats("nll", MC[-1], [RDS]), similar("nll", RDS, MC[-1:], NLL_MARGIN))),
    Claim("4.4", ONE, "RDeepSense-MC20 takes about 20 times the time and energy of RDeepSense",
          costs_times(RDS, MC[-1], 20)),
    Claim("4.4", ONE, "MCDrop-k gets better in MAE as k grows", trend("mae", DROP)),
    Claim("4.4", ONE, "MCDrop-k gets better in NLL as k grows", trend("nll", DROP)),
    Claim("4.4", ONE, "MCDrop needs a number of samples: MCDrop-3 has a bad NLL",
          beats("nll", DROP[-1], DROP[:1])),
    Claim("4.4", ONE, "An ensemble improves SSP (SSP-5 over SSP-1)",
          all_of(beats("mae", SSP[2], SSP[:1]), beats("nll", SSP[2], SSP[:1]))),
    Claim("4.4", ONE, "...but not consistently: SSP-10 is worse than SSP-5",
          all_of(beats("mae", SSP[2], SSP[3:]), beats("nll", SSP[2], SSP[3:]))),
    Claim("4.4", ("BPEst", "NYCommute"), "GP, trained on a part of the rows, has a larger MAE",
          beats("mae", RDS, ["GP"])),
    Claim("4.4", REGRESSION, "RDeepSense has the smallest deviation area of RDeepSense, MCDrop-k, "
          "SSP-k and GP", beats("deviation_area", RDS, (*DROP, *SSP, "GP"))),
    Claim("4.4", REGRESSION, "RDeepSense is better calibrated than GP",
          beats("deviation_area", RDS, ["GP"])),
    Claim("4.4", REGRESSION, "MCDrop-k underestimates the uncertainty",
          off_diagonal(DROP, too_wide=False)),
    Claim("4.4", REGRESSION, "SSP-k overestimates the uncertainty",
          off_diagonal(SSP, too_wide=True)),
    Claim("4.4", ONE, "RDeepSense is better calibrated than every RDeepSense-MCk",
          beats("deviation_area", RDS, MC)),
    Claim("4.4", ("NYCommute", "GasSen"), "RDeepSense is calibrated similarly to RDeepSense-MCk",
          _alike("deviation_area")),
    Claim("4.4", ONE, "MCDrop-k is better calibrated the larger k", trend("deviation_area", DROP)),
    Claim("4.4", ONE, "SSP-k is better calibrated the larger k", trend("deviation_area", SSP)),
    Claim("4.4", ONE, "RDeepSense-MCk is better calibrated the larger k",
          trend("deviation_area", MC)),
    # -- NYCommute
    Claim("4.4", ("NYCommute",), "MCDrop-k has low MAE and high NLL, SSP-k high MAE and low NLL",
          all_of(beats("mae", DROP[-1], SSP[-1:]), beats("nll", SSP[-1], DROP[-1:]))),
    Claim("4.4", ("NYCommute",), "RDeepSense is a balance: MAE below SSP-k's, NLL below MCDrop-k's",
          all_of(beats("mae", RDS, SSP), beats("nll", RDS, DROP))),
    Claim("4.4", ("NYCommute",), "RDeepSense is better than RDeepSense-MC3 to MC10 in MAE and NLL",
          all_of(beats("mae", RDS, MC[:-1]), beats("nll", RDS, MC[:-1]))),
    Claim("4.4", ("NYCommute",), "Only RDeepSense-MC20 has the same NLL",
          similar("nll", RDS, MC[-1:], NLL_MARGIN)),
    # -- GasSen
    Claim("4.4", ("GasSen",), "RDeepSense has the best NLL, but for RDeepSense-MC20",
          beats("nll", RDS, RIVALS)),
    Claim("4.4", ("GasSen",), "RDeepSense has the best MAE", beats("mae", RDS, RIVALS)),
    Claim("4.4", ("GasSen",), "MCDrop-k has lower MAE and NLL than SSP-k (its table has the NLL "
          "the other way round)",
          all_of(beats("mae", DROP[-1], SSP[-1:]), beats("nll", DROP[-1], SSP[-1:]))),
    Claim("4.4", ("GasSen",), "Dropout is why RDeepSense has a better NLL than SSP-k (judged by "
          "SSP-1 with dropout, which is alpha 0)",
          all_of(beats("nll", RDS, SSP), beats("nll", ALPHA[0], SSP[:1]))),
    # -- HHAR
    *(Claim("4.4", CLASSES, f"RDeepSense has the best {name}, but for RDeepSense-MC20",
            beats(figure, RDS, RIVALS))
      for figure, name in (("accuracy", "accuracy"), ("f1", "F1 score"), ("nll", "NLL"),
                           ("mefp", "entropy of false predictions"))),
    Claim("4.4", CLASSES, "MCDrop-k is over-confident when it is wrong",
          beats("mefp", RDS, DROP)),
    Claim("4.4", CLASSES, "SSP-k, trained with the Brier score, falls short in NLL",
          beats("nll", RDS, SSP)),
    Claim("4.4", CLASSES, "Only RDeepSense-MC20 is better than RDeepSense in F1 score and NLL",
          all_of(beats("f1", MC[-1], [RDS]), beats("nll", MC[-1], [RDS]))),
    Claim("4.4", CLASSES, "RDeepSense's NLL is 0.161",
          settled(OPEN, "the paper: 84 % accuracy, entropy of false predictions 1.715 of at most "
                  "log 6 = 1.792",
                  "a wrong prediction with that entropy gives the true class at most 0.26, so the "
                  "wrong 16 % alone cost 0.16 x 1.34 = 0.21 nats: 0.161 cannot be a mean negative "
                  "log-probability")),
    # -- section 4.5
    Claim("4.5", TASKS, "RDeepSense greatly reduces time and energy (at least by half)",
          saves(RDS, (*MC, *DROP, *SSP[1:]), 0.5)),
    Claim("4.5", TASKS, "RDeepSense saves 90 % of time and energy (against k = 10)",
          saves(RDS, (MC[2], DROP[2], SSP[3]), 0.9)),
    Claim("4.5", TASKS, "RDeepSense has the best uncertainty for the least energy",
          all_of(by_quality(lambda q: beats(q, RDS, (*DROP, *SSP))),
                 cheapest(RDS, (*DROP, *SSP)))),
    Claim("4.5", TASKS, "RDeepSense-MCk has similar quality at far more energy",
          all_of(by_quality(_alike), saves(RDS, MC, 0.5))),
    Claim("4.5", TASKS, "MCDrop-k and SSP-k (k from 3) have worse uncertainty at more energy",
          all_of(by_quality(lambda q: beats(q, RDS, (*DROP, *SSP[1:]))),
                 saves(RDS, (*DROP, *SSP[1:]), 0.5))),
    Claim("4.5", ONE, "A GP's prediction costs O(N^3), too much for embedded devices",
          settled(NO, "counted, not measured: with N rows, N x inputs + N multiply-adds for a mean "
                  "and N^2 for a variance, N^3 once, when it is trained",
                  "the cube belongs to training; that N^2 and the stored rows are too much for a "
                  "small device may still be true")),
    # -- section 4.6
    Claim("4.6", REGRESSION, "A larger alpha narrows the prediction (signed deviation area falls)",
          falls("deviation_area_signed", ALPHA[0], ALPHA[-1])),
    Claim("4.6", REGRESSION, "A small alpha overestimates, a large alpha underestimates",
          all_of(off_diagonal(ALPHA[:1], too_wide=True), off_diagonal(ALPHA[-1:], too_wide=False))),
    Claim("4.6", REGRESSION, "A search over alpha finds a smaller deviation area than alpha = 0",
          some_beats("deviation_area", ALPHA[0], ALPHA[1:])),
    Claim("4.6", TASKS, "Increasing alpha slightly increases the NLL",
          trend("nll", ALPHA, better=False)),
    Claim("4.6", CLASSES, "Increasing alpha consistently increases the negative entropy of false "
          "predictions (MEFP falls)", trend("mefp", ALPHA, better=False)),
)  # fmt: skip


@dataclass(frozen=True)
class ClaimVerdict(Record):
    """The verdict on a claim about one task, the numbers behind it, and why."""

    section: str
    claim: str
    task: str
    verdict: str
    measured: str
    why: str


def claims_of(tasks: Mapping[str, TaskResults]) -> list[ClaimVerdict]:
    """Return the verdict on every claim about the tasks at hand."""
    rows = []
    for claim in CLAIMS:
        for name in claim.tasks:
            if name in tasks:
                found = _decide(claim.rule, tasks[name])
                rows.append(
                    ClaimVerdict(
                        claim.section, claim.text, name, found.verdict, found.measured, found.why
                    )
                )
    return rows


def _decide(rule: Rule, task: TaskResults) -> Finding:
    try:
        return rule(Evidence(task))
    except NotMeasuredError as missing:
        return Finding(OPEN, "", f"not measured here: {missing}")
