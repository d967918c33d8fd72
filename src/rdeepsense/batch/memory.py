"""How many rows to have in memory at once, so that a whole process stays within so many MiB."""

from __future__ import annotations

from rdeepsense.errors import InputError

MIB = 1 << 20
# What Python and its libraries take, measured: numpy, polars and pyarrow, and with them torch.
LIBRARIES = {"C": 160 * MIB, "torch": 480 * MIB}
LEAST = 256 * MIB
LEAST_FOR_ROWS = 16 * MIB  # where libraries take nearly all
MOST_ROWS, FEWEST_ROWS = 65_536, 1_024
CHUNKS = 5  # in memory: two that are computed, one that waits, one that is read, one written


def rows_at_once(memory: int, runner: str, inputs: int, columns: int) -> int:
    """Return the rows of a chunk: a power of two, which depends on nothing but its arguments.

    A chunk has its inputs as they were read, as columns, and as rows in float64 and float32; each
    column that is written takes 32 bytes a row, as text or otherwise.
    """
    if memory < LEAST:
        raise InputError(f"memory = {memory // MIB} MiB; accepted: {LEAST // MIB} and more")
    row = (12 + 8 + 8 + 4) * inputs + 32 * columns
    room = max(memory - LIBRARIES[runner], LEAST_FOR_ROWS)
    rows = min(MOST_ROWS, room // (CHUNKS * row))
    return max(FEWEST_ROWS, 1 << rows.bit_length() >> 1)
