"""The random turn: a rotation in raw units, one for each window, in training alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import rdeepsense as rds
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.networks import DeepSense
from rdeepsense.networks.deepsense import RandomRotation

SENSORS = (3, 2, 3)
SHIFT = np.array([0.2, -9.7, 1.0, 50.0, -3.0, 0.0, 0.1, -0.4])
SCALE = np.array([2.0, 0.5, 3.0, 7.0, 0.1, 0.3, 0.6, 1.5])
SMALL: dict[str, Any] = {"epochs": 2, "verbose": False, "random_state": 0, "device": "cpu"}
SPEC = DeepSense((3, 3), interval=8, filters=6, depth=1, hidden=8, layers=1, rotation_std=0.3)


def layer(spread: float, seed: int = 0) -> RandomRotation:
    torch.manual_seed(seed)
    found = RandomRotation(SENSORS, spread).double()
    found.set_units(SHIFT, SCALE)
    return found


def windows(rows: int, time: int = 5) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(rows, time, sum(SENSORS), generator=generator, dtype=torch.float64)


def raw(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The three sensors in their own units."""
    first, second, third = (x * torch.tensor(SCALE) + torch.tensor(SHIFT)).split(SENSORS, -1)
    return first, second, third


def rotations(before: Tensor, after: Tensor) -> Tensor:
    """The matrices R with after = R before, by least squares over the times of a window."""
    return torch.linalg.lstsq(before, after).solution.transpose(1, 2)


@pytest.mark.parametrize("precise", [True, False])
def test_lengths_and_angles_are_kept_in_raw_units(precise: bool) -> None:
    turn, x = layer(0.8), windows(50)
    found = turn(x) if precise else turn.float()(x.float()).double()
    bound = 1e-12 if precise else 1e-5
    for before, after in zip(raw(x)[::2], raw(found)[::2], strict=True):
        assert ((after - before).norm(dim=-1) > 1e-3).any(1).all()
        scale = before.norm(dim=-1).max()
        products = [p @ p.transpose(1, 2) / scale**2 for p in (before, after)]
        torch.testing.assert_close(*products, atol=bound, rtol=0)
        assert torch.linalg.det(rotations(before, after)).sub(1).abs().max() < 1e3 * bound


def test_sensors_share_a_rotation_and_windows_do_not() -> None:
    x = windows(50)
    before, after = raw(x), raw(layer(0.5)(x))
    first, last = (rotations(before[k], after[k]) for k in (0, 2))
    torch.testing.assert_close(first, last, atol=1e-9, rtol=0)
    apart = torch.cdist(first.flatten(1), first.flatten(1)) + 10 * torch.eye(50)
    assert apart.min() > 0.01


