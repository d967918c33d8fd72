"""A fitted model of windows as files of C99, checked before anything is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rdeepsense.adaptation.rates import Rates
from rdeepsense.deploy.c.export import C99, check_unsampled, made_c99
from rdeepsense.deploy.c.graph.cost import StreamCost
from rdeepsense.deploy.c.graph.decided import decided_quality
from rdeepsense.deploy.c.graph.report import graph_costs
from rdeepsense.deploy.c.graph.running import running_quality
from rdeepsense.deploy.c.graph.sampled import Sampled
from rdeepsense.deploy.c.graph.sampled_cost import SampledCost
from rdeepsense.deploy.c.graph.source import GraphSource
from rdeepsense.deploy.c.graph.stored import as_stored
from rdeepsense.deploy.c.report import LiveCost
from rdeepsense.deploy.c.watch import SUMMARY
from rdeepsense.deploy.fold_adapted import narrowing, settled
from rdeepsense.deploy.fold_graph import fold_graph
from rdeepsense.deploy.fold_live import fold_live
from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.folded.graph.stream import Stream
from rdeepsense.deploy.graph_hidden import check_hidden
from rdeepsense.deploy.judge import judge
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.networks import NetworkRunner
from rdeepsense.deploy.options import Options
from rdeepsense.deploy.watch import Watch
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.windowing.stream import Sampling


def export_graph_c99(
    fitted: Fitted, folder: Path, options: Options, rows: LabelledRows, personal: bool = False
) -> C99:
    """Make the C of a network of windows and the report of it.

    With `personal` the caller may change the last layer, see `runtime/personal.h`.
    """
    for name in ("epistemic", "fine_tune"):
        if getattr(options, name):
            raise InputError(
                f"{name}={getattr(options, name)!r} is for fully-connected networks; export this "
                "one without it"
            )
    plain = settled(fitted)
    folded = fold_graph(plain)
    streamed = folded.facts.streamed(options.smoothing, options.hop)
    if (narrowed := narrowing(fitted, options.dtype, options.live)) is not None:
        check_hidden(plain, folded.graph)
        folded = replace(folded, narrowing=narrowed)
    network = as_stored(folded, options.dtype)
    runner = NetworkRunner(folded, network)
    watch = Watch.of(fitted, rows, options)
    watched = replace(folded, facts=watch.on(folded.facts))
    found = judge(NetworkRunner(watched, network), fitted, rows, options)
    running = running_quality(folded, network, fitted, rows)
    factor = 1.0 if running is None else running.factor
    smoothing, decided = decided_quality(runner, folded.facts, rows, options.smoothing)
    if options.smoothing is None:
        streamed = replace(folded.facts, smoothing=smoothing).streamed(None, options.hop)
    sampled = _sampled(streamed, network.stream, options)
    live = None
    if options.live:
        live = fold_live(plain, network, options.coverage, options.rates or plain.rates or Rates())
    source = GraphSource(watched, network, options.name, factor, sampled, live, personal=personal)
    stream = None
    if network.stream is not None:
        kept = 0 if watch.novelty is None else SUMMARY
        stream = StreamCost.of(network.stream, source.model.channels, running, kept)
    samples = None
    if sampled is not None:
        work, outputs = source.multiply_adds, source.model.outputs
        states = {} if stream is None else stream.state_bytes
        samples = SampledCost.of(sampled, work, network.stream, states, outputs, decided)
    return made_c99(
        source,
        folder,
        found,
        options.dtype,
        rows,
        graph_costs(network),
        live=None if live is None else LiveCost.of(live, source.model.outputs),
        stream=stream,
        samples=samples,
        watch=watch,
    )


def _sampled(facts: Facts, stream: Stream | None, options: Options) -> Sampled | None:
    """Plan the stream of samples of a model that knows how its windows are cut."""
    if facts.recipe is None:
        check_unsampled(options)
        return None
    return Sampled.of(Sampling.of(facts.recipe), facts.smoothing, stream, options.stream)
