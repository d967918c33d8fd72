"""The page of simulated activities, smaller: its recording, its log, its figures."""

from __future__ import annotations

import json
import threading
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from rdeepsense.cli.terminal import server_of
from rdeepsense.deploy.web.export import wasm_compiler
from rdeepsense.errors import InputError
from rdeepsense.paper.demo import cut, make_page, recording
from rdeepsense.paper.tasks.hhar import LOG_CHANNELS as CHANNELS
from rdeepsense.paper.tasks.hhar import simulate_log


def test_a_log_goes_on_without_a_jump() -> None:
    log = simulate_log([4], 10.0, 0)
    assert set(log["activity"][:500]) == {log["activity"][0]}
    walking = log["activity"] == "walking"
    ax = np.column_stack([log[name][walking] for name in CHANNELS])
    steps = np.abs(np.diff(ax, axis=0)).max(1)
    assert steps[[239, 479]].max() < 3 * np.median(
        steps
    )  # where one window ends and another begins
    again = simulate_log([3, 4], 10.0, 0)
    assert np.array_equal(again["ax"][again["user"] == "user 4"], log["ax"])
    assert len(cut(log)) == 6 * (1 + (500 - 120) // 24)


def test_the_recording_is_of_somebody_else_and_ends_in_shaking() -> None:
    found = recording(7, 0)
    assert found["activity"][-1] == "shaken"
    assert np.all(np.diff(found["t"]) > 0)
    assert np.abs(found["ax"][-300:]).max() > 3 * np.abs(found["ax"][:-300]).max()


@pytest.mark.slow
def test_the_page_is_written_and_served_to_this_machine_alone(tmp_path: Path) -> None:
    try:
        wasm_compiler()
    except InputError as error:
        pytest.skip(str(error))
    page = make_page(tmp_path / "web", users=3, epochs=3)
    assert page.accuracy > 0.3  # of six; three epochs
    assert json.loads((tmp_path / "web/report.json").read_text())["face"] == "windows"
    with server_of(tmp_path / "web", 0) as server:
        assert server.server_address[0] == "127.0.0.1"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        for name, kind in (
            ("model.wasm", "application/wasm"),
            ("rdeepsense.js", "text/javascript"),
        ):
            with urllib.request.urlopen(url + name) as answer:
                assert answer.headers["Content-Type"] == kind
        with pytest.raises(InputError, match=r"--port \d+: cannot be served at .* 0 for any"):
            server_of(tmp_path / "web", server.server_port)
        server.shutdown()
