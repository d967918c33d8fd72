"""Rules that decide claims; each takes the evidence of a task and gives a finding.

A difference is clear where its 95 % interval does not hold 0 (`evidence`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from rdeepsense.experiments.paper.evidence import NAMES, NO, OPEN, YES, Evidence, Finding

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


def settled(verdict: str, measured: str, why: str) -> Rule:
    """Return a rule for a claim that no measurement of the study decides."""
    return lambda evidence: Finding(verdict, measured, why)
