"""Windows against a loop that does what the words say, sample by sample."""

from __future__ import annotations

import math
import os
from itertools import pairwise

import numpy as np
import pytest

import rdeepsense as rds

ROUNDS = 400 if os.environ.get("RDEEPSENSE_LONG") else 25


def slowly(table, length, step, rate, gap, purity):
    """Windows as (recording, start, samples, label), by loops alone."""
    found = []
    for who in sorted(set(table["who"])):
        last, own = {}, ({}, {})
        for k in range(len(table["t"])):
            if table["who"][k] == who and math.isfinite(table["t"][k]):
                last[table["t"][k]] = k
                for one, c in zip(own, ("x", "z"), strict=True):
                    if math.isfinite(table[c][k]):
                        one[table["t"][k]] = k
        every, heard = sorted(last.items()), [sorted(one.items()) for one in own]
        for begin, end in meeting(*[pieces(one, gap) for one in heard]):
            points = [begin + k / rate for k in range(int((end - begin) * rate + 1e-6) + 1)]
            rows = [
                [at(one, table[c], min(p, end)) for one, c in zip(heard, ("x", "z"), strict=True)]
                for p in points
            ]
            labels = [
                table["what"][min(every, key=lambda e: (round(abs(e[0] - p), 6), e[0]))[1]]
                for p in points
            ]
            for first in range(0, len(points) - length + 1, step):
                own = labels[first : first + length]
                most = max(sorted(set(own)), key=own.count)
                if own.count(most) >= purity * length:
                    found.append((who, points[first], rows[first : first + length], most))
    return found


def pieces(samples, gap):
    parts, begin = [], 0
    for k in range(1, len(samples) + 1):
        if k == len(samples) or samples[k][0] - samples[k - 1][0] > gap:
            parts.append((samples[begin][0], samples[k - 1][0]))
            begin = k
    return parts if samples else []


def meeting(one, two):
    both = [(max(a, c), min(b, d)) for a, b in one for c, d in two]
    return sorted((a, b) for a, b in both if a <= b)


def at(samples, values, time):
    for (t, k), (u, m) in pairwise(samples):
        if t <= time <= u:
            return values[k] + (time - t) / (u - t) * (values[m] - values[k])
    return values[samples[-1][1]]


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_windows_are_those_of_the_loop(seed):
    rng = np.random.default_rng(seed)
    samples, rate = int(rng.integers(40, 160)), 10.0
    t = np.arange(samples) / rng.choice([8, 10, 17]) + rng.normal(
        0, rng.choice([0, 0.02, 0.2]), samples
    )
    t[rng.random(samples) < 0.02] = np.nan
    again = rng.random(samples) < 0.05
    t[again] = np.roll(t, 1)[again]
    t += np.cumsum(rng.random(samples) < 0.03)
    table = {
        "t": t,
        "x": rng.normal(size=samples),
        "z": rng.normal(size=samples),
        "who": np.sort(rng.choice(["a", "b", "c"], samples)),
        "what": rng.choice(["p", "q", "r"], samples // 9 + 1).repeat(9)[:samples],
    }
    if rng.random() < 0.5:
        table["z"][rng.random(samples) < 0.1] = np.nan
    if rng.random() < 0.5:
        order = rng.permutation(samples)
        table = {name: values[order] for name, values in table.items()}
    expected = slowly(table, 12, 5, rate, 0.35, 0.6)
    arguments = ("t", {"one": "x", "two": ["z"]}, 1.2, 0.5)
    more = {"rate": rate, "gap": 0.35, "by": "who", "label": "what", "purity": 0.6}
    if not expected:
        with pytest.raises(rds.InputError, match="no window"):
            rds.windows(table, *arguments, **more)
        return
    w = rds.windows(table, *arguments, **more)
    assert w.groups["who"].tolist() == [one[0] for one in expected]
    assert np.allclose(w.starts, [one[1] for one in expected])
    assert np.allclose(w[:], np.array([one[2] for one in expected]), atol=1e-5)
    assert w.y.tolist() == [one[3] for one in expected]
    assert w.report.windows == len(w)
