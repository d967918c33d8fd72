"""A fitted model of windows as a folder of C99, checked before anything is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rdeepsense.deploy.c.export import check_folder, check_unsampled, sure_thresholds, write_c99
from rdeepsense.deploy.c.graph.cost import StreamCost
from rdeepsense.deploy.c.graph.decided import decided_quality
from rdeepsense.deploy.c.graph.report import graph_costs
from rdeepsense.deploy.c.graph.running import running_quality
from rdeepsense.deploy.c.graph.sampled import Sampled
from rdeepsense.deploy.c.graph.sampled_cost import SampledCost
from rdeepsense.deploy.c.graph.source import GraphSource
from rdeepsense.deploy.c.graph.stored import as_stored
from rdeepsense.deploy.c.report import C99Report
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


def export_graph_c99(
    fitted: Fitted, folder: Path, options: Options, rows: LabelledRows, personal: bool = False
) -> C99Report:
    """Write the C of a network of windows and the report of it.

    With `personal` the caller may change the last layer, see `runtime/personal.h`.
    """
    check_folder(folder)
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
    source = GraphSource(folded, network, options.name, sure, factor, sampled, personal)
    stream = None
    if network.stream is not None:
        stream = StreamCost.of(network.stream, source.model.channels, running)
    samples = None
    if sampled is not None:
        work, outputs = source.multiply_adds, source.model.outputs
        states = {} if stream is None else stream.state_bytes
        samples = SampledCost.of(sampled, work, network.stream, states, outputs, decided)
    costs = graph_costs(network)
    return write_c99(
        source, folder, found, options.dtype, rows, costs, stream=stream, samples=samples
    )


def _sampled(facts: Facts, stream: Stream | None, options: Options) -> Sampled | None:
    """Plan the stream of samples of a model that knows how its windows are cut."""
    if facts.recipe is None:
        check_unsampled(options)
        return None
    return Sampled.of(Sampling.of(facts.recipe), facts.smoothing, stream, options.stream)
