"""A fitted model of windows as a folder of C99, checked before anything is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rdeepsense.adaptation.rates import Rates
from rdeepsense.deploy.c.export import check_folder, sure_thresholds, write_c99
from rdeepsense.deploy.c.graph.cost import StreamCost
from rdeepsense.deploy.c.graph.report import graph_costs
from rdeepsense.deploy.c.graph.running import running_quality
from rdeepsense.deploy.c.graph.source import GraphSource
from rdeepsense.deploy.c.graph.stored import as_stored
from rdeepsense.deploy.c.report import C99Report, LiveCost
from rdeepsense.deploy.c.watch import SUMMARY
from rdeepsense.deploy.fold_adapted import narrowing, settled
from rdeepsense.deploy.fold_graph import fold_graph
from rdeepsense.deploy.fold_live import fold_live
from rdeepsense.deploy.graph_hidden import check_hidden
from rdeepsense.deploy.judge import judge
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.networks import NetworkRunner
from rdeepsense.deploy.options import Options
from rdeepsense.deploy.watch import Watch
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted


def export_graph_c99(
    fitted: Fitted, folder: Path, options: Options, rows: LabelledRows
) -> C99Report:
    """Write the C of a network of windows and the report of it."""
    check_folder(folder)
    for name in ("epistemic", "fine_tune"):
        if getattr(options, name):
            raise InputError(
                f"{name}={getattr(options, name)!r} is for fully-connected networks; export this "
                "one without it"
            )
    plain = settled(fitted)
    folded = fold_graph(plain)
    if (narrowed := narrowing(fitted, options.dtype, options.live)) is not None:
        check_hidden(plain, folded.graph)
        folded = replace(folded, narrowing=narrowed)
    network = as_stored(folded, options.dtype)
    runner = NetworkRunner(folded, network)
    found = judge(runner, fitted, rows, options)
    running = running_quality(folded, network, fitted, rows)
    sure = sure_thresholds(runner, rows.X, options.sure_share)
    factor = 1.0 if running is None else running.factor
    watch = Watch.of(fitted, rows, options)
    watched = replace(folded, facts=watch.on(folded.facts))
    live = None
    if options.live:
        live = fold_live(plain, network, options.coverage, options.rates or plain.rates or Rates())
    source = GraphSource(watched, network, options.name, sure, factor, live)
    stream = None
    if network.stream is not None:
        kept = 0 if watch.novelty is None else SUMMARY
        stream = StreamCost.of(network.stream, source.model.channels, running, kept)
    costs = graph_costs(network)
    return write_c99(
        source,
        folder,
        found,
        options.dtype,
        rows,
        costs,
        live=None if live is None else LiveCost.of(live, source.model.outputs),
        stream=stream,
        watch=watch,
    )
