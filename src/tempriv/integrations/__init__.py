"""Engines and servers that tables and streams are read from and written to."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Protocol, cast

from tempriv.streaming.records import RecordFormat
from tempriv.streaming.sinks import Sink
from tempriv.streaming.sources import Source

CONNECTORS = dict.fromkeys(("redis", "rediss", "unix"), "tempriv.integrations.redis")
ENTRY_POINTS = "tempriv.connectors"


class Connector(Protocol):
    """What a module for some URL schemes offers; other packages add theirs as entry points."""

    def open_source(
        self, url: str, record_format: RecordFormat, notify: Callable[[str], None]
    ) -> Source:
        """The source at a URL.

        Parameters:
            url: of a scheme that the connector serves.
            record_format: the columns that are read.
            notify: called with a sentence when a server is away and when it is back.
        """

    def open_sink(
        self, url: str, record_format: RecordFormat, notify: Callable[[str], None]
    ) -> Sink:
        """The sink at a URL.

        Parameters:
            url: of a scheme that the connector serves.
            record_format: the columns that are written.
            notify: called with a sentence when a server is away and when it is back.
        """

    def public_address(self, url: str) -> str:
        """The ``url`` as it can be shown: without user, password and settings."""


def connector(address: str | None) -> Connector | None:
    """The connector for the scheme of an address.

    Parameters:
        address: a URL; anything else, such as the name of a file, has no connector.

    >>> connector("meters.csv") is None, connector("redis://host?stream=meters") is None
    (True, False)
    """
    scheme, separator, _ = (address or "").partition("://")
    if not separator:
        return None
    if scheme in CONNECTORS:
        return cast(Connector, import_module(CONNECTORS[scheme]))
    for entry in entry_points(group=ENTRY_POINTS, name=scheme):
        return cast(Connector, entry.load())
    return None
