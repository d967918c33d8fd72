"""Published figures on the same data sets, as facts with their source.

Means over the splits of their authors, who trained one hidden layer of 50 units (100 for protein)
for 40 epochs: other training, and in part other splits, than ours.
"""

from __future__ import annotations

from dataclasses import dataclass

REMARK = "published, other splits/training"

# Whole names: the white wines, say, are another data set than the red ones of the tables.
ALIASES = {
    "bostonhousing": "boston",
    "concretestrength": "concrete",
    "energyefficiency": "energy",
    "navalpropulsion": "naval",
    "navalpropulsionplant": "naval",
    "powerplant": "power",
    "proteinstructure": "protein",
    "proteintertiarystructure": "protein",
    "winequalityred": "wine",
    "yachthydrodynamics": "yacht",
}


@dataclass(frozen=True)
class Published:
    """One method's mean test RMSE and mean test NLL, by data set."""

    method: str
    source: str
    rmse: dict[str, float]
    nll: dict[str, float]

    def figure(self, dataset: str, key: str) -> float | None:
        """Return `key` ("rmse" or "nll") for a data set of that file name, if there is one."""
        plain = "".join(letter for letter in dataset.lower() if letter.isalnum())
        known: dict[str, float] = {"rmse": self.rmse, "nll": self.nll}[key]
        return known.get(ALIASES.get(plain, plain))


# Its table gives the test log-likelihood; the NLL here is minus that.
MC_DROPOUT = Published(
    "MC dropout",
    "Gal & Ghahramani 2016, Dropout as a Bayesian Approximation, Table 1",
    rmse={"boston": 2.97, "concrete": 5.23, "energy": 1.66, "kin8nm": 0.10, "naval": 0.01,
          "power": 4.02, "protein": 4.36, "wine": 0.62, "yacht": 1.11},
    nll={"boston": 2.46, "concrete": 3.04, "energy": 1.99, "kin8nm": -0.95, "naval": -3.80,
         "power": 2.80, "protein": 2.89, "wine": 0.93, "yacht": 1.55},
)  # fmt: skip
DEEP_ENSEMBLES = Published(
    "Deep Ensembles (5)",
    "Lakshminarayanan, Pritzel & Blundell 2017, Simple and Scalable Predictive Uncertainty "
    "Estimation using Deep Ensembles, Table 1",
    rmse={"boston": 3.28, "concrete": 6.03, "energy": 2.09, "kin8nm": 0.09, "naval": 0.00,
          "power": 4.11, "protein": 4.71, "wine": 0.64, "yacht": 1.58},
    nll={"boston": 2.41, "concrete": 3.06, "energy": 1.38, "kin8nm": -1.20, "naval": -5.63,
         "power": 2.79, "protein": 2.83, "wine": 0.94, "yacht": 1.18},
)  # fmt: skip
PUBLISHED = (MC_DROPOUT, DEEP_ENSEMBLES)
