"""The verdict on a model, skill and calibration, and `model.evaluate`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from rdeepsense import calibration, metrics
from rdeepsense._records import Record
from rdeepsense.arrays import Floats, Integers
from rdeepsense.data.columns import groups_of
from rdeepsense.data.findings import Finding
from rdeepsense.data.splits import checked_times
from rdeepsense.distributions import AnyDistribution, Categorical, Gaussian
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.reporting.subject import (
    LEVEL,
    Drift,
    Share,
    Subject,
    by_group,
    by_target,
    by_time,
    find_drift,
    moment,
    share_of,
    standard_error,
    time_blocks,
)
from rdeepsense.status import DOUBTS, Statuses, status_words

# --------------------------------------------------------------------------------------------------
# The verdict on a model: skill and calibration
#
# Both are judged on labeled rows that were used neither to train nor to choose the model. Rows that
# the model itself flags (status not OK) are counted apart: they are not what it was trained for.
# `s` is a standard error: between groups if there are groups; else, where there is a time, the
# largest of those between rows and between 5, 10 and up to 20 blocks of time, since errors that
# last need long blocks; else of independent rows. From few groups or blocks it is enlarged by the
# quantile of Student's t over that of the normal distribution, so that ± 2 s is a 95 % interval.
#
# **Skill** compares the predictions with the best constant prediction, the mean or the most
# frequent class of the training targets. The skill score S is
#
# - for numbers 1 - MAE / MAE of the constant, or 1 - sqrt(1 - R²) where that is clearer,
# - for classes (a - a0) / (1 - a0), with a the accuracy and a0 that of the constant, or with a the
#   mean recall over the classes and a0 = 1 / number of classes, where that is clearer.
#
# *none*: S is at most 2 s or 0.02; *weak*: up to 0.15; *fair*: up to 0.5; *strong*: above. Where
# the interval S ± 2 s reaches over three words the one in the middle is given, weak only if S is
# above s; where it goes from none to strong, or from none to fair with s above 0.15, and below 20
# rows, the skill *cannot be told*. Where the NLL is lower than the constant's by more than 2 s and
# 0.01 nats, none becomes weak: the model knows how far off it is, if nothing else. Boosted trees on
# the same rows that are better by more than 2 s and by more than 0.1 of S take a word away from
# fair and strong.
#
# **Calibration** compares the share of 90 % intervals that contain the actual value with 0.9, and
# for classes the accuracy with the mean stated probability. *right*: within 2 s or 0.02; *too
# narrow* or *too wide* (for classes *overconfident* or *underconfident*) otherwise; *right on
# average*: right over all rows, but significantly wrong in more groups, blocks of time or predicted
# classes than chance explains; *drifting*: it changed at some time (`drift`); *cannot be told*: 2 s
# is more than 0.1.
#
# A model *cannot be trusted*, whatever the words, if the check of the data found an input that
# gives the target away or another error, or if most rows are flagged.
# --------------------------------------------------------------------------------------------------

ERRORS = 2.0  # standard errors that count as a difference
SKILLS = ("none", "weak", "fair", "strong")
LIMITS = (0.02, 0.15, 0.5)  # of the skill score, between the words
LEAST_GAIN = 0.01  # nats
LEAST_GAP = 0.02  # of coverage or accuracy
TELLING = 0.1  # a difference of shares that the rows must be able to show
CANNOT_TELL = "cannot be told"
FEWEST_ROWS = 20
BEHIND = 0.1  # of the skill score, behind boosted trees
MOST_FLAGGED = 0.5
UNEVEN = 0.01  # probability of so many groups outside of their bands by chance
LOW_RECALL = 0.5
FEWEST_OF_CLASS = 10
TIME_BLOCKS = (5, 10)  # and those of `drift`, if it has blocks
NARROW, WIDE = ("too narrow", "overconfident"), ("too wide", "underconfident")


@dataclass(frozen=True)
class Score(Record):
    """A number and its standard error, None where it has none."""

    value: float
    error: float | None = None

    @property
    def low(self) -> float:
        """Two standard errors below."""
        return self.value - ERRORS * (self.error or 0.0)

    @property
    def high(self) -> float:
        """Two standard errors above."""
        return self.value + ERRORS * (self.error or 0.0)


@dataclass(frozen=True, eq=False)
class Constant:
    """The best constant prediction: of numbers their mean, median and std, of classes how often."""

    mean: float = 0.0
    median: float = 0.0
    std: float = 1.0
    frequencies: Floats | None = None
    is_training: bool = False  # of the training targets, not of the rows that are judged

    @classmethod
    def of(cls, dist: AnyDistribution, y: NDArray[Any], is_training: bool = True) -> Constant:
        """Summarize targets, labels where `dist` is of classes."""
        if isinstance(dist, Categorical):
            counts = np.bincount(dist.encode(y), minlength=dist.n_classes)
            return cls(frequencies=counts / counts.sum(), is_training=is_training)
        values = np.asarray(y, np.float64)
        found = float(values.mean()), float(np.median(values)), float(values.std())
        return cls(*found, is_training=is_training)

    @classmethod
    def of_model(cls, fitted: Fitted) -> list[Constant] | None:
        """Return what a model keeps of its training targets, for each target."""
        if fitted.guard is None:
            return None
        fallback = np.ravel(fitted.guard.fallback)
        if fitted.target.is_classes:
            return [cls(frequencies=fallback / fallback.sum(), is_training=True)]
        if fitted.target_scaler is None:
            return None
        centers = np.ravel(fitted.target_scaler.shift)
        pairs = zip(centers.tolist(), fallback.tolist(), strict=True)
        return [cls(center, center, std, is_training=True) for center, std in pairs]


@dataclass(frozen=True)
class Verdict(Record):
    """The skill and the calibration of a model on one target, and the numbers behind the words."""

    target: str
    skill: str  # of SKILLS, or CANNOT_TELL
    calibration: str
    distrust: str | None  # why the model cannot be trusted, whatever the words say
    skill_score: Score
    skill_sentence: str  # the sentence on skill
    share: Score  # contained in the intervals, or right
    nominal: float
    calibration_sentence: str  # the sentence on calibration
    gain: Score  # NLL of the constant less that of the model, its spread set right, in nats
    factor: float | None  # by which intervals would have to be wider; None for classes
    rows: int  # judged
    flagged: int  # not judged
    drift: str | None  # how far a drift can be excluded; None where there is one
    drift_errors: float | None  # of the largest change over time; None without time
    figures: Mapping[str, float] = field(default_factory=dict)
    remarks: Sequence[str] = ()

    @property
    def headline(self) -> str:
        """The two words, or why the model cannot be trusted."""
        words = f"skill {self.skill}, calibration {self.calibration}"
        return words if self.distrust is None else f"cannot be trusted ({words})"

    @property
    def tone(self) -> str:
        """How a page colors the verdict: good, open or bad."""
        if self.distrust is not None or self.skill == "none":
            return "bad"
        if self.calibration in (*NARROW, "drifting"):
            return "bad"
        good = self.skill in ("fair", "strong") and self.calibration == "right"
        return "good" if good else "open"

    @property
    def sentences(self) -> list[str]:
        """What to say below the headline, the most important first."""
        why = [] if self.distrust is None else [self.distrust]
        drift = [] if self.drift is None else [self.drift]
        return [*why, self.skill_sentence, self.calibration_sentence, *self.remarks, *drift]


def judge(
    subject: Subject,
    constant: Constant | None = None,
    status: Statuses | None = None,
    trees: AnyDistribution | None = None,
    findings: Sequence[Finding] = (),
) -> Verdict:
    """Judge one target of a model.

    Parameters
    ----------
    subject : predictions and actual values.
    constant : of the training targets; of the targets of these rows where None.
    status : of each row; rows that are flagged are counted apart.
    trees : what boosted trees predict for the same rows.
    findings : of `rdeepsense.check`; leaks and errors overrule the verdict.
    """
    whole, known = subject, constant or Constant.of(subject.dist, subject.y, False)
    flags = np.zeros(len(subject.truth), np.uint8) if status is None else status & ~DOUBTS
    apart, flagged = flags != 0, int(np.count_nonzero(flags))
    if flagged < len(flags):
        subject = subject.at(np.flatnonzero(~apart))
        trees = None if trees is None else trees[np.flatnonzero(~apart)]
    drift = find_drift(subject)
    between = _Between.of(subject)
    skill = _Skill.of(subject, known, between, trees, drift)
    share, nominal, factor = _share(subject, between)
    uneven = _uneven(subject)
    word = _calibration(subject, share, nominal, drift, uneven)
    remarks = [
        *skill.remarks,
        *_cures(word),
        *(uneven if word == "right on average" else []),
        *_flagged(whole, flags),
        *_recalls(subject),
        *_shift(subject, known, between),
    ]
    return Verdict(
        target=subject.name,
        skill=skill.word,
        calibration=word,
        distrust=_distrust(findings, flagged, len(flags)),
        skill_score=skill.score,
        skill_sentence=skill.sentence,
        share=share,
        nominal=nominal,
        calibration_sentence=_calibration_sentence(subject, word, share, nominal, factor, drift),
        gain=skill.gain,
        factor=factor,
        rows=len(subject.truth),
        flagged=flagged,
        drift=_drift_note(subject, drift),
        drift_errors=None if drift is None else drift.errors,
        figures=skill.figures,
        remarks=remarks,
    )


def judge_each(
    subjects: Sequence[Subject],
    constants: Sequence[Constant] | None = None,
    status: Statuses | None = None,
    trees: Mapping[str, AnyDistribution] | None = None,
    findings: Sequence[Finding] = (),
) -> dict[str, Verdict]:
    """Judge several targets by name."""
    return {
        one.name: judge(
            one,
            None if constants is None else constants[place],
            status,
            None if trees is None else trees.get(one.name),
            findings,
        )
        for place, one in enumerate(subjects)
    }


def constants_of(dist: AnyDistribution, training: NDArray[Any]) -> list[Constant]:
    """Summarize the training targets, those of each target in a column."""
    if training.ndim == 1:
        return [Constant.of(dist, training)]
    return [Constant.of(dist, column) for column in training.T]


def subjects_of(
    dist: AnyDistribution,
    y: NDArray[Any],
    targets: Sequence[str],
    groups: NDArray[Any] | None = None,
    time: NDArray[Any] | None = None,
    timed_by: str = "time",
) -> list[Subject]:
    """Return each target with its predictions and actual values."""
    return [
        Subject(name, "", part, own, groups, time=time, timed_by=timed_by)
        for name, part, own in by_target(dist, y, targets)
    ]


# Standard errors


@dataclass(frozen=True, eq=False)
class _Between:
    """What standard errors are between: groups, blocks of time of several lengths, or rows."""

    parts: tuple[Integers, ...]  # the number of each row's group or block
    is_time: bool

    @classmethod
    def of(cls, subject: Subject) -> _Between:
        """Take groups if there are any, else blocks of time."""
        if subject.groups is not None:
            return cls((np.unique(subject.groups, return_inverse=True)[1].reshape(-1),), False)
        rows = len(subject.truth)
        if subject.time is None:
            return cls((), False)
        counts = {count for count in TIME_BLOCKS if count <= rows}
        if (found := time_blocks(subject)) is not None:
            counts.add(len(found))
        parts = []
        for count in sorted(counts):
            number = np.empty(rows, np.int64)
            number[subject.order] = np.repeat(
                np.arange(count), [len(part) for part in np.array_split(np.arange(rows), count)]
            )
            parts.append(number)
        return cls(tuple(parts), True)

    def error(self, values: Floats) -> float:
        """Return that of the mean, so that twice it is half of a 95 % interval."""
        found = [] if self.parts and not self.is_time else [standard_error(values) or 0.0]
        for part in self.parts:
            count = int(part.max()) + 1
            if count < 2:  # one group is one observation
                found.append(float(values.std()))
                continue
            few = float(stdtrit(count - 1, 0.975)) / float(stdtrit(np.inf, 0.975))
            found.append((standard_error(values, part) or 0.0) * few)
        return max(found)


# Skill


@dataclass(frozen=True)
class _Skill:
    """The word for the skill, and what it rests on."""

    word: str
    score: Score
    gain: Score
    figures: Mapping[str, float]
    sentence: str
    remarks: Sequence[str]

    @classmethod
    def of(
        cls,
        subject: Subject,
        known: Constant,
        between: _Between,
        trees: AnyDistribution | None,
        drift: Drift | None,
    ) -> _Skill:
        if drift is not None and drift.drifts:  # the skill that it had before the change
            rows = subject.order[: drift.row]
            subject = subject.at(rows)
            between = _Between.of(subject)
            trees = None if trees is None else trees[rows]
        measure = _class_skill if subject.is_classes else _number_skill
        score, figures = measure(subject.dist, subject, known, between)
        gain = _gain(subject, known, between)
        word = _skill_word(score, gain, len(subject.truth))
        remarks = []
        if word == "weak" and score.value <= max(ERRORS * (score.error or 0.0), LIMITS[0]):
            remarks.append(
                "It may be no better than a constant, or fair: the rows are few."
                if score.high >= LIMITS[1]
                else "It predicts the value no better than a constant, but it does tell where "
                "values are certain and where they are not."
            )
        if trees is not None:
            theirs, own = measure(trees, subject, known, between)
            figures = {**figures, **{f"{key} of boosted trees": own[key] for key in list(own)[:1]}}
            behind = _behind(subject, trees, between)
            if word in ("fair", "strong") and behind and theirs.value - score.value > BEHIND:
                word = SKILLS[SKILLS.index(word) - 1]
                remarks.append("Boosted trees predict the same rows considerably better.")
        sentence = _skill_sentence(subject, word, score, gain, figures, drift)
        return cls(word, score, gain, figures, sentence, remarks)


def _skill_word(score: Score, gain: Score, rows: int) -> str:
    least, found, most = np.searchsorted(LIMITS, (score.low, score.value, score.high)).tolist()
    if rows < FEWEST_ROWS or most - least == len(LIMITS):
        return CANNOT_TELL
    if most - least == 2:  # the word in the middle is off by one at most
        found = least + 1 if score.value > (score.error or 0.0) else 0
        if not found and (score.error or 0.0) > LIMITS[1]:
            return CANNOT_TELL
    elif score.low <= 0 or score.value <= LIMITS[0]:
        found = 0
    told = gain.value > max(ERRORS * (gain.error or 0.0), LEAST_GAIN)
    return SKILLS[max(found, int(told))]


def _number_skill(
    dist: AnyDistribution, subject: Subject, known: Constant, between: _Between
) -> tuple[Score, dict[str, float]]:
    truth = np.asarray(subject.truth, np.float64)
    error, constant = np.abs(truth - dist.mean), np.abs(truth - known.median)
    squares, total = (truth - dist.mean) ** 2, (truth - known.mean) ** 2
    by_mae = _ratio_skill(error, constant, between)
    by_rmse = _ratio_skill(squares, total, between, power=0.5)
    figures = {
        "MAE": float(error.mean()),
        "MAE of a constant": float(constant.mean()),
        "R²": 1 - _over(squares.mean(), total.mean()),
    }
    return max(by_mae, by_rmse, key=lambda score: score.low), figures


def _ratio_skill(loss: Floats, constant: Floats, between: _Between, power: float = 1.0) -> Score:
    """Return 1 - (mean loss / mean loss of the constant)^power, with its error to first order."""
    least = float(constant.mean())
    if not (least > 0 and math.isfinite(least)):
        return Score(0.0, None)
    ratio = min(float(loss.mean()) / least, 1e12)
    rows = (loss - ratio * constant) / least
    error = between.error(rows)
    slope = power * ratio ** (power - 1) if ratio > 0 else 1.0
    return Score(1 - ratio**power, slope * error)


def _class_skill(
    dist: AnyDistribution, subject: Subject, known: Constant, between: _Between
) -> tuple[Score, dict[str, float]]:
    assert isinstance(dist, Categorical)
    truth = np.asarray(subject.truth)
    assert known.frequencies is not None
    common = known.frequencies.argmax()
    right = np.asarray(dist.mode == truth, np.float64)
    guessed = np.asarray(truth == common, np.float64)
    accuracy, base = float(right.mean()), float(guessed.mean())
    present, counts = np.unique(truth, return_counts=True)
    recalls = np.array([right[truth == one].mean() for one in present])
    chance = 1 / max(len(present), 2)
    place = np.searchsorted(present, truth)
    weight = len(truth) / (len(present) * counts[place])  # to first order, of a row in the mean
    spread = between.error((right - recalls[place]) * weight)
    scores = [Score((float(recalls.mean()) - chance) / (1 - chance), spread / (1 - chance))]
    if base < 1:
        error = between.error(right - guessed)
        scores.append(Score((accuracy - base) / (1 - base), error / (1 - base)))
    figures = {
        "accuracy": accuracy,
        "accuracy of the most frequent class": base,
        "mean recall": float(recalls.mean()),
        "mean recall by chance": chance,
    }
    return max(scores, key=lambda score: score.low), figures


def _behind(subject: Subject, trees: AnyDistribution, between: _Between) -> bool:
    """Whether boosted trees have a smaller error on these rows, by more than chance explains."""
    theirs = replace(subject, dist=trees)
    difference = subject.loss - theirs.loss
    return float(difference.mean()) > ERRORS * between.error(difference)


def _gain(subject: Subject, known: Constant, between: _Between) -> Score:
    """Return how far the NLL is below that of the constant.

    The model's spread (of classes, its temperature) is first set right by one factor on these
    rows, so that a wrong width, which calibration is about, does not hide skill.
    """
    kind = "temperature" if subject.is_classes else "scale"
    dist = calibration.fit(kind, subject.dist, subject.truth).apply(subject.dist)
    if isinstance(dist, Categorical):
        assert known.frequencies is not None
        least = 0.5 / max(len(subject.truth), 1)  # a class that did not occur is not impossible
        constant = np.log(np.maximum(known.frequencies, least))[subject.truth]
    else:
        spread = max(known.std, float(np.finfo(np.float64).tiny))
        same = np.ones(len(subject.truth))
        constant = np.asarray(Gaussian(same * known.mean, same * spread).log_prob(subject.truth))
    rows = np.asarray(dist.log_prob(subject.truth)) - constant
    error = between.error(rows)
    gain = max(min(float(rows.mean()), 1e300), -1e300)
    if math.isnan(gain):
        return Score(-1e300)
    return Score(gain, error if math.isfinite(error) else None)


def _skill_sentence(
    subject: Subject,
    word: str,
    score: Score,
    gain: Score,
    figures: Mapping[str, float],
    drift: Drift | None,
) -> str:
    before = f"On {len(subject.truth):,} rows before the change: " if _drifts(drift) else ""
    trees = next((value for key, value in figures.items() if key.endswith("trees")), None)
    if subject.is_classes:
        text = (
            f"accuracy {_percent(figures['accuracy'])} (most frequent class: "
            f"{_percent(figures['accuracy of the most frequent class'])}"
            + (f"; boosted trees: {_percent(trees)})" if trees is not None else ")")
            + f", mean recall over the classes {_percent(figures['mean recall'])} "
            f"(chance: {_percent(figures['mean recall by chance'])})"
        )
    else:
        text = (
            f"MAE {figures['MAE']:.3g} (constant: {figures['MAE of a constant']:.3g}"
            + (f"; boosted trees: {trees:.3g})" if trees is not None else ")")
            + f", R² {figures['R²']:.2f}"
        )
    direction = "lower" if gain.value >= 0 else "higher"
    nats = f"NLL {abs(gain.value):.2g}{_error(gain)} nats {direction} than a constant's"
    text = f"{before}{text[0].upper() if not before else text[0]}{text[1:]}; {nats}."
    if word == "none":
        text += " Check that inputs and target are aligned and that the inputs can predict it."
    if word == CANNOT_TELL:
        text += f" The skill score {score.value:.2f}{_error(score)} is too uncertain for a word."
    return text


# Calibration


def _share(subject: Subject, between: _Between) -> tuple[Score, float, float | None]:
    """Return the share that was contained or right, what was stated, and the missing factor."""
    held, stated = subject.held.astype(np.float64), subject.stated
    nominal = float(stated.mean())
    error = math.sqrt(float(np.sum(stated * (1 - stated)))) / len(stated)
    if subject.is_classes:
        error = max(error, float(held.std()) / math.sqrt(len(held)))
    if between.parts:
        if not subject.is_classes:
            # Where all values are contained nothing differs between groups, but rows of a group
            # still are alike: their errors, in units of the predicted std, say how much.
            size = np.abs(2 * np.asarray(subject.dist.cdf(subject.truth)) - 1)
            rows = standard_error(size) or 0.0
            error *= max(1.0, between.error(size) / rows) if rows > 0 else 1.0
        error = max(between.error(held - stated), error)
    factor = None
    if not subject.is_classes:
        low, high = subject.dist.interval(LEVEL)
        truth = np.asarray(subject.truth, np.float64)
        with np.errstate(all="ignore"):
            found = float(np.quantile(np.abs(2 * truth - low - high) / (high - low), LEVEL))
        factor = found if math.isfinite(found) else None
    return Score(float(held.mean()), error), nominal, factor


def _calibration(
    subject: Subject, share: Score, nominal: float, drift: Drift | None, uneven: Sequence[str]
) -> str:
    if drift is not None and drift.drifts:
        return "drifting"
    gap, error = share.value - nominal, share.error or 0.0
    if abs(gap) > max(ERRORS * error, LEAST_GAP):
        return (WIDE if gap > 0 else NARROW)[int(subject.is_classes)]
    if ERRORS * error > TELLING:
        return CANNOT_TELL
    return "right on average" if uneven else "right"


def _calibration_sentence(
    subject: Subject,
    word: str,
    share: Score,
    nominal: float,
    factor: float | None,
    drift: Drift | None,
) -> str:
    rows = f"{len(subject.truth):,} rows"
    found = f"{100 * share.value:.1f} ± {100 * (share.error or 0.0):.1f} %"
    if word == "drifting" and drift is not None:
        what = "rows were right" if subject.is_classes else "90 % intervals contained the value"
        return (
            f"It changed about {moment(drift.at, subject.time)} ({subject.timed_by}): "
            f"{100 * drift.before:.0f} % of the {what} before, {100 * drift.after:.0f} % after; "
            f"{rows} in all."
        )
    if subject.is_classes:
        text = f"{found} of {rows} are classified correctly, and the model states "
        text += f"{100 * nominal:.1f} %"
    else:
        text = f"90 % intervals contain {found} of {rows}"
    if word == "too narrow" and factor is not None:
        text += f"; they should be {factor:.2f} times as wide"
    if word == "too wide" and factor:
        text += f"; they could be {100 * (1 - factor):.0f} % narrower"
    if word == CANNOT_TELL:
        if subject.groups is None:
            text += ", which is too few to tell; a few hundred labeled rows are enough"
        else:  # one group is one draw, however many rows it has
            count = len(np.unique(subject.groups))
            few = f"{count} group{' is' if count == 1 else 's are'} too few to tell"
            text += f"; {few}: test it on rows of more groups"
    return f"{text}."


def _cures(word: str) -> list[str]:
    cures = {
        "drifting": "Adapt it with a few labels (adapt), let it keep learning in production "
        "(live), or fit it again with recent rows. Do not trust its intervals until then.",
        "too narrow": "Calibrate with rows like these: conformal calibration, or groups where rows "
        "belong together.",
        "overconfident": "Calibrate with rows like these: groups where rows belong together, or "
        "conformal sets.",
        "too wide": "It errs on the safe side. Isotonic calibration or the full effort may make "
        "it sharper.",
        "underconfident": "It errs on the safe side. More training rows may make it surer.",
    }
    return [cures[word]] if word in cures else []


def _uneven(subject: Subject) -> list[str]:
    """Name groups and blocks of time outside of their bands, if more than chance explains."""
    told = []
    for shares, what in (
        (_all_groups(subject), "groups"),
        (by_time(subject), "blocks of time"),
        (_by_prediction(subject), "predicted classes"),
    ):
        off = [one for one in shares if one.is_off]
        if len(off) > 1 and _tail(len(off), len(shares), 0.05) < UNEVEN:
            names = ", ".join(
                f"{one.label} {100 * one.share:.0f} %"
                for one in sorted(off, key=lambda one: -abs(one.share - one.stated))[:3]
            )
            told.append(
                f"It is wrong in {len(off)} of {len(shares)} {what} (outside of the 95 % band): "
                f"{names}{', ...' if len(off) > 3 else ''}."
            )
    return told


def _all_groups(subject: Subject) -> list[Share]:
    if subject.groups is None:
        return []
    found = by_group(subject, most=None)
    return [one for one in found if one.rows >= FEWEST_OF_CLASS]


def _by_prediction(subject: Subject) -> list[Share]:
    """Return the rows of each predicted class; those of an actual class have no band."""
    if not isinstance(subject.dist, Categorical):
        return []
    labels, mode = subject.dist.classes, np.asarray(subject.dist.mode)
    places = [np.flatnonzero(mode == k) for k in range(subject.dist.n_classes)]
    return [
        share_of(subject, str(k if labels is None else labels[k]), rows)
        for k, rows in enumerate(places)
        if len(rows) >= FEWEST_OF_CLASS
    ]


def _tail(count: int, trials: int, chance: float) -> float:
    """Return the probability of `count` or more of `trials`."""
    return sum(
        math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k)
        for k in range(count, trials + 1)
    )


# What else there is to say


def _distrust(findings: Sequence[Finding], flagged: int, rows: int) -> str | None:
    errors = [f"{one.sentence} {one.cure}" for one in findings if one.overrules]
    if errors:
        return f"Cannot be trusted: {' '.join(errors)}"
    if flagged > MOST_FLAGGED * rows:
        return (
            f"Cannot be trusted on these rows: the model flags {flagged:,} of {rows:,} as unlike "
            "its training data."
        )
    return None


def _flagged(subject: Subject, flags: Statuses) -> list[str]:
    """Say how many rows are flagged, for what, and how many of their intervals are right."""
    apart = flags != 0
    if not apart.any():
        return []
    words, counts = np.unique(status_words(flags[apart]), return_counts=True)
    kinds = ", ".join(f"{word} in {count:,}" for word, count in zip(words, counts, strict=True))
    held = 100 * float(subject.held[apart].mean())
    what = "are right" if subject.is_classes else "lie in their 90 % intervals"
    return [
        f"{int(apart.sum()):,} of {len(flags):,} rows are flagged and judged apart ({kinds}): "
        f"{held:.0f} % {what}."
    ]


def _recalls(subject: Subject) -> list[str]:
    """Name the classes that are missed more often than not, and those that do not occur."""
    if not isinstance(subject.dist, Categorical):
        return []
    labels = subject.dist.classes
    names = range(subject.dist.n_classes) if labels is None else labels.tolist()
    low, absent = [], []
    for place, name in enumerate(names):
        rows = subject.truth == place
        count = int(np.count_nonzero(rows))
        if not count:
            absent.append(str(name))
        elif count >= FEWEST_OF_CLASS and subject.held[rows].mean() < LOW_RECALL:
            low.append(f"{name} {100 * float(subject.held[rows].mean()):.0f} %")
    told = [f"Recall is low for {', '.join(low[:5])}."] if low else []
    if absent:
        some = ", ".join(absent[:5]) + (", ..." if len(absent) > 5 else "")
        told.append(f"Not judged, as no row has the class: {some}.")
    return told


def _shift(subject: Subject, known: Constant, between: _Between) -> list[str]:
    """Say whether the targets differ from those of the training rows."""
    if not known.is_training:
        return []
    if isinstance(subject.dist, Categorical):
        assert known.frequencies is not None
        before, count = known.frequencies, len(subject.truth)
        after = np.bincount(np.asarray(subject.truth), minlength=len(before)) / count
        # Total variation, beside that of independent rows by chance: it is a fact about these rows,
        # whether a season or a few users brought it about.
        chance = float(np.sqrt(before * (1 - before) / count).sum()) / 2
        if float(np.abs(after - before).sum()) / 2 <= max(2 * chance, 0.1):
            return []
        place = int(np.abs(after - before).argmax())
        label = place if subject.dist.classes is None else subject.dist.classes[place]
        return [
            f"Class frequencies differ from training: {label} {_percent(before[place])} then, "
            f"{_percent(after[place])} here."
        ]
    truth = np.asarray(subject.truth, np.float64)
    error = between.error(truth)
    moved = float(truth.mean()) - known.mean
    if known.std <= 0 or abs(moved) <= max(4 * error, 0.25 * known.std):
        return []
    return [
        f"The target is {abs(moved) / known.std:.1f} standard deviations "
        f"{'above' if moved > 0 else 'below'} its training mean, on average."
    ]


def _drift_note(subject: Subject, drift: Drift | None) -> str | None:
    if subject.time is None:
        return "Drift not checked: no time was given."
    if drift is None:
        return "Drift not checked: too few rows."
    return None if drift.drifts else f"No drift in {drift.blocks} blocks by {subject.timed_by}."


def _drifts(drift: Drift | None) -> bool:
    return drift is not None and drift.drifts


def _over(loss: float, constant: float) -> float:
    return min(float(loss) / float(constant), 1e12) if constant > 0 else math.inf


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _error(score: Score) -> str:
    return f" ± {score.error:.1g}" if score.error else ""


# --------------------------------------------------------------------------------------------------
# `model.evaluate`: metrics and the verdict
# --------------------------------------------------------------------------------------------------


class Evaluation(dict[str, float]):
    """Metrics by name; ``verdicts`` has the skill and the calibration of each target in words.

    A dictionary, which is all there is to know of it as a number. The verdict is found when it is
    first asked for, with the findings of the fit and the status of each row.
    """

    def __init__(
        self,
        figures: Mapping[str, float],
        subjects: Sequence[Subject],
        constants: Sequence[Constant] | None,
        status: Statuses,
        findings: Sequence[Finding],
    ) -> None:
        super().__init__(figures)
        self._judged = subjects, constants, status, findings

    @cached_property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict on each target by its name."""
        subjects, constants, status, findings = self._judged
        return judge_each(subjects, constants, status, None, findings)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the only target."""
        if len(self.verdicts) > 1:
            raise InputError(f"verdict: there are {len(self.verdicts)} targets; use verdicts")
        return next(iter(self.verdicts.values()))


def evaluated(
    fitted: Fitted,
    dist: AnyDistribution,
    rows: NDArray[Any],
    y: ArrayLike,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
) -> Evaluation:
    """Judge predictions for labeled rows."""
    truth, subjects = subjects_of_model(fitted, dist, y, groups, time)
    return Evaluation(
        metrics.evaluate(dist, truth),
        subjects,
        Constant.of_model(fitted),
        fitted.status(rows),
        fitted.training.findings,
    )


def subjects_of_model(
    fitted: Fitted,
    dist: AnyDistribution,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
) -> tuple[NDArray[Any], list[Subject]]:
    """Return the actual values or labels, and each target with its predictions."""
    target, count = fitted.target, len(dist)
    encoded = target.encode(y, count)
    truth = encoded if target.classes is None else np.asarray(target.classes[encoded])
    group = None if groups is None else groups_of(groups, count)
    when = None if time is None else checked_times(time, count)
    names = list(target.names or [f"target {k}" for k in range(max(1, math.prod(target.shape)))])
    units = target.units or ("",) * len(names)
    by, at = _name(groups, "group"), _name(time, "time")
    return truth, [
        Subject(name, unit, part, own, group, by, when, at)
        for (name, part, own), unit in zip(by_target(dist, truth, names), units, strict=True)
    ]


def _name(column: object, other: str) -> str:
    """Return the name that a column of a table brings."""
    name = getattr(column, "name", None)
    return name if isinstance(name, str) and name else other
