"""Durable charges against limits, in one SQLite file: check, record, and only then release.

The ledger holds no private value: of the data it knows whose they are (ids as digests) and from
when to when. ``scope`` finds what touches the same data, ``filters`` adds it up.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, cast

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
from tempriv.errors import BudgetError, LedgerError, require
from tempriv.ledger import scope as scopes
from tempriv.ledger.database import LedgerFile, create_file, open_file
from tempriv.ledger.resolution import (
    Resolution,
    cost_over,
    require_comparable,
    restated_over,
    steps_covered,
)
from tempriv.ledger.running_totals import RunningTotals, TimeRange
from tempriv.ledger.scope import EARLIEST, LATEST, Scope, ScopedCost
from tempriv.privacy import guarantees, serialization, units
from tempriv.privacy.guarantees import Guarantee, NoGuarantee

BUSY_SECONDS = 30.0

State = Literal["prepared", "done"]


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
        totals: for each limit of the dataset, what is spent of it.

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

    ``epsilon_in_advance`` is what each total would be, had all of it been fixed in advance.
    """

    dataset: str
    limited: bool
    totals: tuple[Total, ...]
    charges: int
    no_guarantee: str | None
    in_advance: tuple[float | None, ...]


@dataclass(frozen=True)
class Entry:
    """One charge, for printing; ``members`` is how many, None for anyone."""

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


class _Limit(NamedTuple):
    id: int
    unit: units.Unit
    epsilon: float
    delta: float
    total: Total


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _json(value: Any) -> str:
    return json.dumps(serialization.encode(value))


