"""A folder served to this machine alone, until Ctrl-C."""

from __future__ import annotations

import functools
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from rdeepsense.errors import InputError

HOST = "127.0.0.1"  # browsers give sensors to pages of this machine as to https ones


class _Quiet(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".wasm": "application/wasm",
        ".webmanifest": "application/manifest+json",
    }

    def log_message(self, *_: object) -> None:
        pass


def server_of(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of static files; port 0 takes any that is free."""
    handler = functools.partial(_Quiet, directory=str(folder))
    try:
        return ThreadingHTTPServer((HOST, port), handler)
    except OSError as error:
        raise InputError(
            f"--port {port}: cannot be served at ({error.strerror}); give another, or 0 for any"
        ) from error
