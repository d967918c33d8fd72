from typing import Any

import numpy as np
from sklearn.utils.validation import check_array as check_array

def check_random_state(seed: Any) -> np.random.RandomState: ...
