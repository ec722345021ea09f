"""A private table through a mechanism and out: check, perturb, charge, then publish.

Everything is computed aside first. The durable charge is the point of no return: before it nothing
has left, after it the finished output only has to be put in place, which an interrupted run's
successor does with the same bits and without a second charge.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tempriv._version import VERSION
from tempriv.data.arrow import from_numpy, take_text
from tempriv.data.boundary import public_batch, public_table
from tempriv.data.duckdb import is_csv
from tempriv.data.grid import TableSummary
from tempriv.data.reader import TableReader
from tempriv.data.series import STATUS, STATUSES, Block, SeriesTable
from tempriv.errors import UsageError, WeakGuaranteeWarning, require
from tempriv.ledger.ledger import Ledger
from tempriv.ledger.scope import Scope
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.domains import Integers, OpaqueRows
from tempriv.mechanisms.perturb import (
    errors_of,
    guarantee_of_run,
    held_of_first,
    pending_rows,
    perturb_block,
)
from tempriv.privacy import serialization, units
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, weakness_of
from tempriv.privacy.units import Person
from tempriv.releases.blocks import (
    TimeDisclosure,
    hides_times,
    limit_series,
    require_long_enough,
    whole_series,
    with_ends,
)
from tempriv.releases.description import EVIDENCE, FORMAT, with_receipt
from tempriv.releases.evidence import check_statements, evidence_of
from tempriv.releases.meaning import meaning_of
from tempriv.releases.owner_file import LANDMARK, RELEASE, SPENT, LinkageTrial
from tempriv.sampling.keys import Key, SeriesKey
from tempriv.sampling.keystream import StepRange

if TYPE_CHECKING:
    from tempriv.data.aggregate import CountTable
    from tempriv.data.passthrough import PassthroughColumns
    from tempriv.landmarks.provenance import LandmarkProvenance
    from tempriv.ledger.sketches import FreshSketch, RowSketcher
    from tempriv.ledger.spending import LandmarkSpending
    from tempriv.releases.release import Release
    from tempriv.releases.spending import SpendingRecord

Watch = Callable[[Block, Block], None]
"""Sees private blocks beside released ones: for reports that stay with the data owner."""


class ReleaseRun:
    """One pass of a table through a mechanism under one key."""

    def __init__(
        self,
        series: SeriesTable,
        mechanism: Mechanism,
        key: Key | None = None,
        pseudonyms: bool = False,
        watch: Watch | None = None,
        counted: CountTable | None = None,
    ):
        require(
            mechanism.domain.columns in (None, len(series.values)),
            f"{len(series.values)} value columns ({', '.join(series.values)}), but the mechanism "
            f"is set up for {mechanism.domain.columns}: give bounds (or categories) for each "
            "column",
            UsageError,
        )
        declared = mechanism.unit.max_series if isinstance(mechanism.unit, Person) else None
        require(
            declared == series.max_series_per_person,
            "the mechanism's unit and the table must agree on persons: Person(max_series=n, ...) "
            "goes with a person column and max_series_per_person=n",
        )
        require(
            not pseudonyms or series.series is not None,
            "pseudonyms need a series column: without one there are no ids to replace",
        )
        require(
            not mechanism.unit.counts_people or series.series is None,
            "counts of several groups are columns of one table, not series: a person may be in "
            "more than one of them, and the guarantee is for all of them together",
        )
        # marks of landmarks go in and do not come out
        marked = mechanism.domain.marked
        self.note = None
        if marked and isinstance(series.source, Path):
            from tempriv.landmarks.provenance import provenance_of

            self.note = provenance_of(series.source).get(series.values[-1])
            if self.note is not None and set(self.note.looked_at) & set(series.values[:-1]):
                mechanism = replace(mechanism, chosen_from_values=True)  # type: ignore[call-arg]
        self._spending: SpendingRecord | None = None
        if marked:
            from tempriv.releases.spending import record_for

            self._spending = record_for(mechanism)
        self.values = series.values[:-1] if marked else series.values
        self.kept_key = key is not None
        key = key or Key.generate()
        self.series, self.mechanism, self.key, self.watch = series, mechanism, key, watch
        self.pseudonyms, self.counted = pseudonyms, counted
        self.owner: Callable[[pa.RecordBatch], None] | None = None
        self._sketcher: RowSketcher | None = None
        require(
            counted is None or units.conversion_factor(mechanism.unit, counted.unit) == 1,
            f"unit={mechanism.unit!r}: the mechanism must cover what the counts were bounded for, "
            f"{None if counted is None else counted.unit!r}",
        )
        self.digest = serialization.digest(mechanism)
        moves = isinstance(mechanism.domain, OpaqueRows)
        require(not (moves and series.clip), "clip: there are no bounds; values are kept exact")
        self.passthrough: PassthroughColumns | None = None
        if moves:
            from tempriv.data.passthrough import PassthroughColumns

            self.passthrough = PassthroughColumns(series.values)
        rename = key.pseudonym if pseudonyms else None
        form = mechanism.domain
        self.reading = TableReader(series, form.bounds, form.categories, rename, self.passthrough)
        self.times = TimeDisclosure(series)
        # the series at hand, which may go on in the next block: its key and the memory of it
        self._open: tuple[str, SeriesKey] | None = None
        self._memory = np.zeros((1, mechanism.memory_size), dtype=np.int64)
        self._held: Block | None = None
        require(
            not mechanism.has_status or STATUS not in self._names(),
            f"column {STATUS!r}: what this mechanism released, repeated or left empty goes into a "
            "column of that name; choose another name for the one in the table",
        )

    def sketch_for(self, ledger: Ledger) -> None:
        """Have the pass over the table make a sketch of its rows, by which a ledger knows them.

        Parameters:
            ledger: that is to be charged.
        """
        named = self.series.series is not None and self.series.time is not None
        categories = self.mechanism.domain.categories
        chosen = None if categories is None else categories[: len(self.values)]
        self._sketcher = ledger.sketcher(len(self.values), chosen, named)

    @property
    def sketch(self) -> FreshSketch | None:
        """The sketch of the rows, once all of them have passed; None if it was not asked for."""
        return None if self._sketcher is None else self._sketcher.finish()

    def _sketch(self, block: Block) -> None:
        """Show the block to the sketch, with its ids as they are in the table."""
        if self._sketcher is None:
            return
        shown = self._shown(block)
        if self.pseudonyms:
            shown = replace(shown, ids=tuple(self._own_ids[name] for name in shown.ids))
        clock = self.reading.clock
        self._sketcher.see(shown, None if clock is None else clock.kind)

    @functools.cached_property
    def _own_ids(self) -> dict[str, str]:
        return {self.key.pseudonym(name): name for name in self.reading.summary.ids}

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        """What is guaranteed under this key."""
        return guarantee_of_run(self.mechanism, self.key)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Released rows; complete only if no refusal is raised at the end."""
        for batch in self._complete():
            yield public_batch(batch)

    def table(self) -> pa.Table:
        """All released rows."""
        return public_table(list(self._complete()))

    def _complete(self) -> Iterator[pa.RecordBatch]:
        yield from self.rows()
        self.require_fitting()

    def require_fitting(self) -> None:
        """What only the whole table shows: whether the mechanism can keep its guarantee for it."""
        require_long_enough(self.mechanism.unit, self.reading.summary.longest)
        if hides_times(self.mechanism):
            self.times.refuse(self.reading.summary)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Released rows of a part of a table, which must pass the public-output boundary yet."""
        mechanism = self.mechanism
        blocks = whole_series(self.reading) if mechanism.takes_whole else iter(self.reading)
        parts = limit_series(blocks, mechanism.memory_size)
        late = mechanism.domain.latency > 0
        for block, ending in with_ends(parts) if late else ((part, False) for part in parts):
            self.times.see(block)
            self._sketch(block)
            memory = self._memory_of(block)
            held = held_of_first(block, self._held)
            runs = self._runs(block)
            released = perturb_block(mechanism, block, runs, memory, None, held, ending)
            self._memory = memory[-1:].copy()
            self._held = pending_rows(mechanism, self._held, block)
            if self.watch is not None:
                self.watch(self._shown(block), self._shown(released))
            rows = self._rows(released)
            if self._spending is not None:
                self._spending.see(block, released)
            if self.owner is not None and released.spent is not None:
                self.owner(self._owned(block, released))
            self._forget(block)
            if len(released):
                yield rows

    def _shown(self, block: Block) -> Block:
        """The block with the numbers of its rows, where it has their places only; no marks."""
        if self.passthrough is None:
            width = len(self.values)
            return replace(block, values=block.values[:, :width], missing=block.missing[:, :width])
        values, missing = self.passthrough.shown(block.values[:, 0], block.missing[:, 0])
        return replace(block, values=values, missing=missing)

    def _forget(self, block: Block) -> None:
        """Keep of the values set aside those of rows that can still come out."""
        if self.passthrough is not None and self._held is not None:
            waiting = self._held.values[~self._held.missing]
            self.passthrough.forget(waiting.min() if len(waiting) else block.values.max() + 1)

    def try_linkage(self) -> LinkageTrial | None:
        """Watch how well known series are found among the released ones, for the owner alone.

        None where rows are not copies of series that could be told apart.
        """
        domain, watch = self.mechanism.domain, self.watch
        copies = (
            self.series.series is not None
            and self.counted is None
            and self.passthrough is None
            and self.mechanism.values_are_readings
            and domain.latency == 0
            and domain.released.kind in ("numbers", "categories", "places")
            and not hides_times(self.mechanism)
        )
        if not copies:
            return None
        bounds = domain.bounds or ((0.0, 1.0),) * len(self.values)
        scales = [high - low for low, high in bounds[: len(self.values)]]
        trial = LinkageTrial(None if domain.released.kind == "categories" else scales)

        def both(private: Block, released: Block) -> None:
            trial.watch(private, released)
            if watch is not None:
                watch(private, released)

        self.watch = both
        return trial

    def keep_spelling(self, output: Path) -> None:
        """From CSV to a CSV ``output``, keep the text of values that are only moved."""
        if self.passthrough is not None and output.suffix.lower() == ".csv":
            self.passthrough.verbatim = is_csv(self.series.source)

    def _runs(self, block: Block) -> list[StepRange]:
        runs = []
        for name, start, count in zip(
            block.ids, block.starts.tolist(), block.counts.tolist(), strict=True
        ):
            if self._open is None or self._open[0] != name:
                self._open = (name, self.key.series(self.digest, name))
            runs.append(StepRange(self._open[1], start, count))
        return runs

    def _memory_of(self, block: Block) -> Integers:
        """Zeros for a series that begins; the first may go on from the block before."""
        memory = np.zeros((len(block.ids), self.mechanism.memory_size), dtype=np.int64)
        if len(block.starts) and block.starts[0] > 0:
            memory[:1] = self._memory
        return memory

    def _names(self) -> list[str | None]:
        return [self.series.series, *(self.series.time or "").split("+"), *self.series.values]

    def _whose_and_when(self, block: Block) -> list[tuple[str, Any]]:
        columns: list[tuple[str, Any]] = []
        if self.series.series is not None:
            columns.append((self.series.series, self._ids(block)))
        if self.reading.clock is not None and block.times is not None:
            columns += self.reading.clock.columns(block.times)
        return columns

    def _owned(self, private: Block, released: Block) -> pa.RecordBatch:

        columns = self._whose_and_when(released)
        marks = private.values[:, -1].astype(np.int64) * ~private.missing[:, -1]
        columns += [(LANDMARK, from_numpy(marks, pa.int64()))]
        columns += [(SPENT, from_numpy(np.asarray(released.spent), pa.float64()))]
        columns += [(RELEASE, pa.array([self.key.release_id] * len(marks), pa.string()))]
        return pa.RecordBatch.from_arrays([c for _, c in columns], names=[n for n, _ in columns])

    def _rows(self, block: Block) -> pa.RecordBatch:
        columns = self._whose_and_when(block)
        if self.passthrough is not None:
            moved = self.passthrough.unload(block.values[:, 0], block.missing[:, 0])
            columns += zip(self.series.values, moved, strict=True)
        else:
            columns += [(n, self._values(block, i)) for i, n in enumerate(self.values)]
        if block.status is not None:
            columns.append((STATUS, take_text(STATUSES, block.status.astype(np.int64))))
        return pa.RecordBatch.from_arrays([c for _, c in columns], names=[n for n, _ in columns])

    def _ids(self, block: Block) -> Any:
        if self.reading.whole_number_ids:
            numbers = np.array([int(name) for name in block.ids], dtype=np.int64)
            return from_numpy(np.repeat(numbers, block.counts), pa.int64())
        return take_text(block.ids, np.repeat(np.arange(len(block.ids)), block.counts))

    def _values(self, block: Block, column: int) -> Any:
        values, missing = block.values[:, column], block.missing[:, column]
        categories = self.mechanism.domain.released.categories
        if categories is None:
            return from_numpy(values, pa.float64(), missing)
        return take_text(categories[column], values, missing)

    @property
    def spending(self) -> LandmarkSpending | None:
        """What each reading spent of a landmark release, for the ledger; None of any other."""
        if self._spending is None:
            return None
        ids = self.reading.summary.ids
        shown = {self.key.pseudonym(name): name for name in ids} if self.pseudonyms else {}
        return self._spending.spending(shown, self.note)

    @property
    def scope(self) -> Scope:
        """Whose readings these are, and of when, for the ledger."""
        summary = self.reading.summary
        if self.counted is not None:
            # whether somebody is among the counted at all is protected, so it is about anyone
            kind, members = f"person {self.counted.person}", None
        elif summary.persons is not None:
            kind, members = f"person {self.series.person}", tuple(summary.persons)
        elif self.series.series is not None:
            kind, members = f"series {self.series.series}", tuple(summary.ids)
        else:
            kind, members = "series", None  # whose readings these are, nobody said
        return Scope(
            kind=kind,
            members=members,
            start=summary.first,
            end=summary.last,
            step=summary.step,
            clock=summary.clock if self.reading.clock is None else self.reading.clock.name,
            longest=summary.longest,
            even=summary.rows == len(summary.ids) * summary.longest,
        )

    def _randomness(self) -> str:
        if self.key.seed is not None:
            source = f"key from seed {self.key.seed}: anyone can remake it"
        elif self.kept_key:
            source = "key from the operating system, kept by the data owner"
        else:
            source = "key from the operating system, held in memory only and gone"
        return f"AES-256 in counter mode, {source}"

    def about(self, statements: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The description of the release, once everything has passed.

        Parameters:
            statements: what the curator says of it, as ``stated_for`` gave it.
        """
        mechanism, summary, counted = self.mechanism, self.reading.summary, self.counted
        errors = zip(self.values, errors_of(mechanism, len(self.values)), strict=True)
        meaning = meaning_of(mechanism, self.guarantee, summary.longest)
        about: dict[str, Any] = {
            "tempriv": VERSION,
            "format": FORMAT,
            "release": self.key.release_id,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "mechanism": serialization.encode(mechanism),
            "guarantee": serialization.encode(self.guarantee),
            "sentence": meaning["headline"],
            "meaning": meaning,
            "published": serialization.encode(mechanism.published),
            "expected_error": [
                {"column": name, "error": error, "measure": mechanism.error_name}
                for name, error in errors
            ],
            "randomness": self._randomness(),
            "columns": {
                "series": self.series.series,
                "ids": "number" if self.reading.whole_number_ids else "text",
                "time": None if self.reading.clock is None else list(self.reading.clock.names),
                "values": list(self.values),
                **({"status": STATUS} if mechanism.has_status else {}),
                **({} if self.passthrough is None else {"types": self.passthrough.type_names}),
            },
            "rows": summary.rows,
            "series": len(summary.ids),
            "pseudonyms": self.pseudonyms,
            "times": _times(self.series, summary),
            "treatment": list(counted.how)
            if counted is not None
            else _treatment(self.series, summary, mechanism.domain.bounds is not None, self.note),
            "ledger": None,
            **({} if counted is None else {"counted": serialization.encode(counted.unit)}),
        }
        about["not_protected"] = mechanism.not_protected(about)
        return {**about, EVIDENCE: evidence_of(about, mechanism, statements or {}, summary.longest)}


