from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

class PCA:
    mean_: NDArray[np.float64]
    components_: NDArray[np.float64]
    explained_variance_: NDArray[np.float64]
    def __init__(self, n_components: int | None = None, *, random_state: Any = None) -> None: ...
    def fit(self, X: NDArray[Any], y: None = None) -> Self: ...
