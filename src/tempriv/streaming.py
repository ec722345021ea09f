"""Readings as lines, from standard input to standard output, going on after a crash.

With a state file every block is committed in this order: keys of new series, then the state with
the block's output in it, then the output itself. After a crash the output of the last commit is
written again in the same place, from the state, so nothing is drawn twice; readings that are sent
again are recognised by their times and passed over. Past epochs' keys are erased after each commit.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tempriv import spec
from tempriv.errors import LedgerRefusal, StateRefusal, UsageRefusal, require
from tempriv.files import write_durably
from tempriv.lines import Lines, Reading
from tempriv.mechanisms.forms import Integers
from tempriv.mechanisms.protocol import Mechanism, limit_of, perturb_block
from tempriv.mechanisms.stream import Seen, packed, unpacked
from tempriv.randomness import EPOCH, Key, Run, SeriesKey, fresh_series_key, new_id
from tempriv.series import Block

MAGIC = b"tempriv stream 2\n"

# what a state file must hold
SHAPE: dict[str, type] = {
    "commit": int,
    "recent": str,
    "mechanism": dict,
    "layout": dict,
    "release": str,
    "started": bool,
    "offset": int,
    "pending": str,
    "series": dict,
}


@dataclass
class Place:
    """Where one series stands: its chain, how far it is, and what it has consumed."""

    key: SeriesKey
    seen: Seen
    step: int = 0
    first: int = 0
    last: int | None = None
    taken: int = 0  # steps, with those of the block at hand
    memory: Integers | None = None
    # while readings are sent again after a restart: how many so far, and their fingerprint
    again: int = 0
    again_last: int = 0
    again_seen: Seen | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "seen": self.seen.total,
            "first": self.first,
            "last": self.last,
            "key_check": self.key.at_epoch(self.step // EPOCH).check(),
            "memory": None if self.memory is None else packed(self.memory),
        }


@dataclass
class Counts:
    """What happened to the lines, for the summary at the end; numbers only."""

    released: int = 0
    passed_over: int = 0
    beyond: int = 0
    unreadable: int = 0


class Keyring:
    """The key chain of each series, in a file of its own that only the owner can read."""

    def __init__(self, path: Path | None, seed: int | None, digest: str):
        self.path, self.digest = path, digest
        self.seeded = None if seed is None else Key.from_seed(seed)
        self.chains: dict[str, SeriesKey] = {}
        self.marks: dict[str, bytes] = {}  # secrets of the fingerprints, from each first link
        self._unsaved = False

    def chain(self, series: str) -> SeriesKey:
        """The chain of a series, a fresh one if it is new."""
        if series not in self.chains:
            if self.seeded is not None:
                self.chains[series] = self.seeded.again(self.digest, series)
            else:
                self.chains[series] = fresh_series_key()
            self.marks[series] = Seen.by(self.chains[series]).mark
            self._unsaved = True
        return self.chains[series]

    def keep_from(self, series: str, step: int) -> None:
        """Erase what came before the epoch of this step (a seed can be remade anyway)."""
        chain = self.chains[series]
        if step // EPOCH > chain.epoch:
            self.chains[series] = chain.at_epoch(step // EPOCH)
            self._unsaved = True

    def save(self, always: bool = False) -> None:
        if self.path is not None and (self._unsaved or always):
            links = {
                name: [key.epoch, key.secret.hex(), self.marks[name].hex()]
                for name, key in self.chains.items()
            }
            write_durably(self.path, json.dumps(links).encode())
        self._unsaved = False

    def load(self) -> None:
        assert self.path is not None
        try:
            links = json.loads(self.path.read_bytes())
            for name, (epoch, secret, mark) in links.items():
                self.chains[name] = SeriesKey(bytes.fromhex(secret), epoch)
                self.marks[name] = bytes.fromhex(mark)
            sound = all(len(c.secret) == 32 and c.epoch >= 0 for c in self.chains.values())
            sound = sound and all(len(mark) == 32 for mark in self.marks.values())
        except FileNotFoundError:
            raise StateRefusal(f"{self.path}: the key file of this stream is missing") from None
        except (ValueError, TypeError, AttributeError):
            sound = False
        require(sound, f"{self.path}: the key file of this stream is damaged", StateRefusal)


@dataclass(frozen=True)
class Recent:
    """The last bytes that were written, to recognise the output by."""

    data: bytes = b""

    MOST = 4096

    @property
    def size(self) -> int:
        return len(self.data)

    def after(self, more: bytes) -> Recent:
        return Recent((self.data + more)[-self.MOST :])


class Sink:
    """Where released lines go; a regular file can be put back to where it was."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor
        self.regular = stat.S_ISREG(os.fstat(descriptor).st_mode)

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size if self.regular else 0

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.descriptor, view) :]

    def sync(self) -> None:
        if self.regular:
            os.fsync(self.descriptor)

    def put_back(self, offset: int, recent: Recent, pending: bytes) -> None:
        """Cut off what was written after the last commit, if it is this stream's own output."""
        require(
            self.size() >= offset,
            "the output is shorter than what this stream has written before: append to it (>>), "
            "do not replace it (>)",
            StateRefusal,
        )
        # standard output may be open for writing only; its name in /proc opens it again
        with Path(f"/proc/self/fd/{self.descriptor}").open("rb") as file:
            file.seek(offset - recent.size)
            before, after = file.read(recent.size), file.read(len(pending) + 1)
        require(
            Recent().after(before) == recent and pending.startswith(after),
            "the output does not end with what this stream has written: it is another file, or "
            "something else was written to it. Give every stream an output of its own",
            StateRefusal,
        )
        os.ftruncate(self.descriptor, offset)
        os.lseek(self.descriptor, 0, os.SEEK_END)