def _times(series: SeriesTable, summary: TableSummary) -> dict[str, Any]:
    return {
        "clock": summary.clock,
        "grid": series.grid if series.time is not None else "index",
        "step": summary.step,
        "first": summary.first,
        "last": summary.last,
        "filled": summary.filled,
    }


def _treatment(
    series: SeriesTable, summary: TableSummary, bounded: bool, note: LandmarkProvenance | None
) -> list[str]:
    """What was done to the table first, by the owner's choice; nothing of it depends on values."""
    sentences = []
    if series.time is not None and series.grid == "index":
        sentences.append("readings were taken in order, whatever the time between them")
    if summary.filled:
        sentences.append(f"{summary.filled:,} time steps without a reading were added as missing")
    if series.duplicates == "first":
        sentences.append("of several readings at one time the first was kept")
    if series.clip and bounded:
        sentences.append("readings outside the bounds, if any, were moved to the nearest bound")
    if note is not None and note.recall is not None:
        sentences.append(
            "the landmarks that are protected are marked moments, drawn at random: about "
            f"{100 * (1 - note.recall):.3g} % of those that the owner named are not among them"
        )
    return sentences


def stated_for(
    ledger: Ledger | None, dataset: str | None, given: Mapping[str, str] | None
) -> dict[str, str]:
    """What is stated of a release: as given, and else as the ledger has it of the dataset.

    Parameters:
        ledger: where the release is charged.
        dataset: its name there.
        given: what was said of this release.
    """
    kept = {} if ledger is None or dataset is None else ledger.statements(dataset)
    return check_statements({**kept, **(given or {})})


