"""Durable charges against limits, in one SQLite file: check, record, and only then release.

The ledger holds no private value: of the data it knows whose they are (ids as digests) and from
when to when. ``scopes`` finds what touches the same data, ``totals`` adds it up.
"""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, cast

from tempriv.accounting.filters import (
    NO_BOUND,
    NOTHING,
    Cost,
    Total,
    cost_of,
    does_not_add_up,
    explain,
    in_advance,
    order_of,
    says_nothing,
    unlimited,
    worst,
)
from tempriv.errors import BudgetError, LedgerError, require
from tempriv.ledger import scope as scopes
from tempriv.ledger.database import LedgerFile, create_file, open_file
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
    """Proof that a release was charged, and what each limit stood at right after."""

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

    ``in_advance`` is what each total would be, had all of it been fixed in advance.
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
    return serialization.decode(json.loads(text), (Total, *guarantees.ALL, *units.all_units()))


class Ledger:
    """One ledger file, opened; close it or use it in a ``with`` statement.

    Guarantees:
        a receipt is handed out only after its charge is on disk;
        no limit is passed, whatever processes charge at once;
        ids are stored as digests, values not at all.

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
                    for (dataset,) in file.rows("SELECT id FROM datasets"):
                        for limit in self._limits(dataset):
                            self._renew(dataset, limit)

    @classmethod
    def open(cls, path: str | Path, busy_seconds: float = BUSY_SECONDS) -> Ledger:
        """A ledger that exists; others are waited for at most that long."""
        return cls(open_file(Path(path), busy_seconds))

    @classmethod
    def create(cls, path: str | Path, busy_seconds: float = BUSY_SECONDS) -> Ledger:
        """A ledger at this path, new unless it exists; nobody else may read a new one."""
        return cls(create_file(Path(path), busy_seconds))

    @property
    def path(self) -> Path:
        return self._file.path

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def datasets(self) -> tuple[str, ...]:
        """The names of all datasets."""
        return tuple(name for (name,) in self._file.rows("SELECT name FROM datasets ORDER BY name"))

    def ensure_dataset(self, name: str) -> None:
        """Have the dataset, if need be without a limit: its charges are recorded only."""
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

        The total says whether they are above the new limit already (``exceeded``).
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
            held = self._file.value(f"SELECT epsilon {find}", dataset, text)
            require(
                held is None or replace,
                f"dataset {name!r} already has a limit of epsilon = {held} for {unit.sentence}; "
                "to change it, ask to replace it",
                BudgetError,
            )
            self._file.execute(
                "INSERT INTO limits (dataset, unit, epsilon, delta, total) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET epsilon = excluded.epsilon, delta = excluded.delta",
                *(dataset, text, epsilon, delta, _json(None)),
            )
            number = self._file.value(f"SELECT id {find}", dataset, text)
            limit = next(one for one in self._limits(dataset) if one.id == number)
            return self._renew(dataset, limit)

    def _renew(self, dataset: int, limit: _Limit) -> Total:
        """The total of a limit and its running sums, from the charges themselves."""
        order = order_of(limit.epsilon, limit.delta)
        shares, costs = self._sums.recorded(dataset, limit.unit, order)
        total = worst(costs, limit.unit, limit.epsilon, limit.delta)
        self._sums.replace(limit.id, shares)
        self._file.execute("UPDATE limits SET total = ? WHERE id = ?", _json(total), limit.id)
        return total

    def check(
        self, dataset: str, guarantee: Guarantee | NoGuarantee, scope: Scope
    ) -> tuple[Total, ...]:
        """The totals that a charge would lead to, or its refusal; records nothing."""
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

        The same release again gets the same receipt and spends nothing. With an ``output`` the
        charge stays open (``prepared``) until ``finish``.
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
        """Whether the output of a release was put in place; None if it was never charged."""
        query = "SELECT state FROM charges WHERE release = ?"
        return cast(State | None, self._file.value(query, release_id))

    def partials(self, path: str | Path) -> list[Path]:
        """The outputs that are paid for and still wait to become this path."""
        query = "SELECT partial FROM charges WHERE state = 'prepared' AND path = ?"
        return [Path(partial) for (partial,) in self._file.rows(query, _absolute(path))]

    def prepared(self, path: str | Path, request: str) -> Prepared | None:
        """The charge whose output still waits to become this path, if the request is the same."""
        query = """SELECT release, path, partial, checksum, request FROM charges
            WHERE state = 'prepared' AND path = ? AND request = ? ORDER BY id DESC LIMIT 1"""
        found = self._file.rows(query, _absolute(path), request)
        return Prepared(self._receipt(found[0][0]), OutputRecord(*found[0][1:])) if found else None

    def finish(self, release_id: str) -> None:
        """The output of a charge is in place: forget where it waited."""
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
        """How a dataset stands, for printing."""
        with self._file.reading():
            number = self._number(dataset)
            limits = self._limits(number)
            query = """SELECT guarantee, count(*) FROM charges WHERE dataset = ?
                GROUP BY guarantee ORDER BY min(id)"""
            counted = [(_decode(text), count) for text, count in self._file.rows(query, number)]
            promises = [promise for promise, _ in counted]
            charges = sum(count for _, count in counted)
            totals = [limit.total for limit in limits]
            if not limits:
                charged = [one.unit.unaligned() for one in promises if isinstance(one, Guarantee)]
                totals = [
                    unlimited(self._sums.recorded(number, unit)[1], unit)
                    for unit in dict.fromkeys(charged)
                ]
        reasons = [one.reason for one in promises if isinstance(one, NoGuarantee)]
        reason = reasons[0] if reasons else None
        fixed = tuple(in_advance(total, promises) for total in totals)
        return Budget(dataset, bool(limits), tuple(totals), charges, reason, fixed)

    def log(self, dataset: str | None = None) -> tuple[Entry, ...]:
        """All charges, or those of one dataset, newest last."""
        query = """SELECT c.id, c.release, d.name, c.recorded, c.guarantee, s.kind,
            length(m.ids) / 8, s.start, s."end", s.clock, c.state, c.note FROM charges c
            JOIN datasets d ON d.id = c.dataset JOIN scopes s ON s.id = c.scope
            LEFT JOIN member_sets m ON m.digest = s.members
            WHERE ?1 IS NULL OR c.dataset = ?1 ORDER BY c.id"""
        with self._file.reading():
            rows = self._file.rows(query, None if dataset is None else self._number(dataset))
        names = [one.name for one in fields(Entry)]
        entries = [dict(zip(names, row, strict=True)) for row in rows]
        return tuple(Entry(**one | {"guarantee": _decode(one["guarantee"])}) for one in entries)

    def _number(self, dataset: str) -> int:
        found = self._file.value("SELECT id FROM datasets WHERE name = ?", dataset)
        if found is None:
            known = ", ".join(map(repr, self.datasets())) or "none so far"
            raise LedgerError(
                f"dataset {dataset!r} is not in ledger {self.path} (known: {known}); make it "
                "with `tempriv budget create`"
            )
        return int(found)

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
        before = self._sums.steps(number)
        steps = scopes.widest(before, scope)
        return [
            self._decide_one(number, dataset, limit, guarantee, scope, steps, steps != before)
            for limit in limits
        ]

    def _decide_one(
        self,
        number: int,
        dataset: str,
        limit: _Limit,
        guarantee: Guarantee,
        scope: Scope,
        steps: dict[str, int | None],
        new_steps: bool,
    ) -> tuple[_Limit, Cost, Total]:
        unit = limit.unit
        cost = cost_of(guarantee, unit, order_of(limit.epsilon, limit.delta))
        sentence = says_nothing(unit, guarantee.unit)
        require(cost != NO_BOUND, f"dataset {dataset!r} {sentence}", BudgetError)
        scopes.require_length(dataset, unit, guarantee.unit, scope)
        share = scope.share(cost, guarantee)
        widths = scopes.widths(unit, steps)
        width = widths.get(scope.clock)
        # what a charge does not touch stays as it was, unless its step moves all boundaries
        nobody = scope.members == ()
        everywhere = new_steps and bool(unit.reach) and not nobody
        one_moment, near = unit.positions_per_person == 1, None
        if set(steps) == {scope.clock} and one_moment and width is not None and not everywhere:
            first, last = max(share.start - width, EARLIEST), min(share.end + width, LATEST)
            near = TimeRange(scope.clock, first, last)
        named = not everywhere and scopes.separates_people(scope.kind, unit)
        whose = scope if named else None
        held = [] if nobody else self._sums.touching(number, limit.id, unit, whose, near)

        def total_with(one: ScopedCost, others: list[ScopedCost] = held) -> Total:
            costs = scopes.totals(
                [*others, one],
                functools.partial(self._sums.ids, scope=scope),
                unit,
                widths,
                within=None if everywhere else one,
            )
            return worst(costs, unit, limit.epsilon, limit.delta)

        total = total_with(share)
        if total.spent is None and unit.about_order:
            # is it because single rows, or releases of unlike readings, do not add up?
            rows = [one._replace(single=0) for one in (*held, share)]
            readings = [one._replace(exact=0) for one in rows]
            for mended in (rows, readings):
                require(
                    total_with(mended[-1], mended[:-1]).spent is None,
                    f"dataset {dataset!r}: {does_not_add_up(unit, mended is rows)}",
                    BudgetError,
                )
        if total.exceeded:
            before = total_with(share._replace(cost=NOTHING))
            sentence = explain(before, cost, total)
            raise BudgetError(f"dataset {dataset!r}: {sentence}")
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
