"""The running sums in a ledger's file: what a charge meets is found without reading all the rest.

Scopes of the same members form a group, named by the first of them. A charge reads the groups that
may share a member with it, and of these the scopes near it in time. Where a limit does not tell
times apart, a group has one sum, kept with its first scope.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tempriv.accounting.filters import Cost, Costs
from tempriv.ledger import scope as scopes
from tempriv.ledger.database import LedgerFile
from tempriv.ledger.resolution import Resolution, StepsReached, cost_over, steps_covered, widths_of
from tempriv.ledger.scope import EARLIEST, LATEST, Ids, Scope, ScopedCost
from tempriv.privacy import guarantees, units
from tempriv.privacy.guarantees import Guarantee, NoGuarantee
from tempriv.privacy.units.base import UnitEntry

# sets of at most so many members are found by the name of each
SMALL_SET_MEMBERS = 64


def _names_a_unit(entries: Iterable[UnitEntry]) -> str:
    """SQL for whether a charge's guarantee is for one of some kinds of unit."""
    named = (f'instr(guarantee, \'"is":"{entry.spec_name}"\')' for entry in entries)
    return " + ".join(named) + " > 0"


def exact_and_single() -> tuple[str, str]:
    """SQL for charges that published the readings themselves, and for those for single rows."""
    exact = [entry for entry in units.unit_entries() if entry.about_order]
    single = [entry for entry in exact if entry.single_rows]
    return _names_a_unit(exact), f"({_names_a_unit(single)})"


def _counted() -> str:
    """SQL for a scope's charges: all, the exact ones, those of them for single rows; at most 2."""
    exact, single = exact_and_single()
    return "".join(
        ", (SELECT count(*) FROM (SELECT 1 FROM charges c WHERE c.dataset = s.dataset AND "
        f"c.scope = s.id AND {which} LIMIT 2))"
        for which in ("true", exact, f"{exact} AND {single} = 1")
    )


def _last(unit: units.Unit) -> str:
    """The column with the last tick that counts: of readings themselves, or of their steps."""
    return '"end"' if unit.about_order else "until"


class TimeRange(NamedTuple):
    """A stretch of a clock, in ticks, both ends included."""

    clock: str
    first: int
    last: int


class Charge(NamedTuple):
    """What is recorded of a charge, in whatever dataset it counts; ``output`` waits somewhere."""

    guarantee: Guarantee | NoGuarantee
    scope: Scope
    release: str
    note: str | None
    content: str = ""
    output: Any = None


class ScopeRow(NamedTuple):
    """The number of a scope, and of the first scope of the same members."""

    scope: int
    first: int

    def for_unit(self, unit: units.Unit) -> int:
        """Where the sum is kept: with the first scope if the ``unit`` does not tell times apart."""
        return self.first if unit.reach is None else self.scope


@functools.lru_cache(maxsize=4096)
def _guarantee(text: str) -> Any:
    return guarantees.decode(json.loads(text))