def check_early(
    ledger: Ledger | None,
    dataset: str | None,
    guarantee: Any,
    mechanism: Mechanism | None = None,
) -> None:
    """Refuse before the work what a ``dataset`` of the ``ledger`` surely cannot afford.

    Parameters:
        ledger: where the release is to be charged.
        dataset: the name of the data in it.
        guarantee: of the release.
        mechanism: of the release, if it is one of a mechanism.
    """
    if ledger is None or dataset is None:
        return
    spending = None
    if mechanism is not None and mechanism.domain.marked:
        from tempriv.releases.spending import least_charge

        guarantee, spending = least_charge(mechanism, guarantee)
    nobody = Scope(kind="series", members=(), start=0, end=0, step=1, clock="index")
    ledger.check(dataset, guarantee, nobody, spending)


def warn_if_weak(mechanism: Mechanism, key: Key | None, accept_weak: bool) -> None:
    """Warn before a release of which practically nothing is protected.

    Parameters:
        mechanism: of the release.
        key: of its noise; one from a seed protects nothing in any case.
        accept_weak: whether it was said that this is meant.
    """
    guarantee = mechanism.guarantee if key is None else guarantee_of_run(mechanism, key)
    warn_of_weakness(guarantee, accept_weak, stacklevel=4)


def warn_of_weakness(
    guarantee: Guarantee | NoGuarantee, accept_weak: bool, stacklevel: int = 3
) -> None:
    """Warn of a guarantee by which practically nothing is protected.

    Parameters:
        guarantee: of a release.
        accept_weak: whether it was said that this is meant.
        stacklevel: of the warning.
    """
    if guarantee.protects_little and not accept_weak:
        warning = UsageError(weakness_of(guarantee))
        warnings.warn(str(warning), WeakGuaranteeWarning, stacklevel=stacklevel)


