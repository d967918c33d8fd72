"""Model files that are self-consistent but hostile: each is refused by name, at no cost."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.guard import MIB, guarded
from fuzz.hostile_files import File, opened, write_signed
from fuzz.model_files import models, use_model

import rdeepsense as rds
from rdeepsense.errors import ModelFileError

Change = Callable[[File], None]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, File]:
    path = tmp_path_factory.mktemp("right") / "file"
    found = {}
    for name, model in models().items():
        model.save(path)
        use_model(path, np.random.default_rng(0))
        found[name] = opened(path)
    return found


def put(path: str, value: Any) -> Change:
    def change(file: File) -> None:
        owner, *names = file.header, *path.split(".")
        for name in names[:-1]:
            owner = owner[name]
        owner[names[-1]] = value

    return change


def without(path: str) -> Change:
    def change(file: File) -> None:
        owner, *names = file.header, *path.split(".")
        for name in names[:-1]:
            owner = owner[name]
        del owner[names[-1]]

    return change


def spelt(name: str, text: str) -> Change:
    def change(file: File) -> None:
        file.header[name], file.raw = "RAW", ('"RAW"', text)

    return change


def tensor(name: str, of: Callable[[Any], Any]) -> Change:
    return lambda file: file.tensors.update({name: of(file.tensors[name])})


def lost(name: str) -> Change:
    return lambda file: file.tensors.pop(name)


def with_value(value: float) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        changed = np.array(array)
        changed.flat[0] = value
        return changed

    return change


FULL, CLASSES, DEEP, GP = "RDeepSense, all", "RDeepSense classes", "DeepSense", "GP exact"
CODED = "Encoded"
MINE, MINE_CLASSES = "Adapted", "Adapted classes"
WIDE, DEPTH = "architecture.arguments.hidden", "architecture.arguments.depth"
INTERVAL = "architecture.arguments.interval"
REFUSED: list[tuple[str, Change, str]] = [
    (FULL, put(WIDE, [20_000, 20_000]), "network.0.body.0.weight has the shape"),
    (FULL, put(WIDE, [10**18, 10**18]), "architecture.arguments cannot be used"),
    (FULL, put(WIDE, [1] * 100_000), "more layers than the file has weights"),
    (FULL, put("architecture.outputs", 2 * 10**8), "architecture.outputs = 200000000 is garbled"),
    (FULL, put("architecture.outputs", 1_000), "architecture.outputs = 1000 does not fit"),
    (FULL, put("architecture.members", 9_999), "lacks the tensors network.1"),
    (FULL, put("architecture.likelihood", "categorical"), "architecture.likelihood"),
    (FULL, put("architecture.class", "os.system"), "architecture 'os.system' is unknown"),
    (FULL, put("input_shape", [3 * 10**8]), "input_shape = "),
    (FULL, put("features", 4), "input_shape = "),
    (CLASSES, put("target.dtype", "<U200000000"), "target.dtype = '<U200000000' is garbled"),
    (CLASSES, put("target.classes", ["c", "bb", "a"]), "target.classes are not two labels"),
    (FULL, put("target", {"dtype": "<i8", "classes": [0]}), "target does not fit"),
    (DEEP, put(DEPTH, 100_000), "more layers than the file has weights"),
    (DEEP, put("architecture.arguments.layers", 100_000), "more layers than the file has weights"),
    (DEEP, put(INTERVAL, 8), "network.0.body.scale"),
    (DEEP, put("input_shape", [400_000, 3]), "input_shape = "),
    (GP, tensor("gp.x", lambda x: np.zeros((50_000, 0))), "gp.x has the shape"),
    (GP, tensor("gp.root", np.float32), "gp.root has the type float32"),
    (GP, tensor("gp.lengths", with_value(0.0)), "gp.lengths holds 0"),
    (FULL, put("params", "x"), "params = 'x' is garbled"),
    (FULL, put("params.missing", "median"), "params cannot be used: missing = 'median'"),
    (FULL, put("params.hidden", [0]), "params cannot be used"),
    (FULL, put("params.surprise", 1), "params cannot be used"),
    ("MCDrop", put("params.samples", 10**6), "params.samples"),
    (FULL, put("format", "1"), "format = '1' is none"),
    (FULL, without("estimator"), "holds a None"),
    (FULL, put("estimator", ["RDeepSenseRegressor"]), "unknown here"),
    (FULL, put("estimator", "GPRegressor"), "params cannot be used"),
    (FULL, without("training"), "lacks the field training"),
    (FULL, without("training.seed"), "lacks the field training.seed"),
    (FULL, put("training.seed", -1), "training.seed = -1 is garbled"),
    (FULL, put("feature_units", {"a": "m"}), "feature_units = "),
    (FULL, put("target_units", ["m", "s"]), "target_units"),
    (FULL, put("calibration", "temperature"), "calibration = temperature does not fit"),
    (FULL, put("calibration", "noise"), "calibration = noise does not fit"),
    (FULL, spelt("validation_scores", "1e999"), "holds 1e999, which is no finite number"),
    (FULL, spelt("training", "[" * 150_000 + "]" * 150_000), "nested more than 64 deep"),
    (FULL, tensor("input.scale", lambda scale: scale[:1]), "input.scale has the shape"),
    (FULL, tensor("input.scale", with_value(-1.0)), "input.scale holds -1"),
    (FULL, tensor("target.scale", with_value(np.nan)), "target.scale holds nan"),
    (FULL, lost("target.shift"), "lacks the tensor target.shift"),
    (FULL, tensor("network.0.body.0.weight", with_value(np.nan)), "body.0.weight holds nan"),
    (FULL, tensor("network.0.body.0.weight", with_value(1e20)), "body.0.weight holds"),
    (FULL, tensor("calibration.factor", with_value(-2.0)), "calibration.factor holds -2"),
    (FULL, tensor("conformal.scores", with_value(np.nan)), "conformal.scores holds nan"),
    (FULL, tensor("conformal.scores", with_value(-0.1)), "conformal.scores holds -0.1"),
    (FULL, tensor("conformal.group", with_value(2)), "conformal.group holds 0 to 2"),
    (FULL, tensor("guard.low", with_value(1e9)), "guard.low lies above guard.high"),
    (FULL, tensor("guard.high", with_value(np.nan)), "guard.high holds nan"),
    (FULL, tensor("guard.missing", with_value(2.0)), "guard.missing holds 0 to 2"),
    (FULL, tensor("guard.fallback", lambda own: own[:0]), "guard.fallback has the shape"),
    (FULL, lost("guard.low"), "lacks the tensor guard.low"),
    (CLASSES, tensor("guard.fallback", with_value(0.9)), "holds no frequencies of classes"),
    (FULL, tensor("novelty.shares", with_value(np.nan)), "novelty.shares holds nan"),
    (FULL, tensor("novelty.knots", lambda knots: knots[::-1]), "novelty.knots is not in order"),
    (FULL, tensor("novelty.factors", lambda own: -own), "novelty.factors has a diagonal"),
    (FULL, tensor("novelty.held_out", lambda own: own[:0]), "novelty.held_out is missing"),
    (FULL, tensor("epistemic.root", lambda root: root[:-1]), "epistemic.root has the shape"),
    (FULL, tensor("epistemic.root", lambda root: root[1:, 1:]), "epistemic.root has"),
    (FULL, tensor("rows.X", lambda rows: rows[:, :1]), "rows.X has the shape"),
    (FULL, tensor("rows.y", lambda rows: rows[:-1]), "rows.y has the shape"),
    (FULL, lambda file: file.tensors.update(strange=np.ones(2)), "'strange' is no tensor"),
    (FULL, lambda file: file.entries.update({"rows.X": {"dtype": "BF16"}}), "has dtype 'BF16'"),
    (CODED, without("encoding"), "guard.levels' is no tensor|input.shift has the shape"),
    (FULL, put("encoding", {"flagged": [0], "categories": []}), "input.shift has the shape"),
    (CODED, put("encoding.flagged", [0, 1]), "encoding.flagged names a category"),
    (CODED, put("encoding.categories", []), "is no tensor of such a model|has the shape"),
    (CODED, put("encoding.flagged", list(range(10**5))), "encoding.flagged has columns"),
    (CODED, put("missing", "auto"), "missing = 'auto' is garbled"),
    (CODED, lost("encoding.0"), "encoding.0 has the shape"),
    (CODED, lost("guard.levels"), "lacks the tensor guard.levels"),
    (CODED, tensor("guard.levels", with_value(7.0)), "guard.levels does not fit the encoding"),
    (CODED, tensor("encoding.0", with_value(np.nan)), "encoding.0 holds nan"),
    (CODED, tensor("encoding.0", with_value(1e9)), "encoding.0 holds"),
    (CODED, tensor("encoding.0", lambda own: own[:-1]), "encoding.0 has the shape"),
    (CODED, tensor("encoding.0", lambda own: own[:, :1]), "input.shift has the shape"),
    (CODED, tensor("encoding.0", lambda own: np.tile(own, 30)), "encoding.0 has the shape"),
    (DEEP, put("encoding", {"flagged": [], "categories": []}), "encoding is there for windows"),
    (MINE, put("adaptation.rows", 0), "adaptation.rows = 0 is garbled"),
    (MINE, put("adapted.labels", -1), "adapted.labels = -1 is garbled"),
    (MINE, put("adapted.source", "../x"), "adapted.source = '../x' is garbled"),
    (MINE, without("adaptation"), "adapted is there without what a model adapts by"),
    (MINE, without("adapted"), "'adapted.covariance' is no tensor"),
    (MINE, lost("adapted.start"), "lacks the tensor adapted.start"),
    (MINE, tensor("adapted.weights", with_value(np.nan)), "adapted.weights holds nan"),
    (MINE, tensor("adapted.weights", lambda own: own[1:]), "adapted.covariance has the shape"),
    (MINE, tensor("adapted.weights", lambda own: np.zeros((500, 2))), "adapted.weights has 500"),
    (MINE, tensor("adapted.covariance", lambda own: -own), "adapted.covariance is not positive"),
    (MINE, tensor("adapted.start", lambda own: np.tril(own)), "adapted.start is not symmetric"),
    (MINE, tensor("adaptation.between", lambda own: np.ones(50)), "adaptation.between has 50"),
    (MINE, tensor("adaptation.shares", with_value(1.5)), "adaptation.shares holds"),
    (MINE, tensor("adaptation.directions", with_value(7.0)), "adaptation.directions holds"),
    (MINE_CLASSES, tensor("adapted.covariance", lambda own: own * 1e40), "adapted.covariance hol"),
    (
        MINE_CLASSES,
        lambda file: file.tensors.update({"adapted.projection": np.zeros((9, 5))}),
        "adapted.weights are for 9 numbers",
    ),
    ("RDeepSense, selected", tensor("calibration.stated", np.flip), "stated does not rise"),
    ("RDeepSense, selected", put("selection.chosen", 10**6), "selection.chosen = 1000000"),
]


@pytest.mark.parametrize(("name", "change", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_every_refusal_names_the_field_and_costs_little(
    files: dict[str, File], name: str, change: Change, said: str, tmp_path: Path
) -> None:
    file = copy.deepcopy(files[name])
    change(file)
    file.write(tmp_path / "file")
    outcome = guarded(lambda: rds.load(tmp_path / "file"))
    assert isinstance(outcome.refused, ModelFileError)
    with pytest.raises(ModelFileError, match=said):
        raise outcome.refused
    assert str(tmp_path / "file") in str(outcome.refused)
    assert len(str(outcome.refused)) < 1_000
    assert outcome.growth <= 3 * (tmp_path / "file").stat().st_size + 64 * MIB


def test_unknown_fields_are_left_alone(files: dict[str, File], tmp_path: Path) -> None:
    file = copy.deepcopy(files[FULL])
    file.header["of a later version"] = {"any": [1, None]}
    file.write(tmp_path / "file")
    use_model(tmp_path / "file", np.random.default_rng(0))


def test_tensors_of_one_place_are_refused(tmp_path: Path) -> None:
    entry = {"dtype": "F64", "shape": [MIB // 8], "data_offsets": [0, MIB]}
    header = {"format": 1, "kind": "model", "estimator": "GPRegressor", "sha256": "0" * 64}
    write_signed(
        tmp_path / "file",
        json.dumps(header, separators=(",", ":")),
        {f"gp.{k}": entry for k in range(2_000)},
        bytes(MIB),
    )
    with pytest.raises(ModelFileError, match="overlaps another or leaves a gap"):
        rds.load(tmp_path / "file")


def test_tables_that_the_network_computes_stay_in_proportion(
    files: dict[str, File], tmp_path: Path
) -> None:
    file, interval = copy.deepcopy(files[DEEP]), 40_000
    terms, filters = interval // 2 + 1, 3
    file.header["architecture"]["arguments"]["interval"] = interval
    file.header["input_shape"] = [interval, 3]
    for name in ("weight", "bias", "running_mean", "running_var"):
        file.tensors[f"network.0.body.scale.{name}"] = np.ones(3 * terms, np.float32)
    gate = file.tensors["network.0.body.recurrent.weight_ih_l0"]
    file.tensors["network.0.body.recurrent.weight_ih_l0"] = np.zeros(
        (len(gate), filters * terms), np.float32
    )
    for name in ("rows.X", "rows.y"):
        del file.tensors[name]
    file.write(tmp_path / "file")
    outcome = guarded(lambda: rds.load(tmp_path / "file"))
    assert isinstance(outcome.refused, ModelFileError)
    assert "ask for tables of" in str(outcome.refused)
    assert outcome.growth <= 3 * (tmp_path / "file").stat().st_size + 64 * MIB


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["network", "process"])
def test_a_large_model_takes_little_more_than_its_file(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    common: dict[str, Any] = {"random_state": 0, "device": "cpu", "verbose": False}
    if kind == "network":
        model: Any = rds.RDeepSenseRegressor(
            hidden=(2_100, 1_100), epochs=1, **common, effort="quick"
        )
    else:
        X = rng.normal(size=(1_500, 3))
        model = rds.GPRegressor(steps=1, method="exact", **common)
    model.fit(X, X[:, 0] + 0.1 * rng.normal(size=len(X))).save(tmp_path / "file")
    size = (tmp_path / "file").stat().st_size
    assert size > 5 * MIB
    outcome = guarded(lambda: rds.load(tmp_path / "file"))
    assert outcome.accepted
    assert outcome.growth <= 3 * size + 32 * MIB
