"""Downloads from a server on this machine that cuts, changes, ignores and refuses."""

from __future__ import annotations

import hashlib
import json
import random
import re
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from rdeepsense.errors import InputError, RDeepSenseError
from rdeepsense.paper.tasks import fetch as module
from rdeepsense.paper.tasks.fetch import fetch

CONTENT = bytes(range(256)) * 4000  # a megabyte


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass
class Site:
    """One file at an address, and how its server behaves."""

    content: bytes = CONTENT
    validators: dict[str, str] = field(default_factory=lambda: {"ETag": '"one"'})
    ranges: bool = True  # obeys Range
    if_range: bool = True  # obeys If-Range
    chunked: bool = False
    length: bool = True
    status: int = 200
    cuts: list[int] = field(default_factory=list)  # bytes to send before hanging up, per request
    redirect: str | None = None  # where other addresses than the file's lead
    asked: list[str | None] = field(default_factory=list)  # the Range of each request
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    site: Site
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        site, wanted = self.site, self.headers.get("Range")
        site.asked.append(wanted)
        if site.redirect is not None and not self.path.endswith("file.bin"):
            self.send_response(302)
            self.send_header("Location", site.redirect)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if site.status != 200:
            self.send_error(site.status)
            return
        begin, status = 0, 200
        current = list(site.validators.values())
        if wanted and site.ranges and (not site.if_range or self.headers["If-Range"] in current):
            begin, status = int(re.findall(r"\d+", wanted)[0]), 206
        size = len(site.content)
        if begin >= size:
            self.send_error(416)
            return
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {begin}-{size - 1}/{size}")
        for name, value in site.validators.items():
            self.send_header(name, value)
        body = site.content[begin:]
        if site.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif site.length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        sent = body[: site.cuts.pop(0)] if site.cuts else body
        if site.chunked:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(sent), sent))
            if sent == body:
                self.wfile.write(b"0\r\n\r\n")
        else:
            self.wfile.write(sent)
        self.close_connection = True

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(module, "PAUSE", 0.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("OneSite", (Handler,), {"site": site}))
    site.url = f"http://127.0.0.1:{server.server_port}/file.bin"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield site
    server.shutdown()
    thread.join()
    server.server_close()


class Told:
    """Progress that remembers."""

    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []

    def start(self, title: str, total: int, done: int) -> None:
        self.events.append((title, total, done))

    def update(self, done: int, note: str) -> None:
        self.last = (done, note)

    def close(self) -> None:
        self.events.append(("closed",))


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_whole_file_with_its_record(site: Site, tmp_path: Path) -> None:
    told = Told()
    path = tmp_path / "file.bin"
    assert fetch(site.url, path, progress=told) == sha256(CONTENT)
    assert path.read_bytes() == CONTENT
    assert json.loads((tmp_path / "file.bin.json").read_text()) == {
        "url": site.url,
        "bytes": len(CONTENT),
        "sha256": sha256(CONTENT),
    }
    assert files(tmp_path) == ["file.bin", "file.bin.json"]
    assert told.events == [("file.bin", len(CONTENT), 0), ("closed",)]
    assert told.last == (len(CONTENT), "1.0 of 1.0 MB")


