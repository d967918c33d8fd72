"""Networks are built without memory where a file is checked, which must not cost a compiler."""

from __future__ import annotations

import subprocess
import sys

import torch

from rdeepsense.networks.deepsense import FrequencyResponse

BUILT = """
import sys
import torch
from rdeepsense.networks import DeepSense, Dense, Flattened, Periodic

before = set(sys.modules)
for one, shape in (
    (DeepSense((3, 2), rotation_std=0.1, rounding=(0.1, 0)), (24, 5)),
    (Dense((8, 8)), (5,)),
    (Flattened((8,)), (24, 5)),
    (Periodic((8,)), (5,)),
):
    with torch.device("meta"):
        network = one.build(shape, 3, 0)
    assert all(part.is_meta for part in network.state_dict().values())
print(len(set(sys.modules) - before))
"""


def test_a_network_without_memory_imports_no_compiler_of_torch() -> None:
    done = subprocess.run([sys.executable, "-c", BUILT], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 20


def test_tables_without_memory_have_their_shapes() -> None:
    with torch.device("meta"):
        bare = FrequencyResponse(10**5)
    assert bare.cosines.shape == bare.sines.shape == (10**5, 50_001)
    assert bare.cosines.is_meta
    known = FrequencyResponse(4)
    wanted = [[1, 1, 1], [1, 0, -1], [1, -1, 1], [1, 0, -1]]  # cos(2 pi f t / 4)
    torch.testing.assert_close(4 * known.cosines, torch.tensor(wanted).float())
    wanted = [[0, 0, 0], [0, 1, 0], [0, 0, 0], [0, -1, 0]]
    torch.testing.assert_close(4 * known.sines, torch.tensor(wanted).float())
    assert bare.cosines.dtype == known.cosines.dtype == torch.float32
