"""The claims of sections 4.4 to 4.6 of the paper, and the rules that decide them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from scipy.special import stdtrit

from rdeepsense._records import Record
from rdeepsense.comparison.statistics import with_error
from rdeepsense.paper.scores import (
    AlphaPoint,
    MethodResults,
    PredictionCost,
    TaskResults,
    Values,
    combined,
    standard_error,
)
from rdeepsense.paper.study import ALPHAS, MEMBERS, SAMPLES, TASKS

# --------------------------------------------------------------------------------------------------
# Measurements on one task, and the significance of differences
#
# Two methods are scored on the same test rows and trained from the same seeds, so the standard
# error of a difference is that of paired values (`paper.scores`). What its 95 %
# interval leaves open is not decidable.
# --------------------------------------------------------------------------------------------------

YES, NO, OPEN = "yes", "no", "not decidable"
INTERVAL = 0.95  # of what a difference may be
HIGHER_IS_BETTER = ("accuracy", "f1", "mefp")
NAMES = {"nll": "NLL", "mae": "MAE", "accuracy": "accuracy", "f1": "F1", "mefp": "MEFP",
         "deviation_area": "deviation area", "deviation_area_signed": "signed deviation area",
         "microseconds": "time", "millijoules": "energy"}  # fmt: skip


class NotMeasuredError(Exception):
    """Something a rule needs is not among the results."""


@dataclass(frozen=True)
class Finding:
    """The verdict on a claim, the numbers behind it, and why."""

    verdict: str
    measured: str
    why: str


@dataclass(frozen=True)
class Difference:
    """A number with its standard error, None where there is none, and its degrees of freedom."""

    value: float
    error: float | None
    freedom: float = math.inf

    @property
    def slack(self) -> float:
        """Half the width of its interval; all numbers are possible where no error is known."""
        if self.error is None:
            return math.inf
        return self.error * float(stdtrit(self.freedom, (1 + INTERVAL) / 2))

    def sign(self) -> int:
        """Return 1 where surely positive, -1 where surely negative, else 0."""
        if self.value - self.slack > 0:
            return 1
        return -1 if self.value + self.slack < 0 else 0

    def within(self, margin: float) -> int:
        """Return 1 where its size is surely below the margin, -1 where surely above, else 0."""
        if abs(self.value) + self.slack < margin:
            return 1
        return -1 if abs(self.value) - self.slack > margin else 0

    def __str__(self) -> str:
        return with_error(self.value, self.error, signed=True)


class Evidence:
    """The results of one task; the points of the alpha study go by `alpha 0.2`."""

    def __init__(self, task: TaskResults) -> None:
        self.task = task
        self.points: dict[str, MethodResults | AlphaPoint] = {
            **task.methods,
            **{alpha_name(point.alpha): point for point in task.alpha_study},
        }

    def value(self, name: str, figure: str) -> Difference:
        """Return a figure of a method with its standard error."""
        point = self._point(name)
        value = point.figures.get(figure)
        if value is None:
            raise NotMeasuredError(f"{NAMES[figure]} of {name}")
        dropped, by_seed = point.jackknife.get(figure, ()), point.by_seed.get(figure, ())
        return Difference(value, *combined(standard_error(dropped), by_seed, len(dropped)))

    def difference(self, one: str, other: str, figure: str) -> Difference:
        """Return one - other on the same rows, from the same seeds."""
        gap = self.value(one, figure).value - self.value(other, figure).value
        own, theirs = self._point(one), self._point(other)
        dropped = _gaps(own.jackknife, theirs.jackknife, figure)
        by_seed = _gaps(own.by_seed, theirs.by_seed, figure)
        if dropped is None or by_seed is None:
            return Difference(gap, None)
        return Difference(gap, *combined(standard_error(dropped), by_seed, len(dropped)))

    def gain(self, one: str, other: str, figure: str) -> Difference:
        """Return how much better `one` is: positive where it is, whatever the figure."""
        if figure in HIGHER_IS_BETTER:
            return self.difference(one, other, figure)
        return self.difference(other, one, figure)

    def cost(self, name: str, figure: str = "microseconds") -> PredictionCost:
        """Return what one prediction costs; `figure` is what the error speaks of without it."""
        point = self._point(name)
        if not isinstance(point, MethodResults) or point.cost is None:
            raise NotMeasuredError(f"{NAMES[figure]} of {name}")
        return point.cost

    def time_and_energy(self, name: str) -> dict[str, float]:
        """Return microseconds and millijoules of one prediction."""
        cost = self.cost(name)
        return {"microseconds": cost.microseconds, "millijoules": cost.millijoules}

    @property
    def quality(self) -> str:
        """The paper's measure of the quality of uncertainty (section 4.5)."""
        return "mefp" if self.task.is_classification else "deviation_area"

    @property
    def floor(self) -> float:
        """The deviation area of a perfect model."""
        return self.task.floor or 0.0

    def show(self, figure: str, *names: str) -> str:
        """Return the figure of these methods as text, with their errors."""
        shown = [f"{name} {str(self.value(name, figure)).lstrip('+')}" for name in names]
        if figure == "deviation_area_signed":
            shown = [f"{name} {self.value(name, figure)}" for name in names]
        return f"{NAMES[figure]}: {', '.join(shown)}"

    def _point(self, name: str) -> MethodResults | AlphaPoint:
        if name not in self.points:
            raise NotMeasuredError(name)
        return self.points[name]


