"""Everything that is read from a fitted model: the one place that knows names inside of it."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from golden.cases import Case
from numpy.typing import NDArray
from safetensors.numpy import load_file

import rdeepsense as rds
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.folded.deployed import DeployedModel

Values = dict[str, NDArray[Any]]
# Without contraction a product and a sum are rounded one by one, whatever the processor has.
CC = ("cc", "-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-shared")
ANY_CHANGE = 1e9  # of the NLL: what int8 costs is recorded, not judged
FACTS = ("rows", "validation_rows", "validated", "steps", "planned_steps", "batch_size",
         "best_step", "method", "teacher")  # fmt: skip


@dataclass(frozen=True)
class Observed:
    """What a fit left behind."""

    facts: dict[str, Any]  # whole numbers and texts
    figures: dict[str, float]
    weights: dict[str, str]  # SHA-256 of each table of numbers
    values: Values  # row by row


def observe(case: Case, folder: Path) -> Observed:
    """Fit a case and look at it from all sides; `folder` is an empty one to write to."""
    model = case.fit(folder)
    values = predictions(model, case.X, case.groups) | folded_outputs(model, case.X)
    return Observed(facts(model), figures(model), weights(model, folder), values)


def export_outputs(case: Case, folder: Path) -> Values:
    """Fit a case and run its exports to ONNX and C, which takes a second for each build of C."""
    model = case.fit(folder)
    return onnx_outputs(model, case.X, folder) | c_outputs(model, case.X, folder)


def facts(model: Any) -> dict[str, Any]:
    """What was chosen and how, the names, and the shapes."""
    if not hasattr(model, "training_"):
        return {"kind": type(model).__name__}
    found = {name: model.training_.get(name) for name in FACTS}
    candidate = getattr(model.fitted_.model, "candidate", None)
    found["candidate"] = None if candidate is None else list(vars(candidate).values())
    if model.selection_ is not None:
        found |= {name: model.selection_[name] for name in ("by", "how", "chosen")}
        found["lengths"] = [tried["steps"] for tried in model.selection_.get("lengths", [])]
    found["calibration"] = type(model.fitted_.calibration).__name__
    inputs, target = model.fitted_.inputs, model.fitted_.target
    values = {
        "classes": target.classes,
        "feature_names_in": getattr(model, "feature_names_in_", None),
        "target_names": target.names,
        "target_units": target.units,
        "feature_units": inputs.units,
        "input_shape": inputs.shape,
        "output_shape": None if target.is_classes else target.shape,
    }
    for name, value in values.items():
        found[name] = None if value is None else np.asarray(value).tolist()
    found["kept"] = [list(part.shape) for part in model.fitted_.kept_rows]
    return found


def figures(model: Any) -> dict[str, float]:
    """Scores on the rows that were held out, and how the candidates and the networks did there."""
    found = dict(getattr(model, "validation_scores_", {}))
    training = getattr(model, "training_", {})
    found |= {f"best_nll.{k}": nll for k, nll in enumerate(training.get("best_nll", []))}
    if "loss" in training:
        found["loss"] = training["loss"]
    for k, trial in enumerate((getattr(model, "selection_", None) or {}).get("trials", [])):
        names = ("nll", "deviation_area", "calibration")
        found |= {f"trial.{k}.{n}": trial[n] for n in names if trial[n] is not None}
    return {name: float(value) for name, value in found.items()}


def weights(model: Any, folder: Path) -> dict[str, str]:
    """Digests of all that was learnt, by the names in the model file."""
    if hasattr(model, "save"):
        model.save(folder / "model.safetensors")
        tables = load_file(folder / "model.safetensors")
    else:
        tables = {f"network.{k}": v.numpy() for k, v in model.network.state_dict().items()}
        names = ("factor", "noise")
        tables |= {n: np.asarray(getattr(model, n)) for n in names if hasattr(model, n)}
        if hasattr(model, "laplace"):
            tables |= {f"laplace.{k}": np.asarray(v) for k, v in vars(model.laplace).items()}
            tables["temperature"] = np.asarray(model.temperature.factor)
    return {name: digest(array) for name, array in sorted(tables.items())}


def digest(array: NDArray[Any]) -> str:
    """SHA-256 of shape, type and bytes."""
    array = np.ascontiguousarray(array)
    return hashlib.sha256(f"{array.shape}{array.dtype.str}".encode() + array.tobytes()).hexdigest()


def predictions(model: Any, X: Any, groups: Any = None) -> Values:
    """The distributions, and all that a model says beside them."""
    values = _named("predict", lambda: _moments(model.predict_dist(X)))
    values |= _named("samples", lambda: _moments(model.predict_dist(X, samples=3)))
    for method in ("laplace", "delta"):
        values |= _named(method, lambda m=method: _moments(model.predict_dist(X, epistemic=m)))
    if hasattr(model, "epistemic_std"):
        for method in ("laplace", "delta", "moments", "sample"):
            values |= _named(
                method, lambda m=method: {"epistemic": model.epistemic_std(X, method=m)}
            )
    if hasattr(model, "mutual_information"):
        values |= _named("predict", lambda: {"information": model.mutual_information(X)})
    if hasattr(model, "predict_interval"):
        how = ["predicted"] if hasattr(model, "save") else []  # a wrapped network has one way
        values |= _named("predict", lambda: _ends(model.predict_interval(X, 0.9, *how)))
        values |= _named(
            "conformal",
            lambda: _ends(model.predict_interval(X, 0.9, method="conformal", groups=groups)),
        )
    if hasattr(model, "predict_set"):
        values |= _named("conformal", lambda: {"set": model.predict_set(X, 0.9, groups=groups)})
    if hasattr(model, "novelty"):
        values |= _named("novelty", lambda: {"share": model.novelty(X)})
    return values


def folded_outputs(model: Any, X: Any) -> Values:
    """Those of the folded form, which numpy runs alone."""

    def outputs(epistemic: str | None) -> Values:
        folded = fold(model, epistemic)
        found = folded.run(folded.facts.check(X))._asdict()
        parts = {name: values for name, values in found.items() if values is not None}
        if epistemic is None and not folded.facts.is_classifier:
            parts |= _ends(DeployedModel(folded).predict_interval(X, 0.9, "predicted"))
        return parts

    plain = _named("fold", lambda: outputs(None))
    return plain | _named("fold-laplace", lambda: outputs("laplace"))


def onnx_outputs(model: Any, X: Any, folder: Path) -> Values:
    """Those of the ONNX file, run by ONNX Runtime on one thread."""

    def outputs(dtype: str, epistemic: str | None) -> Values:
        path = folder / f"{dtype}-{epistemic}.onnx"
        rds.export(
            model, path, to="onnx", dtype=dtype, max_nll_change=ANY_CHANGE, epistemic=epistemic
        )
        given = onnxruntime.SessionOptions()
        given.intra_op_num_threads = given.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, given, providers=["CPUExecutionProvider"])
        found = session.run(None, {"x": np.asarray(X, dtype=np.float32)})
        return {o.name: a for o, a in zip(session.get_outputs(), found, strict=True)}

    values = _named("onnx-float32", lambda: outputs("float32", None))
    values |= _named("onnx-int8", lambda: outputs("int8", None))
    return values | _named("onnx-float32-laplace", lambda: outputs("float32", "laplace"))


def c_outputs(model: Any, X: Any, folder: Path) -> Values:
    """Those of the exported C, compiled here; none where there is no compiler."""
    if shutil.which(CC[0]) is None:
        return {}

    def outputs(dtype: str, epistemic: str | None) -> Values:
        target = folder / f"c-{dtype}-{epistemic}"
        report = rds.export(
            model, target, to="c99", dtype=dtype, max_nll_change=ANY_CHANGE, epistemic=epistemic
        ).to_json()
        subprocess.run([*CC, "model.c", "weights.c", "-o", "model.so"], cwd=target, check=True)
        library = ctypes.CDLL(str(target / "model.so"))
        classes = report["classes"]
        names = ["mean", "std"] if classes is None else ["probs"]
        names += [] if epistemic is None else ["epistemic"]
        width = fold(model).facts.outputs
        rows = np.ascontiguousarray(X, dtype=np.float32)
        out = np.full((len(names), len(rows), width), -7, dtype=np.float32)
        scratch = np.zeros(report["bytes"]["ram_scratch"] // 4 + 1, dtype=np.float32)
        for k, row in enumerate(rows):
            places = (row, *(part[k] for part in out), scratch)
            status = library.model_predict(*(ctypes.c_void_p(p.ctypes.data) for p in places))
            assert status == 0, f"row {k} has the status {status}"
        return dict(zip(names, out, strict=True))

    values: Values = {}
    for dtype in ("float32", "float16", "int8"):
        values |= _named(f"c-{dtype}", lambda d=dtype: outputs(d, None))
    return values | _named("c-float32-laplace", lambda: outputs("float32", "laplace"))


def _moments(dist: Any) -> Values:
    return {"probs": dist.mean} if dist.is_categorical else {"mean": dist.mean, "std": dist.std}


def _ends(pair: tuple[NDArray[Any], NDArray[Any]]) -> Values:
    return {"low": pair[0], "high": pair[1]}


def _named(form: str, outputs: Callable[[], Values]) -> Values:
    """Outputs under the name of their form; none where the model refuses them.

    A model that begins to refuse what it could do is seen: its observations are gone.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.filterwarnings("ignore", message=".*variances of the passes are below")
        try:
            found = outputs()
        except (rds.InputError, TypeError):
            return {}
    return {f"{form}/{name}": np.asarray(a, dtype=np.float64) for name, a in found.items()}
