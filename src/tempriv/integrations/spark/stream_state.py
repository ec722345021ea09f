"""What a Spark stream is, and where the series of one of its groups stand between batches."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from tempriv.data.arrow import from_text
from tempriv.data.files import write_durably
from tempriv.errors import KeyReuseError, StateError, require
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.domains import Integers, OpaqueRows
from tempriv.privacy import serialization
from tempriv.sampling.keys import Key

SERIES, TIME, MARK = "series", "time", "mark"
"""What every reading has: whose it is, when, and a hash of its values that settles ties."""

NEVER = -(2**63)
COUNTED = ("readings", "released", "late", "unreadable", "beyond")
"""Numbers of a batch: what came in, what went out, and what was passed over and why."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What one stream is, for as long as it runs; it goes to the tasks and has no secret in it."""

    mechanism: Mechanism
    layout: tuple[str | None, ...]  # the columns as they are named outside
    columns: tuple[str, ...]
    groups: int
    key_file: Path

    @property
    def digest(self) -> str:
        return serialization.digest((self.mechanism, self.layout, self.groups))

    @property
    def moves(self) -> bool:
        return isinstance(self.mechanism.domain, OpaqueRows)

    @property
    def reach(self) -> int:
        """How many of the last rows of a series can still come out, or their times."""
        form = self.mechanism.domain
        return form.reach if isinstance(form, OpaqueRows) else form.latency

    @property
    def records(self) -> Path:
        return self.key_file.with_name(self.key_file.name + ".released")

    def key(self) -> Key:
        """Read without taking hold of the file: many tasks use it at once."""
        key_fields = self._kept()
        require(
            key_fields["reached"] == self._mine,
            f"{self.key_file}: belongs to a stream with another mechanism, other columns or "
            "another number of groups, or to none; a key serves one stream",
            KeyReuseError,
        )
        return Key(bytes.fromhex(key_fields["secret"]), key_fields["release"], key_fields["seed"])

    def bind(self) -> None:
        """Note in the key file whose it is; from then on it serves this stream only."""
        key_fields = self._kept()
        if not key_fields["reached"]:
            self.records.mkdir(mode=0o700, exist_ok=True)
            write_durably(self.key_file, json.dumps(key_fields | {"reached": self._mine}).encode())
        self.key()
        require(
            self.records.is_dir(),
            f"{self.records}: is gone, and with it what was released; start a new stream with a "
            "new key file",
            StateError,
        )

    @property
    def _mine(self) -> list[list[Any]]:
        return [["spark stream", self.digest, 1]]

    def _kept(self) -> dict[str, Any]:
        try:
            key_fields = json.loads(self.key_file.read_bytes())
            sound = (
                len(bytes.fromhex(key_fields["secret"])) == 32
                and isinstance(key_fields["release"], str)
                and isinstance(key_fields["reached"], list)
                and isinstance(key_fields["seed"], (int, type(None)))
            )
        except FileNotFoundError:
            raise StateError(
                f"{self.key_file}: no such file here; every executor must see the key file, as on "
                "a disk they share"
            ) from None
        except (ValueError, KeyError, TypeError):
            sound = False
        require(sound, f"{self.key_file}: not a key, or damaged", StateError)
        return dict(key_fields)


def packed(table: Any) -> bytes:
    """A ``table`` as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(memoryview(sink.getvalue()))


def unpacked(data: bytes) -> Any:
    """The table in ``data``."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


@dataclass
class GroupCheckpoint:
    """Where the series of a group stand; private, since it holds readings that may come out."""

    names: list[str]
    steps: Integers
    last: Integers
    memory: Integers
    history: bytes
    held: Integers  # so many rows of each series
    rows: Any  # those rows, with their times

    @classmethod
    def fresh(cls, setting: Setting, history: bytes, like: Any) -> GroupCheckpoint:
        """A group without series.

        Parameters:
            setting: of the stream.
            history: digest of what was consumed, nothing yet.
            like: a table with the columns of rows that are kept.
        """
        no_series = np.zeros(0, dtype=np.int64)
        memory = np.zeros((0, setting.mechanism.memory_size), dtype=np.int64)
        return cls([], no_series, no_series, memory, history, no_series, like.slice(0, 0))

    def to_bytes(self, mark: bytes) -> bytes:
        """The checkpoint as bytes, with a checksum keyed by ``mark``."""
        table = pa.table(
            {
                "name": from_text(self.names),
                "step": self.steps,
                "last": self.last,
                "held": self.held,
            }
        )
        table = table.replace_schema_metadata({"history": self.history})
        parts = [packed(table), packed(self.rows), self.memory.tobytes()]
        data = b"".join(len(part).to_bytes(8, "big") for part in parts[:2]) + b"".join(parts)
        return hashlib.blake2b(data, key=mark, digest_size=16).digest() + data

    @classmethod
    def from_bytes(cls, state: bytes, mark: bytes, memory_size: int) -> GroupCheckpoint:
        """The checkpoint in ``state``; refused if its checksum is not right.

        Parameters:
            state: as ``to_bytes`` gave it.
            mark: the key of the checksum.
            memory_size: numbers that the mechanism remembers of a series.
        """
        check, data = state[:16], state[16:]
        require(
            hashlib.blake2b(data, key=mark, digest_size=16).digest() == check,
            "the state of this stream is damaged, or was made with another key file",
            StateError,
        )
        cut = 16 + int.from_bytes(data[:8], "big")
        end = cut + int.from_bytes(data[8:16], "big")
        table, rows = unpacked(data[16:cut]), unpacked(data[cut:end])
        memory = np.frombuffer(data[end:], dtype=np.int64).reshape(len(table), memory_size).copy()
        steps, last, held = (
            np.array(table[name].to_numpy(), dtype=np.int64) for name in ("step", "last", "held")
        )
        names, history = table["name"].to_pylist(), table.schema.metadata[b"history"]
        return cls(names, steps, last, memory, history, held, rows)

    def numbers_of(self, names: list[str]) -> Integers:
        """The number of each of the series with these ``names``; new ones are put at the end."""
        numbers = {name: i for i, name in enumerate(self.names)}
        added = [name for name in names if name not in numbers]
        for name in added:
            numbers[name] = len(numbers)
        self.names = self.names + added
        added_count = len(added)
        self.steps, self.held = (
            np.pad(self.steps, (0, added_count)),
            np.pad(self.held, (0, added_count)),
        )
        self.last = np.pad(self.last, (0, added_count), constant_values=NEVER)
        self.memory = np.pad(self.memory, ((0, added_count), (0, 0)))
        return np.array([numbers[name] for name in names], dtype=np.int64)
