"""A fitted model of windows as a folder of C99, checked before anything is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rdeepsense.deploy.c.export import check_folder, sure_thresholds, write_c99
from rdeepsense.deploy.c.graph.cost import StreamCost
from rdeepsense.deploy.c.graph.report import graph_costs
from rdeepsense.deploy.c.graph.running import running_quality
from rdeepsense.deploy.c.graph.source import GraphSource
from rdeepsense.deploy.c.graph.stored import as_stored
from rdeepsense.deploy.c.report import C99Report
from rdeepsense.deploy.c.watch import SUMMARY
from rdeepsense.deploy.fold_adapted import check_steady, settled
from rdeepsense.deploy.fold_graph import fold_graph
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
    for name in ("epistemic", "live", "fine_tune"):
        if getattr(options, name):
            raise InputError(
                f"{name}={getattr(options, name)!r} is for fully-connected networks; export this "
                "one without it"
            )
    check_steady(fitted, "c99")
    plain = settled(fitted)
    folded = fold_graph(plain)
    network = as_stored(folded, options.dtype)
    runner = NetworkRunner(folded, network)
    found = judge(runner, fitted, rows, options)
    running = running_quality(folded, network, fitted, rows)
    sure = sure_thresholds(runner, rows.X, options.sure_share)
    factor = 1.0 if running is None else running.factor
    watch = Watch.of(fitted, rows, options)
    watched = replace(folded, facts=watch.on(folded.facts))
    source = GraphSource(watched, network, options.name, sure, factor)
    stream = None
    if network.stream is not None:
        kept = 0 if watch.novelty is None else SUMMARY
        stream = StreamCost.of(network.stream, source.model.channels, running, kept)
    costs = graph_costs(network)
    return write_c99(source, folder, found, options.dtype, rows, costs, stream=stream, watch=watch)
