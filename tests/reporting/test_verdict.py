"""The verdict in two words: models made on purpose, and how seldom a true one is blamed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_predictions import KINDS, classes, numbers

from rdeepsense.data.findings import Finding
from rdeepsense.distributions import Categorical, Gaussian, Recalibrated
from rdeepsense.reporting.subject import Subject
from rdeepsense.reporting.verdict import Constant, Score, judge, judge_each
from rdeepsense.status import Status

WORDS = {"good": ("strong", "right"), "useless": ("none", "right")}
OF_CLASSES = {"too wide": "underconfident", "too narrow": "overconfident"}


def gaussian(slope: float, noise: float, rows: int, seed: int) -> Subject:
    """y = slope x + noise e, by a model that knows the law; R² = slope² / (slope² + noise²)."""
    rng = np.random.default_rng(seed)
    x, e = rng.normal(size=(2, rows))
    return Subject("y", "", Gaussian(slope * x, np.full(rows, noise)), slope * x + noise * e)


@pytest.mark.parametrize("rows", [300, 1000, 5000])
@pytest.mark.parametrize("kind", KINDS)
def test_five_models_of_numbers(kind: str, rows: int) -> None:
    wanted = WORDS.get(kind, ("strong", kind))
    found = [judge(numbers(kind, rows, seed)) for seed in range(10)]
    words = [(one.skill, one.calibration) for one in found]
    assert words.count(wanted) >= (9 if wanted[1] == "right" else 10)


@pytest.mark.parametrize("kind", KINDS)
def test_five_models_of_classes(kind: str) -> None:
    wanted = WORDS.get(kind, ("strong", OF_CLASSES.get(kind, kind)))
    found = [judge(classes(kind, 1500, seed)) for seed in range(3)]
    assert [(one.skill, one.calibration) for one in found] == [wanted] * 3


@pytest.mark.parametrize(
    ("r2", "word"), [(0.0, "none"), (0.2, "weak"), (0.5, "fair"), (0.78, "strong")]
)
def test_the_word_for_the_skill_follows_the_share_of_variance_explained(
    r2: float, word: str
) -> None:
    """For Gaussian noise the skill score is 1 - sqrt(1 - R²)."""
    subject = gaussian(np.sqrt(r2), np.sqrt(1 - r2), 4000, seed=0)
    found = judge(subject)
    assert found.skill == word
    assert found.skill_score.value == pytest.approx(1 - np.sqrt(1 - r2), abs=0.03)
    assert found.figures["R²"] == pytest.approx(r2, abs=0.03)


def test_the_skill_score_of_three_rows() -> None:
    """Errors 1, 0, 1 beside 3, 1, 2 of the median 2: S = 1 - 2 / 6, and R² = 1 - 2 / 14."""
    y = np.array([5.0, 3.0, 0.0] * 10)
    dist = Gaussian(np.array([4.0, 3.0, 1.0] * 10), np.ones(30))
    found = judge(Subject("y", "", dist, y), Constant(2.0, 2.0, 1.0, is_training=True))
    assert found.figures["MAE"] == pytest.approx(2 / 3)
    assert found.figures["MAE of a constant"] == pytest.approx(2.0)
    assert found.figures["R²"] == pytest.approx(1 - 2 / 14)


def test_a_model_that_knows_only_its_spread_is_weak() -> None:
    rng = np.random.default_rng(0)
    std = np.exp(rng.normal(size=2000))
    subject = Subject("y", "", Gaussian(np.zeros(2000), std), std * rng.normal(size=2000))
    found = judge(subject)
    assert (found.skill, found.calibration) == ("weak", "right")
    assert any("tell where values are certain" in remark for remark in found.remarks)


def test_accuracy_of_the_most_frequent_class_is_no_skill() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.03).astype(int)
    dist = Categorical(np.tile([0.97, 0.03], (2000, 1)))
    found = judge(Subject("y", "", dist, y))
    assert found.skill == "none"
    assert found.figures["accuracy"] > 0.95


def test_boosted_trees_that_are_much_better_take_a_word_away() -> None:
    subject = gaussian(1.0, 0.1, 1000, seed=0)
    model = replace(subject, dist=Gaussian(np.zeros(1000) + 0.6 * subject.dist.mean, np.ones(1000)))
    alone, beside = judge(model), judge(model, trees=subject.dist)
    assert (alone.skill, beside.skill) == ("strong", "fair")
    assert beside.figures["MAE of boosted trees"] < beside.figures["MAE"]
    assert judge(subject, trees=model.dist).skill == "strong"


def test_a_true_model_is_seldom_blamed() -> None:
    """Two standard errors: about one in twenty of true models, whatever the number of rows."""
    for rows in (30, 300):
        found = [judge(gaussian(1.0, 1.0, rows, seed)).calibration for seed in range(200)]
        assert sum(word.startswith("too") for word in found) <= 20


def test_few_rows_can_be_enough_to_blame() -> None:
    """Eight of twelve inside: 2.7 errors of a true model."""
    y = np.where(np.arange(12) < 8, 0.0, 3.0)
    found = judge(Subject("y", "", Gaussian(np.zeros(12), np.ones(12)), y))
    assert found.calibration == "too narrow"
    assert found.share.error == pytest.approx(np.sqrt(0.09 / 12))


def test_errors_are_between_groups() -> None:
    """One user in ten whose intervals are too narrow: rows alone would be sure of it."""
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(10), 100)
    y = rng.normal(size=1000) * np.where(groups == 3, 3.0, 1.0)
    subject = Subject("y", "", Gaussian(np.zeros(1000), np.ones(1000)), y)
    assert judge(subject).calibration == "too narrow"
    found = judge(replace(subject, groups=groups))
    assert found.calibration == "cannot be told"
    (sentence,) = (one for one in found.sentences if "90 % intervals" in one)
    assert sentence.endswith(
        "of 1,000 rows; 10 groups are too few to tell: test it on rows of more groups."
    )


@pytest.mark.parametrize("of_classes", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_handful_of_rows_has_a_verdict(rows: int, of_classes: bool) -> None:
    y = np.resize(["a", "b"], rows) if of_classes else np.arange(float(rows))
    half = Categorical(np.full((rows, 2), 0.5), np.array(["a", "b"]))
    dist = half if of_classes else Gaussian(np.zeros(rows), np.ones(rows))
    found = judge(Subject("y", "", dist, y))
    assert found.skill == "cannot be told"
    assert np.isfinite(found.gain.value)


def test_few_rows_cannot_tell() -> None:
    found = judge(replace(numbers("good", 12, seed=3), time=None))
    assert (found.skill, found.calibration) == ("cannot be told", "cannot be told")
    assert any(one.endswith("a few hundred labeled rows are enough.") for one in found.sentences)
    assert found.tone == "open"


def test_flagged_rows_are_judged_apart() -> None:
    """Rows that the model flags are far off here, and do not count against the others."""
    subject = numbers("good", 1000)
    status = np.zeros(1000, np.uint8)
    status[::4] = Status.UNKNOWN_LEVEL
    y = np.where(status, subject.y + 20, subject.y)
    found = judge(replace(subject, y=y), status=status)
    assert (found.skill, found.calibration) == ("strong", "right")
    assert (found.rows, found.flagged) == (750, 250)
    assert any(
        "250 of 1,000 rows are flagged" in remark and "unknown level in 250" in remark
        for remark in found.remarks
    )
    assert found.distrust is None


def test_a_model_that_flags_most_rows_cannot_be_trusted_on_them() -> None:
    subject = numbers("good", 400)
    found = judge(subject, status=np.full(400, int(Status.OUT_OF_RANGE), np.uint8))
    assert found.headline.startswith("cannot be trusted")
    assert found.tone == "bad"


def test_a_doubt_of_the_model_is_no_flag() -> None:
    found = judge(numbers("good", 400), status=np.full(400, int(Status.UNSURE), np.uint8))
    assert found.flagged == 0


def finding(code: str, severity: str) -> Finding:
    return Finding(code=code, severity=severity, message="column 'b' is the target", cure="Cure.")


def test_a_leak_or_an_error_in_the_data_overrules_the_words() -> None:
    few = finding("few-rows", "warning")
    for one in (finding("target-copy", "warning"), finding("one-group", "error")):
        verdict = judge(numbers("good"), findings=[one, few])
        assert verdict.headline == "cannot be trusted (skill strong, calibration right)"
        assert verdict.sentences[0] == "Cannot be trusted: Column 'b' is the target. Cure."
    known = finding("leak", "warning").as_known(["b"])
    assert known.overrules  # it names no column
    known = replace(known, columns=("b",)).as_known(["b"])
    assert judge(numbers("good"), findings=[known, few]).tone == "good"


def test_a_model_that_is_wrong_in_many_groups_is_right_on_average_only() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(20), 100)
    wide = np.where(group % 2, 0.75, 2.0)  # intervals contain 78 % and 99.9 %
    x = rng.normal(size=2000)
    found = judge(Subject("y", "", Gaussian(x, wide), x + rng.normal(size=2000), groups=group))
    assert found.calibration == "right on average"
    assert any("groups (outside of the 95 % band)" in remark for remark in found.remarks)
    assert found.tone == "open"


def test_recall_and_label_shift_are_told() -> None:
    rng = np.random.default_rng(0)
    labels = np.array(["fog", "rain", "sun"])
    y = labels[rng.choice(3, p=[0.5, 0.1, 0.4], size=1000)]
    dist = Categorical(np.tile([0.2, 0.3, 0.5], (1000, 1)), labels)
    found = judge(
        Subject("weather", "", dist, y),
        Constant(frequencies=np.array([0.2, 0.3, 0.5]), is_training=True),
    )
    told = " ".join(found.remarks)
    assert "Recall is low for fog 0 %, rain 0 %." in told
    assert "Class frequencies differ from training: fog 20 % then" in told


def test_a_class_that_does_not_occur_is_named_and_not_scored() -> None:
    labels = np.array(["a", "b", "c"])
    y = np.array(["a", "b"] * 50)
    probs = np.where((y == "a")[:, None], [0.9, 0.05, 0.05], [0.05, 0.9, 0.05])
    found = judge(Subject("y", "", Categorical(probs, labels), y))
    assert found.figures["mean recall"] == 1.0
    assert "Not judged, as no row has the class: c." in found.remarks


def test_true_models_are_seldom_blamed_where_rows_follow_each_other() -> None:
    """With a memory of 0.9 the rows tell as much as twenty times fewer; time says so."""
    found = [judge(numbers("good", 1000, seed, memory=0.9)) for seed in range(60)]
    words = [one.calibration for one in found]
    assert words.count("right") + words.count("right on average") >= 48
    assert words.count("drifting") <= 1


def test_a_width_that_is_absurd_is_no_lack_of_skill() -> None:
    good = numbers("good")
    narrow = replace(good, dist=Gaussian(good.dist.mean, good.dist.std / 500), time=None)
    found = judge(narrow)
    assert (found.skill, found.calibration) == ("strong", "too narrow")
    assert found.gain.value == pytest.approx(np.log(5) / 2, abs=0.2)
    assert found.sentences[-1] == "Drift not checked: no time was given."


def test_a_recalibrated_model_has_the_same_verdict() -> None:
    good = numbers("good")
    dist = Recalibrated(good.dist, np.linspace(0, 1, 5), np.linspace(0, 1, 5))
    found, plain = judge(replace(good, dist=dist)), judge(good)
    assert found.headline == plain.headline == "skill strong, calibration right"
    assert found.gain.value == pytest.approx(plain.gain.value, abs=1e-3)


def test_a_gap_that_does_not_matter_is_no_fault() -> None:
    """0.915 of 40,000 rows is ten errors off, and right all the same."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=40_000)
    dist = Gaussian(x, np.full(40_000, 1.04))
    found = judge(Subject("y", "", dist, x + rng.normal(size=40_000)))
    assert 0.91 < found.share.value < 0.92
    assert found.share.low > 0.9
    assert found.calibration == "right"


def test_the_sentence_on_drift() -> None:
    found = judge(numbers("drifting", 900))
    assert found.calibration_sentence == (
        "It changed about 585 (time): 90 % of the 90 % intervals contained "
        "the value before, 15 % after; 900 rows in all."
    )
    assert found.skill_sentence.startswith("On 585 rows before the change: MAE 0.8")


def test_several_targets_have_a_verdict_each_and_json() -> None:
    subjects = [numbers("good"), replace(numbers("useless"), name="z")]
    found = judge_each(subjects)
    assert [one.skill for one in found.values()] == ["strong", "none"]
    kept = found["z"].to_json()
    assert kept["skill"] == "none"
    assert type(found["y"]).from_json(found["y"].to_json()).share == found["y"].share
    assert isinstance(found["y"].gain, Score)
