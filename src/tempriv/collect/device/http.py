"""Requests to a server of campaigns: what comes back is read with care, or counts as no answer."""

from __future__ import annotations

import functools
import ipaddress
import re
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from tempriv.errors import TemprivError, require
from tempriv.local.wire import strict_json

MAX_REPLY_BYTES = 1 << 26  # bytes of a reply
TIMEOUT_SECONDS = 30.0  # until something comes
REPLY_SECONDS = 120.0  # seconds until all of a reply is there
MAX_REASON_CHARACTERS = 200
LABEL = re.compile("[A-Za-z0-9_-]{1,63}")
RETRY_STATUSES = (408, 425, 429)


class UnreachableError(TemprivError):
    """The server cannot be reached now, or makes no sense; to be tried again.

    ``after`` is how many seconds it wants to be left alone.
    """

    def __init__(self, sentence: str, after: float = 0.0):
        super().__init__(sentence)
        self.after = after


class AccessError(TemprivError):
    """The server does not let this token do what was asked."""

    exit_status = 3


def origin_of(url: str, plain: bool = False) -> str:
    """Return a server's address as it is written.

    Parameters:
        url: the address; without encryption only on this machine.
        plain: whether an address without encryption is taken as it is.

    >>> origin_of("http://127.0.0.1:8000/"), origin_of("https://collect.example.org")
    ('http://127.0.0.1:8000', 'https://collect.example.org')
    """
    try:
        parts, host = urlsplit(url), httpx.URL(url).raw_host.decode()
        fits = parts.port != 0 and not (parts.query or parts.fragment) and _is_host(host)
    except (ValueError, httpx.InvalidURL):  # a port that is no number, for one
        parts, fits = urlsplit(""), False
    require(
        parts.scheme in ("http", "https") and fits,
        f"url={url!r:.100}: must be an address such as https://collect.example.org",
    )
    require(
        parts.username is None and parts.password is None, "url: must not hold a name or a password"
    )
    require(
        parts.scheme == "https" or plain or _is_here(str(parts.hostname)),
        f"url={url!r:.100}: must begin with https://, so that nobody on the way reads the device's "
        "secret; plain=True takes it as it is",
    )
    return url.rstrip("/")


def _is_host(name: str) -> bool:
    labels = name.removesuffix(".").split(".")
    return ":" in name or all(LABEL.fullmatch(label) for label in labels)


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@functools.cache
def _certificates() -> ssl.SSLContext:
    """The authorities that are trusted, read once: it takes longer than many requests."""
    return httpx.create_ssl_context()


def new_http(connections: int = 4) -> httpx.Client:
    """Return a client with at most so many ``connections``, which follows no redirects."""
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    return httpx.Client(
        timeout=TIMEOUT_SECONDS, limits=limits, follow_redirects=False, verify=_certificates()
    )


class HttpClient:
    """Sends requests to one server, with a token or without."""

    def __init__(self, url: str, http: httpx.Client, token: str | None = None):
        self.url, self._http, self._token = url, http, token

    def __repr__(self) -> str:
        return f"HttpClient({self.url!r})"

    def send(self, method: str, path: str, **content: Any) -> tuple[int, bytes]:
        """Send a request by ``method`` to ``path``; return status and body. Raises UnreachableError
        for what may be different in a while.
        """
        # never packed: a few bytes of what is packed can be more than there is room for
        headers = {"accept-encoding": "identity", **content.pop("headers", {})}
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token}"
        until = time.monotonic() + REPLY_SECONDS

        def call() -> tuple[httpx.Response, bytes]:
            with self._http.stream(
                method, self.url + path, headers=headers, follow_redirects=False, **content
            ) as reply:
                return reply, _body_of(reply, until)

        try:
            reply, body = _within(REPLY_SECONDS, call)
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as problem:
            # its message may quote what was sent
            kind = type(problem).__name__
            raise UnreachableError(f"{self.url}: cannot be reached now ({kind})") from None
        elsewhere = 300 <= reply.status_code < 400  # never followed, and least of all with a token
        if elsewhere or reply.status_code in RETRY_STATUSES or reply.status_code >= 500:
            raise UnreachableError(
                f"{self.url}: answers with status {reply.status_code}", _after(reply)
            )
        return reply.status_code, body

    def ask(self, method: str, path: str, document: Any = None) -> tuple[int, Any]:
        """Do the same with ``method``, ``path`` and a ``document``, for JSON both ways."""
        content = {} if document is None else {"json": document}
        status, body = self.send(method, path, **content)
        return status, read_json(body)

    def need(self, method: str, path: str, given: Any = None) -> Any:
        """Return the reply to ``method`` and ``path`` with ``given``, which must succeed; else
        raise with the server's reason.
        """
        status, document = self.ask(method, path, given)
        refuse_access(status, document)
        require(
            200 <= status < 300,
            f"{self.url}: refuses {method} {path}: {reason_of(document)}",
            TemprivError,
        )
        return document


def read_json(body: bytes) -> Any:
    """Return what ``body`` holds as JSON; anything else counts as no reply."""
    try:
        return strict_json(body)
    except (ValueError, RecursionError):
        raise UnreachableError("the server's reply is no JSON") from None


def refuse_access(status: int, document: Any) -> None:
    """Raise AccessError if ``status`` says so, with the reason in ``document``."""
    require(
        status not in (401, 403),
        f"the server does not take this token: {reason_of(document)}",
        AccessError,
    )


def reason_of(document: Any) -> str:
    """Return the sentence of a refusal in ``document``, as far as it is one."""
    reason = document.get("reason") if isinstance(document, dict) else None
    text = reason if isinstance(reason, str) else "no reason is given"
    return "".join(character if character.isprintable() else " " for character in text)[
        :MAX_REASON_CHARACTERS
    ]


Value = TypeVar("Value")


def _within(seconds: float, call: Callable[[], Value]) -> Value:
    """What a call gives, if it does so in time.

    Whoever sends a byte now and then is never late by any single read; so another thread reads,
    and is left to itself when the time is over.
    """
    values: list[Value] = []
    problems: list[BaseException] = []

    def reading() -> None:
        try:
            values.append(call())
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=reading, daemon=True)
    thread.start()
    thread.join(seconds)
    if problems:
        raise problems[0]
    if not values:
        raise UnreachableError(f"the server's reply takes more than {seconds:g} seconds")
    return values[0]


def _body_of(reply: httpx.Response, until: float) -> bytes:
    if reply.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise UnreachableError("the server's reply is packed, and nobody asked for that")
    parts, size = [], 0
    for part in reply.iter_bytes():
        size += len(part)
        if time.monotonic() > until:
            raise UnreachableError("the server's reply takes too long")
        if size > MAX_REPLY_BYTES:
            raise UnreachableError("the server's reply is too long")
        parts.append(part)
    return b"".join(parts)


def _after(reply: httpx.Response) -> float:
    header = reply.headers.get("retry-after", "")
    return min(float(header), 3600.0) if header.isascii() and header.isdigit() else 0.0