def alpha_name(alpha: float) -> str:
    """Return the name a point of the alpha study goes by."""
    return f"alpha {alpha:g}"


def _gaps(own: Mapping[str, Values], theirs: Mapping[str, Values], figure: str) -> Values | None:
    """Return the differences place by place; None where the two do not go together."""
    ours, others = own.get(figure, ()), theirs.get(figure, ())
    if len(ours) != len(others):
        return None
    pairs = zip(ours, others, strict=True)
    return [None if one is None or other is None else one - other for one, other in pairs]


# --------------------------------------------------------------------------------------------------
# Rules that decide claims from the results of a task
#
# A difference is clear where its 95 % interval does not hold 0 (`INTERVAL`).
# --------------------------------------------------------------------------------------------------

Rule = Callable[[Evidence], Finding]
NOISE = 0.05  # of the share of time that is saved, from one run to the next
EQUAL = 1.05  # how much more of time or energy still counts as no more


def verdict_of(signs: Sequence[int]) -> str:
    """Return yes where all speak for a claim, no where one speaks against, else not decidable."""
    if any(sign < 0 for sign in signs):
        return NO
    return YES if all(sign > 0 for sign in signs) else OPEN


def beats(figure: str, one: str, rivals: Sequence[str]) -> Rule:
    """Claim that `one` is clearly better than each of `rivals`."""

    def rule(evidence: Evidence) -> Finding:
        gains = {rival: evidence.gain(one, rival, figure) for rival in rivals}
        signs = [gain.sign() for gain in gains.values()]
        against = [rival for rival, sign in zip(gains, signs, strict=True) if sign < 0]
        unclear = [rival for rival, sign in zip(gains, signs, strict=True) if sign == 0]
        if against:
            why = f"better than {one}: {', '.join(against)}"
        elif unclear:
            why = f"no clear difference from {', '.join(unclear)}"
        else:
            why = "every difference is clear"
        return Finding(verdict_of(signs), evidence.show(figure, one, *rivals), why)

    return rule


