"""Run by `make wheel` in a fresh environment: the wheel and its core dependencies alone."""

import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import rdeepsense as rds

assert "torch" not in sys.modules, "importing rdeepsense imported torch"
package = Path(rds.__file__).parent
assert package.is_relative_to(sys.prefix), f"{package} is not the installed wheel"
assert (package / "py.typed").is_file(), "py.typed is missing from the wheel"
for optional in ("typer", "rich", "polars", "matplotlib"):
    assert find_spec(optional) is None, f"{optional} came with the core dependencies"

import numpy as np  # noqa: E402 - rdeepsense first, so that the check on torch means something

X = np.sin(np.arange(180.0)).reshape(60, 3)
y = X[:, 0] + 0.1 * np.cos(np.arange(60.0) ** 2)
model = rds.RDeepSenseRegressor(epochs=2, random_state=0, effort="quick").fit(X, y)
mean, std = model.predict(X, return_std=True)
assert mean.shape == std.shape == (60,)
assert np.isfinite(mean).all()
assert (std > 0).all()

with TemporaryDirectory() as folder:
    path = Path(folder) / "model.safetensors"
    model.save(path)
    again_mean, again_std = rds.load(path).predict(X, return_std=True)
np.testing.assert_array_equal(again_mean, mean)
np.testing.assert_array_equal(again_std, std)

print(f"rdeepsense {rds.__version__}: import, fit, predict, save and load work from the wheel")
