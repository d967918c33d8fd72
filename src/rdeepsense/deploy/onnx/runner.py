"""ONNX Runtime as a runner, on one thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.folded.runner import MeanStd, Outputs, Probabilities
from rdeepsense.deploy.onnx.nodes import INPUT
from rdeepsense.errors import require


@dataclass(frozen=True)
class OnnxRunner:
    """An inference session and the facts of the model in it."""

    facts: Facts
    session: Any = field(compare=False, repr=False)  # onnxruntime comes without types

    @classmethod
    def of(cls, facts: Facts, content: bytes) -> OnnxRunner:
        """Load a file's content."""
        return cls(facts, open_session(content))

    def run(self, X: NDArray[Any]) -> Outputs:
        found = self.session.run(None, {INPUT: np.asarray(X, dtype=np.float32)})
        values = dict(zip(self.names, (np.asarray(a, np.float64) for a in found), strict=True))
        epistemic = values.get("epistemic")
        status = values["status"].astype(np.uint8) if "status" in values else None
        if self.facts.is_classifier:
            return Probabilities(values["probs"], epistemic, status)
        return MeanStd(values["mean"], values["std"], epistemic, status)

    @property
    def names(self) -> list[str]:
        """Of what comes out, in order."""
        return [output.name for output in self.session.get_outputs()]


# Any: an InferenceSession, as onnxruntime comes without types.
def open_session(model: bytes | str) -> Any:
    """Open a file's content, or the file of that name, on one thread of the processor."""
    runtime = require("onnxruntime", "export")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
