"""Sweeping: what killed writers left goes, what the living write and what is not ours stays."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rdeepsense._files import hidden_beside, sweep, write_whole

OURS = ".model.rdeepsense-123-0123456789abcdef"
FOREIGN = (
    "model",
    ".model",
    ".rdeepsense-123-0123456789abcdef",  # no name before
    ".model.rdeepsense-123-0123456789abcde",  # a digit short
    ".model.rdeepsense-123-0123456789abcdefa",
    ".model.rdeepsense-x-0123456789abcdef",
    ".model.rdeepsense-123-0123456789ABCDEF",
    "model.rdeepsense-123-0123456789abcdef",  # not hidden
    ".model.tmp12345",
)


def test_left_overs_go_whoever_left_them_and_nothing_else(tmp_path: Path) -> None:
    for name in (*FOREIGN, OURS, OURS.replace("-123-", f"-{os.getpid()}-")):
        (tmp_path / name).write_text("x")
    folder = tmp_path / OURS.replace("model", "firmware")
    folder.mkdir()
    (folder / "model.c").write_text("half")
    write_whole(tmp_path / "other", "y")
    assert sorted(os.listdir(tmp_path)) == sorted([*FOREIGN, "other"])


def test_a_link_of_that_name_is_left_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("precious")
    (tmp_path / OURS).symlink_to(victim)
    (tmp_path / OURS.replace("model", "other")).symlink_to(victim / "file")
    sweep(tmp_path)
    assert len(os.listdir(tmp_path)) == 3
    assert (victim / "file").read_text() == "precious"


def test_a_pipe_of_that_name_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / OURS)
    sweep(tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_this_process_writes_is_not_swept(tmp_path: Path, kind: str) -> None:
    make = {"make": os.mkdir} if kind == "folder" else {}
    with hidden_beside(tmp_path / "model", **make) as beside:
        sweep(tmp_path)
        assert os.listdir(tmp_path) == [beside.name]
    assert os.listdir(tmp_path) == []


# Another process that holds its file until its stdin closes, or is killed.
WRITER = """
import sys
from pathlib import Path
from rdeepsense._files import hidden_beside
with hidden_beside(Path(sys.argv[1])):
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_what_another_living_process_writes_is_swept_once_it_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, tmp_path / "model"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        (name,) = os.listdir(tmp_path)
        assert f".rdeepsense-{other.pid}-" in name
        sweep(tmp_path)
        assert os.listdir(tmp_path) == [name]
        other.kill()
        other.wait()
        assert os.listdir(tmp_path) == [name]
        sweep(tmp_path)
        assert os.listdir(tmp_path) == []


def test_threads_that_write_to_one_folder_do_not_sweep_each_other(tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for time in range(30):
                write_whole(tmp_path / f"{number % 2}", f"{number} {time}")
        except BaseException as error:  # a thread's error is nobody's
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert sorted(os.listdir(tmp_path)) == ["0", "1"]


def test_a_folder_that_cannot_be_read_is_no_error(tmp_path: Path) -> None:
    sweep(tmp_path / "nowhere")
