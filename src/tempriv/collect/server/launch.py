"""Running the application with uvicorn, on a port that is told once it listens."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from tempriv.collect.server.app import ADMIN_FILE, make_app
from tempriv.collect.server.database import Database
from tempriv.collect.server.logging import log
from tempriv.collect.server.rate_limits import RateLimits
from tempriv.errors import UsageError

SHUTDOWN_SECONDS = 5  # seconds that requests under way are waited for


def run(
    store: str,
    home: Path,
    host: str,
    port: int,
    *,
    proxy: str | None = None,
    quiet: bool = False,
    limits: RateLimits | None = None,
    statements: Mapping[str, str] | None = None,
    tell: Callable[[str, Path | None, str], None],
) -> None:
    """Serve until somebody stops it.

    Parameters:
        store: address of the database.
        home: folder for the first admin token.
        host: address to listen on.
        port: port to listen on; 0 for any.
        proxy: address of a proxy whose word is taken for who is calling.
        quiet: whether requests are not logged.
        limits: what one caller may ask for.
        statements: what the curator says of all releases.
        tell: called with the address, the file of the token and the public key of signatures once
            it listens.
    """
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
    database = Database(store)
    database.open()  # what is wrong is said here, not in the middle of a start
    app = make_app(database, home=home, limits=limits, statements=statements)
    listening = _listening(host, port)
    settings = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy or "",
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    server = _AnnouncingServer(
        settings, app, lambda: tell(*_where(listening, home), app.state.signing_key.public)
    )
    server.run(sockets=[listening])


class _AnnouncingServer(uvicorn.Server):
    """Tells once it has started, and is content when it was stopped."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, tell: Callable[[], None]):
        super().__init__(config)
        self._app, self._tell = app, tell

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start on the ``sockets`` and announce the address."""
        await super().startup(sockets)
        if self.started:
            self._tell()

    def handle_exit(self, number: int, frame: Any) -> None:
        """Stop on the signal of this ``number``, from whatever ``frame``."""
        self._app.state.stopping = True  # whoever watches is let go first
        super().handle_exit(number, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop cleanly; uvicorn's own way raises the signal once more when all is done."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)
        yield


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as problem:
        listener.close()
        raise UsageError(
            f"[[host={host}]] [[port={port}]]: cannot listen there "
            f"({problem.strerror}); take another"
        ) from None
    return listener


def _where(listening: socket.socket, home: Path) -> tuple[str, Path | None]:
    host, port = listening.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    token = home / ADMIN_FILE
    return f"http://{name}:{port}", token if token.exists() else None
