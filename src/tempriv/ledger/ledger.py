"""Durable charges against limits, in one SQLite file: check, record, and only then release.

The ledger holds no private value: of the data it knows whose they are (ids as digests) and from
when to when. ``scope`` finds what touches the same data, ``filters`` adds it up.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, NoReturn, cast

import numpy as np

from tempriv.accounting.filters import (
    UNBOUNDED_COST,
    ZERO_COST,
    Cost,
    Total,
    alone_total,
    epsilon_in_advance,
    explain_no_bound,
    explain_other_unit,
    explain_refusal,
    order_of,
    unlimited_total,
    worst_total,
)
from tempriv.errors import BudgetError, LedgerError, RepeatedReleaseWarning, require
from tempriv.ledger import scope as scopes
from tempriv.ledger.database import LedgerFile, create_file, open_file
from tempriv.ledger.resolution import (
    Resolution,
    StepsReached,
    require_comparable,
    restated_over,
    steps_covered,
)
from tempriv.ledger.running_totals import (
    Charge,
    RunningTotals,
    TimeRange,
    cost_of_statements,
    roles_of,
)
from tempriv.ledger.scope import EARLIEST, LATEST, Scope, ScopedCost
from tempriv.privacy import guarantees, serialization, units
from tempriv.privacy.guarantees import Guarantee, NoGuarantee

if TYPE_CHECKING:  # loaded where there are landmarks, or rows to recognize
    from tempriv.ledger.landmark_totals import Spender
    from tempriv.ledger.lineage import Finding, Lineage
    from tempriv.ledger.sketches import FreshSketch, RowSketcher
    from tempriv.ledger.spending import ChargeParts, LandmarkSpending
    from tempriv.privacy.units import Landmarks

BUSY_SECONDS = 30.0
# made when something is stated first; versions that do not know it leave it alone
STATEMENTS = """
CREATE TABLE IF NOT EXISTS statements (
    dataset INTEGER PRIMARY KEY REFERENCES datasets, texts TEXT NOT NULL)
"""

State = Literal["prepared", "done", "forgotten"]


@dataclass(frozen=True)
class OutputRecord:
    """A finished output that waits under another name, to be renamed once it is charged."""

    spec_name: ClassVar[str] = "Output"

    path: str
    partial: str
    checksum: str
    request: str

    def __post_init__(self) -> None:
        for name in ("path", "partial"):
            object.__setattr__(self, name, _absolute(getattr(self, name)))


def _absolute(path: str | Path) -> str:
    return str(Path(path).absolute())


@dataclass(frozen=True)
class Receipt:
    """Proof that a release was charged, and what each limit stood at right after.

    Parameters:
        charge: the number of the charge in the ledger.
        release_id: of the release.
        dataset: its name in the ledger.
        recorded: when it was charged, in UTC.
        totals: for each limit of the dataset, what is spent of it; none once landmarks were
            charged: a receipt is public, and totals would show how many landmarks there are.

    >>> import tempfile
    >>> guarantee = Guarantee(loss=guarantees.Pure(0.4), unit=units.Event())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Ledger.create(Path(folder) / "ledger.sqlite") as ledger:
    ...         _ = ledger.create_dataset("meters", epsilon=1.0)
    ...         receipt = ledger.charge("meters", guarantee, Scope(start=0, end=9), "first")
    >>> receipt.charge, receipt.release_id, receipt.totals[0].spent
    (1, 'first', 0.4)
    """

    charge: int
    release_id: str
    dataset: str
    recorded: str
    totals: tuple[Total, ...]


@dataclass(frozen=True)
class Prepared:
    """A charge whose output was not yet put in place."""

    receipt: Receipt
    output: OutputRecord


@dataclass(frozen=True)
class Budget:
    """How a dataset stands: one total per limit, or per unit charged where there is no limit.

    ``epsilon_in_advance`` is what each total would be, had all of it been fixed in advance;
    ``records`` are what was recorded beside the charges: merged, forgotten and told apart.
    """

    dataset: str
    limited: bool
    totals: tuple[Total, ...]
    charges: int
    no_guarantee: str | None
    in_advance: tuple[float | None, ...]
    records: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One charge, for printing; ``members`` is how many, None for anyone.

    ``remark`` says of which charge of another dataset it is a copy, or why it was forgotten.
    """

    charge: int
    release_id: str
    dataset: str
    recorded: str
    guarantee: Guarantee | NoGuarantee
    kind: str
    members: int | None
    start: int | None
    end: int | None
    clock: str
    state: State
    note: str | None
    remark: str | None = None


class _Limit(NamedTuple):
    id: int
    unit: units.Unit
    epsilon: float
    delta: float
    total: Total


ONCE = Cost(1.0, 0.0, 1.0)
"""In place of the cost of a charge, to see whether there is one."""


class _Addition(NamedTuple):
    scope: Scope
    cost: Cost


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _json(value: Any) -> str:
    return json.dumps(serialization.encode(value))


def _decode(text: str) -> Any:
    return guarantees.decode(json.loads(text), Total)


