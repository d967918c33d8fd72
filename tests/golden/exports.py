"""The record of exports: the files of small models in each form, with their SHA-256.

A text is shown in blocks between empty lines, each where it is first; `...` stands for blocks that
an earlier file has. So a changed line of the runtime is one changed line, and at the end of the
record a changed SHA-256 for each file that it is part of. Long tables of numbers are shown by their
digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
from golden.formula_models import model
from numpy.typing import NDArray

import rdeepsense as rds
from rdeepsense.deploy.c.build import single
from rdeepsense.modelfile import tensors as model_file

ANY_CHANGE = 1e9  # of the NLL; the weights mean nothing
INT8: dict[str, Any] = {"dtype": "int8", "max_nll_change": ANY_CHANGE}
HALVES: dict[str, Any] = {"dtype": "float16", "max_nll_change": ANY_CHANGE}

# A model of `formula_models`, the form, and options.
EXPORTS: list[tuple[str, str, dict[str, Any]]] = [
    ("regressor", "c99", {}),
    ("regressor", "c99", HALVES),
    ("regressor", "c99", INT8),
    ("regressor", "c99", {"epistemic": "laplace"}),
    ("regressor", "c99", {"live": True}),
    ("regressor", "c99", INT8 | {"live": True}),
    ("regressor", "c99", {"reject": 0.75}),
    ("regressor", "package", {"name": "wear", "version": "1.2.0"}),
    ("regressor", "folded", {}),
    ("regressor", "folded", {"epistemic": "laplace"}),
    ("regressor", "onnx", {}),
    ("regressor", "onnx", INT8),
    ("regressor", "onnx", {"epistemic": "laplace"}),
    ("regressor", "onnx", {"features": True}),
    ("regressor", "onnx", {"reject": 0.75}),
    ("regressor", "web", {"live": True}),
    ("regressor", "compiled", {}),
    ("uncalibrated", "c99", {}),
    ("student-isotonic-of-two", "c99", {}),
    ("student-isotonic-of-two", "folded", {}),
    ("student-isotonic-of-two", "onnx", {}),
    ("gaussian-of-three", "c99", {}),
    ("gaussian-of-three", "onnx", {}),
    ("wide", "c99", {}),
    ("wide", "c99", INT8),
    ("wide", "compiled", {}),
    ("two-classes-uncalibrated", "c99", {}),
    ("two-classes-uncalibrated", "onnx", INT8),
    ("student", "c99", {"live": True}),
    ("student", "c99", HALVES | {"live": True, "reject": 0.5}),
    ("student", "web", {"epistemic": "laplace"}),
    ("conformal", "c99", {}),
    ("conformal", "folded", {}),
    ("classifier", "c99", {}),
    ("classifier", "c99", INT8),
    ("classifier", "c99", {"epistemic": "laplace"}),
    ("classifier", "c99", {"reject": 0.75}),
    ("classifier", "package", {"epistemic": "laplace"}),
    ("classifier", "web", INT8),
    ("classifier", "folded", {}),
    ("classifier", "onnx", {}),
    ("categories-and-holes", "c99", {}),
    ("categories-and-holes", "c99", INT8),
    ("categories-and-holes", "folded", {}),
    ("categories-and-holes", "onnx", {}),
    ("periodic", "c99", {}),
    ("periodic", "c99", INT8),
    ("periodic", "folded", {}),
    ("periodic", "onnx", {}),
    ("novelty", "c99", {}),
    ("novelty", "c99", INT8),
    ("novelty", "folded", {}),
    ("holes-as-means", "c99", {}),
    ("holes-as-means", "onnx", {}),
    ("holes-as-means", "compiled", {}),
    ("adapted", "c99", {}),
    ("adapted-classifier", "c99", INT8),
    ("adapted-classifier", "c99", {}),
    ("adapted-classifier", "folded", {}),
    ("windows", "c99", {}),
    ("windows", "c99", {"stream": "window", "hop": "1s"}),
    ("windows", "c99", {"stream": "running"}),
    ("windows", "c99", INT8),
    ("windows", "package", {}),
    ("windows", "package", {"name": "gait", "reject": 0.75}),
    ("windows", "folded", {}),
    ("windows", "onnx", {}),
    ("windows", "web", {"live": True}),
    ("windows", "compiled", {}),
    ("windows-of-numbers", "c99", {"live": True}),
    ("windows-of-numbers", "package", {"reject": 0.75}),
    ("windows-of-numbers", "web", {}),
    ("windows-novelty", "c99", {}),
    ("recurrent", "c99", {}),
    ("recurrent", "folded", {}),
    ("recurrent", "onnx", {}),
    ("recurrent", "web", {}),
    ("layers", "c99", {}),
    ("layers", "folded", {}),
    ("layers", "onnx", {}),
]  # fmt: skip
LIVE = ("regressor", "classifier")
WASM = b"\0asm\1\0\0\0"  # the beginning of every file of WebAssembly
PART = "\0"  # between the files that stand there in place of WebAssembly
SOURCES = {".c", ".h", ".ino", ".js", ".html", ".css"}  # compared to the byte
SHOWN = 8  # numbers of a table that are shown
DIGITS = 6  # of figures, which other processors round differently
NUMBERS = re.compile(r"\s*(?:-?[0-9][0-9a-fA-FxX.e+-]*[fuUlL]{0,3},?\s*)+(?:\};)?")
TINY = 1e-5  # what differences of the NLL are without a cause
# Predictions for the rows of a self-test, which `test_fits` compares, and numbers that are
# differences of large ones: their last bits depend on the processor.
UNSTEADY = re.compile(
    r"(float (?:expected_\w+|\w+_novelty_means)\[[^\]]*\] = \{)[^}]*\};|(#define CHECKSUM )\w+"
)
# Others of a density are rounded like figures. Everything else in C is compared to the byte.
DENSITY = re.compile(r"(?<=const float )\w+_novelty_\w+\[[^\]]*\] = \{[^}]*\}")
FIGURE = re.compile(r"-?\d+\.\d{6,}(?:e[-+]?\d+)?")


def recorded() -> str:
    """Return what is new in each file, then the digests of all."""
    made: list[tuple[str, str]] = []  # the export and the file, and its text
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings(), _same_everywhere():
        warnings.simplefilter("ignore")
        folder = Path(name)
        models = {one: model(one, folder) for one in dict.fromkeys(one for one, _, _ in EXPORTS)}
        for number, (of, to, options) in enumerate(EXPORTS):
            said = "".join(f", {k}={v!r}" for k, v in options.items() if k != "max_nll_change")
            place = folder / f"{number}{'.onnx' if to == 'onnx' else '.safetensors'}"
            rds.export(models[of], place, to="folded" if to == "compiled" else to, **options)
            files = _compiled(place) if to == "compiled" else _files(place)
            made += [(f'{of}, to="{to}"{said}: {file}', text) for file, text in files]
        for of in LIVE:
            state = _live_state(models[of], folder / f"{of}.live")
            made.append((f"{of}, after five labels of model.live(): the file", state))
    return "\n".join(line.rstrip() for line in _lines(made)) + "\n"


def _lines(made: list[tuple[str, str]]) -> Iterator[str]:
    """Return the lines of the record."""
    seen: set[str] = set()
    for title, text in made:
        lines: list[str] = []
        for block in text.split("\n\n"):
            if block not in seen:
                lines += _readable(block)
            elif lines[-1:] != ["..."]:
                lines.append("...")
            seen.add(block)
        if lines != ["..."]:
            yield from (title, *_indented(lines), "")
    yield "SHA-256"
    yield from _indented([f"{title} {_sha256(text)}" for title, text in made])


@contextlib.contextmanager
def _same_everywhere() -> Iterator[None]:
    """Fix the version, and let no compiler be found: a page's C stands in place of its code."""

    def run(command: list[str], cwd: Path, **_: Any) -> mock.Mock:
        given = ["the command\n" + " ".join(command)]
        given += [f"{path.name}\n{path.read_text()}" for path in sorted(cwd.glob("*.[ch]"))]
        (cwd / "model.wasm").write_bytes(WASM + (PART.join(given) + 2 * PART).encode())
        return mock.Mock(returncode=0)

    wasm = "rdeepsense.deploy.web.export"
    with (
        mock.patch.dict(os.environ, {"PATH": ""}),
        mock.patch("os.fsync"),  # half of the time
        mock.patch("rdeepsense.deploy.fold.__version__", "0.0.0"),
        mock.patch("rdeepsense.deploy.onnx.export.__version__", "0.0.0"),
        mock.patch(f"{wasm}.subprocess.run", run),
        mock.patch(f"{wasm}.wasm_compiler", return_value=("cc",)),
        mock.patch("rdeepsense.deploy.web.export.wasm_compiler", return_value=("cc",)),
    ):
        os.environ.pop("CC", None)
        yield


