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
from tempriv.streaming._kernels import (
    NOT_COUNTED,
    OFF_STEP,
    REPEATED,
    TAKEN,
    admit_readings,
    match_replayed,
)
from tempriv.streaming.batch import Batch
from tempriv.streaming.counts import NAME_OF_VERDICT, REASON_OFF_STEP, REASONS, Counts
from tempriv.streaming.csv_reader import parse_batch
from tempriv.streaming.fingerprints import Fingerprints
from tempriv.streaming.keys import Keyring
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.series_state import RecentCells, SeriesStates, group_by_code, output_order
from tempriv.streaming.sinks import DeadLetterFile, Sink
from tempriv.streaming.state_file import Checkpoint, StateFile, companion, now
from tempriv.streaming.text_buffer import MISSING_LENGTH, TextSpans

NO_LIMIT = MOST_STEPS


@dataclass
class StreamPipeline:
    """Many series passing through one mechanism.

    Parameters:
        mechanism: that every series passes through.
        record_format: of the lines.
        sink: where released lines go.
        state_file: keeps how far everything is; without it nothing survives the process.
        seed: of the noise, for experiments only.
        dead_letters: where readings go that are not released; beside the state by default.
        step: of which all times are multiples, in ticks; readings at others are not released.

    Guarantees:
        - a line that is handed out has been committed with everything that made it;
        - after a crash it is handed out once more in its place, with the same bits;
        - a series is released in the order of its times, each time once.
    """

    mechanism: Mechanism
    record_format: RecordFormat
    sink: Sink
    state_file: StateFile | None = None
    seed: int | None = None
    dead_letters: DeadLetterFile | None = None
    step: int | None = None
    release_id: str = field(default_factory=new_id)
    counts: Counts = field(default_factory=Counts)
    earlier_counts: Counts = field(default_factory=Counts)  # of runs before
    may_repeat: bool = False
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
        mechanism, domain = self.mechanism, self.mechanism.domain
        moves = self.record_format.exact = isinstance(domain, OpaqueRows)
        require(
            not mechanism.takes_whole,
            f"{type(mechanism).__name__}: needs a whole series before it can release any of it; "
            f"use tempriv release on a table{', or give it a latency' * moves}",
            UsageError,
        )
        digest = serialization.digest(mechanism)
        self.keyring = Keyring(
            None if self.state_file is None else self.state_file.key_path, self.seed, digest
        )
        reach = max(domain.reach if isinstance(domain, OpaqueRows) else 0, domain.latency)
        # the cells of earlier rows that can still come out, and ids and times of slots to come
        kept_columns = len(self.record_format.values) * moves + len(self.record_format.shown) * (
            domain.latency > 0
        )
        self.series = SeriesStates(mechanism, reach, kept_columns)
        self._most_readings = limit_of(mechanism) or NO_LIMIT
        landmarks = mechanism.most_landmarks
        self._most_landmarks = NO_LIMIT if landmarks is None else landmarks
        self._counted = hides_times(mechanism)
        if self.state_file is not None and self.dead_letters is None:
            self.dead_letters = DeadLetterFile(companion(self.state_file.path, ".aside.jsonl"))

    def __repr__(self) -> str:
        return f"StreamPipeline({type(self.mechanism).__name__}, {len(self.series)} series)"

    # opening

    @contextlib.contextmanager
    def locked(self) -> Iterator[StreamPipeline]:
        """Open the state, if there is one, and keep others from using it."""
        with contextlib.nullcontext() if self.state_file is None else self.state_file.locked():
            try:
                self._open()
                yield self
            except BaseException:
                self.forget_if_new()
                raise
            finally:
                self.keyring.close()
                if self.dead_letters is not None:
                    self.dead_letters.close()

    def _open(self) -> None:
        """Everything that could refuse, before anything is charged."""
        if self.state_file is not None and self.state_file.exists:
            self._load(self.state_file)
            if self._last_checkpoint.output is None:  # a restored stream has an output to itself
                self.sink.start()
            assert self.dead_letters is not None
            self.dead_letters.open(self._last_checkpoint.aside_size, self._last_checkpoint.aside)
            return
        self._new = True
        if self.state_file is not None:
            self.sink.start()
            self._begin(self.state_file)
        elif self.dead_letters is not None:
            self.dead_letters.open(0, b"")

    def _options(self) -> dict[str, Any]:
        return {
            "mechanism": serialization.encode(self.mechanism),
            "layout": self.record_format.layout(),
            "seed": self.seed,
            "step": self.step,
        }

    def _begin(self, state_file: StateFile) -> None:
        # the release must have its name before it is charged, so that it is charged once
        state_file.key_path.unlink(missing_ok=True)  # of a stream that was not allowed to start
        self.keyring.open()
        names = {"release": self.release_id, "dataset": self.dataset, "keys": self.keyring.name}
        state_file.create({**self._options(), **names}, self._checkpoint(b"", b""))
        assert self.dead_letters is not None
        self.dead_letters.open(0, b"")

    def _load(self, state_file: StateFile) -> None:
        about = state_file.about()
        state_file.require_own(about)
        for name, option in self._options().items():
            require(
                about.get(name) == option,
                f"{state_file.path}: was started with another {name}; go on with the same options, "
                "or start a new stream with another [[state]]",
                StateError,
            )
        checkpoint = state_file.checkpoint()
        names = state_file.names()
        self.series.load(names, state_file.shards())
        require(
            self.series.names_digest == checkpoint.names,
            f"{state_file.path}: the state is damaged: it does not know the names of its series",
            StateError,
        )
        require(
            state_file.shards_digest == checkpoint.shards,
            f"{state_file.path}: the state is damaged: some of it is of another moment",
            StateError,
        )
        # drops what the state does not know, so comes last
        self.keyring.load(len(names), about.get("keys"))
        reached_epochs = self.series.steps[: len(names)] // EPOCH
        require(
            bool((self.keyring.epochs[: len(names)] <= reached_epochs).all()),
            f"{state_file.path}: the key file beside it does not belong to it",
            StateError,
        )
        self.release_id, self._started = about["release"], checkpoint.started
        self.earlier_counts = Counts(**checkpoint.counts)
        self.position, self._commits = checkpoint.input, checkpoint.commit
        self._last_checkpoint = checkpoint

    def forget_if_new(self) -> None:
        """Leave nothing behind of a stream that was never allowed to start."""
        if not self._new:
            return
        if self.dead_letters is not None:
            self.dead_letters.forget()
        if self.state_file is not None:
            self.keyring.close()
            self.state_file.remove()

    def _charge(self) -> None:
        """From here on the stream has started, and its state knows what was charged."""
        if self.charge is not None:
            self.charge()
        self.charge, self._new = None, False

    def deliver_pending(self) -> None:
        """Hand out again what the last commit of an interrupted run was about to."""
        if self.state_file is None or self._new:
            return
        checkpoint = self._last_checkpoint
        if checkpoint.started or checkpoint.pending:
            self._charge()
        if checkpoint.output is not None:
            self.may_repeat = self.sink.resume(checkpoint.output, checkpoint.pending)
        self.state_file.commit(self._checkpoint(b"", b""))
        self._erase_old_keys(np.arange(len(self.series)))

    # readings

    def push_text(self, text: bytes, position: Any = None) -> None:
        """Release the readings of some whole lines.

        Parameters:
            text: the lines.
            position: where the input stands after them.
        """
        self.push(parse_batch(self.record_format, text), position)

    def push(self, batch: Batch, position: Any = None) -> None:
        """Release some readings; returns when they are out.

        Parameters:
            batch: the readings.
            position: where the input stands after them.
        """
        aside = [self._dead_letter(REASONS["unreadable"], text) for text in batch.unreadable]
        self.counts.unreadable += len(batch.unreadable)
        numbers, fresh = self.series.numbers_of(batch.names)
        codes = numbers[batch.codes]
        verdicts = self._admit(batch, codes)
        rejected = np.flatnonzero(verdicts != TAKEN)
        if len(rejected):
            # an input that knows its position sends nothing again: what is late there is late
            late = rejected[verdicts[rejected] <= REPEATED] if position is None else rejected[:0]
            again = self._replayed_rows(batch, codes, late)
            self.counts.again += len(again)
            aside += self._reject(batch, verdicts, np.setdiff1d(rejected, again))
        self.keyring.add(fresh)
        header = b"" if self._started else self.record_format.header()
        self._started = self._started or bool(header)
        taken = np.flatnonzero(verdicts == TAKEN) if len(rejected) else np.arange(len(batch))
        data, touched = header, codes[:0]
        if len(taken):
            lines, touched = self._release(batch, codes, taken)
            data += lines
        if data or len(batch) or aside or position != self.position:
            self._commit(data, b"".join(aside), position, numbers, fresh)
        self._erase_old_keys(touched)

    def _admit(self, batch: Batch, codes: Integers) -> Any:
        series = self.series
        verdicts = np.zeros(len(batch), dtype=np.int8)
        admit_readings(
            codes,
            batch.ticks,
            self._landmark_flags(batch),
            series.last_tick,
            series.first_tick,
            series.taken,
            series.landmarks,
            self._most_readings,
            self._most_landmarks,
            self._counted,
            self.step or 1,
            verdicts,
        )
        require(
            not (self._counted and (verdicts == NOT_COUNTED).any()),
            f"a time that is not the number of its reading (0, 1, 2, ...) {TELLS}",
            DataError,
        )
        return verdicts

    def _landmark_flags(self, batch: Batch) -> Any:
        """Which readings are landmarks; a row without a reading is none."""
        if not self.record_format.marked:
            return np.zeros(len(batch), dtype=np.bool_)
        has_reading = ~batch.missing[:, :-1].all(axis=1)
        return has_reading & (batch.values[:, -1] != 0)

    def _reject(self, batch: Batch, verdicts: Any, rejected: Integers) -> list[bytes]:
        names = [NAME_OF_VERDICT[verdict] for verdict in verdicts[rejected].tolist()]
        for name in set(names):
            setattr(self.counts, name, getattr(self.counts, name) + names.count(name))
        if self.dead_letters is None:
            return []
        columns = [*self.record_format.shown, *self.record_format.values]
        reasons = [
            REASON_OFF_STEP if verdict == OFF_STEP else REASONS[NAME_OF_VERDICT[verdict]]
            for verdict in verdicts[rejected].tolist()
        ]
        rows = zip(rejected.tolist(), reasons, strict=True)
        return [self._dead_letter(why, batch.written(row, columns)) for row, why in rows]

    def _dead_letter(self, why: str, reading: Any) -> bytes:
        if self.dead_letters is None:
            return b""
        return json.dumps({"why": why, "reading": reading}).encode() + b"\n"

    def _replayed_rows(self, batch: Batch, codes: Integers, late: Integers) -> Integers:
        """Rows that are sent again from the start; they must be those that were consumed before."""
        series = self.series
        late = late[series.saved_steps[codes[late]] > 0]
        if not len(late):
            return late
        step_of_row = np.empty(len(late), dtype=np.int64)
        match_replayed(
            codes[late],
            batch.ticks[late],
            self._landmark_flags(batch)[late],
            series.first_tick,
            series.saved_steps,
            self._most_landmarks,
            series.replayed,
            series.replayed_tick,
            series.replayed_landmarks,
            step_of_row,
        )
        rows = late[step_of_row >= 0]
        if not len(rows):
            return rows
        fingerprints = self._fingerprints.of(
            batch, rows, codes[rows], step_of_row[step_of_row >= 0]
        )
        np.add.at(series.replayed_fingerprint_sums, codes[rows], fingerprints)
        whole = codes[rows][series.replayed[codes[rows]] == series.saved_steps[codes[rows]]]
        require(
            bool(
                (
                    series.replayed_fingerprint_sums[whole] == series.saved_fingerprint_sums[whole]
                ).all()
            ),
            "the readings sent again are not those that this stream consumed before: the same "
            "noise on other data would publish their difference. Start a new stream with "
            "another [[state]] for other data",
            StateError,
        )
        return rows

    @property
    def _fingerprints(self) -> Fingerprints:
        if not hasattr(self, "_known_fingerprints"):
            self._known_fingerprints = Fingerprints(
                self.keyring.mark, len(self.record_format.values)
            )
        return self._known_fingerprints

    def _release(self, batch: Batch, codes: Integers, taken: Integers) -> tuple[bytes, Integers]:
        """Perturb readings of many series at once and write them in the order they came."""
        series, domain = self.series, self.mechanism.domain
        order, edges, counts = group_by_code(batch.codes[taken], len(batch.names))
        order = taken[order]
        touched = codes[order[edges]]
        starts = series.steps[touched]
        steps = within(counts) + np.repeat(starts, counts)
        fingerprints = self._fingerprints.of(batch, order, codes[order], steps)
        series.fingerprint_sums[touched] += np.add.reduceat(fingerprints, edges)
        cells = [series.text.add(column).take(order) for column in batch.cells or ()]
        block = self._block(batch, order, steps, touched, counts, starts)
        memory = series.memory[touched]
        runs = self.keyring.runs(touched, starts, counts)
        pool = self._movable_rows(starts, counts)
        released = perturb_block(self.mechanism, block, runs, memory, held=pool)
        series.memory[touched] = memory
        series.steps[touched] += counts
        held_cells = []
        if domain.latency:
            held_cells = [series.text.add(column).take(order) for column in batch.shown]
        rows = RecentCells(series, touched, starts, edges)
        which = np.repeat(np.arange(len(touched)), released.counts)
        line_order = np.empty(len(batch), dtype=np.int64)  # series among the sorted, as lines came
        line_order[order] = np.arange(len(order))
        line_order = line_order[taken]
        if domain.latency:
            steps = within(released.counts) + released.starts[which]
            held_columns = rows.cells(held_cells, len(cells), which, steps)
            series_of_row = np.repeat(np.arange(len(touched)), counts)
            line_order = output_order(line_order, series_of_row, counts, released.counts)
            slots = [series.text.texts(slot.take(line_order)) for slot in held_columns]
        else:
            all_taken = len(taken) == len(batch)
            slots = batch.shown if all_taken else [c.take(pa.array(taken)) for c in batch.shown]
        lines = self._format(slots, released, line_order, rows, which, cells)
        series.keep(touched, counts, starts, [*cells, *held_cells])
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

    def _movable_rows(self, starts: Integers, counts: Integers) -> Pool | None:
        """Where rows are moved, the steps of those that may come out: rows go by their steps."""
        domain = self.mechanism.domain
        if not isinstance(domain, OpaqueRows):
            return None
        behind = np.minimum(starts, domain.reach)
        total_counts = behind + counts
        steps = np.repeat(starts - behind - np.cumsum(total_counts) + total_counts, total_counts)
        steps += np.arange(len(steps))
        not_missing = np.zeros((len(steps), 1), dtype=np.bool_)
        rows = Block(
            steps[:, None], not_missing, ("",) * len(total_counts), total_counts, starts - behind
        )
        return Pool(rows, np.cumsum(total_counts) - counts)

    def _format(
        self,
        slots: Sequence[Any],
        released: Block,
        line_order: Integers,
        rows: RecentCells,
        which: Integers,
        cells: Sequence[TextSpans],
    ) -> bytes:
        """Rows of a released block as lines, in this turn."""
        self.counts.released += len(line_order)
        status = None if released.status is None else released.status[line_order]
        columns = None
        missing = released.missing[line_order]
        if isinstance(self.mechanism.domain, OpaqueRows):
            steps = released.values[line_order, 0]
            moved = rows.cells(cells, 0, which[line_order], steps)
            for column in moved:
                column.lengths[missing[:, 0]] = MISSING_LENGTH
            columns = [self.series.text.texts(column) for column in moved]
        return self.record_format.format(
            slots, released.values[line_order], missing, status, columns
        )

    def _flush(self) -> bytes:
        """What is held back of all series, one after the other."""
        series = self.series
        touched = np.flatnonzero(series.steps[: len(series)])
        starts, no_counts = series.steps[touched], np.zeros(len(touched), dtype=np.int64)
        moves = self.record_format.exact
        shape = (0, 1 if moves else len(self.record_format.values))
        ids = ("",) * len(touched)
        values: Any = np.zeros(shape, dtype=np.int64 if moves else np.float64)
        block = Block(values, np.zeros(shape, dtype=np.bool_), ids, no_counts, starts)
        runs, pool = (
            self.keyring.runs(touched, starts, no_counts),
            self._movable_rows(starts, no_counts),
        )
        memory = series.memory[touched]
        released = perturb_block(self.mechanism, block, runs, memory, held=pool, ending=True)
        which = np.repeat(np.arange(len(touched)), released.counts)
        rows = RecentCells(series, touched, starts, no_counts)
        carried = len(self.record_format.values) * moves
        no_columns = [TextSpans.none(0)] * len(self.record_format.shown)
        steps = within(released.counts) + released.starts[which]
        held_columns = rows.cells(no_columns, carried, which, steps)
        slots = [series.text.texts(slot) for slot in held_columns]
        cells = [TextSpans.none(0)] * carried
        return self._format(slots, released, np.arange(len(released)), rows, which, cells)

    # committing

    def _checkpoint(self, pending: bytes, aside: bytes) -> Checkpoint:
        self._commits, self.committed_at = self._commits + 1, now()
        return Checkpoint(
            commit=self._commits,
            input=self.position,
            output=self.sink.position,
            aside_size=0 if self.dead_letters is None else self.dead_letters.size,
            counts=asdict(self.counts.and_before(self.earlier_counts)),
            names=self.series.names_digest,
            started=self._started,
            at=self.committed_at,
            pending=pending,
            aside=aside,
        )

    def _commit(
        self, data: bytes, aside: bytes, position: Any, touched: Integers, fresh: list[str]
    ) -> None:
        self._charge()
        self.position = position
        if self.state_file is not None:
            first = len(self.series) - len(fresh)
            names = [(first + i, name) for i, name in enumerate(fresh)]
            self.counts.waiting = self._waiting()
            self.state_file.commit(
                self._checkpoint(data, aside), names, self.series.shards(touched)
            )
        self.sink.write(data)
        if self.dead_letters is not None:
            self.dead_letters.write(aside)
        if self.state_file is not None:
            self.state_file.mark_written(self._commits)

    def _erase_old_keys(self, numbers: Integers) -> None:
        """Keys of epochs that are over, now that all of those is out."""
        over = self.series.steps[numbers] // EPOCH > self.keyring.epochs[numbers]
        for number in numbers[over].tolist():
            self.keyring.keep_from(number, int(self.series.steps[number]))

    def _waiting(self) -> int:
        latency = self.mechanism.domain.latency
        if not latency:
            return 0
        return int(np.minimum(self.series.steps[: len(self.series)], latency).sum())

    def finish(self) -> None:
        """The end: rows held back come out, or wait in the state for those to come."""
        self.counts.waiting = self._waiting()
        if self.state_file is not None:
            self.state_file.commit(self._checkpoint(b"", b""))  # nothing is left to hand out again
        elif self.counts.waiting:
            self._commit(self._flush(), b"", self.position, np.zeros(0, dtype=np.int64), [])
            self.counts.waiting = 0