def _shown_units(guarantee: Guarantee) -> tuple[units.Unit, ...]:
    """For which units a total is shown where no limit is set."""
    single = guarantee.unit.unaligned()
    return (single, guarantee.unit) if guarantee.unit.names_landmarks else (single,)


def _content(
    dataset: str,
    guarantee: Guarantee | NoGuarantee,
    scope: Scope,
    note: str | None,
    output: OutputRecord | None,
    parts: ChargeParts | None,
) -> str:
    """A digest of all that is charged; those of older versions stay as they are."""
    what: tuple[Any, ...] = (dataset, guarantee, scope.digest.hex(), note, output)
    if parts is not None:
        each = [(part.scope.digest.hex(), *part[1:5]) for part in parts.parts]
        what += (each, [moments.digest.hex() for moments in parts.sets])
    return serialization.digest(what)


class Ledger:
    """One ledger file, opened; close it or use it in a ``with`` statement.

    A dataset has limits, each an epsilon at a delta for a unit. A charge is accepted if the totals
    of all limits stay within them, and refused with ``BudgetError`` otherwise.

    Parameters:
        file: what ``Ledger.open`` or ``Ledger.create`` opened.

    Guarantees:
        - a receipt is handed out only after its charge is on disk;
        - no limit is passed, whatever processes charge at once;
        - ids are stored as digests, values not at all.

    >>> import tempfile
    >>> guarantee = Guarantee(loss=guarantees.Pure(0.4), unit=units.Event())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Ledger.create(Path(folder) / "ledger.sqlite") as ledger:
    ...         _ = ledger.create_dataset("meters", unit=units.Event(), epsilon=1.0)
    ...         receipt = ledger.charge("meters", guarantee, Scope(start=0, end=9), "first")
    >>> receipt.totals[0].spent, receipt.totals[0].remaining
    (0.4, 0.6)
    """

    def __init__(self, file: LedgerFile):
        """Use ``Ledger.open`` or ``Ledger.create``."""
        self._file, self._sums = file, RunningTotals(file)
        if file.outdated:
            with file.writing():
                if file.upgrade():
                    self._sums.align()
                    for (dataset,) in file.rows("SELECT id FROM datasets"):
                        self._renew_all(dataset)

    @classmethod
    def open(cls, path: str | Path, busy_seconds: float = BUSY_SECONDS) -> Ledger:
        """A ledger that exists.

        Parameters:
            path: of its file.
            busy_seconds: how long to wait for other processes.

        Returns:
            The ledger, to be closed.

        Raises:
            LedgerError: if there is no such file, or it is not a ledger.
        """
        return cls(open_file(Path(path), busy_seconds))

    @classmethod
    def create(cls, path: str | Path, busy_seconds: float = BUSY_SECONDS) -> Ledger:
        """A ledger at this path, new unless it exists; nobody else may read a new one.

        Parameters:
            path: of its file.
            busy_seconds: how long to wait for other processes.

        Returns:
            The ledger, to be closed.

        Raises:
            LedgerError: if the file there is not a ledger.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Ledger.create(f"{folder}/ledger.sqlite") as ledger:
        ...         ledger.ensure_dataset("meters")
        ...     with Ledger.open(f"{folder}/ledger.sqlite") as ledger:
        ...         ledger.datasets()
        ('meters',)
        """
        return cls(create_file(Path(path), busy_seconds))

    @property
    def path(self) -> Path:
        """Of its file."""
        return self._file.path

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def datasets(self) -> tuple[str, ...]:
        """The names of all datasets."""
        return tuple(name for (name,) in self._file.rows("SELECT name FROM datasets ORDER BY name"))

    def ensure_dataset(self, name: str) -> None:
        """Have a dataset, if need be without a limit: its charges are recorded only.

        Parameters:
            name: of the dataset.
        """
        with self._file.writing():
            self._ensure(name)

    def create_dataset(
        self,
        name: str,
        unit: units.Unit = units.Event(),  # noqa: B008 (frozen)
        *,
        epsilon: float,
        delta: float = 0.0,
        replace: bool = False,
    ) -> Total:
        """Limit what may be spent of a dataset, new or not; its charges so far count.

        Parameters:
            name: of the dataset.
            unit: that the limit speaks of.
            epsilon: the most that may be spent.
            delta: at which the epsilon holds; 0 allows pure guarantees only.
            replace: whether to change a limit that the dataset has for this unit.

        Returns:
            The total, which says whether the charges are above the limit (``exceeded``).

        Raises:
            BudgetError: if there is such a limit already and it is not replaced.
        """
        require(0 < epsilon < math.inf, f"epsilon={epsilon}: a limit must be a number > 0")
        require(0 <= delta < 1, f"delta={delta}: must be >= 0 and < 1")
        require(unit.limit_refusal is None, f"unit={unit!r}: {unit.limit_refusal}")
        with self._file.writing():
            # one text for equal units, so that each has one limit
            dataset, text = self._ensure(name), serialization.canonical(unit).decode()
            if unit.about_order:
                self._sums.index_exact()
            find = "FROM limits WHERE dataset = ? AND unit = ?"
            present = self._file.value(f"SELECT epsilon {find}", dataset, text)
            require(
                present is None or replace,
                f"dataset {name!r} already has a limit of epsilon = {present} for {unit.sentence}; "
                "to change it, ask to replace it",
                BudgetError,
            )
            self._file.execute(
                "INSERT INTO limits (dataset, unit, epsilon, delta, total) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET epsilon = excluded.epsilon, delta = excluded.delta",
                *(dataset, text, epsilon, delta, _json(None)),
            )
            number = self._file.value(f"SELECT id {find}", dataset, text)
            limit = next(limit for limit in self._limits(dataset) if limit.id == number)
            return self._renew(dataset, limit)

    def _renew_all(self, dataset: int) -> None:
        for limit in self._limits(dataset):
            self._renew(dataset, limit)

    def _renew(self, dataset: int, limit: _Limit) -> Total:
        """The total of a limit and its running sums, from the charges themselves."""
        order = order_of(limit.epsilon, limit.delta)
        shares, costs = self._sums.recorded(dataset, limit.unit, order)
        total = worst_total(costs, limit.unit, limit.epsilon, limit.delta)
        self._sums.replace(limit.id, shares)
        self._file.execute("UPDATE limits SET total = ? WHERE id = ?", _json(total), limit.id)
        return total

    def set_statements(self, dataset: str, statements: Mapping[str, str]) -> None:
        """Keep what the curator says of all releases of a dataset, instead of what was kept.

        Parameters:
            dataset: its name; it is made if there is none.
            statements: texts by name, such as ``contact`` and ``license``; they are public.
        """
        with self._file.writing():
            number = self._ensure(dataset)
            self._file.execute(STATEMENTS)
            self._file.execute(
                "INSERT INTO statements VALUES (?, ?)"
                " ON CONFLICT DO UPDATE SET texts = excluded.texts",
                *(number, json.dumps(dict(statements))),
            )

    def statements(self, dataset: str) -> dict[str, str]:
        """What the curator says of all releases of a dataset; nothing, if nothing is kept.

        Parameters:
            dataset: its name.
        """
        if not self._file.value("SELECT count(*) FROM sqlite_schema WHERE name = 'statements'"):
            return {}
        text = self._file.value(
            "SELECT texts FROM statements JOIN datasets ON id = dataset WHERE name = ?", dataset
        )
        return {} if text is None else dict(json.loads(text))

    def check(
        self,
        dataset: str,
        guarantee: Guarantee | NoGuarantee,
        scope: Scope,
        spending: LandmarkSpending | None = None,
    ) -> tuple[Total, ...]:
        """The totals that a charge would lead to, or its refusal; records nothing.

        Parameters:
            dataset: its name.
            guarantee: of the release.
            scope: whose data the release touches, and when.
            spending: of a landmark release, what each reading spends; None: all of its epsilon.

        Raises:
            BudgetError: if a limit would be passed.

        >>> import tempfile
        >>> guarantee = Guarantee(loss=guarantees.Pure(2.0), unit=units.Event())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Ledger.create(f"{folder}/ledger.sqlite") as ledger:
        ...         _ = ledger.create_dataset("meters", epsilon=1.0)
        ...         ledger.check("meters", guarantee, Scope())
        Traceback (most recent call last):
        ...
        tempriv.errors.BudgetError: dataset 'meters': this release costs epsilon = 2 and would ...
        """
        scope = scopes.as_charged(scope, guarantee)
        parts = self._parts(guarantee, scope, spending)
        with self._file.reading():
            number = self._number(dataset)
            parts = self._settled(number, scope, parts)
            decided = self._decide(number, dataset, guarantee, scope, parts)
        return tuple(total for _, _, total in decided)

    def warn_of_repetition(
        self,
        dataset: str,
        guarantee: Guarantee | NoGuarantee,
        scope: Scope,
        release_id: str,
        spending: LandmarkSpending | None = None,
    ) -> None:
        """Warn before a release of readings that were released before, if nothing limits that.

        A dataset with a limit gets no warning: the limit decides. Nor does a release that was
        charged already, or that guarantees nothing.

        Parameters:
            dataset: its name.
            guarantee: of the release.
            scope: whose data the release touches, and when.
            release_id: of the release.
            spending: of a landmark release, what each reading spends; None: all of its epsilon.

        >>> import tempfile, warnings
        >>> guarantee = Guarantee(loss=guarantees.Pure(1.0), unit=units.Event())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Ledger.create(f"{folder}/ledger.sqlite") as ledger:
        ...         ledger.ensure_dataset("meters")
        ...         _ = ledger.charge("meters", guarantee, Scope(), "first")
        ...         with warnings.catch_warnings(record=True) as caught:
        ...             ledger.warn_of_repetition("meters", guarantee, Scope(), "second")
        >>> str(caught[0].message).partition(": ")[2][:52]
        'with this release epsilon = 2 is spent on any single'
        """
        with self._file.reading():
            number = self._number(dataset)
            query = "SELECT 1 FROM charges WHERE dataset = ? LIMIT 1"
            if (
                isinstance(guarantee, NoGuarantee)
                or self._limits(number)
                or self._file.value(query, number) is None
                or self.state_of(release_id) is not None
            ):
                return
            from tempriv.ledger.repeats import repetition

            parts = self._settled(number, scope, self._parts(guarantee, scope, spending))
            found = repetition(self._sums, number, guarantee, scope, parts)
        if found is not None:
            warnings.warn(f"dataset {dataset!r} {found}", RepeatedReleaseWarning, stacklevel=3)

    def charge(
        self,
        dataset: str,
        guarantee: Guarantee | NoGuarantee,
        scope: Scope,
        release_id: str,
        note: str | None = None,
        output: OutputRecord | None = None,
        spending: LandmarkSpending | None = None,
        rows: FreshSketch | None = None,
        other_data: Sequence[str] = (),
    ) -> Receipt:
        """Record a release if every limit agrees; it is on disk when this returns.

        The same release again gets the same receipt and spends nothing. If its rows are surely
        those of another dataset, it is charged there as well (``findings`` says so).

        Parameters:
            dataset: its name.
            guarantee: of the release.
            scope: whose data the release touches, and when.
            release_id: of the release; each has its own.
            note: kept with the charge.
            output: the file that waits to be put in place; the charge then stays open
                (``prepared``) until ``finish``.
            spending: of a landmark release, what each reading spends; None: all of its epsilon.
            rows: the sketch of its rows, which a ``sketcher`` made.
            other_data: datasets that hold other data, whatever the rows look like; it is recorded.

        Raises:
            BudgetError: if a limit would be passed; nothing is recorded.
            LedgerError: if another release was charged under this id.
        """
        require(release_id != "", "release_id='': every release needs an id of its own")
        require(scope.members != (), "members=(): name those whose data it is, or None for anyone")
        scope = scopes.as_charged(scope, guarantee)
        # a million ids are hashed here, before anyone has to wait
        parts = self._parts(guarantee, scope, spending)
        content = _content(dataset, guarantee, scope, note, output, parts)
        with self._file.writing():
            number = self._number(dataset)
            known = self._file.value("SELECT content FROM charges WHERE release = ?", release_id)
            require(
                known in (None, content),
                f"release {release_id!r} was charged before with other content; a release is "
                "charged once, so give this one another id",
                LedgerError,
            )
            if known is None:
                parts = self._settled(number, scope, parts)
                others = [self._number(other) for other in other_data]
                seen = rows is not None
                charge = Charge(guarantee, scope, release_id, note, content, output, parts, seen)
                if self._has_kin(rows is not None) or others:
                    self._lineage.charge(number, charge, rows, others)
                else:
                    self._record(number, charge, self._decide_charge(number, charge))
                if rows is not None:
                    self._keep_sketch(number, rows)
            return self._receipt(release_id)

    def sketcher(
        self,
        columns: int,
        categories: Sequence[Sequence[str]] | None = None,
        named: bool = False,
    ) -> RowSketcher:
        """Makes the sketch of a release's rows, by which this ledger knows them again.

        Parameters:
            columns: how many columns of values there are.
            categories: the names that values are numbers of, for each column.
            named: whether the table has a column of ids and one of times.
        """
        from tempriv.ledger.sketches import RowSketcher

        return RowSketcher(self._file.secret, columns, categories, named)

    def findings(self, release_id: str) -> tuple[Finding, ...]:
        """What the ledger found out about the rows of a release.

        Parameters:
            release_id: of the release.

        Returns:
            The datasets that have the same rows, surely or likely; for the owner's eyes only.
        """
        query = "SELECT 1 FROM records WHERE release = ? LIMIT 1"
        if self._file.value(query, release_id) is None:
            return ()
        return self._lineage.findings(release_id)

    def merge(
        self, dataset: str, other: str, *, spelled_alike: bool = False, reason: str | None = None
    ) -> None:
        """Let all charges of two datasets count for both, because they hold the same data.

        Parameters:
            dataset: the name of one.
            other: the name of the other.
            spelled_alike: whether ids and times are written alike in both. Otherwise each charge
                of one counts for all of the other.
            reason: recorded with it.

        >>> import tempfile
        >>> guarantee = Guarantee(loss=guarantees.Pure(0.4), unit=units.Event())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Ledger.create(f"{folder}/ledger.sqlite") as ledger:
        ...         for name in ("meters", "copy"):
        ...             _ = ledger.create_dataset(name, epsilon=1.0)
        ...             _ = ledger.charge(name, guarantee, Scope(start=0, end=9, step=1), name)
        ...         ledger.merge("meters", "copy", spelled_alike=True)
        ...         ledger.show("meters").totals[0].spent, ledger.show("copy").totals[0].spent
        (0.8, 0.8)
        """
        require(dataset != other, f"dataset {dataset!r}: name two datasets to merge")
        with self._file.writing():
            pair = self._number(dataset), self._number(other)
            self._lineage.merge(*pair, spelled_alike, reason)

    def separate(self, dataset: str, other: str, reason: str) -> int:
        """Take back that two datasets hold the same data, and never take them for the same again.

        Charges of one that counted for the other are forgotten there; they stay in the log.

        Parameters:
            dataset: the name of one.
            other: the name of the other.
            reason: recorded with it.

        Returns:
            How many charges are forgotten.
        """
        self._require_reason(reason)
        require(dataset != other, f"dataset {dataset!r}: name two datasets to tell apart")
        with self._file.writing():
            return self._lineage.separate(self._number(dataset), self._number(other), reason)

    def forget(self, charge: int, reason: str) -> str:
        """Forget a charge: totals are as if it had not been made; the log keeps it.

        Only for what was never handed out: what others have seen is spent.

        Parameters:
            charge: its number in the log.
            reason: recorded with it.

        Returns:
            The release that it was for.
        """
        self._require_reason(reason)
        with self._file.writing():
            return self._lineage.forget(charge, reason)

    @staticmethod
    def _require_reason(reason: str) -> None:
        require(
            reason.strip() != "" and reason.isprintable(),
            f"reason={reason!r}: say in a line why totals become smaller; it is recorded",
        )

    def _has_kin(self, seen: bool) -> bool:
        """Whether a charge may count for other datasets: some are merged, or rows can be known."""
        query = "SELECT 1 FROM merged LIMIT 1"
        known = "SELECT 1 FROM sketches LIMIT 1"
        return bool(self._file.rows(query) or (seen and self._file.rows(known)))

    @functools.cached_property
    def _lineage(self) -> Lineage:
        from tempriv.ledger.lineage import Lineage

        return Lineage(self._file, self._sums, self._decide_charge, self._record, self._renew_all)

    def _keep_sketch(self, dataset: int, rows: FreshSketch) -> None:
        before = self._file.value("SELECT content FROM sketches WHERE dataset = ?", dataset)
        content = rows.added_to(before)
        self._file.execute("INSERT OR REPLACE INTO sketches VALUES (?, ?)", dataset, content)

    def state_of(self, release_id: str) -> State | None:
        """Whether the output of a release was put in place.

        Parameters:
            release_id: of the release.

        Returns:
            "prepared", "done", or None if it was never charged.
        """
        query = "SELECT state FROM charges WHERE release = ?"
        return cast(State | None, self._file.value(query, release_id))

    def partials(self, path: str | Path) -> list[Path]:
        """The outputs that are charged and still wait to become this ``path``."""
        query = "SELECT partial FROM charges WHERE state = 'prepared' AND path = ?"
        return [Path(partial) for (partial,) in self._file.rows(query, _absolute(path))]

    def prepared(self, path: str | Path, request: str) -> Prepared | None:
        """The charge whose output still waits to be put in place.

        Parameters:
            path: where it will be.
            request: the digest of what was asked for; None is returned if it differs.
        """
        query = """SELECT release, path, partial, checksum, request FROM charges
            WHERE state = 'prepared' AND path = ? AND request = ? ORDER BY id DESC LIMIT 1"""
        rows = self._file.rows(query, _absolute(path), request)
        return Prepared(self._receipt(rows[0][0]), OutputRecord(*rows[0][1:])) if rows else None

    def finish(self, release_id: str) -> None:
        """Note that the output of a charge is in place, and forget where it waited.

        Parameters:
            release_id: of the release.

        Raises:
            LedgerError: if it was never charged.
        """
        with self._file.writing():
            changed = self._file.execute(
                "UPDATE charges SET state = 'done', path = NULL, partial = NULL, checksum = NULL,"
                " request = NULL WHERE release = ?",
                release_id,
            )
            require(
                changed == 1,
                f"release {release_id!r} is not in ledger {self.path}; charge it first",
                LedgerError,
            )

    def show(self, dataset: str) -> Budget:
        """How a dataset stands: its totals, and how many charges it has.

        Parameters:
            dataset: its name.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Ledger.create(f"{folder}/ledger.sqlite") as ledger:
        ...         _ = ledger.create_dataset("meters", epsilon=1.0)
        ...         ledger.show("meters").totals[0].remaining
        1.0
        """
        with self._file.reading():
            number = self._number(dataset)
            limits = self._limits(number)
            query = """SELECT guarantee, count(*) FROM charges WHERE dataset = ?
                GROUP BY guarantee ORDER BY min(id)"""
            counted = [(_decode(text), count) for text, count in self._file.rows(query, number)]
            charged = [guarantee for guarantee, _ in counted]
            charges = sum(count for _, count in counted)
            totals = [limit.total for limit in limits]
            if not limits:
                charged_units = [
                    unit
                    for known in (*charged, *self._sums.marks_statements(number))
                    if isinstance(known, Guarantee)
                    for unit in _shown_units(known)
                ]
                totals = [
                    unlimited_total(self._sums.recorded(number, unit)[1], unit)
                    for unit in dict.fromkeys(charged_units)
                ]
            fixed = tuple(
                epsilon_in_advance(total, self._sums.costs(number, total.unit))
                if total.delta
                else None
                for total in totals
            )
            records = self._records(number)
        reasons = [none.reason for none in charged if isinstance(none, NoGuarantee)]
        reason = reasons[0] if reasons else None
        return Budget(dataset, bool(limits), tuple(totals), charges, reason, fixed, records)

    def _records(self, dataset: int) -> tuple[str, ...]:
        """What was recorded of a dataset beside its charges, a line for each."""
        query = """SELECT o.name, count(*) FROM also a JOIN charges c ON c.id = a.charge
            JOIN charges f ON f.id = a."of" JOIN datasets o ON o.id = f.dataset
            WHERE c.dataset = ? GROUP BY o.name ORDER BY o.name"""
        name = self._file.value("SELECT name FROM datasets WHERE id = ?", dataset)
        lines = [
            f"{name}: {count} of its charges {'was' if count == 1 else 'were'} made for dataset "
            f"{other!r}, which holds the same data"
            for other, count in self._file.rows(query, dataset)
        ]
        query = """SELECT r.recorded, r.who, r.what, d.name, o.name, r.text FROM records r
            JOIN datasets d ON d.id = r.dataset LEFT JOIN datasets o ON o.id = r.other
            WHERE r.what NOT IN ('recognized', 'likely') AND (r.dataset = ?1 OR r.other = ?1)
            ORDER BY r.id"""
        for recorded, who, what, name, other, text in self._file.rows(query, dataset):
            whose = name if other is None else f"{name} and {other}"
            lines.append(f"{recorded} {who}: {whose} {what}" + (f": {text}" if text else ""))
        return tuple(lines)

    def log(self, dataset: str | None = None) -> tuple[Entry, ...]:
        """All charges, newest last.

        Parameters:
            dataset: its name; None: of all datasets.
        """
        query = """SELECT c.id, c.release, d.name, c.recorded, c.guarantee, s.kind,
            length(m.ids) / 8, s.start, s."end", s.clock, c.state, c.note, c.remark FROM (
                SELECT c.id, c.release, c.dataset, c.recorded, c.guarantee, c.scope, c.state,
                c.note, 'is charge ' || o.id || ' of ' || d.name AS remark FROM charges c
                LEFT JOIN also a ON a.charge = c.id LEFT JOIN charges o ON o.id = a."of"
                LEFT JOIN datasets d ON d.id = o.dataset
                UNION ALL SELECT charge, release, dataset, recorded, guarantee, scope, 'forgotten',
                note, "when" || ' ' || who || ': ' || why FROM forgotten) c
            JOIN datasets d ON d.id = c.dataset JOIN scopes s ON s.id = c.scope
            LEFT JOIN member_sets m ON m.digest = s.members
            WHERE ?1 IS NULL OR c.dataset = ?1 ORDER BY c.recorded, abs(c.id)"""
        with self._file.reading():
            rows = self._file.rows(query, None if dataset is None else self._number(dataset))
        entries = [Entry(*row) for row in rows]
        return tuple(
            dataclasses.replace(entry, guarantee=_decode(cast(str, entry.guarantee)))
            for entry in entries
        )

    def _decide_charge(
        self, dataset: int, charge: Charge
    ) -> list[tuple[_Limit, list[_Addition], Total]]:
        name = self._file.value("SELECT name FROM datasets WHERE id = ?", dataset)
        return self._decide(dataset, name, charge.guarantee, charge.scope, charge.parts)

    def _number(self, dataset: str) -> int:
        number = self._file.value("SELECT id FROM datasets WHERE name = ?", dataset)
        if number is None:
            known = ", ".join(map(repr, self.datasets())) or "none so far"
            raise LedgerError(
                f"dataset {dataset!r} is not in ledger {self.path} (known: {known}); make it "
                "with `tempriv budget create`"
            )
        return int(number)

    def _ensure(self, name: str) -> int:
        require(
            isinstance(name, str) and name.strip() != "" and name.isprintable(),
            f"dataset={name!r}: must be a name of printable characters",
        )
        self._file.execute(
            "INSERT OR IGNORE INTO datasets (name, created) VALUES (?, ?)", name, _now()
        )
        return self._number(name)

    def _limits(self, dataset: int) -> list[_Limit]:
        query = "SELECT id, unit, epsilon, delta, total FROM limits WHERE dataset = ? ORDER BY id"
        return [
            _Limit(number, _decode(unit), epsilon, delta, _decode(total))
            for number, unit, epsilon, delta, total in self._file.rows(query, dataset)
        ]

    def _parts(
        self,
        guarantee: Guarantee | NoGuarantee,
        scope: Scope,
        spending: LandmarkSpending | None,
    ) -> ChargeParts | None:
        """A landmark charge in parts; None of any other."""
        if spending is None or isinstance(guarantee, NoGuarantee):
            return None
        from tempriv.ledger.spending import parts_of

        return parts_of(guarantee, scope, spending, self._file.secret)

    def _settled(self, number: int, scope: Scope, parts: ChargeParts | None) -> ChargeParts | None:
        """Parts for single readings only where these are those of the dataset's steps.

        And without those that were charged before: a draw of marks is charged once.
        """
        if parts is None:
            return None
        paid = self._sums.draw_is_charged
        parts = parts._replace(
            parts=tuple(p for p in parts.parts if p.draw is None or not paid(number, p.draw))
        )
        base = self._sums.base(number)
        if base is None:
            return parts
        aligned = base.same_steps(Resolution.of(scope), base.grid_of(scope))
        return parts if aligned else parts.unsplit

    def _decide(
        self,
        number: int,
        dataset: str,
        guarantee: Guarantee | NoGuarantee,
        scope: Scope,
        parts: ChargeParts | None,
    ) -> list[tuple[_Limit, list[_Addition], Total]]:
        """For every limit itself, what the charge adds and the total after; or a refusal."""
        limits = self._limits(number)
        if isinstance(guarantee, NoGuarantee):
            require(
                not limits,
                f"dataset {dataset!r} has a limit and this release guarantees nothing "
                f"({guarantee.reason}); charge it to a dataset without a limit",
                BudgetError,
            )
            return []
        release = Resolution.of(scope)
        base = self._sums.base(number) or release
        decided: list[tuple[_Limit, list[_Addition], Total]] = []
        for limit in limits:
            if limit.unit.names_landmarks:
                total = self._decide_landmarks(
                    number, dataset, limit, guarantee, scope, base, parts
                )
                decided.append((limit, [], total))
            else:
                decided.append(
                    self._decide_one(number, dataset, limit, guarantee, scope, base, release, parts)
                )
        return decided

    def _decide_landmarks(
        self,
        number: int,
        dataset: str,
        limit: _Limit,
        guarantee: Guarantee,
        scope: Scope,
        base: Resolution,
        parts: ChargeParts | None,
    ) -> Total:
        """The total of a limit on landmarks, which is made anew: any charge may name further ones.

        The rest is as in ``_decide``.
        """
        from tempriv.ledger.landmark_totals import cost_alone, joining, require_fitting

        unit, order = limit.unit, order_of(limit.epsilon, limit.delta)
        spender = joining(guarantee, scope, base, parts)
        require_fitting(dataset, unit, spender)
        sets = {} if parts is None else {moments.digest: moments for moments in parts.sets}

        def total_with(spenders: list[Spender]) -> Total:
            costs = self._sums.landmark_costs(
                number, cast("Landmarks", unit), order, base, spenders, sets, scope
            )
            return worst_total(costs, unit, limit.epsilon, limit.delta)

        # asked early, about nobody's data, it is what the release costs by itself
        total = total_with([] if scope.members == () else [spender])
        alone = cost_alone(spender, unit, order)
        if scope.members == ():
            own = worst_total(np.array([alone]), unit, limit.epsilon, limit.delta)
            total = own if own.exceeded else total
        if total.exceeded:
            without = total_with([])
            self._refuse(dataset, limit, without, alone, total)
        return total

    def _refuse(
        self, dataset: str, limit: _Limit, without: Total, cost: Cost, total: Total
    ) -> NoReturn:
        raise BudgetError(
            f"dataset {dataset!r}: {explain_refusal(without, cost, total)}",
            dataset=dataset,
            limit=limit.epsilon,
            remaining=without.remaining,
        )

    def _additions(
        self,
        unit: units.Unit,
        order: float,
        steps: StepsReached | None,
        guarantee: Guarantee,
        scope: Scope,
        parts: ChargeParts | None,
    ) -> list[_Addition]:
        """What a charge adds to a limit, and where."""
        if parts is None:
            return [_Addition(scope, cost_of_statements((guarantee,), unit, order, steps))]
        roles = roles_of(unit)
        return [
            _Addition(part.scope, cost_of_statements(part.statements, unit, order, steps))
            for part in parts.parts
            if part.role in roles
        ]

    def _decide_one(
        self,
        number: int,
        dataset: str,
        limit: _Limit,
        guarantee: Guarantee,
        scope: Scope,
        base: Resolution,
        release: Resolution,
        parts: ChargeParts | None,
    ) -> tuple[_Limit, list[_Addition], Total]:
        unit = limit.unit
        nobody = scope.members == ()
        if not nobody:
            require_comparable(dataset, unit, base, release)
        order = order_of(limit.epsilon, limit.delta)
        steps = steps_covered(unit, base, None if nobody else release)
        added = self._additions(unit, order, steps, guarantee, scope, parts)
        sentence = explain_other_unit(unit, guarantee.unit)
        bounded = all(addition.cost != UNBOUNDED_COST for addition in added)
        require(bounded, f"dataset {dataset!r} {sentence}", BudgetError)
        scopes.require_length(dataset, unit, guarantee.unit, scope)
        shares = [addition.scope.share(addition.cost, guarantee, unit) for addition in added]
        widths = before = self._sums.widths(number, unit)
        if not nobody:
            widths = self._sums.widths(number, unit, scope)
        width = widths.get(scope.clock)
        # what a charge does not touch stays as it was, unless its steps move all boundaries
        moved = widths != before and any(width != 0 for width in widths.values())
        everywhere = moved and unit.reach is not None
        one_moment, near = unit.positions_per_person == 1, None
        if set(widths) == {scope.clock} and one_moment and width is not None and not everywhere:
            starts, ends = [share.start for share in shares], [share.end for share in shares]
            if shares:
                first, last = max(min(starts) - width, EARLIEST), min(max(ends) + width, LATEST)
                near = TimeRange(scope.clock, first, last)
        named = not everywhere and scopes.separates_people(scope.kind, unit)
        whose = scope if named and not unit.about_marks else None
        earlier = [] if nobody else self._sums.touching(number, limit.id, unit, whose, near)

        at_hand = (scope, *(addition.scope for addition in added))

        def total_with(shares: list[ScopedCost], others: list[ScopedCost] = earlier) -> Total:
            costs = [
                scopes.total_costs(
                    [*others, *shares],
                    lambda digest: self._sums.ids(digest, *at_hand),
                    unit,
                    widths,
                    within=None if everywhere else share,
                    moments_of=functools.partial(self._readings_of, parts=parts),
                )
                for share in ([None] if everywhere or not shares else shares)
            ]
            return worst_total(np.vstack(costs), unit, limit.epsilon, limit.delta)

        total = total_with(shares)
        if total.spent is None and unit.about_order:
            # is it because single rows, or releases of unlike readings, do not add up?
            (share,) = shares
            rows = [other._replace(single=0) for other in (*earlier, share)]
            readings = [other._replace(exact=0) for other in rows]
            for mended in (rows, readings):
                require(
                    total_with(mended[-1:], mended[:-1]).spent is None,
                    f"dataset {dataset!r}: {explain_no_bound(unit, mended is rows)}",
                    BudgetError,
                )
        if total.exceeded:
            without = total_with([share._replace(cost=ZERO_COST) for share in shares])
            alone = None
            touched = [other._replace(cost=ONCE) for other in earlier if any(other.cost)]
            zeros = [share._replace(cost=ZERO_COST) for share in shares]
            if parts is None and total_with(zeros, touched).spent == 0:
                alone = alone_total(restated_over(guarantee, unit, steps), total)
            if alone is None:
                cost = max(addition.cost for addition in added)
                self._refuse(dataset, limit, without, cost, total)
            total = alone
        return limit, added, total if everywhere else limit.total.or_worse(total)

    def _readings_of(self, digest: bytes, parts: ChargeParts | None) -> scopes.Ids:
        """The readings of a set with a ``digest``, of the ledger or of ``parts`` at hand."""
        for moments in () if parts is None else parts.sets:
            if moments.digest == digest:
                return moments.moments
        return self._sums.readings_of(digest)

    def _record(
        self,
        number: int,
        charge: Charge,
        decided: list[tuple[_Limit, list[_Addition], Total]],
    ) -> int:
        file, place = self._file, self._sums.place(number, charge.scope)
        output, parts = charge.output, charge.parts
        where = (output.path, output.partial, output.checksum, output.request) if output else None
        told = [total for _, _, total in decided]
        # a receipt is public: totals would tell how many landmarks there are, or which other rows
        # these are like
        if parts is not None or self._sums.has_parts(number) or self._knows_rows(charge):
            told = []
        recorded = self._next_number(copied=charge.copied)
        file.execute(
            "INSERT INTO charges (id, release, dataset, scope, guarantee, content, recorded, note,"
            " totals, parted, state, path, partial, checksum, request)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(
                recorded,
                charge.release,
                number,
                place.scope,
                serialization.canonical(charge.guarantee).decode(),
                charge.content,
            ),
            *(_now(), charge.note),
            *(_json(told), int(parts is not None), "prepared" if output else "done"),
            *(where or (None,) * 4),
        )
        if parts is not None:
            self._sums.add_parts(number, recorded, parts)
        for limit, added, total in decided:
            for addition in added:
                where_added = place
                if parts is not None:
                    where_added = self._sums.place(number, addition.scope)
                self._sums.add(limit.id, limit.unit, where_added, addition.cost)
            file.execute("UPDATE limits SET total = ? WHERE id = ?", _json(total), limit.id)
        return recorded

    def _knows_rows(self, charge: Charge) -> bool:
        """Whether rows of this charge, or of any before it, can be known again."""
        return charge.sketched or bool(self._file.rows("SELECT 1 FROM sketches LIMIT 1"))

    def _next_number(self, copied: bool) -> int:
        """A number that no charge has, or had before it was forgotten.

        Those of copies in other datasets count down from -1: the number of a charge is public, and
        must not tell how many other datasets hold its rows.
        """
        most = "min" if copied else "max"
        query = f"""SELECT {most}(0, ifnull((SELECT {most}(id) FROM charges), 0),
            ifnull((SELECT {most}(charge) FROM forgotten), 0))"""
        return int(self._file.value(query)) + (-1 if copied else 1)

    def _receipt(self, release_id: str) -> Receipt:
        query = """SELECT c.id, c.release, d.name, c.recorded, c.totals FROM charges c
            JOIN datasets d ON d.id = c.dataset WHERE c.release = ?"""
        charge, release, dataset, recorded, totals = self._file.rows(query, release_id)[0]
        return Receipt(charge, release, dataset, recorded, _decode(totals))