def _compiled(path: Path) -> Iterator[tuple[str, str]]:
    """Return the C that `rdeepsense.deploy.load(path, compile=True)` builds."""
    with mock.patch("rdeepsense.deploy.c.build.compiled_source") as building:
        rds.deploy.load(path, compile=True)
    (source,) = building.call_args.args
    files = {**single(source).files, "weights.c": source.weights()}
    files["levels.c"] = source.assembled("levels.c")
    for name, text in files.items():
        yield name, _steady(text, exact=True)


def _files(place: Path) -> Iterator[tuple[str, str]]:
    """Return the files of an export by name, each as a text."""
    if not place.is_dir():
        yield "the file", _onnx(place) if place.suffix == ".onnx" else _tensors(place)
        return
    for path in sorted(p for p in place.rglob("*") if p.is_file()):
        content = path.read_bytes()
        name = str(path.relative_to(place))
        if path.suffix == ".wasm":
            yield from ((f"{name}: {part}", text) for part, text in _page(content))
        else:
            yield name, _steady(content.decode(), path.suffix in SOURCES)


def _page(content: bytes) -> Iterator[tuple[str, str]]:
    """Return the command and the C of a page, and the facts about the model behind them."""
    code, _, section = content.removeprefix(WASM).partition(2 * PART.encode())
    _, _, facts = section.partition(b"rdeepsense{")
    for part in code.decode().split(PART):
        name, _, text = part.partition("\n")
        yield name, _steady(text, exact=True)
    yield "facts", _steady("{" + facts.decode())


