"""The running sums in a ledger's file: what a charge meets is found without reading all the rest.

Scopes of the same members form a group, named by the first of them. A charge reads the groups that
may share a member with it, and of these the scopes near it in time. Where a limit does not tell
times apart, a group has one sum, kept with its first scope.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from tempriv.accounting.filters import ZERO_COST, Cost, Costs
from tempriv.ledger import scope as scopes
from tempriv.ledger.database import LedgerFile
from tempriv.ledger.resolution import (
    Resolution,
    Statements,
    StepsReached,
    least_cost,
    steps_covered,
    widths_of,
)
from tempriv.ledger.scope import (
    EARLIEST,
    EVERY,
    LANDMARKS,
    LATEST,
    LONGER,
    MARKS,
    SINGLE,
    Ids,
    Scope,
    ScopedCost,
)
from tempriv.privacy import guarantees, serialization, units
from tempriv.privacy.guarantees import Guarantee, NoGuarantee
from tempriv.privacy.units.base import UnitEntry

if TYPE_CHECKING:  # loaded where there are landmarks
    from tempriv.ledger.landmark_totals import Spender
    from tempriv.ledger.spending import ChargeParts, Moments
    from tempriv.privacy.units import Landmarks

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
    """What is recorded of a charge, in whatever dataset it counts.

    Parameters:
        guarantee: of the release.
        scope: whose data the release touches, and when.
        release: its id.
        note: kept with the charge.
        content: a digest of all that is charged.
        output: the file that waits to be put in place.
        parts: of a landmark release, what its readings spend; None: all of its epsilon.
        sketched: whether its rows were seen, so that they can be known again.
        copied: whether it counts here because of another dataset, in which it was made.
    """

    guarantee: Guarantee | NoGuarantee
    scope: Scope
    release: str
    note: str | None
    content: str = ""
    output: Any = None
    parts: ChargeParts | None = None
    sketched: bool = False
    copied: bool = False

    def over(self, scope: Scope) -> Charge:
        """The same over another scope, of which it is not known which readings are landmarks."""
        return self if scope == self.scope else self._replace(scope=scope, parts=None)


class ScopeRow(NamedTuple):
    """The number of a scope, and of the first scope of the same members."""

    scope: int
    first: int

    def for_unit(self, unit: units.Unit) -> int:
        """Where the sum is kept: with the first scope if the ``unit`` does not tell times apart."""
        return self.first if unit.reach is None else self.scope


@functools.lru_cache(maxsize=4096)
def statements_of(text: str) -> Statements:
    """What is guaranteed of a charge, from its ``text``: one thing, or several."""
    said = guarantees.decode(json.loads(text))
    return said if isinstance(said, tuple) else (said,)


def roles_of(unit: units.Unit) -> tuple[str, ...]:
    """Which parts of charges count for limits on a ``unit``."""
    if unit.about_marks:
        return (MARKS,)
    single = unit.reach == 0 and unit.positions_per_person == 1
    return EVERY, SINGLE if single else LONGER


def cost_of_statements(
    statements: Statements, unit: units.Unit, order: float, steps: StepsReached | None
) -> Cost:
    """What a charge costs for a limit, of which some ``statements`` are true.

    Parameters:
        statements: about the charge.
        unit: of the limit.
        order: at which rhos are counted.
        steps: as ``steps_covered`` says.
    """
    if unit.about_marks and not any(
        isinstance(said, NoGuarantee) or said.unit.about_marks or said.unit.names_landmarks
        for said in statements
    ):
        return ZERO_COST  # it never looks at marks
    return least_cost(statements, unit, order, steps)


def _measures(
    statements: Statements, unit: units.Unit, order: float, steps: StepsReached | None
) -> tuple[float, ...]:
    """The cost of a charge; then one, and whether it is exact, and for single rows only."""
    cost = cost_of_statements(statements, unit, order, steps)
    return (*cost, 1, *scopes.exactness(statements[0]))


class RunningTotals:
    """Scopes and running sums of one file."""

    def __init__(self, file: LedgerFile):
        self._file = file

    @staticmethod
    def guarantee(text: str) -> Any:
        """The guarantee of a charge, from its ``text`` in the file."""
        return statements_of(text)[0]

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

    def moments(self, digest: bytes) -> Moments:
        """The readings of the set with a ``digest``."""
        from tempriv.ledger.spending import Moments

        query = "SELECT members, counts, moments FROM marks WHERE digest = ?"
        members, counts, moments = self._file.rows(query, digest)[0]
        return Moments(
            scopes.ids_from_bytes(members),
            np.frombuffer(counts, dtype="<i8").astype(np.int64),
            scopes.ids_from_bytes(moments),
        )

    def has_parts(self, dataset: int) -> bool:
        """Whether charges of a ``dataset`` were made in parts, as those of landmarks are."""
        query = "SELECT 1 FROM charges WHERE dataset = ? AND parted = 1 LIMIT 1"
        return bool(self._file.value(query, dataset))

    def marks_statements(self, dataset: int) -> list[Any]:
        """What charges of a ``dataset`` guarantee for which moments are landmarks, each once."""
        if not self.has_parts(dataset):
            return []
        query = """SELECT DISTINCT p.guarantee FROM parts p JOIN charges c ON c.id = p.charge
            WHERE c.dataset = ? AND p.role = ?"""
        rows = self._file.rows(query, dataset, MARKS)
        return [said for (text,) in rows for said in statements_of(text)]

    def _charged(self, dataset: int, roles: Sequence[str], columns: str) -> list[Any]:
        """Charges, or parts of them that have some of these ``roles``, grouped where alike."""
        query = f"""SELECT c.guarantee, count(*), {columns} FROM charges c
            JOIN scopes s ON s.id = c.scope WHERE c.dataset = ? AND c.parted = 0
            GROUP BY s.id, c.guarantee"""
        rows = self._file.rows(query, dataset)
        if self.has_parts(dataset):
            query = f"""SELECT p.guarantee, count(*), {columns} FROM charges c
                JOIN parts p ON p.charge = c.id JOIN scopes s ON s.id = p.scope
                WHERE c.dataset = ? AND c.parted = 1
                AND p.role IN (SELECT value FROM json_each(?)) GROUP BY s.id, p.guarantee"""
            rows += self._file.rows(query, dataset, json.dumps(list(roles)))
        return rows

    def spenders(self, dataset: int, base: Resolution) -> list[Spender]:
        """All charges of a ``dataset`` as a limit on landmarks sees them.

        Parameters:
            dataset: its number.
            base: the steps of the dataset.
        """
        from tempriv.ledger.landmark_totals import Spender
        from tempriv.ledger.spending import SeriesSpending

        scope = "s.kind, s.members, s.clock, s.start, s.until, s.step, s.grid"
        plain = f"""SELECT c.guarantee, NULL, NULL, count(*), {scope} FROM charges c
            JOIN scopes s ON s.id = c.scope WHERE c.dataset = ? AND c.parted = 0
            GROUP BY s.id, c.guarantee"""
        parts = f"""SELECT p.guarantee, p.spent, p.marks, count(*), {scope} FROM charges c
            JOIN parts p ON p.charge = c.id JOIN scopes s ON s.id = p.scope
            WHERE c.dataset = ? AND c.parted = 1 AND p.role = ?
            GROUP BY s.id, p.guarantee, p.spent, p.marks"""
        rows = self._file.rows(plain, dataset)
        rows += self._file.rows(parts, dataset, LANDMARKS)
        return [
            Spender(
                place=scopes.scoped_cost(row[:5], ZERO_COST),
                charges=count,
                statements=statements_of(text),
                spent=None if spent is None else SeriesSpending(**json.loads(spent)),
                marks=marks,
                aligned=base.same_steps(Resolution(row[2], row[3], row[5]), row[6]),
            )
            for text, spent, marks, count, *row in rows
        ]

    def ids(self, digest: bytes, *at_hand: Scope) -> Ids:
        """The members of the set with a ``digest``, which may be that of a scope ``at_hand``."""
        for scope in at_hand:
            if scope.ids is not None and scope.set_digest == digest:
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
        base = self.base(dataset)
        if unit.names_landmarks:
            limited = cast("Landmarks", unit)
            return {}, self.landmark_costs(dataset, limited, order, base)
        shares = self.shares(dataset, unit, order)
        widths = self.widths(dataset, unit)
        costs = scopes.total_costs(
            list(shares.values()), self.ids, unit, widths, moments_of=self.readings_of
        )
        return shares, costs

    def shares(self, dataset: int, unit: units.Unit, order: float = 1.0) -> dict[int, ScopedCost]:
        """What the charges themselves add up to, for each place of a sum.

        Parameters:
            dataset: its number.
            unit: of the limit.
            order: at which rhos are counted.
        """
        base = self.base(dataset)
        columns = f"""s.id, s.first, s.step, s.marks, s.inside, s.kind, s.members, s.clock,
            s.start, s.{_last(unit)}"""
        each: dict[tuple[str, StepsReached | None], tuple[float, ...]] = {}
        shares: dict[int, ScopedCost] = {}
        for row in self._charged(dataset, roles_of(unit), columns):
            text, count, number, first, step, marks, inside, *scope = row
            assert base is not None, "there is a scope"
            steps = steps_covered(unit, base, Resolution(scope[2], scope[3], step))
            if (text, steps) not in each:
                each[text, steps] = _measures(statements_of(text), unit, order, steps)
            place = ScopeRow(number, first).for_unit(unit)
            share = shares.get(place)
            before = (0.0,) * 6 if share is None else (*share.cost, *share[7:10])
            after = [b + count * x for b, x in zip(before, each[text, steps], strict=True)]
            counts = [min(int(x), 2) for x in after[3:]]
            share = scopes.scoped_cost(scope, Cost(*after[:3]), step, *counts)
            if marks is not None:
                share = share._replace(marks=marks, inside=bool(inside))
            shares[place] = share
        return shares

    def readings_of(self, digest: bytes) -> Ids:
        """The readings of the set with a ``digest``, whatever their series."""
        return self.moments(digest).moments

    def landmark_costs(
        self,
        dataset: int,
        unit: Landmarks,
        order: float,
        base: Resolution | None,
        joining: Sequence[Spender] = (),
        moments: Mapping[bytes, Moments] | None = None,
        scope: Scope | None = None,
    ) -> Costs:
        """What charges add up to for a limit on landmarks.

        Parameters:
            dataset: its number.
            unit: of the limit.
            order: at which rhos are counted.
            base: the steps of the dataset.
            joining: what is to be charged, too.
            moments: its sets of readings, by their digests.
            scope: of what is to be charged.
        """
        from tempriv.ledger.landmark_totals import LandmarkTotals

        earlier = [] if base is None else self.spenders(dataset, base)
        known = moments or {}
        at_hand = () if scope is None else (scope,)

        def ids(digest: bytes) -> Ids:
            return self.ids(digest, *at_hand)

        totals = LandmarkTotals(
            [*earlier, *joining],
            lambda digest: known[digest] if digest in known else self.moments(digest),
            ids,
        )
        shares = totals.shares(unit, order)
        widths = {share.clock: 0 for share in shares}
        return scopes.total_costs(shares, ids, units.Event(), widths)

    def costs(self, dataset: int, unit: units.Unit) -> set[Cost]:
        """What single charges cost, each amount once.

        Parameters:
            dataset: its number.
            unit: of the limit.
        """
        if self.has_parts(dataset):
            return set()  # readings of one charge cost unlike amounts
        query = """SELECT DISTINCT c.guarantee, s.clock, s.start, s.step
            FROM charges c JOIN scopes s ON s.id = c.scope WHERE c.dataset = ?"""
        base = self.base(dataset)
        kinds = {
            (text, steps_covered(unit, base, Resolution(*steps)))
            for text, *steps in self._file.rows(query, dataset)
            if base is not None
        }
        return {
            Cost(*_measures(statements_of(text), unit, 1.0, steps)[:3]) for text, steps in kinds
        }

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
        query = f"""SELECT s.marks, s.inside, s.kind, s.members, s.clock, s.start, s.{last},
            u.epsilon, u.delta, u.rho{also}
            FROM scopes s CROSS JOIN sums u ON u."limit" = ? AND u.scope = s.id
            WHERE s.{group} IN (SELECT value FROM json_each(?))"""
        values = [limit, json.dumps(self._groups(dataset, scope))]
        if near is not None:
            # as the index has it
            query += f""" AND s.clock = ? AND ifnull(s.{last}, {LATEST}) >= ?
                AND ifnull(s.start, {EARLIEST}) <= ?"""
            values += near
        rows = self._file.rows(query, *values)
        return [
            scopes.scoped_cost(row[:5], Cost(*row[5:8]), *row[8:])
            if marks is None
            else scopes.scoped_cost(row[:5], Cost(*row[5:8]))._replace(
                marks=marks, inside=bool(inside)
            )
            for marks, inside, *row in rows
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
            " until, grid, marks, inside) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(dataset, scope.digest, scope.kind, digest),
            *(scope.start, scope.end, scope.step, scope.clock, first),
            *(scope.until, (self.base(dataset) or Resolution.of(scope)).grid_of(scope)),
            *scope.marked,
        )
        number = file.rows(find, dataset, scope.digest)[0][0]
        if first is None:
            file.execute("UPDATE scopes SET first = id WHERE id = ?", number)
            file.execute("INSERT INTO groups VALUES (?, ?, ?, ?, ?)", number, *group)
        return ScopeRow(number, first or number)

    def add_parts(self, dataset: int, charge: int, parts: ChargeParts) -> None:
        """Record the parts of a charge, and the readings that they name.

        Parameters:
            dataset: its number.
            charge: its number.
            parts: of the charge.
        """
        for moments in parts.sets:
            row = (
                moments.digest,
                scopes.ids_to_bytes(moments.members),
                moments.counts.astype("<i8").tobytes(),
                scopes.ids_to_bytes(moments.moments),
            )
            statement = "INSERT INTO marks VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
            self._file.execute(statement, *row)
        for part in parts.parts:
            spent = None if part.spent is None else json.dumps(dataclasses.asdict(part.spent))
            text = serialization.canonical(part.statements).decode()
            place = self.place(dataset, part.scope).scope
            self._file.execute(
                "INSERT INTO parts (charge, scope, role, guarantee, draw, spent, marks)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(charge, place, part.role, text, part.draw, spent, part.marks),
            )

    def draw_is_charged(self, dataset: int, draw: str) -> bool:
        """Whether a ``draw`` of marks was charged to a ``dataset`` before."""
        query = """SELECT 1 FROM parts p JOIN charges c ON c.id = p.charge
            WHERE p.draw = ? AND c.dataset = ? LIMIT 1"""
        return bool(self._file.value(query, draw, dataset))

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
