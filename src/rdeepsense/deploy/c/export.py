"""A fitted model as files of C99, checked before anything is written."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from rdeepsense._files import check_strangers, write_folder
from rdeepsense._progress import Progress
from rdeepsense.adaptation.rates import Rates
from rdeepsense.deploy.c.graph.cost import StreamCost
from rdeepsense.deploy.c.graph.sampled_cost import SampledCost
from rdeepsense.deploy.c.header import header
from rdeepsense.deploy.c.readme import readme
from rdeepsense.deploy.c.report import (
    C99Report,
    EmbeddingCost,
    EpistemicCost,
    LayerCost,
    LiveCost,
    Sizes,
    layer_costs,
)
from rdeepsense.deploy.c.selftest import selftest
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.fold import fold_fitted
from rdeepsense.deploy.fold_adapted import narrowing, settled
from rdeepsense.deploy.fold_live import fold_live
from rdeepsense.deploy.judge import judge, stored_network
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.networks import NetworkRunner
from rdeepsense.deploy.options import Options
from rdeepsense.deploy.quality import Quality
from rdeepsense.deploy.watch import UNWATCHED, Watch
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted

FILES = ("model.h", "model.c", "weights.c", "selftest.c", "README.md", "report.json")


@dataclass(frozen=True)
class C99:
    """The files of C that a model became, not yet written, and the report of them."""

    source: Source
    files: dict[str, str]
    report: C99Report

    def write(self) -> C99Report:
        """Write the folder, with a README and the report."""
        content = self.report.to_json()
        more = {
            "README.md": readme(self.source, content),
            "report.json": json.dumps(content, indent=2, allow_nan=False) + "\n",
        }
        write_folder(self.report.path, self.files | more, FILES)
        return self.report


def export_c99(
    fitted: Fitted,
    folder: Path,
    options: Options,
    rows: LabelledRows,
    progress: Progress | None = None,
) -> C99:
    """Make the C of a model and the report of it."""
    check_unsampled(options)
    plain = settled(fitted, options.epistemic)
    folded = replace(
        fold_fitted(plain, options.epistemic),
        narrowing=narrowing(fitted, options.dtype, options.live),
    )
    network, tuned = stored_network(plain, folded, rows, options, progress)
    watch = Watch.of(fitted, rows, options)
    watched = replace(folded, facts=watch.on(folded.facts))
    found = judge(NetworkRunner(watched, network), fitted, rows, options, tuned)
    live = None
    if options.live:
        live = fold_live(plain, network, options.coverage, options.rates or plain.rates or Rates())
    source = Source(watched, network, options.name, live)
    costs = layer_costs(
        [layer.weight for layer in folded.layers.dense],
        [str(layer.weight.dtype) for layer in network.layers],
    )
    return made_c99(
        source,
        folder,
        found,
        options.dtype,
        rows,
        costs,
        epistemic=EpistemicCost.of(source),
        embedding=EmbeddingCost.of(source),
        live=None if live is None else LiveCost.of(live, source.model.outputs),
        watch=watch,
    )


def made_c99(
    source: Source,
    folder: Path,
    found: Quality | None,
    dtype: str,
    rows: LabelledRows,
    costs: tuple[LayerCost, ...],
    epistemic: EpistemicCost | None = None,
    embedding: EmbeddingCost | None = None,
    live: LiveCost | None = None,
    stream: StreamCost | None = None,
    samples: SampledCost | None = None,
    watch: Watch = UNWATCHED,
) -> C99:
    """Give the files of a source, with what was found out about it."""
    files = {
        "model.h": header(source),
        "model.c": source.code(),
        "weights.c": source.weights(),
        "selftest.c": selftest(source, rows.X),
    }
    report = C99Report(
        "c99",
        folder,
        found,
        source.name,
        dtype,
        source.folded.facts,
        costs,
        epistemic,
        Sizes.of(source, files),
        embedding,
        live,
        stream,
        samples,
        watch,
    )
    return C99(source, files, report)


def check_folder(folder: Path, own: Collection[str] = FILES) -> None:
    """Refuse a folder that holds anything but files of an earlier export."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; give the name of a folder")
    if folder.exists():
        check_strangers(folder, own)
    if folder.resolve() == Path.cwd():
        raise InputError(
            f"{folder}: is the folder you are in, and an export replaces its folder as one; give "
            "a folder inside or call from outside of it"
        )
    if not folder.resolve().parent.is_dir():
        raise InputError(f"{folder}: there is no folder {folder.parent}; create it first")


def check_unsampled(options: Options) -> None:
    """Refuse options of a stream of samples for a model that takes none."""
    for name in ("stream", "smoothing", "hop"):
        if getattr(options, name) is not None:
            raise InputError(
                f"{name}={getattr(options, name)!r} is for models of windows that "
                "rdeepsense.windows(...) cut, which know their rate; this one takes no samples"
            )
