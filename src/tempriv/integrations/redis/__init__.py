"""Redis streams as a source and a sink, by URLs such as ``redis://host:6379/0?stream=NAME``."""

from __future__ import annotations

from collections.abc import Callable

from tempriv.integrations.redis.connection import RedisConnection, public_address
from tempriv.integrations.redis.sink import RedisSink
from tempriv.integrations.redis.source import RedisSource
from tempriv.streaming.records import RecordFormat

__all__ = ["open_sink", "open_source", "public_address"]


def open_source(
    url: str, record_format: RecordFormat, notify: Callable[[str], None]
) -> RedisSource:
    """Read a Redis stream that can be reached now.

    Parameters:
        url: the server, with the name of the stream as ``?stream=NAME``.
        record_format: the columns of the stream.
        notify: called with a sentence when the server is lost and when it is back.
    """
    return RedisSource(RedisConnection.open(url, record_format, notify), record_format)


def open_sink(url: str, record_format: RecordFormat, notify: Callable[[str], None]) -> RedisSink:
    """Write to a Redis stream that can be reached now; the parameters are those of a source.

    Parameters:
        url: the server, with the name of the stream as ``?stream=NAME``.
        record_format: the columns of the stream.
        notify: called with a sentence when the server is lost and when it is back.
    """
    return RedisSink(RedisConnection.open(url, record_format, notify), record_format)
