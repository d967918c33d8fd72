from typing import Any

from numpy.typing import NDArray

def check_array(
    array: Any,
    *,
    dtype: Any = "numeric",
    ensure_2d: bool = True,
    allow_nd: bool = False,
    ensure_all_finite: bool | str = True,
    ensure_min_samples: int = 1,
    input_name: str = "",
) -> NDArray[Any]: ...
def check_is_fitted(estimator: Any, attributes: Any = None) -> None: ...
def column_or_1d(y: Any, *, warn: bool = False) -> NDArray[Any]: ...
def validate_data(
    estimator: Any, X: Any, *, reset: bool = True, dtype: Any = "numeric", **options: Any
) -> NDArray[Any]: ...
