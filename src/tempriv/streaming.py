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
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tempriv import spec
from tempriv.errors import DataRefusal, LedgerRefusal, StateRefusal, UsageRefusal, require
from tempriv.files import write_durably
from tempriv.lines import Lines, Reading
from tempriv.mechanisms.fitting import FIRST, TELLS, hides_times
from tempriv.mechanisms.forms import Integers, Rows
from tempriv.mechanisms.landmark_budgets import landmarks_so_far, most_landmarks
from tempriv.mechanisms.moving import kept, to_state
from tempriv.mechanisms.protocol import Mechanism, limit_of, perturb_block
from tempriv.mechanisms.stream import Seen, held_rows, packed, remembered
from tempriv.randomness import EPOCH, Run, SeriesKey, new_id
from tempriv.series import Block
from tempriv.stream_files import Keyring, Recent, Sink

MAGIC = b"tempriv stream 3\n"

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
    landmarks: int = 0  # among them
    memory: Integers | None = None
    # where rows are moved: those that can still come out, and ids and times of slots still to come
    held: Block | None = None
    shown: list[tuple[Any, ...]] = field(default_factory=list)
    # while readings are sent again after a restart: how many so far, and their fingerprint
    again: int = 0
    again_last: int = 0
    again_landmarks: int = 0
    again_seen: Seen | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "seen": self.seen.total,
            "first": self.first,
            "last": self.last,
            "key_check": self.key.at_epoch(self.step // EPOCH).check(),
            "memory": None if self.memory is None else packed(self.memory),
            "held": to_state(self.held),
            "shown": self.shown,
        }


