"""Labels that travel with a distribution: metrics take them, whatever they are."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import rdeepsense as rds
from rdeepsense import metrics
from rdeepsense.distributions import Categorical, Mixture, concatenate
from rdeepsense.errors import InputError

LABELS = {
    "text": np.array(["run", "sit", "walk"]),
    "from one": np.array([1, 2, 3]),
    "with gaps": np.array([-7, 0, 1000]),
    "floats": np.array([0.0, 2.0, 5.0]),
    "yes and no and more": np.array(["False", "True", "maybe"]),
}


def some_classes(seed: int = 0, rows: int = 60) -> tuple[Categorical, np.ndarray]:
    rng = np.random.default_rng(seed)
    return Categorical(rng.dirichlet(np.ones(3), rows)), rng.integers(3, size=rows)


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
@pytest.mark.parametrize("seed", range(5))
def test_labels_score_as_their_indices_do(labels, seed):
    dist, index = some_classes(seed)
    plain = metrics.evaluate(dist, index)
    assert metrics.evaluate(dist.labelled(labels), labels[index]) == plain
    assert metrics.evaluate(Categorical(dist.probs, labels), labels[index].tolist()) == plain
    # The order of classes is that of the probabilities, sorted or not.
    turned = Categorical(dist.probs[:, ::-1], labels[::-1])
    assert metrics.evaluate(turned, labels[index]) == pytest.approx(plain, rel=1e-12)


def test_an_absent_top_label_does_not_move_the_others():
    dist, index = some_classes()
    dist, index = dist[index < 2], index[index < 2]
    labels = np.array([1, 2, 3])
    assert metrics.accuracy(dist.labelled(labels), labels[index]) == metrics.accuracy(dist, index)
    with pytest.raises(InputError, match=r"of the classes 1, 2, 3; got 0"):
        metrics.evaluate(dist.labelled(labels), index)


@pytest.mark.parametrize(
    ("y", "got"), [(-1, "-1"), (3, "3"), (0.5, "0.5"), (np.nan, "nan"), ("run", "'run'")]
)
def test_without_labels_only_indices_are_taken(y, got):
    with pytest.raises(InputError, match=f"class indices from 0 to 2; got {got}"):
        metrics.evaluate(Categorical([[0.2, 0.3, 0.5]]), [y])


def test_an_unknown_label_is_named_with_the_classes():
    dist = Categorical([[0.2, 0.8]], ["no", "yes"])
    for metric in (metrics.accuracy, metrics.nll, metrics.brier, metrics.evaluate):
        with pytest.raises(InputError, match="of the classes 'no', 'yes'; got 'perhaps'"):
            metric(dist, ["perhaps"])
    with pytest.raises(InputError, match="labels of one kind"):
        metrics.accuracy(dist[[0, 0]], np.array(["yes", 1], dtype=object))


def test_labels_go_wherever_the_probabilities_go():
    dist, _ = some_classes()
    labelled = dist.labelled(LABELS["text"])
    made = {
        "slice": labelled[3:7],
        "one": labelled[4],
        "joined": concatenate([labelled[:5], labelled[5:]]),
        "tempered": labelled.tempered(2.0),
        "mixture": Mixture([labelled, labelled.tempered(3.0)]).moment_matched(),
        "pickled": pickle.loads(pickle.dumps(labelled)),
    }
    for way, found in made.items():
        assert found.classes.tolist() == ["run", "sit", "walk"], way
    assert made["joined"] == labelled == made["pickled"] != dist
    assert np.array_equal(labelled.probs, dist.probs)
    assert dist[2:].classes is None
    other = dist.labelled(LABELS["from one"])
    with pytest.raises(InputError, match="classes cannot be joined"):
        concatenate([labelled, other])
    with pytest.raises(InputError, match="same classes"):
        Mixture([labelled, other])
    with pytest.raises(ValueError, match="read-only"):
        labelled.classes[0] = "fly"


@pytest.mark.parametrize("classes", [["a", "b"], ["a", "a", "b"], [["a", "b", "c"]], "abc"])
def test_labels_must_fit_the_probabilities(classes):
    with pytest.raises(InputError, match="3 different labels"):
        Categorical([[0.2, 0.3, 0.5]], classes)


def test_per_output_encodes_labels_once():
    dist = Categorical([[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.8, 0.2]]], [5, 6])
    found = metrics.per_output(metrics.accuracy, dist, [[5, 6], [5, 6]])
    assert found.tolist() == [1.0, 0.5]


@pytest.mark.parametrize("labels", [LABELS["text"], LABELS["from one"]], ids=["text", "from one"])
def test_a_model_evaluates_in_its_own_labels(labels):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2))
    y = labels[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = rds.RDeepSenseClassifier(
        hidden=(8,), epochs=5, random_state=0, verbose=False, effort="quick"
    ).fit(X, y)
    figures = model.evaluate(X, y)
    assert figures["accuracy"] == np.mean(model.predict(X) == y)
    assert figures == metrics.evaluate(model.predict_dist(X), y)
    assert model.predict_dist(X, epistemic="laplace").classes.tolist() == labels.tolist()
    chosen = y != labels[-1]  # the top label absent
    assert model.evaluate(X[chosen], y[chosen])["accuracy"] == np.mean(
        model.predict(X[chosen]) == y[chosen]
    )
    with pytest.raises(InputError, match="not fitted on"):
        model.evaluate(X[:1], ["fly"] if labels.dtype.kind == "U" else [9])


def test_a_model_evaluates_in_the_units_of_its_target():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    y = np.c_[1e6 + 1e3 * X[:, 0], X[:, 1]]
    model = rds.RDeepSenseRegressor(
        hidden=(8,), epochs=5, random_state=0, verbose=False, effort="quick"
    ).fit(X, y)
    assert model.evaluate(X, y) == metrics.evaluate(model.predict_dist(X), y)
    assert model.evaluate(X, y)["mae"] == pytest.approx(np.abs(model.predict(X) - y).mean())
    with pytest.raises(InputError, match=r"outputs of shape \(\)"):
        model.evaluate(X, y[:, 0])
