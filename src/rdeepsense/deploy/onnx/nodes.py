"""Nodes and constants of an ONNX graph, collected in the order of the computation."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.errors import require

OPSET = 17
IR_VERSION = 8  # that of opset 17
INPUT = "x"


class Nodes:
    """A graph in the making; values are known by their names."""

    def __init__(self) -> None:
        self.onnx: ModuleType = require("onnx", "export")
        self.made: list[Any] = []  # NodeProto and TensorProto: onnx comes without types
        self.constants: list[Any] = []

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """Add a constant of the array's own type."""
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def single(self, name: str, values: ArrayLike) -> str:
        """Add a constant in float32."""
        return self.constant(name, np.asarray(values, dtype=np.float32))

    def node(
        self, operator: str, inputs: list[str], *outputs: str, **attributes: int | list[int]
    ) -> str:
        """Add a node; returns the name of its first output."""
        made = self.onnx.helper.make_node(operator, inputs, outputs, outputs[0], **attributes)
        self.made.append(made)
        return outputs[0]

    # Any: a ModelProto, as onnx comes without types.
    def model(
        self, inputs: int, sizes: list[int], names: tuple[str, ...], whole: tuple[str, ...] = ()
    ) -> Any:
        """Make the ModelProto, which takes (batch, inputs) and gives (batch, size) each.

        Those named in `whole` are whole numbers (batch,): the first int32, the others int64.
        """
        helper, single = self.onnx.helper, self.onnx.TensorProto.FLOAT
        kinds = [self.onnx.TensorProto.INT32, self.onnx.TensorProto.INT64]
        info = helper.make_tensor_value_info
        numbers = [info(name, single, ["batch", n]) for name, n in zip(names, sizes, strict=True)]
        told = [info(name, kind, ["batch"]) for name, kind in zip(whole, kinds, strict=False)]
        graph = helper.make_graph(
            self.made,
            "rdeepsense",
            [helper.make_tensor_value_info(INPUT, single, ["batch", inputs])],
            [*numbers, *told],
            self.constants,
        )
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)
