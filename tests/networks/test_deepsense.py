"""DeepSense: its frequency response against numpy's, its shape, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from rdeepsense import InputError, convert, networks
from rdeepsense.networks import DeepSense
from rdeepsense.networks.deepsense import FrequencyResponse
from rdeepsense.paper.tasks.hhar import spectra


@pytest.mark.parametrize("interval", [1, 5, 12])
def test_the_frequency_response_is_that_of_the_task(interval: int) -> None:
    rng = np.random.default_rng(0)
    windows = rng.normal(2.0, 3.0, (4, 5 * interval, 3)).astype(np.float32)
    found = FrequencyResponse(interval).double()(torch.from_numpy(windows).double())
    assert found.shape == (4, 3, interval // 2 + 1, 5)
    wanted = spectra(windows, 5).reshape(4, 5, 3, -1).transpose(0, 2, 3, 1)
    # log(sqrt(a^2 + q^2) + q) is not quite log(a + 2 q), but for small a.
    quiet = np.exp(wanted) < 0.1
    quiet[:, :, 0] = False
    np.testing.assert_allclose(found[~torch.from_numpy(quiet)], wanted[~quiet], atol=0.01)


def test_silence_has_finite_slopes() -> None:
    x = torch.zeros(1, 24, 1, requires_grad=True)
    response = FrequencyResponse(12)(x)
    torch.testing.assert_close(response[0, 0, 1:], torch.full((6, 2), float(np.log(1e-3))))
    response.sum().backward()
    assert torch.isfinite(x.grad).all()


def test_the_mean_keeps_its_sign() -> None:
    x = torch.full((1, 24, 2), -3.0)
    x[..., 1] = 5.0
    found = FrequencyResponse(12)(x)[0, :, 0]
    torch.testing.assert_close(found, torch.tensor([[-3.0, -3.0], [5.0, 5.0]]))


@pytest.mark.parametrize("pool", ["mean", "last"])
@pytest.mark.parametrize("sensors", [(3, 3), (1,), (2, 1, 4)])
def test_every_layer_is_converted(sensors: tuple[int, ...], pool: str) -> None:
    spec = DeepSense(sensors, interval=4, filters=5, depth=2, hidden=6, layers=2, pool=pool)
    network = spec.build((48, 6), 3, 0)
    x = torch.randn(2, 12, sum(sensors))
    converted = convert(network, "categorical", drop_prob=0.2, input_drop_prob=0.1, example=x)
    readers = [side[0].drop_prob for side in converted.body.single]
    assert readers == [0.1] * len(sensors)
    layers = [m for m in converted.modules() if isinstance(m, nn.Conv2d | nn.GRU | nn.Linear)]
    assert [m.drop_prob for m in layers].count(0.2) == len(layers) - len(sensors)
    assert converted.eval()(x).logits.shape == (2, 3)
    torch.testing.assert_close(network.eval()(x.flatten(1)), network(x))


def test_a_channel_is_dropped_for_the_whole_window(monkeypatch: pytest.MonkeyPatch) -> None:
    network = DeepSense((2,), interval=4, filters=5).build((48, 2), 1, 0)
    x = torch.randn(3, 12, 2)
    body = convert(network, drop_prob=0.5, example=x).train().body
    seen, conv2d = [], nn.functional.conv2d
    monkeypatch.setattr(
        nn.functional, "conv2d", lambda x, *rest: seen.append(x) or conv2d(x, *rest)
    )
    body(x)
    assert seen[1].shape == (3, 5, 3, 3)  # rows, filters, intervals, frequencies
    dropped = (seen[1] == 0).flatten(2).all(2)
    assert 0 < dropped.sum() < 15


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sensors": 6}, r"sensors = 6 does not list.*\(3, 3\)"),
        ({"sensors": ()}, r"sensors = \(\) does not list"),
        ({"sensors": (3, 0)}, r"sensors\[1\] = 0"),
        ({"interval": 2.5}, "interval = 2.5 is not a whole number of at least 1"),
        ({"filters": True}, "filters = True"),
        ({"hidden": 0}, "hidden = 0"),
        ({"pool": "max"}, "pool = 'max' is unknown; accepted: mean, last"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DeepSense(**arguments)


def test_shapes_that_do_not_fit_are_refused() -> None:
    spec = DeepSense((3, 3), interval=12)
    spec.check((240, 6))
    spec.check((1440,))
    for shape in ((240, 5), (250, 6), (1441,), (6, 240, 1), (1446,)):
        with pytest.raises(InputError, match=r"takes windows \(rows, time, 6\).*interval = 12"):
            spec.check(shape)


def test_a_spec_is_a_value() -> None:
    assert DeepSense([3, 3]) == DeepSense((3, 3))  # type: ignore[arg-type]
    assert hash(DeepSense()) == hash(DeepSense())
    spec = DeepSense((2, 1), pool="last")
    assert networks.architecture_named("DeepSense") is DeepSense
    assert DeepSense(**spec.arguments()) == spec
