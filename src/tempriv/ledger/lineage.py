"""Which datasets hold the same rows, so that a charge of one counts for the others too.

Three things say so: the sketches of a release and of a dataset, the owner (``merge``), and what the
owner takes back (``forget``, ``tell_apart``). All of it is recorded. A charge that counts for
another dataset is a charge there as well, of the same release; ``also`` says of which it is.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np

from tempriv.data.clock import DAY
from tempriv.errors import BudgetError, LedgerError, require
from tempriv.ledger.database import LedgerFile
from tempriv.ledger.identity import Match, match
from tempriv.ledger.resolution import Resolution
from tempriv.ledger.running_totals import Charge, RunningTotals
from tempriv.ledger.scope import EARLIEST, Scope
from tempriv.ledger.sketches import FreshSketch, Sketch, microseconds_of

MOST_OF_IT = 0.9


@dataclass(frozen=True)
class Finding:
    """What a ledger found out about the rows of a release.

    Parameters:
        dataset: that has the same rows.
        certain: whether it is certain, so that the release was charged there as well.
        sentence: all of it, for people.
    """

    dataset: str
    certain: bool
    sentence: str


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"


class Lineage:
    """The part of a ledger's file that says which datasets hold the same rows.

    Parameters:
        file: of the ledger.
        sums: of it.
        decide: says whether a dataset can afford a charge.
        record: records one, with what was decided.
        renew: makes the totals of a dataset anew.
    """

    def __init__(
        self,
        file: LedgerFile,
        sums: RunningTotals,
        decide: Callable[[int, Charge], Any],
        record: Callable[[int, Charge, Any], int],
        renew: Callable[[int], None],
    ):
        self._file, self._sums = file, sums
        self._decide, self._record, self._renew = decide, record, renew

    # a new charge

    def charge(
        self, dataset: int, charge: Charge, rows: FreshSketch | None, others: Sequence[int]
    ) -> None:
        """Record a charge, also for the other datasets that hold its rows.

        Parameters:
            dataset: its number.
            charge: of a release.
            rows: of the release, if they were seen.
            others: datasets that hold other data, as the owner says.
        """
        for other in others:
            self.tell_apart(dataset, other, f"release {charge.release}: said to be other data")
        found = {} if rows is None else self._matches(dataset, rows)
        own = found.pop(dataset, None)
        if own is not None:
            scope = self._as_in(dataset, charge.scope, own.spelled_alike)
            charge = charge.over(scope)
            if not own.spelled_alike:
                self._note_finding(charge.release, dataset, dataset, own)
        reasons = {other: one for other, one in found.items() if one.certain}
        for other, one in found.items():
            if not one.certain:
                self._note_finding(charge.release, dataset, other, one)
        for other, one in reasons.items():
            if charge.scope.step is None and one.spelled_alike and one.share > MOST_OF_IT:
                # each of its readings is one there, which has a step
                charge = charge.over(self._as_in(other, charge.scope, alike=True))
            self._import(other, dataset, charge.scope, one.spelled_alike)
        decided = self._decide(dataset, charge)
        number = self._record(dataset, charge, decided)
        linked = self._linked([dataset, *reasons])
        for other, alike in linked.items():
            if other not in reasons and other != dataset and not self._apart(dataset, other):
                reasons[other] = Match(True, alike, 1.0, "merged by the owner")
        for other, one in reasons.items():
            scope = self._as_in(other, charge.scope, one.spelled_alike)
            # a draw is charged once in each dataset, and landmarks are named as in the first one
            self._also(number, other, charge._replace(scope=scope, parts=None), one)
            if one.reason != "merged by the owner":
                self._note_finding(charge.release, dataset, other, one)

    def _also(self, number: int, other: int, charge: Charge, why: Match) -> None:
        name = self._name(other)
        try:
            decided = self._decide(other, charge)
        except BudgetError as refusal:
            raise BudgetError(
                f"{refusal.message}. The release counts for dataset {name!r} because of its rows: "
                f"{why.reason}; if these are other data, say so by [[other_data={name}]]",
                code=refusal.code,
                **cast(Any, refusal.parameters),
            ) from None
        self._copy(number, other, charge, decided)

    def _copy(self, number: int, other: int, charge: Charge, decided: Any) -> None:
        # a release has one charge in each dataset
        there = charge._replace(
            release=f"{charge.release} in {other}", content="", output=None, copied=True
        )
        copied = self._record(other, there, decided)
        self._file.execute("INSERT INTO also VALUES (?, ?)", copied, number)

    def _matches(self, dataset: int, rows: FreshSketch) -> dict[int, Match]:
        found = {}
        for other, content in self._file.rows("SELECT dataset, content FROM sketches"):
            one = None if self._apart(dataset, other) else match(rows, Sketch.from_bytes(content))
            # of its own dataset, only that rows are written otherwise is news
            if one is not None and (other != dataset or one.certain):
                found[other] = one
        return found

    def _note_finding(self, release: str, dataset: int, other: int, one: Match) -> None:
        share = f"about {max(1, round(100 * one.share))} % of its rows"
        name, own = self._name(other), self._name(dataset)
        if other == dataset:
            what = (
                f"{share} are in dataset {name!r} under other ids or times ({one.reason}), so it "
                "counts for all of the dataset; if these are other data, charge them to another "
                "dataset with [[other_data=NAME]]"
            )
        elif one.certain:
            what = (
                f"counts for dataset {name!r} as well: {share} are there ({one.reason}). If these "
                f"are other data, undo it with `tempriv budget forget {name} {own}`, and say "
                "[[other_data=NAME]] next time"
            )
        else:
            what = (
                f"may be made from the data of dataset {name!r} ({one.reason}), for which it was "
                f"not charged. If so, add them up with `tempriv budget merge {name} {own}`; if "
                "not, say [[other_data=NAME]] next time"
            )
        kind = "recognized" if one.certain else "likely"
        text = what.replace("other_data=NAME", f"other_data={name}")
        self._write(kind, dataset, other, f"this release {text}", release)

    # how the rows of one dataset are counted in another

    def _as_in(self, dataset: int, scope: Scope, alike: bool) -> Scope:
        """A scope in the words of another dataset, or all of that where it cannot be told."""
        first = self._file.rows(
            "SELECT kind, clock, start FROM scopes WHERE dataset = ? ORDER BY id LIMIT 1", dataset
        )
        if not first:
            return scope if alike else _widened(scope, Resolution.of(scope))
        kind, clock, start = first[0]
        known = self._file.rows(
            "SELECT DISTINCT clock, step FROM scopes WHERE dataset = ?", dataset
        )
        # whatever the rows are, their steps are no finer
        step = min((step for one, step in known if one == clock and step), default=None)
        if not alike:
            return _widened(scope, Resolution(clock, start, step))
        if scope.kind.split(" ")[0] == kind.split(" ")[0]:
            scope = replace_kept(scope, kind=kind)
        if scope.step is None and scope.clock == clock:
            # each of its readings is one there
            scope = replace_kept(scope, step=step, even=False)
        whole_numbers = scope.clock.startswith("integer")
        if not whole_numbers and any(scope.clock == one for one, _ in known):
            return scope
        return _told_by(scope, Resolution(clock, start, step))

    def _import(self, source: int, dataset: int, scope: Scope, alike: bool) -> None:
        """Count the charges of a dataset for another one, too, that was found to hold its rows."""
        # the first release of a dataset sets its steps
        self._sums.place(dataset, scope)
        if self._copy_all(source, dataset, alike):
            self._renew(dataset)

    def _copy_all(self, source: int, dataset: int, alike: bool) -> int:
        """Count charges of a dataset for another one that do not yet; how many there are."""
        steps = self._file.rows(
            "SELECT DISTINCT clock, step FROM scopes WHERE dataset = ? ORDER BY id", source
        )
        coarsest = max((step for _, step in steps if step is not None), default=None)
        # each release once, also those that count there because of a third dataset
        query = """SELECT ifnull(a."of", c.id) AS origin, o.guarantee, o.release, o.note, s.kind,
            s.members, s.clock, s.start, s."end", s.step FROM charges c
            LEFT JOIN also a ON a.charge = c.id JOIN charges o ON o.id = ifnull(a."of", c.id)
            JOIN scopes s ON s.id = c.scope WHERE c.dataset = ?1 AND o.dataset != ?2
            AND origin NOT IN (SELECT b."of" FROM also b JOIN charges x ON x.id = b.charge
            WHERE x.dataset = ?2) ORDER BY c.id"""
        copied = 0
        for number, guarantee, release, note, *row in self._file.rows(query, source, dataset):
            scope = self._stored(*row)
            if alike:
                scope = self._as_in(dataset, scope, alike=True)
            else:
                scope = self._spread(dataset, scope, coarsest)
            charge = Charge(self._sums.guarantee(guarantee), scope, release, note)
            self._copy(number, dataset, charge, [])
            copied += 1
        return copied

    def _spread(self, dataset: int, scope: Scope, coarsest: int | None) -> Scope:
        """All of a dataset, at steps that are as fine as those of a scope of another one may be."""
        base, own = self._sums.base(dataset), Resolution.of(scope)
        # whole numbers may be in another unit, although their column has the same name
        if base is None or (base.comparable(own) and not own.clock.startswith("integer")):
            return _widened(scope, own)
        if base.step is not None and scope.step is not None and coarsest is not None:
            base = replace(base, step=max(1, base.step * scope.step // coarsest))
        return _widened(scope, base)

    def _stored(
        self,
        kind: str,
        members: bytes | None,
        clock: str,
        start: int | None,
        end: int | None,
        step: int | None,
    ) -> Scope:
        """A scope as it was recorded; of its members, only digests are known."""
        names = None if members is None else ("",)
        scope = Scope(kind=kind, members=names, start=start, end=end, step=step, clock=clock)
        if members is not None:
            scope.__dict__["ids"] = self._sums.ids(members)
        return scope

    # what the owner says

    def merge(self, dataset: int, other: int, alike: bool, why: str | None) -> None:
        """Let all charges of two datasets count for both, those to come as well.

        Parameters:
            dataset: its number.
            other: the number of the other one.
            alike: whether ids and times are spelled alike in both.
            why: in the words of the owner.
        """
        self._file.execute(
            "DELETE FROM apart WHERE dataset IN (?1, ?2) AND other IN (?1, ?2)", dataset, other
        )
        mine, theirs = ({**self._linked([one]), one: True} for one in (dataset, other))
        for a, near in mine.items():
            for b, far in theirs.items():
                if a == b or self._apart(a, b):
                    continue
                # all of the chain must be spelled alike, and what was said of a pair stays
                same = alike and near and far
                if {a, b} != {dataset, other}:
                    same = same and self._linked([a]).get(b, True)
                for pair in ((a, b), (b, a)):
                    row = (*pair, int(same))
                    self._file.execute("INSERT OR REPLACE INTO merged VALUES (?, ?, ?)", *row)
                    self._copy_all(*pair, same)
                self._renew(a)
                self._renew(b)
        self._write("merged", dataset, other, why or "")

    def tell_apart(self, dataset: int, other: int, why: str) -> None:
        """Record that two datasets hold other data, so that nothing counts for both.

        Parameters:
            dataset: its number.
            other: the number of the other one.
            why: in the words of the owner.
        """
        require(
            dataset != other,
            f"dataset {self._name(dataset)!r}: cannot be told apart from itself; charge the other "
            "data to another dataset",
            LedgerError,
        )
        if self._apart(dataset, other):
            return
        pair = (min(dataset, other), max(dataset, other))
        self._file.execute("INSERT INTO apart VALUES (?, ?)", *pair)
        self._write("told apart", dataset, other, why)

    def separate(self, dataset: int, other: int, why: str) -> int:
        """Take back that two datasets hold the same rows; how many charges are forgotten.

        Parameters:
            dataset: its number.
            other: the number of the other one.
            why: in the words of the owner.
        """
        query = """SELECT a.charge FROM also a JOIN charges c ON c.id = a.charge
            JOIN charges o ON o.id = a.of
            WHERE (c.dataset = ?1 AND o.dataset = ?2) OR (c.dataset = ?2 AND o.dataset = ?1)"""
        charges = [number for (number,) in self._file.rows(query, dataset, other)]
        self._file.execute(
            "DELETE FROM merged WHERE dataset IN (?1, ?2) AND other IN (?1, ?2)", dataset, other
        )
        self.tell_apart(dataset, other, why)
        for number in charges:
            self._drop(number, why)
        for one in (dataset, other):
            self._renew(one)
        return len(charges)

    def forget(self, number: int, why: str) -> str:
        """Forget a charge, in all datasets that it counts for; the release that it was for.

        Parameters:
            number: of the charge.
            why: in the words of the owner.
        """
        rows = self._file.rows("SELECT dataset, release, state FROM charges WHERE id = ?", number)
        require(bool(rows), f"charge {number}: is not in this ledger", LedgerError)
        dataset, release, state = rows[0]
        of = self._file.rows(
            """SELECT o.id, d.name FROM also a JOIN charges o ON o.id = a.of
            JOIN datasets d ON d.id = o.dataset WHERE a.charge = ?""",
            number,
        )
        if of:
            first, name = of[0]
            raise LedgerError(
                f"charge {number}: counts here because it is charge {first} of dataset {name!r}; "
                f"forget that one, or take back that they hold the same data with "
                f"`tempriv budget forget {self._name(dataset)} {name}`"
            )
        require(
            state == "done",
            f"charge {number}: its output still waits to be put in place; run the command again, "
            "or remove the output first",
            LedgerError,
        )
        also = self._file.rows("SELECT charge FROM also WHERE of = ?", number)
        touched = {dataset}
        for (copy,) in also:
            touched.add(self._drop(copy, why))
        self._drop(number, why)
        for one in touched:
            self._renew(one)
        self._write("forgotten", dataset, None, f"charge {number}: {why}", release)
        return str(release)

    def _drop(self, number: int, why: str) -> int:
        """Move a charge to those that are forgotten; the number of its dataset."""
        dataset = self._file.value("SELECT dataset FROM charges WHERE id = ?", number)
        self._file.execute(
            """INSERT INTO forgotten SELECT id, release, dataset, scope, guarantee, content,
            recorded, note, totals, ?, ?, ? FROM charges WHERE id = ?""",
            *(_now(), _who(), why, number),
        )
        # a draw of marks was charged with the first release of it only, and others may be of it too
        self._file.execute(
            """UPDATE parts SET charge = (SELECT max(id) FROM charges WHERE dataset = ?1
            AND parted = 1 AND id != ?2) WHERE charge = ?2 AND draw IS NOT NULL
            AND EXISTS (SELECT 1 FROM charges WHERE dataset = ?1 AND parted = 1 AND id != ?2)""",
            *(dataset, number),
        )
        self._file.execute("DELETE FROM parts WHERE charge = ?", number)
        self._file.execute("DELETE FROM also WHERE charge = ?", number)
        self._file.execute("DELETE FROM charges WHERE id = ?", number)
        return int(dataset)

    # what is recorded

    def findings(self, release: str) -> tuple[Finding, ...]:
        """What was found out about the rows of a release.

        Parameters:
            release: its id.
        """
        query = """SELECT d.name, r.what, r.text FROM records r JOIN datasets d ON d.id = r.other
            WHERE r.release = ? AND r.what IN ('recognized', 'likely') ORDER BY r.id"""
        return tuple(
            Finding(name, what == "recognized", text)
            for name, what, text in self._file.rows(query, release)
        )

    def _write(
        self, what: str, dataset: int, other: int | None, text: str, release: str | None = None
    ) -> None:
        self._file.execute(
            "INSERT INTO records (recorded, who, what, dataset, other, text, release)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            *(_now(), _who(), what, dataset, other, text, release),
        )

    def _name(self, dataset: int) -> str:
        return str(self._file.value("SELECT name FROM datasets WHERE id = ?", dataset))

    def _apart(self, dataset: int, other: int) -> bool:
        query = "SELECT 1 FROM apart WHERE dataset = ? AND other = ?"
        return self._file.value(query, min(dataset, other), max(dataset, other)) is not None

    def _linked(self, datasets: Sequence[int]) -> dict[int, bool]:
        """The datasets that these are merged with, and whether they are spelled alike."""
        found: dict[int, bool] = {}
        for dataset in datasets:
            query = "SELECT other, alike FROM merged WHERE dataset = ?"
            for other, alike in self._file.rows(query, dataset):
                found[other] = found.get(other, True) and bool(alike)
        return found


def replace_kept(scope: Scope, **changes: Any) -> Scope:
    """A scope with changes, whose members stay known by their digests.

    Parameters:
        scope: to be changed.
        changes: new values of its fields.
    """
    changed = replace(scope, **changes)
    if "ids" in scope.__dict__ and "members" not in changes:
        changed.__dict__["ids"] = scope.__dict__["ids"]
    return changed


def _widened(scope: Scope, steps: Resolution) -> Scope:
    """Anyone at any time, in some steps."""
    start = None
    if steps.start is not None and steps.step is not None:
        start = EARLIEST + (steps.start - EARLIEST) % steps.step
    return replace(
        scope,
        members=None,
        start=start,
        end=None,
        clock=steps.clock,
        step=steps.step,
        even=False,
    )


def _told_by(scope: Scope, steps: Resolution) -> Scope:
    """A scope with the same times, told by another clock; all times where that cannot be said."""
    everything = _widened(scope, steps)
    everything = replace_kept(
        scope,
        **{name: getattr(everything, name) for name in ("start", "end", "clock", "step", "even")},
    )
    unit = _microseconds_in(steps.clock, steps.start)
    if unit is None or "index" in (scope.clock.split(" ")[0], steps.clock.split(" ")[0]):
        return everything
    if scope.start is None or scope.end is None:
        return everything
    step = 0 if scope.step is None else scope.step
    ticks = np.array([scope.start, scope.end, scope.start + step], dtype=np.int64)
    first, last, second = microseconds_of(scope.clock, ticks).tolist()
    length, rest = divmod(second - first, unit)
    if rest or length < 1:
        return everything
    return replace_kept(
        scope, start=first // unit, end=last // unit, clock=steps.clock, step=length
    )


def _microseconds_in(clock: str, tick: int | None) -> int | None:
    """How many microseconds a tick of a clock has; None where it is less than one."""
    kind = clock.split(" ")[0]
    if kind != "integer":
        return DAY if kind == "date" else 1
    if tick is None or tick == 0:
        return 1
    told = int(microseconds_of(clock, np.array([tick]))[0])
    return told // tick if abs(told) >= abs(tick) else None