def _decode(text: str) -> Any:
    return guarantees.decode(json.loads(text), Total)


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
                        for limit in self._limits(dataset):
                            self._renew(dataset, limit)

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

    def _renew(self, dataset: int, limit: _Limit) -> Total:
        """The total of a limit and its running sums, from the charges themselves."""
        order = order_of(limit.epsilon, limit.delta)
        shares, costs = self._sums.recorded(dataset, limit.unit, order)
        total = worst_total(costs, limit.unit, limit.epsilon, limit.delta)
        self._sums.replace(limit.id, shares)
        self._file.execute("UPDATE limits SET total = ? WHERE id = ?", _json(total), limit.id)
        return total

    def check(
        self, dataset: str, guarantee: Guarantee | NoGuarantee, scope: Scope
    ) -> tuple[Total, ...]:
        """The totals that a charge would lead to, or its refusal; records nothing.

        Parameters:
            dataset: its name.
            guarantee: of the release.
            scope: whose data the release touches, and when.

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
        with self._file.reading():
            decided = self._decide(self._number(dataset), dataset, guarantee, scope)
        return tuple(total for _, _, total in decided)

    def charge(
        self,
        dataset: str,
        guarantee: Guarantee | NoGuarantee,
        scope: Scope,
        release_id: str,
        note: str | None = None,
        output: OutputRecord | None = None,
    ) -> Receipt:
        """Record a release if every limit agrees; it is on disk when this returns.

        The same release again gets the same receipt and spends nothing.

        Parameters:
            dataset: its name.
            guarantee: of the release.
            scope: whose data the release touches, and when.
            release_id: of the release; each has its own.
            note: kept with the charge.
            output: the file that waits to be put in place; the charge then stays open
                (``prepared``) until ``finish``.

        Raises:
            BudgetError: if a limit would be passed; nothing is recorded.
            LedgerError: if another release was charged under this id.
        """
        require(release_id != "", "release_id='': every release needs an id of its own")
        require(scope.members != (), "members=(): name those whose data it is, or None for anyone")
        scope = scopes.as_charged(scope, guarantee)
        # a million ids are hashed here, before anyone has to wait
        content = serialization.digest((dataset, guarantee, scope.digest.hex(), note, output))
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
                decided = self._decide(number, dataset, guarantee, scope)
                self._record(number, guarantee, scope, release_id, content, note, output, decided)
            return self._receipt(release_id)

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
                    known.unit.unaligned() for known in charged if isinstance(known, Guarantee)
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
        reasons = [none.reason for none in charged if isinstance(none, NoGuarantee)]
        reason = reasons[0] if reasons else None
        return Budget(dataset, bool(limits), tuple(totals), charges, reason, fixed)

    def log(self, dataset: str | None = None) -> tuple[Entry, ...]:
        """All charges, newest last.

        Parameters:
            dataset: its name; None: of all datasets.
        """
        query = """SELECT c.id, c.release, d.name, c.recorded, c.guarantee, s.kind,
            length(m.ids) / 8, s.start, s."end", s.clock, c.state, c.note FROM charges c
            JOIN datasets d ON d.id = c.dataset JOIN scopes s ON s.id = c.scope
            LEFT JOIN member_sets m ON m.digest = s.members
            WHERE ?1 IS NULL OR c.dataset = ?1 ORDER BY c.id"""
        with self._file.reading():
            rows = self._file.rows(query, None if dataset is None else self._number(dataset))
        entries = [Entry(*row) for row in rows]
        return tuple(
            dataclasses.replace(entry, guarantee=_decode(cast(str, entry.guarantee)))
            for entry in entries
        )

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

    def _decide(
        self, number: int, dataset: str, guarantee: Guarantee | NoGuarantee, scope: Scope
    ) -> list[tuple[_Limit, Cost, Total]]:
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
        return [
            self._decide_one(number, dataset, limit, guarantee, scope, base, release)
            for limit in limits
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
    ) -> tuple[_Limit, Cost, Total]:
        unit = limit.unit
        nobody = scope.members == ()
        if not nobody:
            require_comparable(dataset, unit, base, release)
        order = order_of(limit.epsilon, limit.delta)
        steps = steps_covered(unit, base, None if nobody else release)
        cost = cost_over(guarantee, unit, order, steps)
        sentence = explain_other_unit(unit, guarantee.unit)
        require(cost != UNBOUNDED_COST, f"dataset {dataset!r} {sentence}", BudgetError)
        scopes.require_length(dataset, unit, guarantee.unit, scope)
        share = scope.share(cost, guarantee, unit)
        widths = before = self._sums.widths(number, unit)
        if not nobody:
            widths = self._sums.widths(number, unit, scope)
        width = widths.get(scope.clock)
        # what a charge does not touch stays as it was, unless its steps move all boundaries
        moved = widths != before and any(width != 0 for width in widths.values())
        everywhere = moved and unit.reach is not None
        one_moment, near = unit.positions_per_person == 1, None
        if set(widths) == {scope.clock} and one_moment and width is not None and not everywhere:
            first, last = max(share.start - width, EARLIEST), min(share.end + width, LATEST)
            near = TimeRange(scope.clock, first, last)
        named = not everywhere and scopes.separates_people(scope.kind, unit)
        whose = scope if named else None
        earlier = [] if nobody else self._sums.touching(number, limit.id, unit, whose, near)

        def total_with(share: ScopedCost, others: list[ScopedCost] = earlier) -> Total:
            costs = scopes.total_costs(
                [*others, share],
                functools.partial(self._sums.ids, scope=scope),
                unit,
                widths,
                within=None if everywhere else share,
            )
            return worst_total(costs, unit, limit.epsilon, limit.delta)

        total = total_with(share)
        if total.spent is None and unit.about_order:
            # is it because single rows, or releases of unlike readings, do not add up?
            rows = [other._replace(single=0) for other in (*earlier, share)]
            readings = [other._replace(exact=0) for other in rows]
            for mended in (rows, readings):
                require(
                    total_with(mended[-1], mended[:-1]).spent is None,
                    f"dataset {dataset!r}: {explain_no_bound(unit, mended is rows)}",
                    BudgetError,
                )
        if total.exceeded:
            without = total_with(share._replace(cost=ZERO_COST))
            alone = None
            if without.spent == 0:
                alone = alone_total(restated_over(guarantee, unit, steps), total)
            if alone is None:
                sentence = explain_refusal(without, cost, total)
                raise BudgetError(
                    f"dataset {dataset!r}: {sentence}",
                    dataset=dataset,
                    limit=limit.epsilon,
                    remaining=without.remaining,
                )
            total = alone
        return limit, cost, total if everywhere else limit.total.or_worse(total)

    def _record(
        self,
        number: int,
        guarantee: Guarantee | NoGuarantee,
        scope: Scope,
        release_id: str,
        content: str,
        note: str | None,
        output: OutputRecord | None,
        decided: list[tuple[_Limit, Cost, Total]],
    ) -> None:
        file, place = self._file, self._sums.place(number, scope)
        where = (output.path, output.partial, output.checksum, output.request) if output else None
        file.execute(
            "INSERT INTO charges (release, dataset, scope, guarantee, content, recorded, note,"
            " totals, state, path, partial, checksum, request)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(
                release_id,
                number,
                place.scope,
                serialization.canonical(guarantee).decode(),
                content,
            ),
            *(_now(), note),
            *(_json([total for _, _, total in decided]), "prepared" if output else "done"),
            *(where or (None,) * 4),
        )
        for limit, cost, total in decided:
            self._sums.add(limit.id, limit.unit, place, cost)
            file.execute("UPDATE limits SET total = ? WHERE id = ?", _json(total), limit.id)

    def _receipt(self, release_id: str) -> Receipt:
        query = """SELECT c.id, c.release, d.name, c.recorded, c.totals FROM charges c
            JOIN datasets d ON d.id = c.dataset WHERE c.release = ?"""
        charge, release, dataset, recorded, totals = self._file.rows(query, release_id)[0]
        return Receipt(charge, release, dataset, recorded, _decode(totals))
