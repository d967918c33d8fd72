"""A fitted model of windows as files of C99, checked before anything is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rdeepsense.deploy.c.export import C99, check_unsampled, made_c99, sure_thresholds
from rdeepsense.deploy.c.graph.cost import StreamCost
from rdeepsense.deploy.c.graph.decided import decided_quality
from rdeepsense.deploy.c.graph.report import graph_costs
from rdeepsense.deploy.c.graph.running import running_quality
from rdeepsense.deploy.c.graph.sampled import Sampled
from rdeepsense.deploy.c.graph.sampled_cost import SampledCost
from rdeepsense.deploy.c.graph.source import GraphSource
from rdeepsense.deploy.c.graph.stored import as_stored
from rdeepsense.deploy.fold_adapted import check_steady, settled
from rdeepsense.deploy.fold_graph import fold_graph
from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.folded.graph.stream import Stream
from rdeepsense.deploy.judge import judge
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.networks import NetworkRunner
from rdeepsense.deploy.options import Options
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.windowing.sampling import Sampling


def export_graph_c99(fitted: Fitted, folder: Path, options: Options, rows: LabelledRows) -> C99:
    """Make the C of a network of windows and the report of it."""
    for name in ("epistemic", "live", "fine_tune"):
        if getattr(options, name):
            raise InputError(
                f"{name}={getattr(options, name)!r} is for fully-connected networks; export this "
                "one without it"
            )
    check_steady(fitted, "c99")
    plain = settled(fitted)
    folded = fold_graph(plain)
    streamed = folded.facts.streamed(options.smoothing, options.hop)
    network = as_stored(folded, options.dtype)
    runner = NetworkRunner(folded, network)
    found = judge(runner, fitted, rows, options)
    running = running_quality(folded, network, fitted, rows)
    sure = sure_thresholds(runner, rows.X, options.sure_share)
    factor = 1.0 if running is None else running.factor
    smoothing, decided = decided_quality(runner, folded.facts, rows, options.smoothing)
    if options.smoothing is None:
        streamed = replace(folded.facts, smoothing=smoothing).streamed(None, options.hop)
    sampled = _sampled(streamed, network.stream, options)
    source = GraphSource(folded, network, options.name, sure, factor, sampled)
    stream = None
    if network.stream is not None:
        stream = StreamCost.of(network.stream, source.model.channels, running)
    samples = None
    if sampled is not None:
        work, outputs = source.multiply_adds, source.model.outputs
        samples = SampledCost.of(sampled, work, network.stream, outputs, decided)
    costs = graph_costs(network)
    return made_c99(
        source, folder, found, options.dtype, rows, costs, stream=stream, samples=samples
    )


def _sampled(facts: Facts, stream: Stream | None, options: Options) -> Sampled | None:
    """Plan the stream of samples of a model that knows how its windows are cut."""
    if facts.recipe is None:
        check_unsampled(options)
        return None
    return Sampled.of(Sampling.of(facts.recipe), facts.smoothing, stream, options.stream)