def second_best(figure: str, one: str, families: dict[str, Sequence[str]]) -> Rule:
    """Claim that exactly one rival family has a member that is better than `one`."""

    def rule(evidence: Evidence) -> Finding:
        better, unclear = [], []
        for family, members in families.items():
            signs = [evidence.gain(member, one, figure).sign() for member in members]
            if max(signs) > 0:
                better.append(family)
            elif 0 in signs:
                unclear.append(family)
        names = [member for members in families.values() for member in members]
        measured = evidence.show(figure, one, *names)
        if len(better) > 1:
            return Finding(NO, measured, f"better: {', '.join(better)}")
        if unclear:
            return Finding(OPEN, measured, f"no clear difference from {', '.join(unclear)}")
        why = f"only {better[0]} is better" if better else f"{one} is the best"
        return Finding(YES if better else NO, measured, why)

    return rule


def trend(figure: str, names: Sequence[str], better: bool = True) -> Rule:
    """Claim that a figure gets better (or worse) from first to last, and no step goes back."""

    def rule(evidence: Evidence) -> Finding:
        way = 1 if better else -1
        steps = [
            (one, other, way * evidence.gain(other, one, figure).sign())
            for one, other in pairwise(names)
        ]
        whole = way * evidence.gain(names[-1], names[0], figure).sign()
        back = [f"{one} to {other}" for one, other, sign in steps if sign < 0]
        if back or whole < 0:
            why = f"goes the other way from {', '.join(back) or f'{names[0]} to {names[-1]}'}"
            verdict = NO
        elif whole == 0:
            verdict, why = OPEN, "no clear difference between first and last"
        else:
            verdict = YES
            why = "first and last differ clearly and no step clearly goes back"
        return Finding(verdict, evidence.show(figure, *names), why)

    return rule


def falls(figure: str, first: str, last: str) -> Rule:
    """Claim that the figure, signed, is lower at `last`."""

    def rule(evidence: Evidence) -> Finding:
        change = evidence.difference(last, first, figure)
        why = f"from {first} to {last} it changes by {change}"
        return Finding(verdict_of([-change.sign()]), evidence.show(figure, first, last), why)

    return rule


def similar(figure: str, one: str, others: Sequence[str], margin: float) -> Rule:
    """Claim that the figures differ by less than `margin`, its interval included."""

    def rule(evidence: Evidence) -> Finding:
        signs = [evidence.difference(one, other, figure).within(margin) for other in others]
        why = f"similar is taken as a difference below {margin:g}, its interval included"
        return Finding(verdict_of(signs), evidence.show(figure, one, *others), why)

    return rule


def off_diagonal(names: Sequence[str], too_wide: bool) -> Rule:
    """Claim that all signed deviation areas are beyond the floor, too wide (or too narrow)."""

    def rule(evidence: Evidence) -> Finding:
        side, floor = (1 if too_wide else -1), evidence.floor
        signs = []
        for name in names:
            area = evidence.value(name, "deviation_area_signed")
            signs.append(replace(area, value=side * area.value - floor).sign())
        why = f"asked of each: clearly beyond the floor {floor:.3f}"
        shown = evidence.show("deviation_area_signed", *names)
        return Finding(verdict_of(signs), shown, f"{why} (+ too wide, - too narrow)")

    return rule


def some_beats(figure: str, first: str, others: Sequence[str]) -> Rule:
    """Claim that one of `others` is better than `first`."""

    def rule(evidence: Evidence) -> Finding:
        signs = [evidence.gain(other, first, figure).sign() for other in others]
        if max(signs) > 0:
            verdict, why = YES, f"{others[signs.index(1)]} is clearly better"
        elif 0 in signs:
            verdict, why = OPEN, "none is clearly better"
        else:
            verdict, why = NO, f"{first} is clearly better than each of them"
        return Finding(verdict, evidence.show(figure, first, *others), why)

    return rule


