"""Released lines as entries of a Redis stream, each there once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tempriv.errors import StateError, UsageError, require
from tempriv.integrations.redis.connection import COMMAND_ENTRIES, FIRST_ID, RedisConnection
from tempriv.integrations.redis.entries import digest_of, rows_of, text_of
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.sinks import Sink

# adds lines to a stream that stands where it is thought to, all of them or none; says where it was
ADD_SCRIPT = """
local said, last = redis.pcall('XINFO', 'STREAM', KEYS[1]), '0-0'
if said.err then
  if redis.call('EXISTS', KEYS[1]) == 1 then return said end
else
  for i = 1, #said, 2 do if said[i] == 'last-generated-id' then last = said[i + 1] end end
end
local count, width, fields = tonumber(ARGV[1]), tonumber(ARGV[2]), {}
if last ~= string.format('%.0f-0', count) then return last end
for j = 1, width do fields[2 * j - 1] = ARGV[2 + j] end
for at = 2 + width, #ARGV - 1, width do
  for j = 1, width do fields[2 * j] = ARGV[at + j] end
  count = count + 1
  redis.call('XADD', KEYS[1], string.format('%.0f-0', count), unpack(fields))
end
return last
"""


@dataclass
class RedisSink(Sink):
    """A stream of released lines, each with its number as its id.

    Parameters:
        connection: the server and the name of the stream.
        record_format: the columns that are written.
    """

    connection: RedisConnection
    record_format: RecordFormat
    count: int = 0
    begun: bool = False
    """Whether the names of the columns, which are no entry, have come."""
    recent: str = ""
    """What the last line is recognized by."""
    _own: bool = False

    @property
    def position(self) -> dict[str, Any]:
        self._require_own()
        return {"lines": self.count, "begun": self.begun, "recent": self.recent}

    def start(self) -> None:
        self._require_own()

    def stop_waiting_when(self, stopping: Callable[[], bool]) -> None:
        """Give up waiting for the server once ``stopping`` is true."""
        self.connection.stopping = stopping

    def _require_own(self) -> None:
        if not self._own:
            self._require(self._last() == FIRST_ID, "holds something already")
        self._own = True

    def _require(self, condition: bool, problem: str) -> None:
        sentence = f"{self.connection.shown}: {problem}: give every stream an output of its own"
        require(condition, sentence, StateError)

    def _last(self) -> str:
        info = self.connection.retry(self.connection.info)
        return text_of(info.get("last-generated-id", FIRST_ID))

    def resume(self, position: Any, pending: bytes) -> bool:
        """Add what of a ``pending`` block is not in the stream after ``position``."""
        require(
            isinstance(position, dict) and "lines" in position,
            "this stream has written to another kind of output: go on with the same [[output]]",
            UsageError,
        )
        self.count, self.begun = position["lines"], position["begun"]
        self.recent, self._own = position["recent"], True
        rows = self._rows(pending)
        last = self._last()
        rows_before = {f"{self.count + i}-0": i for i in range(len(rows) + 1)}
        self._require(
            last in rows_before,
            "has other lines than those that this stream has written; it was replaced, or something"
            " else was written to it, or the state was put back from an older copy",
        )
        entries = self.connection.retry(
            lambda: self.connection.client.execute_command(
                "XRANGE", self.connection.stream, f"{max(self.count, 1)}-0", "+"
            )
        )
        for entry_id, fields in entries:
            number = rows_before[text_of(entry_id)]
            expected = self.recent if not number else digest_of(rows[number - 1])
            self._require(
                digest_of(fields[1::2]) == expected, "has lines that this stream has not written"
            )
        written = rows_before[last]
        if written:
            self.count, self.recent = self.count + written, digest_of(rows[written - 1])
        self._add(rows[written:])
        return False

    def write(self, data: bytes) -> None:
        """Add the lines in ``data``."""
        self._require_own()
        self._add(self._rows(data))

    def _rows(self, data: bytes) -> list[list[bytes]]:
        """Lines as cells; the first of all is the line of names."""
        rows = rows_of(data)
        if rows and not self.begun:
            self.begun, rows = True, rows[1:]
        return rows

    def _add(self, rows: list[list[bytes]]) -> None:
        names = [*self.record_format.shown, *self.record_format.written]
        failed: list[bool] = []
        for start in range(0, len(rows), COMMAND_ENTRIES):
            batch = rows[start : start + COMMAND_ENTRIES]
            arguments = [ADD_SCRIPT, 1, self.connection.stream, self.count, len(names), *names]
            arguments += [cell for row in batch for cell in row]
            failed.clear()
            add = partial(self.connection.client.execute_command, "EVAL", *arguments)
            before = text_of(self.connection.retry(add, lambda: failed.append(True)))
            # the answer to an attempt before the last may have been lost, with the lines there
            after_lost_answer = f"{self.count + len(batch)}-0" if failed else ""
            self._require(
                before in (f"{self.count}-0", after_lost_answer),
                "has not the lines that this stream has written; it lost some, or something else "
                "was written to it",
            )
            self.count, self.recent = self.count + len(batch), digest_of(batch[-1])
