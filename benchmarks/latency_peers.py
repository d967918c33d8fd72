"""The same network for other run-times: ONNX Runtime and LiteRT, each in the leanest graph found.

Both get a row that is already scaled, and LiteRT, which has no softplus, ends before the head: all
in their favour.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rdeepsense.deploy.folded.model import Folded, MeanStd
from rdeepsense.deploy.profile.forms import ProfiledModel, session_candidate
from rdeepsense.deploy.profile.measure import ProfileCandidate, peak_of_python, timed
from rdeepsense.deploy.quantise import standardised
from rdeepsense.errors import require
from rdeepsense.heads.gaussian import VARIANCE_FLOOR

LITERT = """import sys, numpy
from ai_edge_litert.interpreter import Interpreter
interpreter = Interpreter(sys.argv[1], num_threads=1)
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], numpy.load(sys.argv[2]))
interpreter.invoke()
"""


def scaled(profiled: ProfiledModel) -> tuple[Any, list[tuple[Any, Any]]]:
    """The scaled row, and W and b of the layers that take it, in float32."""
    ready = standardised(profiled.folded.layers)
    plain = [(d.weight.astype(np.float32), d.bias.astype(np.float32)) for d in ready.dense]
    return (profiled.row - ready.centre) * ready.per_scale, plain


def onnxruntime_candidates(profiled: ProfiledModel) -> list[ProfileCandidate]:
    """float32, and what `quantize_dynamic` makes of it, per tensor (its default) and channel."""
    onnx: Any = require("onnx", "export")
    quantisation: Any = require("onnxruntime.quantization", "export")
    file = profiled.folder / "lean.onnx"
    row, layers = scaled(profiled)
    onnx.save(_onnx_model(onnx, profiled.folded, layers), file)
    forms = [session_candidate("onnxruntime", "float32, lean graph", file, profiled, row)]
    for name, per_channel in (("onnxruntime-int8", False), ("onnxruntime-int8-pc", True)):
        quantised = file.with_name(f"{name}.onnx")
        kind = quantisation.QuantType.QInt8
        quantisation.quantize_dynamic(file, quantised, weight_type=kind, per_channel=per_channel)
        what = f"int8 dynamic, per {'channel' if per_channel else 'tensor'}"
        forms.append(session_candidate(name, what, quantised, profiled, row))
    return forms


def _onnx_model(onnx: Any, folded: Folded, layers: list[tuple[Any, Any]]) -> Any:
    make, single = onnx.helper.make_node, onnx.TensorProto.FLOAT
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(name: str, values: Any) -> str:
        array = np.ascontiguousarray(values, dtype=np.float32)
        constants.append(onnx.numpy_helper.from_array(array, name))
        return name

    h = "x"
    for k, (weight, bias) in enumerate(layers):
        nodes.append(make("MatMul", [h, constant(f"weight_{k}", weight.T)], [f"product_{k}"]))
        nodes.append(make("Add", [f"product_{k}", constant(f"bias_{k}", bias)], [f"sum_{k}"]))
        h = f"sum_{k}"
        if k + 1 < len(layers):
            nodes.append(make("Relu", [h], [f"hidden_{k}"]))
            h = f"hidden_{k}"
    nodes += [
        make("Split", [h], ["mean", "raw"], axis=1),
        make("Softplus", ["raw"], ["positive"]),
        make("Add", ["positive", constant("floor", VARIANCE_FLOOR)], ["variance"]),
        make("Sqrt", ["variance"], ["root"]),
        make("Mul", ["root", constant("spread", folded.output.spread)], ["std"]),
    ]
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "lean",
        [info("x", single, ["batch", folded.facts.inputs])],
        [info(name, single, ["batch", folded.facts.outputs]) for name in ("mean", "std")],
        constants,
    )
    opset = onnx.helper.make_opsetid("", 17)
    return onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)


def litert_candidates(profiled: ProfiledModel) -> list[ProfileCandidate]:
    """float32, and int8 weights per channel with float activations (dynamic)."""
    interpreters: Any = require("ai_edge_litert.interpreter", "bench")
    forms = []
    for name, int8 in (("litert", False), ("litert-int8", True)):
        file = profiled.folder / f"{name}.tflite"
        file.write_bytes(_litert_model(scaled(profiled)[1], int8))
        forms.append(_litert_candidate(interpreters, name, file, profiled, int8))
    return forms


def _litert_candidate(
    interpreters: Any, name: str, file: Path, profiled: ProfiledModel, int8: bool
) -> ProfileCandidate:
    from importlib.metadata import version

    interpreter = interpreters.Interpreter(str(file), num_threads=1)
    interpreter.allocate_tensors()
    given, made = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    row = scaled(profiled)[0][None]
    put, run, get = interpreter.set_tensor, interpreter.invoke, interpreter.get_tensor

    def call() -> Any:
        put(given["index"], row)
        run()
        return get(made["index"])

    return ProfileCandidate(
        name,
        f"LiteRT {version('ai-edge-litert')}, {'int8 dynamic' if int8 else 'float32'}, no head",
        timed(call),
        file.stat().st_size,
        profiled.folded.layers.multiply_adds,
        peak_bytes=lambda: peak_of_python(LITERT, file, profiled.row_file),
        off_by=profiled.off_by(_mean(profiled.folded, call())),
    )


def _mean(folded: Folded, raw: Any) -> Any:
    found = folded.output.finish(raw)
    assert isinstance(found, MeanStd)
    return found.mean


def _litert_model(layers: list[tuple[Any, Any]], int8: bool) -> bytes:
    """Fully connected layers, ReLU fused, as a TFLite flatbuffer."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    buffers, tensors, operators = [schema.BufferT()], [], []

    def tensor(name: str, shape: list[int], values: Any = None, scale: Any = None) -> int:
        made = schema.TensorT()
        made.name, made.shape, made.type = name, shape, schema.TensorType.FLOAT32
        if scale is not None:
            made.type = schema.TensorType.INT8
            made.quantization = schema.QuantizationParametersT()
            made.quantization.scale = scale.tolist()
            made.quantization.zeroPoint = [0] * len(scale)
        if values is not None:
            made.buffer = len(buffers)
            buffers.append(schema.BufferT())
            buffers[-1].data = np.frombuffer(values.tobytes(), np.uint8)
        tensors.append(made)
        return len(tensors) - 1

    h = first = tensor("x", [1, layers[0][0].shape[1]])
    for k, (weight, bias) in enumerate(layers):
        scale = None
        if int8:
            scale = np.maximum(np.abs(weight).max(1), 1e-30) / 127
            weight = np.rint(weight / scale[:, None]).astype(np.int8)
        options = schema.FullyConnectedOptionsT()
        relu = k + 1 < len(layers)
        options.fusedActivationFunction = int(relu)  # 1 is RELU
        operator = schema.OperatorT()
        operator.builtinOptionsType = schema.BuiltinOptions.FullyConnectedOptions
        operator.builtinOptions = options
        weights = tensor(f"weight_{k}", list(weight.shape), weight, scale)
        operator.inputs = [h, weights, tensor(f"bias_{k}", [len(bias)], bias)]
        h = tensor(f"sum_{k}", [1, len(bias)])
        operator.outputs = [h]
        operators.append(operator)
    graph = schema.SubGraphT()
    graph.tensors, graph.operators, graph.inputs, graph.outputs = tensors, operators, [first], [h]
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.FULLY_CONNECTED
    code.version = 9 if int8 else 1
    model = schema.ModelT()
    model.version, model.operatorCodes, model.subgraphs, model.buffers = 3, [code], [graph], buffers
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())