def costs_times(one: str, other: str, times: float, slack: float = 0.25) -> Rule:
    """Claim that `other` takes about `times` the time and energy of `one`."""

    def rule(evidence: Evidence) -> Finding:
        theirs, own = evidence.time_and_energy(other), evidence.time_and_energy(one)
        ratios = {key: theirs[key] / own[key] for key in own}
        near = [abs(ratio / times - 1) <= slack for ratio in ratios.values()]
        shown = ", ".join(f"{NAMES[key]} x {ratio:.1f}" for key, ratio in ratios.items())
        batched = evidence.cost(other).microseconds_batched
        if batched:
            ratio = batched / evidence.cost(one).microseconds
            shown += f"; with the passes as one batch, time x {ratio:.1f}"
        kind = evidence.cost(one).energy
        why = f"about is taken as within {slack:.0%}; passes one after the other; energy is {kind}"
        return Finding(YES if all(near) else NO, f"{other} against {one}: {shown}", why)

    return rule


def saves(one: str, rivals: Sequence[str], share: float) -> Rule:
    """Claim that `one` saves this share (to the per cent) of each rival's time and energy."""

    def rule(evidence: Evidence) -> Finding:
        own = evidence.time_and_energy(one)
        others = [evidence.time_and_energy(rival) for rival in rivals]
        saved = {key: [1 - own[key] / other[key] for other in others] for key in own}
        shown = "; ".join(
            f"{NAMES[key]} saved: "
            + ", ".join(f"{v:.0%} of {r}" for v, r in zip(values, rivals, strict=True))
            for key, values in saved.items()
        )
        kind = evidence.cost(one).energy
        why = f"at least {share:.0%} is asked of each; 1 pass of k saves 1 - 1/k; energy is {kind}"
        energy = all(round(v, 2) >= share for v in saved["millijoules"])
        if not energy or any(v < share - NOISE for v in saved["microseconds"]):
            return Finding(NO, shown, why)
        if any(round(v, 2) < share for v in saved["microseconds"]):
            return Finding(OPEN, shown, f"{why}; the time is within {NOISE:.0%} of it, its noise")
        return Finding(YES, shown, why)

    return rule


def cheapest(one: str, rivals: Sequence[str]) -> Rule:
    """Claim that no rival needs clearly less energy than `one`."""

    def rule(evidence: Evidence) -> Finding:
        own = evidence.cost(one, "millijoules").millijoules
        costs = {rival: evidence.cost(rival, "millijoules").millijoules for rival in rivals}
        less = [rival for rival, cost in costs.items() if own > EQUAL * cost]
        kind = evidence.cost(one).energy
        why = f"less energy ({kind}): {', '.join(less)}" if less else f"none needs less ({kind})"
        return Finding(NO if less else YES, f"energy of {one}: {own:.3g} mJ ({kind})", why)

    return rule


def all_of(*rules: Rule) -> Rule:
    """Claim that every part holds."""

    def rule(evidence: Evidence) -> Finding:
        findings = [part(evidence) for part in rules]
        verdicts = [finding.verdict for finding in findings]
        verdict = NO if NO in verdicts else OPEN if OPEN in verdicts else YES
        # The same numbers in another order are the same.
        measured = "; ".join({_numbers(f.measured): f.measured for f in findings}.values())
        deciding = [f.why for f in findings if f.verdict == verdict]
        return Finding(verdict, measured, "; ".join(dict.fromkeys(deciding)))

    return rule


def _numbers(measured: str) -> tuple[str, frozenset[str]]:
    figure, _, values = measured.partition(": ")
    return figure, frozenset(values.split(", "))


def by_quality(make: Callable[[str], Rule]) -> Rule:
    """Return the rule for the task's measure of quality: deviation area, or MEFP for classes."""
    return lambda evidence: make(evidence.quality)(evidence)


def decided(verdict: str, measured: str, why: str) -> Rule:
    """Return a rule for a claim that no measurement of the study decides."""
    return lambda evidence: Finding(verdict, measured, why)


# --------------------------------------------------------------------------------------------------
# The claims of sections 4.4 to 4.6 of the paper, with their rules
# --------------------------------------------------------------------------------------------------

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
          decided(OPEN, "the paper: 84 % accuracy, entropy of false predictions 1.715 of at most "
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
          decided(NO, "counted, not measured: with N rows, N x inputs + N multiply-adds for a mean "
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
