"""A stream on a Redis server that may be away for a while. Needs the 'redis' extra."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

from tempriv.errors import DataError, TemprivError, UsageError, extra_packages, require
from tempriv.streaming.records import RecordFormat

FIRST_ID = "0-0"  # an id before all
COMMAND_ENTRIES = 5_000  # entries in one command: a server does nothing else meanwhile
SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = (
    0.1,
    5.0,
)  # seconds between attempts to reach a server

Result = TypeVar("Result")


def _split_url(url: str) -> tuple[str, str, str]:
    """What the client is to know of an address, and the names of a stream and a group."""
    parts = urlsplit(url)
    settings = parse_qs(parts.query)
    streams, groups = settings.pop("stream", []), settings.pop("group", ["tempriv"])
    each_once = len(streams) == len(groups) == 1
    require(each_once, "redis://: must end in ?stream=NAME, or ?stream=NAME&group=NAME, each once")
    return urlunsplit(parts._replace(query=urlencode(settings, doseq=True))), streams[0], groups[0]


def public_address(url: str) -> str:
    """The ``url`` as it can be shown: without user, password and settings.

    >>> public_address("redis://me:secret@host:6379/0?stream=meters&group=a&password=secret")
    'redis://host:6379/0?stream=meters'
    """
    parts, (_, stream, _) = urlsplit(url), _split_url(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}?stream={stream}"


class ConnectionLostError(TemprivError):
    """A server that could not be reached until someone wanted the stream to stop."""


@dataclass
class RedisConnection:
    """A stream on a server that may be away for a while."""

    client: Any
    stream: str
    group: str
    shown: str
    """Its address, without what would let someone in."""
    notify: Callable[[str], None] = lambda sentence: None
    stopping: Callable[[], bool] = lambda: False

    def __repr__(self) -> str:
        return f"RedisConnection({self.shown})"

    @classmethod
    def open(cls, url: str, record_format: RecordFormat, notify: Callable[[str], None]) -> Self:
        """Connect to a server that can be reached now.

        Parameters:
            url: the server, with the name of the stream as ``?stream=NAME``.
            record_format: the columns of the stream.
            notify: called with a sentence when the server is lost and when it is back.

        Raises:
            UsageError: the URL names no stream, or no server answers there.
        """
        with extra_packages("redis", "redis:// addresses"):
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        require(
            record_format.syntax == "csv",
            "redis://: has fields, not JSON lines; leave out [[format]]",
        )
        plain, stream, group = _split_url(url)
        shown = public_address(url)
        settings = {"protocol": 2, "socket_connect_timeout": 5, "socket_timeout": 60}
        try:
            # what is tried again must first be known not to have happened
            client = redis.Redis.from_url(plain, retry=Retry(NoBackoff(), 0), **settings)
            client.ping()
        except redis.AuthenticationError:
            raise UsageError(f"{shown}: does not accept this user and password") from None
        except (redis.RedisError, ValueError, TypeError):
            raise UsageError(f"{shown}: cannot be reached; is a Redis server there?") from None
        for command in ("XREADGROUP", "XRANGE"):
            client.set_response_callback(command, lambda reply, **options: reply)
        return cls(client, stream, group, shown, notify)

    def retry(
        self, work: Callable[[], Result], before_retry: Callable[[], Any] = lambda: None
    ) -> Result:
        """Do ``work`` when the server is there and has room; ``before_retry`` runs before another
        attempt.
        """
        import redis

        passing = (
            redis.ConnectionError,
            redis.TimeoutError,
            redis.exceptions.OutOfMemoryError,
            redis.ReadOnlyError,
        )
        pause, is_away = SHORTEST_PAUSE_SECONDS, False
        while True:
            try:
                if is_away:
                    before_retry()
                result = work()
            except redis.AuthenticationError:
                raise UsageError(f"{self.shown}: does not accept this user any more") from None
            except passing as why:
                if not is_away:
                    full = isinstance(why, redis.exceptions.OutOfMemoryError)
                    problem = "has no memory left" if full else "cannot be reached"
                    self.notify(f"{self.shown}: {problem}; trying again until that is over")
                is_away, until = True, time.monotonic() + pause
                while time.monotonic() < until and not self.stopping():
                    time.sleep(SHORTEST_PAUSE_SECONDS / 2)
                if self.stopping():
                    raise ConnectionLostError(
                        f"{self.shown}: could not be reached to the end"
                    ) from None
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            except redis.ResponseError as why:
                error_code = str(why).partition(" ")[0]  # the rest may quote what was sent
                raise DataError(f"{self.shown}: Redis answers {error_code}") from None
            else:
                if is_away:
                    self.notify(f"{self.shown}: goes on")
                return result

    def info(self) -> dict[str, Any]:
        """What the server knows of the stream; nothing if there is none."""
        exists = self.client.exists(self.stream)
        return dict(self.client.xinfo_stream(self.stream)) if exists else {}