class RunningTotals:
    """Scopes and running sums of one file."""

    def __init__(self, file: LedgerFile):
        self._file = file

    @staticmethod
    def guarantee(text: str) -> Any:
        """The guarantee of a charge, from its ``text`` in the file."""
        return _guarantee(text)

    def base(self, dataset: int) -> Resolution | None:
        """The time steps that limits of a ``dataset`` speak of: those of its first scope."""
        query = "SELECT clock, start, step FROM scopes WHERE dataset = ? ORDER BY id LIMIT 1"
        first = self._file.rows(query, dataset)
        return Resolution(*first[0]) if first else None

    def widths(
        self, dataset: int, unit: units.Unit, joining: Scope | None = None
    ) -> dict[str, int | None]:
        """For each clock of a ``dataset``, how far a limit reaches over time, in ticks.

        None where time does not separate.

        Parameters:
            dataset: its number.
            unit: of the limit.
            joining: a scope that is to be charged, too.
        """
        base = self.base(dataset) or (None if joining is None else Resolution.of(joining))
        if base is None:
            return {}
        grids = self._grids(dataset)
        if joining is not None:
            grid = base.grid_of(joining)
            grids[joining.clock] = max(grids.get(joining.clock, grid), grid)
        if unit.covered_steps is not None:
            return widths_of(unit, base, grids)
        if not unit.reach:
            return dict.fromkeys(grids, unit.reach)
        steps = {clock: self._widest_step(dataset, clock, joining) for clock in grids}
        return {
            clock: None if step is None else min(unit.reach * step, LATEST)
            for clock, step in steps.items()
        }

    def _grids(self, dataset: int) -> dict[str, int]:
        """For each clock, how its scopes lie on the steps of the dataset in the worst case."""
        grids: dict[str, int] = {}
        following = "SELECT min(clock) FROM scopes WHERE dataset = ? AND clock > ?"
        worst = "SELECT max(grid) FROM scopes WHERE dataset = ? AND clock = ?"
        # a few jumps in the index for each clock
        clock = self._file.value(following, dataset, "")
        while clock is not None:
            grids[clock] = self._file.value(worst, dataset, clock)
            clock = self._file.value(following, dataset, clock)
        return grids

    def _widest_step(self, dataset: int, clock: str, joining: Scope | None) -> int | None:
        """The widest grid step on a clock; None if a scope has no step."""
        scopes_of_clock = "FROM scopes WHERE dataset = ? AND clock = ?"
        query = f"SELECT 1 {scopes_of_clock} AND step IS NULL LIMIT 1"
        unknown = self._file.value(query, dataset, clock)
        widest = self._file.value(f"SELECT max(step) {scopes_of_clock}", dataset, clock)
        steps = [widest] if widest is not None or unknown else []
        if joining is not None and joining.clock == clock:
            steps.append(joining.step)
        return None if unknown or None in steps else max(steps)

    def align(self) -> None:
        """Note the extents of scopes that an older version placed."""
        query = """SELECT id, dataset, clock, start, "end", step FROM scopes"""
        bases: dict[int, Resolution] = {}
        for number, dataset, clock, start, end, step in self._file.rows(f"{query} ORDER BY id"):
            scope = Scope(clock=clock, start=start, end=end, step=step)
            base = bases.setdefault(dataset, Resolution.of(scope))
            self._file.execute(
                "UPDATE scopes SET until = ?, grid = ? WHERE id = ?",
                *(scope.until, base.grid_of(scope), number),
            )

    def ids(self, digest: bytes, scope: Scope | None = None) -> Ids:
        """The members of the set with a ``digest``, which may be that of a ``scope`` at hand."""
        if scope is not None and scope.ids is not None and scope.set_digest == digest:
            return scope.ids
        query = "SELECT ids FROM member_sets WHERE digest = ?"
        return scopes.ids_from_bytes(self._file.value(query, digest))

    def recorded(
        self, dataset: int, unit: units.Unit, order: float = 1.0
    ) -> tuple[dict[int, ScopedCost], Costs]:
        """What the charges themselves add up to, for each place of a sum and for all.

        Parameters:
            dataset: its number.
            unit: of the limit.
            order: at which rhos are counted.
        """
        query = f"""SELECT c.guarantee, count(*), s.id, s.first, s.step, s.kind, s.members, s.clock,
            s.start, s.{_last(unit)} FROM charges c JOIN scopes s ON s.id = c.scope
            WHERE c.dataset = ? GROUP BY s.id, c.guarantee"""
        base = self.base(dataset)
        each: dict[tuple[str, StepsReached | None], tuple[float, ...]] = {}
        shares: dict[int, ScopedCost] = {}
        for text, count, number, first, step, *scope in self._file.rows(query, dataset):
            assert base is not None, "there is a scope"
            steps = steps_covered(unit, base, Resolution(scope[2], scope[3], step))
            if (text, steps) not in each:
                guarantee = _guarantee(text)
                cost = cost_over(guarantee, unit, order, steps)
                each[text, steps] = (*cost, 1, *scopes.exactness(guarantee))
            place = ScopeRow(number, first).for_unit(unit)
            share = shares.get(place)
            before = (0.0,) * 6 if share is None else (*share.cost, *share[7:])
            after = [b + count * x for b, x in zip(before, each[text, steps], strict=True)]
            counts = [min(int(x), 2) for x in after[3:]]
            shares[place] = scopes.scoped_cost(scope, Cost(*after[:3]), step, *counts)
        widths = self.widths(dataset, unit)
        return shares, scopes.total_costs(list(shares.values()), self.ids, unit, widths)

    def costs(self, dataset: int, unit: units.Unit) -> set[Cost]:
        """What single charges cost, each amount once.

        Parameters:
            dataset: its number.
            unit: of the limit.
        """
        query = """SELECT DISTINCT c.guarantee, s.clock, s.start, s.step
            FROM charges c JOIN scopes s ON s.id = c.scope WHERE c.dataset = ?"""
        base = self.base(dataset)
        kinds = {
            (text, steps_covered(unit, base, Resolution(*steps)))
            for text, *steps in self._file.rows(query, dataset)
            if base is not None
        }
        return {cost_over(_guarantee(text), unit, 1.0, steps) for text, steps in kinds}

    def replace(self, limit: int, shares: dict[int, ScopedCost]) -> None:
        """Begin the sums of a ``limit`` anew, from the ``shares`` of each scope."""
        self._file.execute('DELETE FROM sums WHERE "limit" = ?', limit)
        self._file.insert(
            "INSERT INTO sums VALUES (?, ?, ?, ?, ?)",
            [(limit, place, *share.cost) for place, share in shares.items()],
        )

    def touching(
        self,
        dataset: int,
        limit: int,
        unit: units.Unit,
        scope: Scope | None = None,
        near: TimeRange | None = None,
    ) -> list[ScopedCost]:
        """The sums that may meet a scope, and are near in time where that matters.

        Parameters:
            dataset: its number.
            limit: its number.
            unit: of the limit.
            scope: that is charged; None: any.
            near: the time in which sums must lie; None: any.
        """
        group = "id" if unit.reach is None else "first"
        also = f", s.step{_counted()}" if unit.about_order else ""
        last = _last(unit)
        query = f"""SELECT s.kind, s.members, s.clock, s.start, s.{last},
            u.epsilon, u.delta, u.rho{also}
            FROM scopes s CROSS JOIN sums u ON u."limit" = ? AND u.scope = s.id
            WHERE s.{group} IN (SELECT value FROM json_each(?))"""
        values = [limit, json.dumps(self._groups(dataset, scope))]
        if near is not None:
            # as the index has it
            query += f""" AND s.clock = ? AND ifnull(s.{last}, {LATEST}) >= ?
                AND ifnull(s.start, {EARLIEST}) <= ?"""
            values += near
        return [
            scopes.scoped_cost(row[:5], Cost(*row[5:8]), *row[8:])
            for row in self._file.rows(query, *values)
        ]

    def index_exact(self) -> None:
        """Have exact charges found without looking at the others.

        Made when the first limit on the order of readings is set; no other needs it.
        """
        exact, single = exact_and_single()
        index = f"exact_charges ON charges (dataset, scope, {single}) WHERE {exact}"
        self._file.execute(f"CREATE INDEX IF NOT EXISTS {index}")

    def _groups(self, dataset: int, scope: Scope | None) -> list[int]:
        """Groups that may share a member with a scope.

        All of them if it has many members; else those of many members or of another kind, and
        those in which one of its members is found by name.
        """
        if scope is None or scope.ids is None or len(scope.ids) > SMALL_SET_MEMBERS:
            rows = self._file.rows("SELECT first FROM groups WHERE dataset = ?", dataset)
        else:
            query = """SELECT first FROM groups WHERE dataset = ?1 AND small = 0
                UNION SELECT first FROM groups WHERE dataset = ?1 AND small = 1 AND kind < ?2
                UNION SELECT first FROM groups WHERE dataset = ?1 AND small = 1 AND kind > ?2
                UNION SELECT g.first FROM small_sets m CROSS JOIN groups g ON g.dataset = ?1
                AND g.small = 1 AND g.kind = ?2 AND g.members = m.digest
                WHERE m.member IN (SELECT value FROM json_each(?3))"""
            names = json.dumps(_names(scope.ids))
            rows = self._file.rows(query, dataset, scope.kind, names)
        return [first for (first,) in rows]

    def place(self, dataset: int, scope: Scope) -> ScopeRow:
        """The row of a ``scope`` in a ``dataset``, made if it is new."""
        file = self._file
        find = "SELECT id, first FROM scopes WHERE dataset = ? AND digest = ?"
        known = file.rows(find, dataset, scope.digest)
        if known:
            return ScopeRow(*known[0])
        ids, digest = scope.ids, scope.set_digest
        small = ids is not None and len(ids) <= SMALL_SET_MEMBERS
        if ids is not None:
            row = (digest, scopes.ids_to_bytes(ids))
            file.execute("INSERT INTO member_sets VALUES (?, ?) ON CONFLICT DO NOTHING", *row)
        if small and ids is not None:
            names = [(name, digest) for name in _names(ids)]
            file.insert("INSERT INTO small_sets VALUES (?, ?) ON CONFLICT DO NOTHING", names)
        group = (dataset, int(small), scope.kind, digest)
        first = file.value(
            "SELECT first FROM groups WHERE dataset = ? AND small = ? AND kind = ?"
            " AND members IS ?",
            *group,
        )
        file.execute(
            'INSERT INTO scopes (dataset, digest, kind, members, start, "end", step, clock, first,'
            " until, grid) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(dataset, scope.digest, scope.kind, digest),
            *(scope.start, scope.end, scope.step, scope.clock, first),
            *(scope.until, (self.base(dataset) or Resolution.of(scope)).grid_of(scope)),
        )
        number = file.rows(find, dataset, scope.digest)[0][0]
        if first is None:
            file.execute("UPDATE scopes SET first = id WHERE id = ?", number)
            file.execute("INSERT INTO groups VALUES (?, ?, ?, ?, ?)", number, *group)
        return ScopeRow(number, first or number)

    def add(self, limit: int, unit: units.Unit, place: ScopeRow, cost: Cost) -> None:
        """Add a charge to its sum.

        Parameters:
            limit: its number.
            unit: of the limit.
            place: the row of the scope.
            cost: of the charge.
        """
        self._file.execute(
            "INSERT INTO sums VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " epsilon = epsilon + excluded.epsilon, delta = delta + excluded.delta,"
            " rho = rho + excluded.rho",
            *(limit, place.for_unit(unit), *cost),
        )


def _names(ids: Ids) -> list[int]:
    """Digests of members as integers that SQLite can hold."""
    return [int(name) for name in ids.view(np.int64)]
