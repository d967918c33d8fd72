"""Places in one buffer: values that are still to be read are never written over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from deploy.random_windows import OwnNetwork
from torch import nn

from rdeepsense.deploy.c.graph import Buffers
from rdeepsense.deploy.folded.graph import Strided, value_sizes
from rdeepsense.deploy.tracing import trace
from rdeepsense.networks import DeepSense


def by_places(nodes: Any, z: Any) -> tuple[Any, Buffers]:
    """The last value, with all others in one buffer as C has them."""
    sizes, plan = value_sizes(len(z), nodes), Buffers.plan(len(z), nodes)
    arena = np.full(plan.length, np.nan)
    found = z

    def at(value: int) -> Any:
        home, offset = plan.homes[value]
        if home == 0:
            return z[offset : offset + sizes[value]]
        start = plan.starts[home] + offset
        return arena[start : start + sizes[value]]

    for k, node in enumerate(nodes):
        inside = isinstance(node, Strided) and node.is_run and k + 1 < len(nodes)
        found = node.run(*(at(read).copy()[None] for read in node.reads))[0]
        if inside:
            np.testing.assert_array_equal(at(k + 1), found)
        elif k + 1 < len(nodes):
            at(k + 1)[:] = found
    return found, plan


@pytest.mark.parametrize("seed", range(20))
def test_a_network_in_one_buffer_is_the_network(seed: int) -> None:
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    shape = (24, 3)
    body: nn.Module = OwnNetwork(rng, shape, 2)
    if seed % 2:
        body = DeepSense((2, 1), interval=int(rng.choice([4, 8])), filters=5).build(shape, 2, 0)
    nodes = trace(body, shape)
    z = rng.normal(size=72)
    found, plan = by_places(nodes, z)
    with torch.no_grad():
        wanted = body.double().eval()(torch.from_numpy(z.reshape(1, *shape)))[0]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    sizes = value_sizes(72, nodes)
    assert max(sizes[1:-1]) <= plan.length < 0.9 * sum(sizes[1:-1])