def _steady(text: str, exact: bool = False) -> str:
    """Return a text as it is on every processor; unless `exact`, figures have a few digits."""
    text = UNSTEADY.sub(lambda found: f"{found[1] or found[2]} not compared", text)
    return DENSITY.sub(lambda found: _rounded(found[0]), text) if exact else _rounded(text)


def _rounded(text: str) -> str:
    return FIGURE.sub(lambda found: _few_digits(float(found[0])), text)


def _few_digits(value: float) -> str:
    return f"{value:.{DIGITS}g}" if abs(value) > TINY else "0"


def _readable(block: str) -> list[str]:
    """Return the lines of a block; of JSON one for each field."""
    with contextlib.suppress(json.JSONDecodeError):
        if isinstance(value := json.loads(block), dict):
            return _json(value)
    return _without_tables(block.strip("\n").split("\n"))


def _json(value: dict[str, Any]) -> list[str]:
    return [f"{k}: {_steady(json.dumps(v, ensure_ascii=False))}" for k, v in value.items()]


def _without_tables(lines: list[str]) -> list[str]:
    """Return lines with a digest in place of the numbers of a long table."""
    found: list[str] = []
    table: list[str] = []
    for line in [*lines, ""]:
        if NUMBERS.fullmatch(line):
            table.append(line)
            continue
        if len(table) > 1:
            count = sum(len(re.findall(r"[^\s,};]+", one)) for one in table)
            numbers = "\n".join(table)
            found.append(f"{count} numbers, sha256 {_sha256(numbers)}")
        else:
            found += table
        table = []
        found.append(line)
    return found[:-1]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _tensors(path: Path) -> str:
    """Return the header of a file of ours, and its tensors."""
    header, tensors = model_file.read(path)
    del header["sha256"]  # of all digits
    shown = [_array(name, array) for name, array in sorted(tensors.items())]
    return "\n".join([*_json(header), *shown])


def _array(name: str, array: NDArray[Any]) -> str:
    kind = f"{name}: {array.dtype.str.lstrip('<|')}{list(array.shape)}"
    if array.size <= SHOWN:
        return f"{kind} = {array.tolist()}"
    if array.dtype == np.float64:
        array = array.astype(np.float32)  # the last bits depend on the processor
    return f"{kind} sha256 {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}"


def _live_state(estimator: Any, path: Path) -> str:
    """Return what a live model has learned from a few rows, in a few digits."""
    live = estimator.live()
    X, y = estimator.fitted_.kept_rows
    labels = estimator.classes_[y] if hasattr(estimator, "classes_") else y
    for row, label in zip(X[:5], labels, strict=False):
        live.predict(row)
        live.observe(label)
    live.save(path)
    header, tensors = model_file.read(path)
    del header["sha256"]  # of all digits
    lines = _json(header)
    for name, array in sorted(tensors.items()):
        rounded = " ".join(map(_few_digits, array.ravel().tolist()))
        lines.append(f"{name}: {array.dtype.str.lstrip('<|')}{list(array.shape)} = {rounded}")
    return "\n".join(lines)


def _onnx(path: Path) -> str:
    """Return the graph of a model, node by node, without what other versions write differently."""
    loaded = onnx.load(path)
    graph = loaded.graph
    lines = [f"opset {one.domain or 'ai.onnx'} {one.version}" for one in loaded.opset_import]
    lines += [f"{one.key} = {_steady(one.value)}" for one in loaded.metadata_props]
    for kind, values in (("input", graph.input), ("output", graph.output)):
        for value in values:
            of = value.type.tensor_type
            shape = [one.dim_param or one.dim_value for one in of.shape.dim]
            lines.append(f"{kind} {value.name}: type {of.elem_type} {shape}")
    for node in graph.node:
        given = [_attribute(one) for one in node.attribute]
        call = f"{node.op_type}({', '.join([*node.input, *given])})"
        lines.append(f"{', '.join(node.output)} = {call}")
    lines += [_array(one.name, onnx.numpy_helper.to_array(one)) for one in graph.initializer]
    return "\n".join(lines)


def _attribute(attribute: Any) -> str:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        value = _array("tensor", onnx.numpy_helper.to_array(value))
    return f"{attribute.name}={value}"


def _indented(lines: list[str]) -> list[str]:
    return [f" {line}" for line in lines]