def release(
    data: Any,
    mechanism: Mechanism,
    *,
    values: str | tuple[str, ...] | list[str] | None = None,
    key: Key | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    pseudonyms: bool = False,
    accept_weak: bool = False,
    other_data: Sequence[str] = (),
    statements: Mapping[str, str] | None = None,
    **layout: Any,
) -> Release:
    """Release a private array, frame, file or table of counts through a mechanism.

    Parameters:
        data: an array (one series), an Arrow, polars or pandas table, a CSV or Parquet file, or
            what ``aggregate`` gave.
        mechanism: what the values pass through.
        values: the value columns; all that are nothing else by default.
        key: where the noise comes from; a new key by default, which is then gone.
        ledger: where the release is charged.
        dataset: the name of the data in the ledger.
        pseudonyms: replace the ids of series.
        accept_weak: say that an epsilon above 10, which protects practically nothing, is meant;
            otherwise there is a ``WeakGuaranteeWarning``.
        other_data: datasets of the ledger that hold other data, whatever the rows look like.
        statements: what the curator says of the release, such as ``contact`` and ``license``; the
            rest is what the ledger has of the dataset.
        layout: time, series, person, max_series_per_person, grid, calendar, step, gaps,
            duplicates and clip, as in ``SeriesTable``.

    Returns:
        The released values, with their guarantee and all else that is needed to judge them.

    Raises:
        UsageError: settings that do not fit together. DataError: a table that is not as declared.
        BudgetError: the ledger's limit would be passed.

    Guarantees:
        - what is returned satisfies ``mechanism.guarantee`` (no guarantee under a seeded key);
        - with a ledger, the charge is durable before anything is returned, or nothing is.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> private = np.array([0.2, 0.4, 3.1])
    >>> released = release(private, Laplace(epsilon=1.0, bounds=(0, 5)))
    >>> released.values.shape, str(released.guarantee.loss)
    ((3,), 'epsilon = 1')
    """
    require((ledger is None) == (dataset is None), "a ledger goes with the name of a dataset in it")
    warn_if_weak(mechanism, key, accept_weak)
    from tempriv.data.aggregate import CountTable
    from tempriv.releases.release import Release

    counted = data if isinstance(data, CountTable) else None
    if counted is None:
        source, kind, names = _source(data, any_kind=isinstance(mechanism.domain, OpaqueRows))
        require(
            values is not None or isinstance(data, np.ndarray) or not hides_times(mechanism),
            "values: must be named where times are the secret: the columns of values, and then "
            "those of times",
        )
        series = SeriesTable(source, values=_value_names(values, names, layout), **layout)
    else:
        require(
            values is None and not layout,
            "counts: must be released as they are, with all their columns and their own times",
        )
        series, kind = series_of(counted), "arrow"
    run = ReleaseRun(series, mechanism, key, pseudonyms, counted=counted)
    check_early(ledger, dataset, run.guarantee, run.mechanism)
    stated = stated_for(ledger, dataset, statements)
    if ledger is not None:
        run.sketch_for(ledger)
    table = run.table()
    receipt = None
    if ledger is not None and dataset is not None:
        what = dataset, run.guarantee, run.scope, run.key.release_id
        spending = run.spending
        ledger.warn_of_repetition(*what, spending=spending)
        receipt = ledger.charge(*what, spending=spending, rows=run.sketch, other_data=other_data)
        _warn(ledger, run.key.release_id)
    return Release(with_receipt(run.about(stated), receipt), table, kind)