@dataclass
class Counts:
    """What happened to the lines, for the summary at the end; numbers only."""

    released: int = 0
    passed_over: int = 0
    beyond: int = 0
    unpromised: int = 0
    unreadable: int = 0
    waiting: int = 0


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
        self._most_landmarks = most_landmarks(self.mechanism)
        form = self.mechanism.form
        self._moves = self.lines.exact = isinstance(form, Rows)
        self._hides_times = hides_times(self.mechanism)
        require(
            not self.mechanism.takes_whole,
            f"{type(self.mechanism).__name__}: needs a whole series before it can release any of "
            f"it; use tempriv release on a table{', or give it a latency' * self._moves}",
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
        self._commit(b"")

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
        if data or fresh:  # lines that bring out nothing yet are consumed all the same
            self._emit(data)

    def _is_next(self, reading: Reading) -> bool:
        """Whether a reading is later than all of its series; earlier ones are passed over."""
        place = self.places.get(reading.series)
        if place is None or place.last is None or reading.tick > place.last:
            last = None if place is None else place.last
            count = reading.tick in FIRST if last is None else reading.tick == last + 1
            require(
                count or not self._hides_times,
                f"a time that is not the number of its reading (0, 1, 2, ...) {TELLS}",
                DataRefusal,
            )
            if place is None:
                key = self.ring.chain(reading.series)
                seen = Seen(self.ring.marks[reading.series])
                place = self.places[reading.series] = Place(key, seen, first=reading.tick)
            place.last = reading.tick
            if self._most is not None and place.taken >= self._most:
                self.counts.beyond += 1
                return False
            if self._is_past(reading, place.landmarks):
                self.counts.unpromised += 1
                return False
            place.taken += 1
            place.landmarks += self._is_landmark(reading)
            return True
        self.counts.passed_over += 1
        if self._resumed:
            self._compare(place, reading)
        return False

    def _is_landmark(self, reading: Reading) -> int:
        """A row without a reading is none."""
        there = self.lines.marked and not all(reading.missing[:-1])
        return int(there and reading.values[-1] != 0)

    def _is_past(self, reading: Reading, landmarks: int) -> bool:
        """Whether it is a landmark too many: each has its part of epsilon, and no part is left."""
        most = self._most_landmarks
        return most is not None and landmarks >= most and bool(self._is_landmark(reading))

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
        if self._is_past(reading, place.again_landmarks):
            return
        place.again_landmarks += self._is_landmark(reading)
        if place.again < place.step:
            row = self._block([reading], [reading.series], [1], [place.again])
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
        starts = [place.step for place in places]
        block = self._block([readings[i] for i in order], ids, counts.tolist(), starts)
        runs = [Run(place.key, place.step, int(n)) for place, n in zip(places, counts, strict=True)]
        memory = self._memory_of(places)
        held = [place.held for place in places]
        released = perturb_block(self.mechanism, block, runs, memory, held=held)
        slots = []
        for i, (place, out) in enumerate(zip(places, released.counts.tolist(), strict=True)):
            part = block.part(i, i + 1)
            place.memory = memory[i : i + 1].copy()
            place.held = kept(self.mechanism, place.held, part)
            place.seen = place.seen.with_block(part)
            place.step += len(part)
            first = int(counts[:i].sum())
            place.shown += [readings[j].shown for j in order[first : first + len(part)]]
            slots += place.shown[:out]
            del place.shown[:out]
        return self._format(slots, released, _in_turn(order, which, counts, released.counts))

    def _block(
        self, readings: list[Reading], ids: list[str], counts: list[int], starts: list[int]
    ) -> Block:
        kind = object if self._moves else np.float64
        shape = (len(readings), len(self.lines.values))
        return Block(
            values=np.array([reading.values for reading in readings], dtype=kind).reshape(shape),
            missing=np.array([r.missing for r in readings], dtype=np.bool_).reshape(shape),
            ids=tuple(ids),
            counts=np.array(counts, dtype=np.int64),
            starts=np.array(starts, dtype=np.int64),
        )

    def _format(self, slots: list[tuple[Any, ...]], block: Block, rows: Integers) -> bytes:
        """Some rows of a released block as lines."""
        self.counts.released += len(rows)
        status = None if block.status is None else block.status[rows]
        shown = [slots[row] for row in rows.tolist()]
        return self.lines.format(shown, block.values[rows], block.missing[rows], status)

    def _rest(self) -> bytes:
        """What is held back of all series, one after the other."""
        places = {name: place for name, place in self.places.items() if place.shown}
        steps = [place.step for place in places.values()]
        block = self._block([], list(places), [0] * len(places), steps)
        runs = [Run(place.key, place.step, 0) for place in places.values()]
        memory = self._memory_of(list(places.values()))
        held = [place.held for place in places.values()]
        rest = perturb_block(self.mechanism, block, runs, memory, held=held, ending=True)
        slots = [slot for place in places.values() for slot in place.shown]
        return self._format(slots, rest, np.arange(len(rest)))

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
        """The end of the input: rows held back come out, or wait in the state for those to come."""
        if self.state_path is not None:
            self.counts.waiting = sum(len(place.shown) for place in self.places.values())
            self._commit(b"")
        elif any(place.shown for place in self.places.values()):
            self._emit(self._rest())

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
        form = self.mechanism.form
        memory = saved["memory"]
        if memory is not None:
            memory = remembered(self.mechanism, memory, saved["step"])
        return Place(
            chain,
            seen,
            saved["step"],
            saved["first"],
            saved["last"],
            taken=saved["step"],
            landmarks=0 if memory is None else landmarks_so_far(self.mechanism, memory),
            memory=memory,
            held=held_rows(self.mechanism, saved["held"], name, saved["step"])
            if isinstance(form, Rows)
            else None,
            shown=[tuple(slot) for slot in saved["shown"]],
        )


def _in_turn(order: Any, which: Any, before: Integers, after: Integers) -> Integers:
    """Released rows as their lines came in: with each line of a series comes its next slot.

    ``order`` sorts lines by the series that ``which`` says, with so many lines ``before`` and so
    many rows ``after``; the first lines of a series may bring none.
    """
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    late = before - after
    nth = place - (np.cumsum(before) - before)[which] - late[which]
    rows = (np.cumsum(after) - after)[which] + nth
    return np.asarray(rows[nth >= 0], dtype=np.int64)


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
