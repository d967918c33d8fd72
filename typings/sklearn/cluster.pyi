from typing import Any

from numpy.typing import NDArray

def kmeans_plusplus(
    X: NDArray[Any], n_clusters: int, *, random_state: Any = None
) -> tuple[NDArray[Any], NDArray[Any]]: ...
