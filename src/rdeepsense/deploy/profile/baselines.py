"""What one prediction is compared with, in the same C and of the same shape: costs, not quality.

    point:     the mean alone, without the rows of the last layer and the head that make the std
    MCDrop-k:  k passes of the point network, each with a dropout mask of its own (section 4.3)
    SSP-k:     k networks with weights of their own, one after the other (section 4.3)

The passes end in the moments of their mixture; classes in the mean of their probabilities:

    mean = 1/k sum m_i,   var = 1/k sum (s_i^2 + m_i^2) - mean^2

The weights are the model's own: SSP's members are copies that lie apart in memory, so their mixture
is the model's prediction, and MCDrop's kept units are divided by the keep probability.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rdeepsense.deploy.c.build import Program
from rdeepsense.deploy.c.compiled import single
from rdeepsense.deploy.c.header import header
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.folded.model import Dense, Folded
from rdeepsense.deploy.networks import as_float32

DROP_PROB = 0.1

# A linear congruential generator: no other costs as little, and here nothing but cost matters.
KEPT = """
static uint32_t drawn = 1;
static unsigned kept(void)
{
    drawn = drawn * 1664525u + 1013904223u;
    return drawn >= @limit@u;
}
"""
HEADER = """#include "member0/model.h"
#define MODEL_INPUTS MEMBER0_INPUTS
#define MODEL_OUTPUTS MEMBER0_OUTPUTS
#define MODEL_SCRATCH_BYTES MEMBER0_SCRATCH_BYTES
#define MODEL_OK MEMBER0_OK
#define PASSES @passes@
int model_predict(const float *x, @results@, void *scratch);
"""
MEMBERS = """#include "model.h"

#include <math.h>
@includes@
static int (*const members[])(const float *, @types@, void *) = {@members@};
"""
# Measured from the first pass, so that little cancels.
MOMENTS = """
int model_predict(const float *x, float *mean, float *std, void *scratch)
{
    float first[MODEL_OUTPUTS], m[MODEL_OUTPUTS], s[MODEL_OUTPUTS];
    int status = members[0](x, first, s, scratch), i, k;
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        mean[k] = 0.0f;
        std[k] = s[k] * s[k];
    }
    for (i = 1; i < PASSES; ++i) {
        status |= members[i](x, m, s, scratch);
        for (k = 0; k < MODEL_OUTPUTS; ++k) {
            const float d = m[k] - first[k];
            mean[k] += d;
            std[k] += s[k] * s[k] + d * d;
        }
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        const float d = mean[k] / PASSES, var = std[k] / PASSES - d * d;
        mean[k] = first[k] + d;
        std[k] = var > 0.0f ? sqrtf(var) : 0.0f;
    }
    return status;
}
"""
AVERAGE = """
int model_predict(const float *x, float *probs, void *scratch)
{
    float p[MODEL_OUTPUTS];
    int status = members[0](x, probs, scratch), i, k;
    for (i = 1; i < PASSES; ++i) {
        status |= members[i](x, p, scratch);
        for (k = 0; k < MODEL_OUTPUTS; ++k) {
            probs[k] += p[k];
        }
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        probs[k] /= PASSES;
    }
    return status;
}
"""


class Sampled(Source):
    """A network that drops hidden units at random; of one thread, as its generator is shared."""

    def _of_layers(self) -> dict[str, Any]:
        values = super()._of_layers()
        kept = KEPT.replace("@limit@", str(round(DROP_PROB * 2**32)))
        return {
            **values,
            "declared": values["declared"] + kept,
            "fires": "(h > 0.0f) & kept()",
        }


def point(folded: Folded) -> Folded:
    """The network without the rows of the std; a classifier has none and stays as it is."""
    if folded.is_classifier:
        return folded
    last, none = folded.layers[-1], np.zeros(folded.outputs)
    mean = Dense(last.weight[: folded.outputs], last.bias[: folded.outputs])
    return replace(
        folded,
        head="point",
        layers=(*folded.layers[:-1], mean),
        spread=none,
        shift=none,
        intervals=None,
    )


def point_program(folded: Folded) -> Program:
    """The point estimate."""
    alone = point(folded)
    return single(Source(alone, as_float32(alone)))


def mcdrop(folded: Folded, passes: int) -> Program:
    """MCDrop-k: every pass is one of the same network."""
    alone = point(folded)
    scaled = [Dense(layer.weight / (1 - DROP_PROB), layer.bias) for layer in alone.layers[1:]]
    alone = replace(alone, layers=(alone.layers[0], *scaled))
    return _mixture([Sampled(alone, as_float32(alone), "member0")], passes)


def ssp(folded: Folded, members: int) -> Program:
    """SSP-k: every pass is one of another network."""
    network = as_float32(folded)
    return _mixture([Source(folded, network, f"member{k}") for k in range(members)], members)


def _mixture(sources: list[Source], passes: int) -> Program:
    classes = sources[0].folded.is_classifier
    names = [f"{sources[k % len(sources)].name}_predict" for k in range(passes)]
    includes = "".join(f'#include "{s.name}/model.h"\n' for s in sources)
    results = "float *probs" if classes else "float *mean, float *std"
    types = "float *" if classes else "float *, float *"
    top = HEADER.replace("@passes@", str(passes)).replace("@results@", results)
    code = MEMBERS.replace("@includes@", includes).replace("@types@", types)
    code = code.replace("@members@", ", ".join(names)) + (AVERAGE if classes else MOMENTS)
    files = {"model.h": top, "model.c": code}
    for source in sources:
        files[f"{source.name}/model.h"] = header(source)
        files[f"{source.name}/model.c"] = source.code()
    return Program(files, tuple(sources))
