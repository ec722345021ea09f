"""Redis streams as input and output of a stream. Needs the 'redis' extra.

Every line is an entry whose fields are its columns. A released line has its number as its id, so
that it can be there once only; the consumer group of an input says what was durably consumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tempriv.errors import StateError, UsageError, require
from tempriv.integrations.redis.connection import (
    COMMAND_ENTRIES,
    FIRST_ID,
    ConnectionLostError,
    RedisConnection,
)
from tempriv.integrations.redis.entries import Entry, batch_of_entries, digest_of, order_of
from tempriv.streaming.batch import Batch
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.sources import Source

BATCH_ENTRIES = 100_000  # entries that are released together
CONSUMER = "tempriv"
BLOCK_MILLISECONDS = 200  # milliseconds for a first entry, between looks at whether to stop


@dataclass
class RedisSource(Source):
    """Entries of a stream in the order of their ids, through a consumer group of its own.

    Parameters:
        connection: the server and the name of the stream.
        record_format: the columns that are read.
    """

    needs_state: ClassVar[bool] = True

    connection: RedisConnection
    record_format: RecordFormat
    last: str = FIRST_ID
    mark: str | None = ""
    """What the last consumed entry is recognized by."""
    removed: int | None = None
    """How many of all entries may be gone: those that were consumed, or gone at the start."""
    _unacknowledged: list[bytes] = field(default_factory=list, repr=False)

    def resume(self, position: Any) -> None:
        """Go on after the entry of ``position``."""
        if position is not None:
            require(
                isinstance(position, dict) and "entry" in position,
                "this stream has read from another kind of input: go on with the same [[input]]",
                UsageError,
            )
            self.last, self.mark = position["entry"], position["mark"]
            self.removed = position["removed"]
        self.connection.retry(self._set_group_position)

    def _set_group_position(self) -> None:
        """Have the group go on after the last consumed entry, whatever was delivered since."""
        import redis

        client, stream, group = (
            self.connection.client,
            self.connection.stream,
            self.connection.group,
        )
        info = self.connection.info()
        last_entries = client.execute_command("XRANGE", stream, self.last, self.last)
        require(
            order_of(info.get("last-generated-id", FIRST_ID)) >= order_of(self.last)
            and (not last_entries or self.mark in (None, digest_of(last_entries[0][1]))),
            f"{self.connection.shown}: is not the stream that was read before, or was emptied "
            "since: the same noise on other data would publish their difference. Start a new "
            "stream with another [[state]] for other data",
            StateError,
        )
        removed = info.get("entries-added", 0) - info.get("length", 0)
        if self.removed is not None and removed > self.removed:
            self.connection.notify(
                f"{self.connection.shown}: at least {removed - self.removed} entries were removed "
                "before they were read; keep more of them (MAXLEN)"
            )
            self.removed = removed
        self.removed = removed if self.removed is None else self.removed
        try:
            client.xgroup_create(stream, group, self.last, mkstream=True)
        except redis.ResponseError:  # there already
            client.xgroup_setid(stream, group, self.last)
        while pending := client.xpending_range(stream, group, "-", self.last, COMMAND_ENTRIES):
            client.xack(stream, group, *[entry["message_id"] for entry in pending])

    def batches(self, stopping: Callable[[], bool]) -> Iterator[tuple[Batch, Any]]:
        """Entries as they come, until ``stopping``."""
        self.connection.stopping = stopping
        while not stopping():
            try:
                entries = self.connection.retry(self._read, self._set_group_position)
            except ConnectionLostError:
                return
            if entries:
                self.last, self.mark = entries[-1][0].decode(), digest_of(entries[-1][1])
                self.removed = (self.removed or 0) + len(entries)
                self._unacknowledged = [entry_id for entry_id, _ in entries]
                position = {"entry": self.last, "mark": self.mark, "removed": self.removed}
                yield batch_of_entries(self.record_format, entries), position

    def _read(self) -> list[Entry]:
        client, stream = self.connection.client, self.connection.stream
        command = ["XREADGROUP", "GROUP", self.connection.group, CONSUMER, "COUNT", COMMAND_ENTRIES]
        entries: list[Entry] = []
        while len(entries) < BATCH_ENTRIES:
            wait = [] if entries else ["BLOCK", BLOCK_MILLISECONDS]
            reply = client.execute_command(*command, *wait, "STREAMS", stream, ">")
            entries += reply[0][1] if reply else []
            if len(entries) % COMMAND_ENTRIES or not reply:
                break
        if entries:
            after = client.execute_command("XRANGE", stream, f"({self.last}", "+", "COUNT", 1)
            require(
                not after or order_of(after[0][0]) >= order_of(entries[0][0]) > order_of(self.last),
                f"group={self.connection.group}: another process reads in this group; give every "
                "stream a group of its own",
                StateError,
            )
        return entries

    def acknowledge(self, position: Any) -> None:
        """Acknowledge the entries of the last batch; ``position`` is theirs."""
        done, stream, group = self._unacknowledged, self.connection.stream, self.connection.group

        def acknowledge() -> None:
            for start in range(0, len(done), COMMAND_ENTRIES):
                self.connection.client.xack(stream, group, *done[start : start + COMMAND_ENTRIES])

        try:
            self.connection.retry(acknowledge, self._set_group_position)
        except ConnectionLostError:  # the next run does it
            return
