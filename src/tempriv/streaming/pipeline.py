"""Readings of many series through one mechanism, a block at a time, committed before handed out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tempriv.data.series import Block, within
from tempriv.errors import DataError, StateError, UsageError, require
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.domains import Integers, OpaqueRows
from tempriv.mechanisms.perturb import limit_of, perturb_block
from tempriv.mechanisms.reorder.carry import Pool
from tempriv.mechanisms.stream import MOST_STEPS
from tempriv.privacy import serialization
from tempriv.releases.blocks import TELLS, hides_times
from tempriv.sampling.keys import EPOCH, new_id
from tempriv.streaming._kernels import REPEATED, TAKEN, TELLING, admit, sent_again
from tempriv.streaming.batch import Batch
from tempriv.streaming.counters import NAMES, WHY, Counts
from tempriv.streaming.csv_reader import batch_from
from tempriv.streaming.fingerprints import Fingerprints
from tempriv.streaming.keys import Keyring
from tempriv.streaming.output_order import RecentCells, grouped, output_order
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.series_state import SeriesStates
from tempriv.streaming.sinks import DeadLetterFile, Sink
from tempriv.streaming.state_file import Checkpoint, StateFile, beside, now
from tempriv.streaming.text_buffer import NOTHING, TextBuffer

NO_LIMIT = MOST_STEPS


@dataclass
class StreamPipeline:
    """Many series passing through one mechanism.

    Guarantees:
        - a line that is handed out has been committed with everything that made it;
        - after a crash it is handed out once more in its place, with the same bits;
        - a series is released in the order of its times, each time once.
    """

    mechanism: Mechanism
    lines: RecordFormat
    output: Sink
    store: StateFile | None = None
    seed: int | None = None
    aside: DeadLetterFile | None = None
    release_id: str = field(default_factory=new_id)
    counts: Counts = field(default_factory=Counts)
    earlier: Counts = field(default_factory=Counts)  # of runs before
    repeated: bool = False
    dataset: str | None = None
    """What a ledger charges; a stream that is restored from this one charges it as well."""
    charge: Callable[[], None] | None = None
    """Asked once before anything is committed or handed out; it may refuse."""
    position: Any = None
    """Where the input was read up to in the last commit."""
    committed_at: float = 0.0
    _started: bool = False
    _new: bool = False
    _commits: int = 0

    def __post_init__(self) -> None:
        mechanism, form = self.mechanism, self.mechanism.domain
        moves = self.lines.exact = isinstance(form, OpaqueRows)
        require(
            not mechanism.takes_whole,
            f"{type(mechanism).__name__}: needs a whole series before it can release any of it; "
            f"use tempriv release on a table{', or give it a latency' * moves}",
            UsageError,
        )
        digest = serialization.digest(mechanism)
        self.ring = Keyring(None if self.store is None else self.store.key_path, self.seed, digest)
        reach = max(form.reach if isinstance(form, OpaqueRows) else 0, form.latency)
        # the cells of earlier rows that can still come out, and ids and times of slots to come
        kept = len(self.lines.values) * moves + len(self.lines.shown) * (form.latency > 0)
        self.places = SeriesStates(mechanism, reach, kept)
        self._most = limit_of(mechanism) or NO_LIMIT
        landmarks = mechanism.most_landmarks
        self._most_landmarks = NO_LIMIT if landmarks is None else landmarks
        self._counted = hides_times(mechanism)
        if self.store is not None and self.aside is None:
            self.aside = DeadLetterFile(beside(self.store.path, ".aside.jsonl"))

    def __repr__(self) -> str:
        return f"Flow({type(self.mechanism).__name__}, {len(self.places)} series)"

    # opening

    @contextlib.contextmanager
    def locked(self) -> Iterator[StreamPipeline]:
        """Open the state, if there is one, and keep others from using it."""
        with contextlib.nullcontext() if self.store is None else self.store.locked():
            try:
                self._open()
                yield self
            except BaseException:
                self.forget_if_new()
                raise
            finally:
                self.ring.close()
                if self.aside is not None:
                    self.aside.close()

    def _open(self) -> None:
        """Everything that could refuse, before anything is charged."""
        if self.store is not None and self.store.exists:
            self._load(self.store)
            if self._unfinished.output is None:  # a restored stream has an output to itself
                self.output.begin()
            assert self.aside is not None
            self.aside.open(self._unfinished.aside_size, self._unfinished.aside)
            return
        self._new = True
        if self.store is not None:
            self.output.begin()
            self._begin(self.store)
        elif self.aside is not None:
            self.aside.open(0, b"")

    def _settings(self) -> dict[str, Any]:
        return {
            "mechanism": serialization.encode(self.mechanism),
            "layout": self.lines.layout(),
            "seed": self.seed,
        }

    def _begin(self, store: StateFile) -> None:
        # the release must have its name before it is charged, so that it is charged once
        store.key_path.unlink(missing_ok=True)  # of a stream that was not allowed to start
        self.ring.open()
        names = {"release": self.release_id, "dataset": self.dataset, "keys": self.ring.name}
        store.create({**self._settings(), **names}, self._standing(b"", b""))
        assert self.aside is not None
        self.aside.open(0, b"")

    def _load(self, store: StateFile) -> None:
        about = store.about()
        store.require_own(about)
        for name, here in self._settings().items():
            require(
                about.get(name) == here,
                f"{store.path}: was started with another {name}; go on with the same options, "
                "or start a new stream with another [[state]]",
                StateError,
            )
        standing = store.standing()
        names = store.names()
        self.places.load(names, store.shards())
        require(
            self.places.names_digest == standing.names,
            f"{store.path}: the state is damaged: it does not know the names of its series",
            StateError,
        )
        require(
            store.shards_digest == standing.shards,
            f"{store.path}: the state is damaged: some of it is of another moment",
            StateError,
        )
        # drops what the state does not know, so comes last
        self.ring.load(len(names), about.get("keys"))
        known = self.places.step[: len(names)] // EPOCH
        require(
            bool((self.ring.epochs[: len(names)] <= known).all()),
            f"{store.path}: the key file beside it does not belong to it",
            StateError,
        )
        self.release_id, self._started = about["release"], standing.started
        self.earlier = Counts(**standing.counts)
        self.position, self._commits = standing.input, standing.commit
        self._unfinished = standing

    def forget_if_new(self) -> None:
        """Leave nothing behind of a stream that was never allowed to start."""
        if not self._new:
            return
        if self.aside is not None:
            self.aside.forget()
        if self.store is not None:
            self.ring.close()
            self.store.remove()

    def _charge(self) -> None:
        """From here on the stream has started, and its state knows what was charged."""
        if self.charge is not None:
            self.charge()
        self.charge, self._new = None, False

    def deliver_pending(self) -> None:
        """Hand out again what the last commit of an interrupted run was about to."""
        if self.store is None or self._new:
            return
        standing = self._unfinished
        if standing.started or standing.pending:
            self._charge()
        if standing.output is not None:
            self.repeated = self.output.go_on(standing.output, standing.pending)
        self.store.commit(self._standing(b"", b""))
        self._erase(np.arange(len(self.places)))

    # readings

    def push_text(self, text: bytes, position: Any = None) -> None:
        """Release the readings of some whole lines."""
        self.push(batch_from(self.lines, text), position)

    def push(self, batch: Batch, position: Any = None) -> None:
        """Release some readings; returns when they are out."""
        aside = [self._aside_line(WHY["unreadable"], text) for text in batch.unreadable]
        self.counts.unreadable += len(batch.unreadable)
        numbers, fresh = self.places.numbers_of(batch.names)
        codes = numbers[batch.codes]
        verdicts = self._verdicts(batch, codes)
        odd = np.flatnonzero(verdicts != TAKEN)
        if len(odd):
            # an input that knows its position sends nothing again: what is late there is late
            late = odd[verdicts[odd] <= REPEATED] if position is None else odd[:0]
            again = self._compare(batch, codes, late)
            self.counts.again += len(again)
            aside += self._put_aside(batch, verdicts, np.setdiff1d(odd, again))
        self.ring.add(fresh)
        header = b"" if self._started else self.lines.header()
        self._started = self._started or bool(header)
        taken = np.flatnonzero(verdicts == TAKEN) if len(odd) else np.arange(len(batch))
        data, touched = header, codes[:0]
        if len(taken):
            lines, touched = self._release(batch, codes, taken)
            data += lines
        if data or len(batch) or aside or position != self.position:
            self._emit(data, b"".join(aside), position, numbers, fresh)
        self._erase(touched)

    def _verdicts(self, batch: Batch, codes: Integers) -> Any:
        places = self.places
        verdicts = np.zeros(len(batch), dtype=np.int8)
        admit(
            codes,
            batch.ticks,
            self._marks(batch),
            places.last,
            places.first,
            places.taken,
            places.landmarks,
            self._most,
            self._most_landmarks,
            self._counted,
            verdicts,
        )
        require(
            not (self._counted and (verdicts == TELLING).any()),
            f"a time that is not the number of its reading (0, 1, 2, ...) {TELLS}",
            DataError,
        )
        return verdicts

    def _marks(self, batch: Batch) -> Any:
        """Which readings are landmarks; a row without a reading is none."""
        if not self.lines.marked:
            return np.zeros(len(batch), dtype=np.bool_)
        there = ~batch.missing[:, :-1].all(axis=1)
        return there & (batch.values[:, -1] != 0)

    def _put_aside(self, batch: Batch, verdicts: Any, odd: Integers) -> list[bytes]:
        said = [NAMES[one] for one in verdicts[odd].tolist()]
        for name in set(said):
            setattr(self.counts, name, getattr(self.counts, name) + said.count(name))
        if self.aside is None:
            return []
        columns = [*self.lines.shown, *self.lines.values]
        rows = zip(odd.tolist(), said, strict=True)
        return [self._aside_line(WHY[why], batch.written(row, columns)) for row, why in rows]

    def _aside_line(self, why: str, what: Any) -> bytes:
        if self.aside is None:
            return b""
        return json.dumps({"why": why, "reading": what}).encode() + b"\n"

    def _compare(self, batch: Batch, codes: Integers, late: Integers) -> Integers:
        """Rows that are sent again from the start; they must be those that were consumed before."""
        places = self.places
        late = late[places.wanted[codes[late]] > 0]
        if not len(late):
            return late
        where = np.empty(len(late), dtype=np.int64)
        sent_again(
            codes[late],
            batch.ticks[late],
            self._marks(batch)[late],
            places.first,
            places.wanted,
            self._most_landmarks,
            places.again,
            places.again_last,
            places.again_landmarks,
            where,
        )
        rows = late[where >= 0]
        if not len(rows):
            return rows
        found = self._seen.of(batch, rows, codes[rows], where[where >= 0])
        np.add.at(places.again_seen, codes[rows], found)
        whole = codes[rows][places.again[codes[rows]] == places.wanted[codes[rows]]]
        require(
            bool((places.again_seen[whole] == places.wanted_seen[whole]).all()),
            "the readings sent again are not those that this stream consumed before: the same "
            "noise on other data would publish their difference. Start a new stream with "
            "another [[state]] for other data",
            StateError,
        )
        return rows

    @property
    def _seen(self) -> Fingerprints:
        if not hasattr(self, "_known_marks"):
            self._known_marks = Fingerprints(self.ring.mark, len(self.lines.values))
        return self._known_marks

    def _release(self, batch: Batch, codes: Integers, taken: Integers) -> tuple[bytes, Integers]:
        """Perturb readings of many series at once and write them in the order they came."""
        places, form = self.places, self.mechanism.domain
        order, edges, counts = grouped(batch.codes[taken], len(batch.names))
        order = taken[order]
        touched = codes[order[edges]]
        starts = places.step[touched]
        steps = within(counts) + np.repeat(starts, counts)
        found = self._seen.of(batch, order, codes[order], steps)
        places.seen[touched] += np.add.reduceat(found, edges)
        cells = [places.waiting.add(column).take(order) for column in batch.cells or ()]
        block = self._block(batch, order, steps, touched, counts, starts)
        memory = places.memory[touched]
        runs = self.ring.runs(touched, starts, counts)
        pool = self._pool(starts, counts)
        released = perturb_block(self.mechanism, block, runs, memory, held=pool)
        places.memory[touched] = memory
        places.step[touched] += counts
        waiting = []
        if form.latency:
            waiting = [places.waiting.add(column).take(order) for column in batch.shown]
        rows = RecentCells(places, touched, starts, edges)
        which = np.repeat(np.arange(len(touched)), released.counts)
        turn = np.empty(len(batch), dtype=np.int64)  # places among the sorted, as lines came
        turn[order] = np.arange(len(order))
        turn = turn[taken]
        if form.latency:
            steps = within(released.counts) + released.starts[which]
            late = rows.cells(waiting, len(cells), which, steps)
            series = np.repeat(np.arange(len(touched)), counts)
            turn = output_order(turn, series, counts, released.counts)
            slots = [places.waiting.texts(slot.take(turn)) for slot in late]
        else:
            every = len(taken) == len(batch)
            slots = batch.shown if every else [c.take(pa.array(taken)) for c in batch.shown]
        lines = self._format(slots, released, turn, rows, which, cells)
        places.keep(touched, counts, starts, [*cells, *waiting])
        return lines, touched

    def _block(
        self,
        batch: Batch,
        order: Integers,
        steps: Integers,
        touched: Integers,
        counts: Integers,
        starts: Integers,
    ) -> Block:
        """Readings, series after series; rows that are moved go by the number of their step."""
        moves = batch.cells is not None
        values: Any = steps[:, None] if moves else batch.values[order]
        missing = np.zeros(values.shape, dtype=np.bool_) if moves else batch.missing[order]
        ids = ("",) * len(touched)  # nobody asks
        return Block(values=values, missing=missing, ids=ids, counts=counts, starts=starts)

    def _pool(self, starts: Integers, counts: Integers) -> Pool | None:
        """Where rows are moved, the steps of those that may come out: rows go by their steps."""
        form = self.mechanism.domain
        if not isinstance(form, OpaqueRows):
            return None
        behind = np.minimum(starts, form.reach)
        both = behind + counts
        steps = np.repeat(starts - behind - np.cumsum(both) + both, both)
        steps += np.arange(len(steps))
        none = np.zeros((len(steps), 1), dtype=np.bool_)
        rows = Block(steps[:, None], none, ("",) * len(both), both, starts - behind)
        return Pool(rows, np.cumsum(both) - counts)

    def _format(
        self,
        slots: Sequence[Any],
        released: Block,
        turn: Integers,
        rows: RecentCells,
        which: Integers,
        cells: Sequence[TextBuffer],
    ) -> bytes:
        """Rows of a released block as lines, in this turn."""
        self.counts.released += len(turn)
        status = None if released.status is None else released.status[turn]
        columns = None
        missing = released.missing[turn]
        if isinstance(self.mechanism.domain, OpaqueRows):
            steps = released.values[turn, 0]
            found = rows.cells(cells, 0, which[turn], steps)
            for column in found:
                column.lengths[missing[:, 0]] = NOTHING
            columns = [self.places.waiting.texts(column) for column in found]
        return self.lines.format(slots, released.values[turn], missing, status, columns)

    def _rest(self) -> bytes:
        """What is held back of all series, one after the other."""
        places = self.places
        touched = np.flatnonzero(places.step[: len(places)])
        starts, none = places.step[touched], np.zeros(len(touched), dtype=np.int64)
        moves = self.lines.exact
        shape = (0, 1 if moves else len(self.lines.values))
        ids = ("",) * len(touched)
        values: Any = np.zeros(shape, dtype=np.int64 if moves else np.float64)
        block = Block(values, np.zeros(shape, dtype=np.bool_), ids, none, starts)
        runs, pool = self.ring.runs(touched, starts, none), self._pool(starts, none)
        memory = places.memory[touched]
        rest = perturb_block(self.mechanism, block, runs, memory, held=pool, ending=True)
        which = np.repeat(np.arange(len(touched)), rest.counts)
        rows = RecentCells(places, touched, starts, none)
        carried = len(self.lines.values) * moves
        none_here = [TextBuffer.none(0)] * len(self.lines.shown)
        steps = within(rest.counts) + rest.starts[which]
        found = rows.cells(none_here, carried, which, steps)
        slots = [places.waiting.texts(slot) for slot in found]
        cells = [TextBuffer.none(0)] * carried
        return self._format(slots, rest, np.arange(len(rest)), rows, which, cells)

    # committing

    def _standing(self, pending: bytes, aside: bytes) -> Checkpoint:
        self._commits, self.committed_at = self._commits + 1, now()
        return Checkpoint(
            commit=self._commits,
            input=self.position,
            output=self.output.position,
            aside_size=0 if self.aside is None else self.aside.size,
            counts=asdict(self.counts.and_before(self.earlier)),
            names=self.places.names_digest,
            started=self._started,
            at=self.committed_at,
            pending=pending,
            aside=aside,
        )

    def _emit(
        self, data: bytes, aside: bytes, position: Any, touched: Integers, fresh: list[str]
    ) -> None:
        self._charge()
        self.position = position
        if self.store is not None:
            first = len(self.places) - len(fresh)
            names = [(first + i, name) for i, name in enumerate(fresh)]
            self.counts.waiting = self._waiting()
            self.store.commit(self._standing(data, aside), names, self.places.shards(touched))
        self.output.write(data)
        if self.aside is not None:
            self.aside.write(aside)
        if self.store is not None:
            self.store.handed_out(self._commits)

    def _erase(self, numbers: Integers) -> None:
        """Keys of epochs that are over, now that all of those is out."""
        over = self.places.step[numbers] // EPOCH > self.ring.epochs[numbers]
        for number in numbers[over].tolist():
            self.ring.keep_from(number, int(self.places.step[number]))

    def _waiting(self) -> int:
        latency = self.mechanism.domain.latency
        if not latency:
            return 0
        return int(np.minimum(self.places.step[: len(self.places)], latency).sum())

    def finish(self) -> None:
        """The end: rows held back come out, or wait in the state for those to come."""
        self.counts.waiting = self._waiting()
        if self.store is not None:
            self.store.commit(self._standing(b"", b""))  # nothing is left to hand out again
        elif self.counts.waiting:
            self._emit(self._rest(), b"", self.position, np.zeros(0, dtype=np.int64), [])
            self.counts.waiting = 0