def test_a_file_that_is_there_is_verified_not_downloaded(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    fetch(site.url, path)
    assert fetch(site.url, path) == sha256(CONTENT)
    assert len(site.asked) == 1
    path.write_bytes(b"changed")
    with pytest.raises(InputError, match="file.bin: its SHA-256 is .* first download"):
        fetch(site.url, path)


@pytest.mark.parametrize("validators", [{"ETag": '"one"'}, {"Last-Modified": "Mon, 01 Jan 2024"}])
def test_cut_connections_are_resumed(
    site: Site, tmp_path: Path, validators: dict[str, str]
) -> None:
    site.validators, site.cuts = validators, [300_000, 200_000]
    told = Told()
    assert fetch(site.url, tmp_path / "file.bin", progress=told) == sha256(CONTENT)
    assert site.asked == [None, "bytes=300000-", "bytes=500000-"]
    assert [event[2] for event in told.events if len(event) == 3] == [0, 300_000, 500_000]
    assert files(tmp_path) == ["file.bin", "file.bin.json"]


def test_a_later_call_goes_on_where_one_gave_up(site: Site, tmp_path: Path) -> None:
    site.cuts = [300_000, *[0] * module.ATTEMPTS]
    with pytest.raises(RDeepSenseError, match="ended early; what came in is kept"):
        fetch(site.url, tmp_path / "file.bin")
    assert files(tmp_path) == ["file.bin.part", "file.bin.part.json"]
    site.asked.clear()
    assert fetch(site.url, tmp_path / "file.bin") == sha256(CONTENT)
    assert site.asked == ["bytes=300000-"]


def test_a_partial_file_that_is_whole_needs_no_request(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    (tmp_path / "file.bin.part.json").write_text(json.dumps({"bytes": len(CONTENT)}))
    assert fetch(site.url, tmp_path / "file.bin") == sha256(CONTENT)
    assert site.asked == []


@pytest.mark.parametrize("without", ["ranges", "validators"])
def test_servers_that_cannot_resume_begin_again(site: Site, tmp_path: Path, without: str) -> None:
    if without == "ranges":
        site.ranges = False
    else:
        site.validators = {"ETag": 'W/"weak"'}
    site.cuts = [300_000]
    assert fetch(site.url, tmp_path / "file.bin") == sha256(CONTENT)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert len(site.asked) == 2


@pytest.mark.parametrize(
    ("if_range", "new", "tag"),
    [
        (True, CONTENT[::-1], "two"),
        (False, CONTENT[::-1], "two"),
        (False, CONTENT[:700], "two"),
        (False, CONTENT[:700], "one"),
        (False, CONTENT * 2, "two"),
        (False, CONTENT * 2, "one"),
    ],
    ids=["obeys If-Range", "ignores it", "shorter", "only shorter", "longer", "only longer"],
)
def test_a_file_that_changed_between_attempts_is_not_patched_up(
    site: Site, tmp_path: Path, if_range: bool, new: bytes, tag: str
) -> None:
    site.cuts = [300_000, *[0] * module.ATTEMPTS]
    with pytest.raises(RDeepSenseError):
        fetch(site.url, tmp_path / "file.bin")
    site.content, site.if_range, site.validators = new, if_range, {"ETag": f'"{tag}"'}
    assert fetch(site.url, tmp_path / "file.bin") == sha256(new)
    assert (tmp_path / "file.bin").read_bytes() == new


def test_streams_of_unknown_length(site: Site, tmp_path: Path) -> None:
    site.chunked, site.cuts = True, [300_000]
    assert fetch(site.url, tmp_path / "file.bin") == sha256(CONTENT)
    site.chunked, site.length = False, False
    with pytest.raises(RDeepSenseError, match="does not say how long the file is"):
        fetch(site.url, tmp_path / "other.bin")
    assert not (tmp_path / "other.bin").exists()


def test_the_checksum_asked_for(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    with pytest.raises(InputError, match=f"SHA-256 is {sha256(CONTENT)}, but the one asked for"):
        fetch(site.url, path, sha256="0" * 64)
    assert files(tmp_path) == []
    assert fetch(site.url, path, sha256=sha256(CONTENT).upper()) == sha256(CONTENT)


def test_a_second_download_must_be_as_the_first(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    fetch(site.url, path)
    path.unlink()
    site.content = CONTENT[::-1]
    with pytest.raises(InputError, match="but that of the first download .* is"):
        fetch(site.url, path)
    assert files(tmp_path) == ["file.bin.json"]
    (tmp_path / "file.bin.json").write_text("{")
    with pytest.raises(InputError, match="file.bin.json: is damaged"):
        fetch(site.url, path)


@pytest.mark.parametrize(("status", "requests"), [(404, 1), (503, module.ATTEMPTS)])
def test_refusals(site: Site, tmp_path: Path, status: int, requests: int) -> None:
    site.status = status
    with pytest.raises(RDeepSenseError, match=f"file.bin: HTTP Error {status}"):
        fetch(site.url, tmp_path / "file.bin")
    assert len(site.asked) == requests
    assert files(tmp_path) == []


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must begin with http"):
        fetch("file:///etc/hostname", tmp_path / "file.bin")
    with pytest.raises(InputError, match="sha256 = 'abc': give 64 hexadecimal digits"):
        fetch("http://127.0.0.1/", tmp_path / "file.bin", sha256="abc")


@pytest.mark.parametrize("lengths", ["random", "growing"])
def test_a_server_that_never_finishes_is_given_up(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lengths: str
) -> None:
    monkeypatch.setattr(module, "MOST_ATTEMPTS", 30)
    site.ranges = False
    draw = random.Random(0)
    site.cuts = [draw.randrange(1, 2000) if lengths == "random" else n for n in range(1, 1000)]
    with pytest.raises(RDeepSenseError, match="ended early; what came in is kept"):
        fetch(site.url, tmp_path / "file.bin")
    if lengths == "growing":
        assert len(site.asked) == 30
    else:
        assert module.ATTEMPTS <= len(site.asked) < 30
    assert not (tmp_path / "file.bin").exists()


def test_redirects_on_this_machine_are_followed(site: Site, tmp_path: Path) -> None:
    site.redirect = site.url
    start = site.url.replace("file.bin", "start")
    assert fetch(start, tmp_path / "file.bin") == sha256(CONTENT)
    assert json.loads((tmp_path / "file.bin.json").read_text())["url"] == start
    assert len(site.asked) == 2


@pytest.mark.parametrize("target", ["http://data.example/file.bin", "ftp://127.0.0.1/file.bin"])
def test_redirects_to_anything_but_https_are_refused(
    site: Site, tmp_path: Path, target: str
) -> None:
    site.redirect = target
    message = f"start: redirects to {target}; only https is followed"
    with pytest.raises(RDeepSenseError, match=message):
        fetch(site.url.replace("file.bin", "start"), tmp_path / "file.bin")
    assert len(site.asked) == 1
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("start", "target", "followed"),
    [
        ("https://a.example/x", "https://b.example/x", True),
        ("http://a.example/x", "https://a.example/x", True),
        ("https://a.example/x", "http://a.example/x", False),
        ("http://a.example/x", "http://a.example/y", False),
        ("https://a.example/x", "http://127.0.0.1/x", False),
        ("http://a.example/x", "http://localhost/x", False),
        ("http://127.0.0.1:80/x", "http://[::1]:81/x", True),
        ("http://127.0.0.1/x", "http://127.0.0.1.example/x", False),
        ("http://localhost/x", "http://127.0.0.1@a.example/x", False),
    ],
)
def test_which_redirects_are_followed(start: str, target: str, followed: bool) -> None:
    request = urllib.request.Request(start)
    arguments = (request, None, 302, "Found", {}, target)
    if followed:
        found = module.SafeRedirects().redirect_request(*arguments)
        assert found is not None
        assert found.full_url == target
    else:
        with pytest.raises(RDeepSenseError, match="only https is followed"):
            module.SafeRedirects().redirect_request(*arguments)


@pytest.mark.parametrize("chunked", [False, True])
def test_files_beyond_measure_are_refused(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunked: bool
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", len(CONTENT) - 1)
    site.chunked = chunked
    with pytest.raises(RDeepSenseError, match=r"file.bin: sends .* at most 1,023,999 are accepted"):
        fetch(site.url, tmp_path / "file.bin")
    assert files(tmp_path) == []
    assert len(site.asked) == 1
    monkeypatch.setattr(module, "MOST_BYTES", len(CONTENT))
    assert fetch(site.url, tmp_path / "file.bin") == sha256(CONTENT)