def _warn(ledger: Ledger, release_id: str) -> None:
    """Tell the owner which other datasets hold the same rows."""
    for finding in ledger.findings(release_id):
        warnings.warn(str(UsageError(finding.sentence)), stacklevel=3)


def series_of(counted: CountTable) -> SeriesTable:
    """A table of counts, ``counted``, as the one series that it is."""
    return SeriesTable(counted.table, values=counted.columns, time=counted.time, step=counted.step)


def _source(data: Any, any_kind: bool) -> tuple[Any, str, list[str]]:
    """What Series can read, the kind of frame it was, and its column names."""
    if isinstance(data, (str, Path)):
        from tempriv.data.duckdb import header

        return Path(data), "arrow", header(Path(data))
    if isinstance(data, pa.Table):
        return data, "arrow", data.column_names
    if hasattr(data, "__arrow_c_stream__"):
        table = pa.table(data)
        kind = type(data).__module__.split(".")[0]
        return table, kind if kind in ("polars", "pandas") else "arrow", table.column_names
    # numpy would make text of a number that stands beside text
    as_is = object if any_kind and not isinstance(data, np.ndarray) else None
    array = np.ma.asarray(data) if np.ma.isMaskedArray(data) else np.asarray(data, dtype=as_is)
    require(
        array.ndim in (1, 2) and (any_kind or array.dtype.kind in "iufb"),
        "data: must be an array of numbers, a polars, pandas or Arrow table, or the path of a CSV "
        "or Parquet file",
        UsageError,
    )
    width = 1 if array.ndim == 1 else array.shape[1]
    return array, "arrow", ["value"] if width == 1 else [f"value_{i}" for i in range(width)]


def _value_names(values: Any, names: list[str], layout: dict[str, Any]) -> tuple[str, ...]:
    """The value columns: as named, or all that are nothing else."""
    if values is not None:
        return (values,) if isinstance(values, str) else tuple(values)
    taken = {layout.get("series"), layout.get("person"), *str(layout.get("time")).split("+")}
    return tuple(name for name in names if name not in taken)
