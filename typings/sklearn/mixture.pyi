from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

class GaussianMixture:
    weights_: NDArray[np.float64]
    means_: NDArray[np.float64]
    precisions_cholesky_: NDArray[np.float64]
    def __init__(
        self,
        n_components: int = 1,
        *,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None: ...
    def fit(self, X: NDArray[Any], y: None = None) -> Self: ...
