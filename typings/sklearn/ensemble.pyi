from typing import Any

class HistGradientBoostingRegressor:
    def __init__(self, **options: Any) -> None: ...

class HistGradientBoostingClassifier:
    def __init__(self, **options: Any) -> None: ...
