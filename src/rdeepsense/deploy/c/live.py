"""What C needs to learn on in a stream: tables, sizes, constants; the code is `runtime/live.h`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from rdeepsense.adaptation import last_layer, rates
from rdeepsense.adaptation import rates as trackers
from rdeepsense.adaptation.rates import STRETCHES, Rates, prior_weights
from rdeepsense.arrays import Floats
from rdeepsense.deploy.c.text import number

MAGIC = 0x6C646172  # "radl" in the order of bytes that most processors have
ABOVE = 1e-3  # what rounding may add to a covariance of at most 1
FAR = 100.0  # standard deviations, beyond which a label teaches nothing
FARTHEST = 1e6  # standard deviations, so that likelihoods and squares stay numbers


@dataclass(frozen=True)
class CLive:
    """Rates, and what is computed from the training.

    `turned` is B (hidden + 1, directions), lower triangular, of what the last layer reads in C: in
    its order and units, with the 1 last. `interval` is how many standard deviations the interval of
    the coverage reaches from the mean.
    """

    turned: Floats
    unit: Floats  # (outputs,)
    interval: Floats  # (outputs,)
    freedom: Floats | None  # degrees of freedom (outputs,) of a Student-t
    rates: Rates
    coverage: float

    @property
    def directions(self) -> int:
        """How many numbers psi has."""
        return int(self.turned.shape[1])

    @property
    def filters(self) -> int:
        """How many rates of forgetting there are."""
        return len(self.rates.keep)

    def arrays(self) -> dict[str, Floats]:
        """Return the tables by name; of B, the lower triangle row by row."""
        # What is lost of a factor near 1 has more digits in float32 than the factor itself.
        keep = np.array(self.rates.keep)
        found = {
            "turned": self.turned[np.tril_indices(len(self.turned), m=self.directions)],
            "unit": self.unit,
            "interval": self.interval,
            "forget": 1 - keep,
            "fade": 1 - np.sqrt(keep),
            "prior": prior_weights(self.filters).ravel(),
            "stretch": STRETCHES**2,
        }
        return found if self.freedom is None else {**found, "freedom": self.freedom}

    def sizes(self, name: str) -> list[str]:
        """Return the macros of model.h."""
        return [
            "",
            "/* Of what is learnt in a stream: rates of forgetting, directions of the last hidden",
            f"   layer, spreads of each. Intervals are of {100 * self.coverage:g} %. */",
            f"#define {name}_FILTERS {self.filters}",
            f"#define {name}_DIRECTIONS {self.directions}",
            f"#define {name}_STRETCHES {len(STRETCHES)}",
        ]

    def digest(self, source: str) -> int:
        """Return 32 bits that tell whose a state is: the model's and those of its tables here."""
        found = hashlib.sha256(source.encode())
        for name, array in self.arrays().items():
            found.update(name.encode() + np.ascontiguousarray(array, "<f4").tobytes())
        found.update(repr((self.rates, self.coverage)).encode())
        return int.from_bytes(found.digest()[:4], "little")

    def config(self, hidden: int, source: str) -> list[str]:
        """Return the macros of model.c."""
        own = self.rates
        values = {
            "WITHIN": own.within,
            "ETA": own.eta,
            "ALPHA": 1 - self.coverage,
            "SHARED": rates.SHARE,
            "MOST_OFF": FAR,
            "FARTHEST": last_layer.FARTHEST,
            "MOST_APART": FARTHEST,
            "MOST_LOG_Q": trackers.FARTHEST,
            "MOST_COVARIANCE": 1 + ABOVE,
        }
        return [
            f"#define HIDDEN {hidden} /* numbers that the last layer reads */",
            f"#define STATE_MAGIC {MAGIC:#010x}u",
            f"#define STATE_OF {self.digest(source):#010x}u",
            *(f"#define {name} {number(value)}" for name, value in values.items()),
        ]

    def state_bytes(self, outputs: int) -> int:
        """Return the size of the state."""
        n, each = self.directions, len(STRETCHES)
        own = n * (n + 1) // 2 + outputs * n
        return 4 * (self.filters * own + (self.filters + 1) * each + outputs + 5)

    def row_bytes(self, outputs: int) -> int:
        """Return the size of a row that waits for its label."""
        return 4 * (self.directions + 4 * outputs + self.filters * (outputs + 1))

    def multiply_adds(self, outputs: int) -> int:
        """Count those of a label: a product with each covariance, its update, and the weights."""
        n = self.directions
        return self.filters * (n * n + n * (n + 1) + (1 + 2 * outputs) * n)