@dataclass
class LineStream:
    """Many series passing through one mechanism, line by line."""

    mechanism: Mechanism
    lines: Lines
    output: Sink
    state_path: Path | None = None
    seed: int | None = None
    release_id: str = field(default_factory=new_id)
    places: dict[str, Place] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    repeated: bool = False
    _offset: int = 0
    _started: bool = False
    _new: bool = False
    _resumed: bool = False
    _pending: bytes = b""
    _recent: Recent = field(default_factory=Recent)
    _commits: int = 0
    _lock: int = -1

    def __post_init__(self) -> None:
        digest = spec.digest(self.mechanism)
        key_path = (
            None
            if self.state_path is None
            else self.state_path.with_name(self.state_path.name + ".key")
        )
        self.ring = Keyring(key_path, self.seed, digest)
        self._offset = self.output.size()
        self._most = limit_of(self.mechanism)
        require(
            not self.mechanism.takes_whole,
            f"{type(self.mechanism).__name__}: needs a whole series before it can release any of "
            "it; use tempriv release on a table",
            UsageRefusal,
        )

    @contextlib.contextmanager
    def locked(self) -> Iterator[LineStream]:
        """Open the state, if there is one, and keep others from using it."""
        if self.state_path is None:
            yield self
            return
        lock = self.state_path.with_name(self.state_path.name + ".lock")
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LedgerRefusal(
                    f"{self.state_path}: another stream is using this state; wait for it to end"
                ) from None
            self._lock = descriptor
            if self.state_path.exists():
                self._load()
            else:
                # the release must have its name before it is charged, so that it is charged once
                self._new = True
                self.ring.save(always=True)
                self._commit(b"")
            yield self
        finally:
            os.close(descriptor)

    def forget_if_new(self) -> None:
        """Leave nothing behind of a stream that was never allowed to start."""
        if self._new and self.state_path is not None and self.ring.path is not None:
            self.state_path.unlink(missing_ok=True)
            self.ring.path.unlink(missing_ok=True)

    def deliver_pending(self) -> None:
        """Write again what the last commit of an interrupted run was about to write."""
        if self.state_path is None or self._new:
            return
        if self.output.regular:
            self.output.put_back(self._offset, self._recent, self._pending)
        elif self._pending:
            self.repeated = True
        if self._pending:
            self._write(self._pending)
        self.finish()

    def _write(self, data: bytes) -> None:
        """Hand out what has been committed, and note that it is out."""
        self.output.write(data)
        if self.state_path is None:
            return
        self.output.sync()
        self._offset += len(data)
        self._recent = self._recent.after(data)
        # a state from before this commit, restored from a copy, must not be gone on with
        os.pwrite(self._lock, f"{self._commits:20d}".encode(), 0)
        os.fsync(self._lock)

    def push(self, text: bytes) -> None:
        """Release the readings of some whole lines; returns when they are out."""
        fresh = [r for r in self.lines.parse(text, self.counts) if self._is_next(r)]
        header = b"" if self._started else self.lines.header()
        self._started = self._started or bool(header)
        data = header + (self._release(fresh) if fresh else b"")
        if data:
            self._emit(data)

    def _is_next(self, reading: Reading) -> bool:
        """Whether a reading is later than all of its series; earlier ones are passed over."""
        place = self.places.get(reading.series)
        if place is None or place.last is None or reading.tick > place.last:
            if place is None:
                key = self.ring.chain(reading.series)
                seen = Seen(self.ring.marks[reading.series])
                place = self.places[reading.series] = Place(key, seen, first=reading.tick)
            place.last = reading.tick
            if self._most is not None and place.taken >= self._most:
                self.counts.beyond += 1
                return False
            place.taken += 1
            return True
        self.counts.passed_over += 1
        if self._resumed:
            self._compare(place, reading)
        return False

    def _compare(self, place: Place, reading: Reading) -> None:
        """A replay from the start must be of the readings that were consumed.

        Only those that would have been taken then are looked at: each later than all before.
        """
        if place.again_seen is None:
            if reading.tick != place.first:
                return
            place.again_seen = Seen(place.seen.mark)
        elif reading.tick <= place.again_last:
            return
        place.again_last = reading.tick
        if place.again < place.step:
            row = Block.of(reading.masked(), reading.series, place.again)
            place.again_seen = place.again_seen.with_block(row)
            place.again += 1
            require(
                place.again < place.step or place.again_seen == place.seen,
                "the readings sent again are not those that this stream consumed before: the same "
                "noise on other data would publish their difference. Start a new stream with "
                "another --state for other data",
                StateRefusal,
            )

    def _release(self, readings: list[Reading]) -> bytes:
        """Perturb readings of many series at once and format them in the order they came."""
        ids = list(dict.fromkeys(reading.series for reading in readings))
        number = {name: i for i, name in enumerate(ids)}
        which = np.array([number[reading.series] for reading in readings])
        order = np.argsort(which, kind="stable")
        counts = np.bincount(which, minlength=len(ids))
        places = [self.places[name] for name in ids]
        block = Block(
            values=np.array([readings[i].values for i in order]),
            missing=np.array([readings[i].missing for i in order]),
            ids=tuple(ids),
            counts=counts,
            starts=np.array([place.step for place in places]),
        )
        runs = [Run(place.key, place.step, int(n)) for place, n in zip(places, counts, strict=True)]
        memory = self._memory_of(places)
        released = perturb_block(self.mechanism, block, runs, memory)
        low = 0
        for i, (name, place, count) in enumerate(zip(ids, places, counts.tolist(), strict=True)):
            place.memory = memory[i : i + 1].copy()
            part = Block(
                block.values[low : low + count],
                block.missing[low : low + count],
                (name,),
                np.array([count]),
                np.array([place.step]),
            )
            place.seen = place.seen.with_block(part)
            place.step += count
            low += count
        back = np.empty(len(order), dtype=np.intp)
        back[order] = np.arange(len(order))
        self.counts.released += len(readings)
        status = None if released.status is None else released.status[back]
        return self.lines.format(readings, released.values[back], released.missing[back], status)

    def _memory_of(self, places: list[Place]) -> Integers:
        fresh = np.zeros((1, self.mechanism.slots), dtype=np.int64)
        return np.concatenate([fresh if p.memory is None else p.memory for p in places])

    def _emit(self, data: bytes) -> None:
        if self.state_path is not None:
            self.ring.save()
            self._commit(data)
        self._write(data)
        for name, place in self.places.items():
            self.ring.keep_from(name, place.step)
            place.key = self.ring.chains[name]
        self.ring.save()

    def finish(self) -> None:
        """Note that everything committed is out."""
        if self.state_path is not None:
            self._commit(b"")

    def _commit(self, pending: bytes) -> None:
        assert self.state_path is not None
        self._commits += 1
        body = {
            "commit": self._commits,
            "recent": base64.b64encode(self._recent.data).decode(),
            "mechanism": spec.encode(self.mechanism),
            "layout": self.lines.layout(),
            "release": self.release_id,
            "seed": self.seed,
            "started": self._started,
            "offset": self._offset,
            "pending": base64.b64encode(pending).decode(),
            "series": {name: place.to_json() for name, place in self.places.items()},
        }
        data = json.dumps(body).encode()
        write_durably(
            self.state_path, MAGIC + hashlib.blake2b(data, digest_size=16).digest() + data
        )

    def _load(self) -> None:
        assert self.state_path is not None
        body = read_stream_state(self.state_path.read_bytes(), str(self.state_path))
        for name, here in (
            ("mechanism", spec.encode(self.mechanism)),
            ("layout", self.lines.layout()),
            ("seed", self.seed),
        ):
            require(
                body[name] == here,
                f"{self.state_path}: was started with another {name}; go on with the same options, "
                "or start a new stream with another --state",
                StateRefusal,
            )
        self.ring.load()
        self.release_id, self._started = body["release"], body["started"]
        for name, saved in body["series"].items():
            self.places[name] = self._place(name, saved)
        self._pending = base64.b64decode(body["pending"])
        self._recent = Recent(base64.b64decode(body["recent"]))
        self._offset, self._commits = body["offset"], body["commit"]
        self._resumed = True
        out = os.pread(self._lock, 20, 0).strip()
        require(
            not out.isdigit() or int(out) <= self._commits,
            f"{self.state_path}: is older than what this stream has written; other readings in the "
            "place of those would get the same noise. Use the latest state, or start a new stream "
            "with another --state",
            StateRefusal,
        )

    def _place(self, name: str, saved: dict[str, Any]) -> Place:
        chain = self.ring.chains.get(name)
        sound = chain is not None and chain.epoch <= saved["step"] // EPOCH
        require(
            sound
            and chain is not None
            and chain.at_epoch(saved["step"] // EPOCH).check() == saved["key_check"],
            f"{self.state_path}: the key file beside it does not belong to it",
            StateRefusal,
        )
        assert chain is not None
        seen = Seen(self.ring.marks[name], saved["seen"])
        memory = saved["memory"]
        return Place(
            chain,
            seen,
            saved["step"],
            saved["first"],
            saved["last"],
            taken=saved["step"],
            memory=None
            if memory is None
            else unpacked(memory, (1, self.mechanism.slots), np.int64),
        )


def read_stream_state(data: bytes, name: str) -> dict[str, Any]:
    """The content of a state file; anything damaged is refused."""
    head = len(MAGIC)
    body = data[head + 16 :]
    whole = (
        data[:head] == MAGIC
        and hashlib.blake2b(body, digest_size=16).digest() == (data[head : head + 16])
    )
    found = json.loads(body) if whole else None
    sound = isinstance(found, dict) and all(isinstance(found.get(k), t) for k, t in SHAPE.items())
    require(sound, f"{name}: not the state of a stream, or damaged", StateRefusal)
    assert isinstance(found, dict)
    return found