def test_a_turn_is_about_its_vector_by_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter turn about z takes x to y, and none at all is no division by zero."""
    vectors = torch.tensor([[[0.0, 0.0, np.pi / 2]], [[0.0, 0.0, 0.0]]])
    monkeypatch.setattr(torch, "randn", lambda *_, **__: vectors)
    points = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found = RandomRotation((3,), 1.0)(points.expand(2, 3, 3))
    wanted = torch.tensor([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    torch.testing.assert_close(found, torch.stack([wanted, points]), atol=1e-6, rtol=0)


def test_rotation_vectors_have_the_promised_spread() -> None:
    rows, spread = 20_000, 0.15
    x = windows(rows, 3)
    found = rotations(raw(x)[0], raw(layer(spread)(x))[0])
    # v = t k from R: (R - R^T) / 2 = sin(t) [k]x
    half = (found - found.transpose(1, 2)) / 2
    sine = torch.stack([half[:, 2, 1], half[:, 0, 2], half[:, 1, 0]], 1)
    vector = sine / torch.sinc(torch.asin(sine.norm(dim=1, keepdim=True)) / np.pi)
    np.testing.assert_allclose(vector.square().mean(0), [spread**2] * 3, rtol=0.04)
    np.testing.assert_allclose(vector.mean(0), 0.0, atol=4 * spread / np.sqrt(rows))


def test_other_sensors_are_left_alone() -> None:
    x = windows(20)
    found = layer(0.5)(x)
    assert torch.equal(found[..., 3:5], x[..., 3:5])
    assert (found[..., :3] != x[..., :3]).all()


def test_nothing_is_done_outside_of_training_or_by_a_spread_of_0() -> None:
    x = windows(4)
    before = torch.get_rng_state()
    assert RandomRotation(SENSORS, 0.5).eval()(x) is x
    assert RandomRotation(SENSORS, 0.0)(x) is x
    assert torch.equal(torch.get_rng_state(), before)


def test_the_seed_decides() -> None:
    x = windows(4)
    assert torch.equal(layer(0.5, seed=3)(x), layer(0.5, seed=3)(x))
    assert not torch.equal(layer(0.5, seed=3)(x), layer(0.5, seed=4)(x))


def test_gradients_are_those_of_a_rotation() -> None:
    x = windows(3, 2).requires_grad_()

    def turned(x: Tensor) -> Tensor:
        return layer(0.5)(x)

    assert torch.autograd.gradcheck(turned, x)


def test_units_of_flattened_windows_are_those_of_each_number() -> None:
    x, by_channel, by_number = windows(4, 5), layer(0.5), RandomRotation(SENSORS, 0.5).double()
    by_number.set_units(np.tile(SHIFT, 5), np.tile(SCALE, 5))
    torch.manual_seed(0)
    wanted = by_channel(x)
    torch.manual_seed(0)
    torch.testing.assert_close(by_number(x), wanted)
    network = DeepSense((3, 3), interval=4, rotation_std=0.5).build((48, 6), 2, 0)
    x = torch.randn(3, 8, 6)
    torch.manual_seed(0)
    wanted = network(x)
    torch.manual_seed(0)
    assert torch.equal(network(x.flatten(1)), wanted)


def test_monte_carlo_passes_drop_but_do_not_turn() -> None:
    x = torch.randn(3, 16, 6)
    network = rds.convert(SPEC.build((48, 6), 2, 0), drop_prob=0.0, example=x)
    single = network.eval()(x).mean
    with network.sampling():
        assert torch.equal(network(x).mean, single)
    assert not torch.equal(network.train().body.rotation(x), x)


@pytest.mark.parametrize("turn", [-0.1, float("nan"), float("inf"), True, "0.1", None])
def test_bad_turns_are_refused(turn: Any) -> None:
    with pytest.raises(rds.InputError, match=r"rotation_std = .* is not a finite number >= 0"):
        DeepSense(rotation_std=turn)


def test_a_turn_without_three_axes_is_refused() -> None:
    DeepSense((1, 2), rotation_std=0.0)
    with pytest.raises(rds.InputError, match=r"3 channels; sensors = \(1, 2\) has none"):
        DeepSense((1, 2), rotation_std=0.1)


def motion(rows: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Simulated windows of 16 samples: gravity along y or z, and noise."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, rows)
    X = rng.normal(0, [1, 1, 1, 0.1, 0.1, 0.1], (rows, 16, 6))
    X[np.arange(rows), :, 1 + label] += 9.8
    return X, label


@pytest.fixture(scope="module")
def model() -> rds.RDeepSenseClassifier:
    X, y = motion(120, 0)
    return rds.RDeepSenseClassifier(network=SPEC, **SMALL, effort="quick").fit(X, y)


@pytest.mark.slow
def test_the_learner_says_the_units(model: rds.RDeepSenseClassifier) -> None:
    X, y = motion(120, 0)
    flat = rds.RDeepSenseClassifier(network=SPEC, **SMALL, effort="quick").fit(
        X.reshape(120, -1), y
    )
    for fitted in (model, flat):
        turn, scaler = fitted.network_.body.rotation, fitted.fitted_.inputs.scaler
        for units, wanted in ((turn.shift, scaler.shift), (turn.scale, scaler.scale)):
            np.testing.assert_allclose(units, wanted.reshape(-1, 6), rtol=1e-6)


def test_training_turns_and_is_reproducible(model: rds.RDeepSenseClassifier) -> None:
    X, y = motion(120, 0)
    again = rds.RDeepSenseClassifier(network=SPEC, **SMALL, effort="quick").fit(X, y)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    still = DeepSense(**{**SPEC.arguments(), "rotation_std": 0.0})
    other = rds.RDeepSenseClassifier(network=still, **SMALL, effort="quick").fit(X, y)
    assert not np.array_equal(other.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("adversarial", [False, True])
def test_ensembles_train_with_it(adversarial: bool) -> None:
    X, y = motion(60, 0)
    ensemble = rds.SSPClassifier(members=2, adversarial=adversarial, network=SPEC, **SMALL)
    ensemble.fit(X, y)
    assert np.isfinite(ensemble.predict_proba(X)).all()


def test_files_keep_it_and_old_ones_load(model: rds.RDeepSenseClassifier, tmp_path: Path) -> None:
    X, _ = motion(30, 1)
    path = tmp_path / "m.safetensors"
    model.save(path)
    again = rds.load(path).set_params(device="cpu")
    assert again.network == SPEC
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    header, tensors = model_file.read(path)
    assert not any("rotation" in name for name in tensors)
    arguments = header["architecture"]["arguments"]
    arguments["turn"] = arguments.pop("rotation_std")  # as files called it first
    model_file.write(path, header, tensors)
    assert rds.load(path).network == SPEC
    del arguments["turn"]
    model_file.write(path, header, tensors)
    old = rds.load(path).set_params(device="cpu")
    assert old.network.rotation_std == 0.0
    assert np.array_equal(old.predict_proba(X), model.predict_proba(X))


def test_an_export_is_the_single_pass(model: rds.RDeepSenseClassifier, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    X = motion(30, 1)[0].astype(np.float32)
    rds.export(model, tmp_path / "m.onnx", to="onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(["probs"], {"x": X})
    assert np.abs(found - model.predict_proba(X)).max() < 1e-5


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.filterwarnings("error:.*cannot be recorded as a CUDA graph")
def test_steps_with_a_turn_are_recorded_on_a_gpu() -> None:
    X, y = motion(120, 0)
    options = {**SMALL, "device": "cuda", "batch_size": 16}
    fitted = rds.RDeepSenseClassifier(network=SPEC, **options, effort="quick").fit(X, y)
    assert np.isfinite(fitted.predict_proba(X)).all()
