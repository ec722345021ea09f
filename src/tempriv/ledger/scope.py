"""Whose data a charge touches and when, so that charges that touch different data do not add up."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tempriv.accounting.filters import ZERO_COST, Cost, Costs
from tempriv.errors import BudgetError, require
from tempriv.privacy import serialization, units
from tempriv.privacy.guarantees import Guarantee, NoGuarantee

Ids = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

KINDS = ("series", "person")
CLOCKS = ("integer", "date", "datetime", "index")

EARLIEST, LATEST = -(2**63), 2**63 - 1

# for which limits a part of a charge counts: on single readings, on more than that, on either, on
# landmarks and any one other reading, and on which moments are landmarks
SINGLE, LONGER, EVERY, LANDMARKS, MARKS = "single", "longer", "every", "landmarks", "marks"

MAX_MARK_SETS = 8  # with unlike landmarks, that are told apart reading by reading


def separates_people(kind: str, unit: units.Unit) -> bool:
    """Whether unlike members are surely unlike people: one person may be behind several series.

    Parameters:
        kind: of the members, "series" or "person".
        unit: of the limit.
    """
    return unit.within_one_series or kind.startswith("person")


class ScopedCost(NamedTuple):
    """What all charges of one scope cost together; ``members`` names a set, None is anyone.

    The rest is for limits on the order of readings: the grid, how many charges there are, how many
    of them published the readings themselves, and of these, how many guarantee something about
    single rows only. Two stand for any more. At the end, for limits on single readings, a set of
    landmarks, and whether the cost is that of these readings or of all others; None is of any.
    """

    kind: str
    members: bytes | None
    clock: str
    start: int
    end: int
    cost: Cost
    step: int | None = None
    charges: int = 1
    exact: int = 0
    single: int = 0
    marks: bytes | None = None
    inside: bool = True

    @property
    def place(self) -> tuple[Any, ...]:
        """What it covers, whichever of its readings are meant."""
        return (*self[:5], self.marks)

    @property
    def named_set(self) -> tuple[str, str, bool, bytes]:
        """Its set of landmarks, after how ids and times are named: unlike ones are not compared."""
        return self.kind, self.clock, self.members is None, self.marks or b""


def scoped_cost(row: Sequence[Any], cost: Cost, *order: Any) -> ScopedCost:
    """The cost of a scope.

    Parameters:
        row: kind, members, clock, start and end, where None is an open end.
        cost: of its charges.
        order: what limits on the order of readings need.
    """
    kind, members, clock, start, end = row
    first, last = EARLIEST if start is None else start, LATEST if end is None else end
    return ScopedCost(kind, members, clock, first, last, cost, *order)


def exactness(guarantee: Guarantee | NoGuarantee) -> tuple[int, int]:
    """Whether by its ``guarantee`` a charge published exact readings, and for single rows only."""
    if isinstance(guarantee, NoGuarantee):
        return 0, 0
    return int(guarantee.unit.about_order), int(guarantee.unit.single_rows)


@dataclass(frozen=True)
class Scope:
    """Whose data a release touches, and from when to when.

    ``kind`` and ``clock`` may name the columns behind them ("series home", "datetime time"): ids or
    times of unlike columns cannot be told apart.

    Parameters:
        kind: what the members are, "series" or "person".
        members: their ids; None: anyone (as a stream that will meet new series). With none at all,
            ``Ledger.check`` asks for data that was never released.
        start: the first tick of time; None: open.
        end: the last tick of time, included; None: open.
        step: of the grid, in ticks; None: unknown.
        clock: what ticks are: "integer", "date", "datetime" or "index".
        longest: the length of the longest series, in readings; None: as the grid allows.
        even: whether all series are that long; None: only if it is one series.

    >>> Scope(members=("a", "b"), start=0, end=23, step=1)
    Scope(kind='series', start=0, end=23, step=1, clock='integer')
    """

    kind: str = "series"
    members: Sequence[str | int] | npt.NDArray[Any] | None = field(default=None, repr=False)
    start: int | None = None
    end: int | None = None
    step: int | None = None
    clock: str = "integer"
    longest: int | None = field(default=None, repr=False)
    even: bool | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, allowed in (("kind", KINDS), ("clock", CLOCKS)):
            value = getattr(self, name)
            require(
                isinstance(value, str) and value.split(" ")[0] in allowed,
                f"{name}={value!r}: must be one of {', '.join(allowed)}, and may go on with the "
                "name of its column",
            )
        if self.members is not None:
            require(
                not isinstance(self.members, (str, bytes)),
                f"members={self.members!r}: must be a list of ids, or None for anyone",
            )
            array = isinstance(self.members, np.ndarray)
            members = tuple(np.asarray(self.members).tolist() if array else self.members)
            for kind in set(map(type, members)):
                require(
                    issubclass(kind, (str, int, np.integer)),
                    f"members of type {kind.__name__}: ids must be text or whole numbers",
                )
            object.__setattr__(self, "members", members)
        for name in ("start", "end", "step", "longest"):
            value = getattr(self, name)
            require(
                value is None or isinstance(value, (int, np.integer)),
                f"{name}={value!r}: must be a whole number of ticks, or None",
            )
            object.__setattr__(self, name, None if value is None else int(value))
        row = (self.kind, None, self.clock, self.start, self.end)
        first, last = scoped_cost(row, ZERO_COST)[3:5]
        require(
            EARLIEST <= first <= last <= LATEST,
            f"start={self.start}, end={self.end}: the start must not be after the end",
        )
        require(self.step is None or self.step >= 1, f"step={self.step}: must be >= 1, or None")
        require(
            self.even is None or isinstance(self.even, (bool, np.bool_)),
            f"even={self.even!r}: must be True, False or None",
        )

    @property
    def until(self) -> int | None:
        """The last tick that belongs to the step at the end: a reading stands for all of its step.

        The end itself where it is open, where the step is unknown or where ticks are no times.
        """
        if self.end is None or self.step is None or self.clock.startswith("index"):
            return self.end
        return min(self.end + self.step - 1, LATEST)

    @property
    def most_readings(self) -> int | None:
        """The length of the longest series, as stated or as the grid allows; None is unknown."""
        if self.longest is None and None not in (self.start, self.end, self.step):
            assert self.start is not None and self.end is not None and self.step is not None
            return (self.end - self.start) // self.step + 1
        return self.longest

    @property
    def spanned(self) -> bool:
        """Whether every series surely has a reading at each step from the start to the end."""
        if self.start is None or self.end is None or self.step is None:
            return False
        alone = self.kind.startswith("series") and (self.members is None or len(self.members) == 1)
        readings, rest = divmod(self.end - self.start, self.step)
        return (
            rest == 0
            and (alone if self.even is None else self.even)
            and self.longest in (None, readings + 1)
        )

    @functools.cached_property
    def ids(self) -> Ids | None:
        """Sorted unique digests; a collision merges two members and can only count too much."""
        if self.members is None:
            return None
        # as text, so that 7 read as an integer and "7" read as text are one member
        texts = [str(member).encode(errors="surrogatepass") for member in self.members]
        digests = b"".join([blake2b(text, digest_size=8).digest() for text in texts])
        return np.unique(ids_from_bytes(digests))

    @functools.cached_property
    def set_digest(self) -> bytes | None:
        """Names the set of members."""
        if self.ids is None:
            return None
        return blake2b(ids_to_bytes(self.ids), digest_size=32).digest()

    @property
    def marked(self) -> tuple[bytes | None, bool | None]:
        """The set of landmarks whose readings these are or are not; None: it is any reading."""
        return None, None

    @functools.cached_property
    def digest(self) -> bytes:
        """Equal for scopes that cover the same."""
        named = None if self.set_digest is None else self.set_digest.hex()
        parts: tuple[Any, ...] = (self.kind, named, self.start, self.end, self.step, self.clock)
        marks, inside = self.marked
        if marks is not None:
            parts += (marks.hex(), inside)
        return blake2b(serialization.canonical(parts), digest_size=32).digest()

    def share(
        self, cost: Cost, guarantee: Guarantee | NoGuarantee, limit: units.Unit
    ) -> ScopedCost:
        """What a charge adds here.

        Parameters:
            cost: of the charge.
            guarantee: of the charge.
            limit: the unit of the limit; one on the order of readings asks for their own times.
        """
        last = self.end if limit.about_order else self.until
        row = (self.kind, self.set_digest, self.clock, self.start, last)
        share = scoped_cost(row, cost, self.step, 1, *exactness(guarantee))
        marks, inside = self.marked
        return share if marks is None else share._replace(marks=marks, inside=bool(inside))


def as_charged(scope: Scope, guarantee: Guarantee | NoGuarantee) -> Scope:
    """The scope of a charge: which exact readings it is about is known if all series span it.

    Otherwise the step counts as unknown, since no other release is surely about the same ones.

    Parameters:
        scope: of the release.
        guarantee: of the release.
    """
    exact, _ = exactness(guarantee)
    return replace(scope, step=None) if exact and scope.step and not scope.spanned else scope


def ids_from_bytes(blob: bytes) -> Ids:
    """Digests of members from their ``blob``."""
    return np.frombuffer(blob, dtype="<u8").astype(np.uint64)


def ids_to_bytes(ids: Ids) -> bytes:
    """Digests of members, the ``ids``, as bytes."""
    return ids.astype("<u8").tobytes()


def require_length(dataset: str, limit: units.Unit, unit: units.Unit, scope: Scope) -> None:
    """A limit on whole series speaks of series up to its length, so longer ones are refused.

    Parameters:
        dataset: its name, for the message.
        limit: the unit of the limit.
        unit: of the release.
        scope: of the release.
    """
    if limit.max_length is None or scope.members == ():
        return
    lengths = (scope.most_readings, unit.max_length)
    most = min((length for length in lengths if length is not None), default=None)
    require(
        most is not None and most <= limit.max_length,
        f"dataset {dataset!r} limits the loss of {limit.per_series.sentence}, and this release has "
        + ("series of any length" if most is None else f"series of up to {most} readings")
        + "; set a limit for series of that length",
        BudgetError,
    )


def member_classes(sets: Sequence[Ids], within: Ids | None = None) -> list[list[int]]:
    """Which ``sets`` hold a member together: every combination that occurs (among ``within``).

    >>> a, b = np.array([1, 2], np.uint64), np.array([2, 3], np.uint64)
    >>> member_classes([a, b]), member_classes([a, b], within=a)
    ([[0], [0, 1], [1]], [[0], [0, 1]])
    """
    ids = np.concatenate(sets)
    owners = np.repeat(np.arange(len(sets)), [len(members) for members in sets])
    if within is not None:
        kept = within[np.minimum(np.searchsorted(within, ids), len(within) - 1)] == ids
        ids, owners = ids[kept], owners[kept]
    _, member, count = np.unique(ids, return_inverse=True, return_counts=True)
    # partition refinement: each set splits the classes that it cuts
    label = np.zeros(len(count), dtype=np.int64)
    bounds = np.searchsorted(owners, np.arange(len(sets) + 1))
    fresh = 1
    for first, last in itertools.pairwise(bounds):
        old, split = np.unique(label[member[first:last]], return_inverse=True)
        label[member[first:last]] = fresh + split
        fresh += len(old)
    by_member = owners[np.argsort(member, kind="stable")]
    ends = np.cumsum(count)
    one_of_each = np.sort(np.unique(label, return_index=True)[1])
    return [by_member[ends[i] - count[i] : ends[i]].tolist() for i in one_of_each]


def sums_over_time(starts: Integers, ends: Integers, costs: Costs) -> Costs:
    """What applies at each start: a total can only be largest where something begins.

    Parameters:
        starts: the first tick of each range.
        ends: the last tick of each.
        costs: of each, a row.

    >>> costs = np.array([[1.0, 0, 0], [2.0, 0, 0]])
    >>> sums_over_time(np.array([0, 5]), np.array([5, 9]), costs)[:, 0].tolist()
    [1.0, 3.0]
    """
    # counts of infinite and of positive terms, since their sums do not survive a subtraction
    finite = np.where(np.isinf(costs), 0.0, costs)
    columns = np.hstack([finite, np.isinf(costs), finite > 0])
    zero = np.zeros((1, columns.shape[1]))
    opening, closing = np.argsort(starts), np.argsort(ends)
    opened = np.vstack([zero, np.cumsum(columns[opening], axis=0)])
    closed = np.vstack([zero, np.cumsum(columns[closing], axis=0)])
    times = np.unique(starts)
    active = (
        opened[np.searchsorted(starts[opening], times, side="right")]
        - closed[np.searchsorted(ends[closing], times, side="left")]
    )
    sums = np.where(active[:, 6:] > 0, np.maximum(active[:, :3], 0.0), 0.0)
    sums[active[:, 3:6] > 0] = np.inf
    return sums


def total_costs(
    shares: Sequence[ScopedCost],
    ids_of: Callable[[bytes], Ids],
    unit: units.Unit,
    widths: Mapping[str, int | None],
    within: ScopedCost | None = None,
    moments_of: Callable[[bytes], Ids] | None = None,
) -> Costs:
    """The total cost of every kind of member at every kind of moment that can be worst.

    Members of unlike kinds, and times of unlike clocks, cannot be told apart and count as
    overlapping. What ``order_leaks`` finds has no bound.

    Parameters:
        shares: what the charges of each scope cost.
        ids_of: the members of a set, from its digest.
        unit: of the limit.
        widths: for each clock, how many ticks after its end a scope is still reached by the unit;
            None: time does not separate.
        within: one of the shares, to count only what it covers; None: everything.
        moments_of: the readings of a set of landmarks, from its digest.
    """
    if not shares:
        return np.zeros((1, 3))
    repeats = unit.positions_per_person
    holders: dict[tuple[str, bytes] | None, list[int]] = {None: []}
    for i, share in enumerate(shares):
        anyone = share.members is None or not separates_people(share.kind, unit)
        key = None if anyone or share.members is None else (share.kind, share.members)
        holders.setdefault(key, []).append(i)
    starts = np.array([share.start for share in shares], dtype=np.int64)
    ends = np.array([share.end for share in shares], dtype=np.int64)
    clocks = np.array([share.clock for share in shares])
    costs = np.array([share.cost for share in shares], dtype=np.float64)
    exact = np.array([unit.about_order and share.exact > 0 for share in shares])
    charged = None if within is None else shares.index(within)
    near = ends.copy()
    for clock in np.unique(clocks):
        on_clock, width = clocks == clock, widths.get(clock)
        if width is None:
            starts[on_clock], ends[on_clock], near[on_clock] = EARLIEST, LATEST, LATEST
        else:
            near[on_clock] = np.minimum(ends[on_clock], LATEST - width) + width
    # readings trade places within an exact share, or it is betrayed; no reach beyond it adds up
    ends = np.where(exact, ends, near)
    separate = repeats == 1 and bool((clocks == clocks[0]).all())
    met = touched = np.ones(len(shares), dtype=bool)
    if charged is not None and separate:
        # ranges that meet it and each other all meet at one moment within it (Helly's theorem)
        touched = (starts <= near[charged]) & (near >= starts[charged])
        met = (starts <= ends[charged]) & (ends >= starts[charged])

    sums = []
    every_cost = costs
    kinds = sorted({key[0] for key in holders if key is not None})
    named_rows = (
        np.array(holders[None] + list(itertools.chain(*named)), dtype=np.int64)
        for named in itertools.product(*(_classes(kind, holders, ids_of, within) for kind in kinds))
    )
    for rows, bounded in itertools.chain.from_iterable(
        _reading_classes(rows[touched[rows]], shares, every_cost, moments_of) for rows in named_rows
    ):
        costs = bounded
        if exact[rows].any():
            lost = order_leaks([shares[i] for i in rows], unit)
            costs = bounded.copy()
            costs[rows[lost]] = np.inf
            rows = rows[met[rows] | lost]
        groups = [rows[clocks[rows] == clock] for clock in np.unique(clocks[rows])]
        blocks = [sums_over_time(starts[group], ends[group], costs[group]) for group in groups]
        if len(blocks) == 1 and repeats == 1:
            sums.append(blocks[0])
            continue
        # the worst moments of unlike clocks may coincide, and neighbors may differ at several
        # moments, if not more than all; measure by measure, which can only count too much
        most = repeats * np.sum([block.max(axis=0) for block in blocks], axis=0)
        sums.append(np.minimum(most, costs[rows].sum(axis=0))[None, :])
    return np.vstack(sums)


def _classes(
    kind: str,
    holders: Mapping[tuple[str, bytes] | None, list[int]],
    ids_of: Callable[[bytes], Ids],
    within: ScopedCost | None,
) -> Iterable[list[int]]:
    """For each class of members of this kind, the shares that cover them by name."""
    sets = [key[1] for key in holders if key is not None and key[0] == kind]
    if not sets:
        return [[]]
    if len(sets) == 1:
        # no need to read a million ids
        return [holders[kind, sets[0]]]
    members = within.members if within is not None and within.kind == kind else None
    inside = None if members is None else ids_of(members)
    return [
        [share for number in combination for share in holders[kind, sets[number]]]
        for combination in member_classes([ids_of(digest) for digest in sets], inside)
    ]


def _reading_classes(
    rows: Integers,
    shares: Sequence[ScopedCost],
    costs: Costs,
    moments_of: Callable[[bytes], Ids] | None,
) -> Iterator[tuple[Integers, Costs]]:
    """For each class of single readings the ``rows`` of shares that may count for it, and costs.

    A class are readings that are in the same sets of landmarks. Those of unlike ids or times may go
    together in any way. Past a few sets each counts at the worse of what it says of its readings
    and of the others, which can only be too much.
    """
    sets = sorted({shares[i].named_set for i in rows.tolist() if shares[i].marks is not None})
    if not sets:
        yield rows, costs
    elif moments_of is None or len(sets) > MAX_MARK_SETS:
        worse, kept = costs.copy(), dict[Any, int]()
        for i in rows.tolist():
            first = kept.setdefault(shares[i].place if shares[i].marks is not None else i, i)
            worse[first] = np.maximum(worse[first], costs[i])
        yield np.array(list(kept.values()), dtype=np.int64), worse
    else:
        each = []
        for _, found in itertools.groupby(sets, key=lambda named: named[:3]):
            alike = list(found)
            classes = member_classes([moments_of(named[3]) for named in alike])
            each.append([[], *([alike[number] for number in numbers] for numbers in classes)])
        for combination in itertools.product(*each):
            held = set(itertools.chain.from_iterable(combination))
            counts = [
                shares[i].marks is None or shares[i].inside == (shares[i].named_set in held)
                for i in rows.tolist()
            ]
            yield rows[np.array(counts, dtype=np.bool_)], costs


class _Ranges(NamedTuple):
    """Shares in columns, or one of them; ``known`` where it is clear which readings these are."""

    starts: Any
    ends: Any
    steps: Any
    clocks: Any
    charges: Any
    exact: Any
    single: Any
    known: Any

    def at(self, place: Any) -> _Ranges:
        """Those at a ``place``, or at several."""
        return _Ranges(*(column[place] for column in self))


def _ranges(shares: Sequence[ScopedCost]) -> _Ranges:
    clocks = {clock: number for number, clock in enumerate({share.clock for share in shares})}
    rows = [
        (
            *(share.start, share.end, share.step or 0, clocks[share.clock]),
            *(share.charges, share.exact, share.single),
            # an order without times does not say which readings these are
            not share.clock.startswith("index") and share.start > EARLIEST and share.end < LATEST,
        )
        for share in shares
    ]
    ranges = _Ranges(*np.array(rows, dtype=np.int64).T)
    return ranges._replace(known=(ranges.known > 0) & (ranges.steps > 0))


def order_leaks(shares: Sequence[ScopedCost], unit: units.Unit) -> Flags:
    """Which exact ``shares`` of one series cannot hide the order of its readings from a ``unit``.

    An exact release hides that two of its readings traded places. If one of the two is outside, it
    shows the other's value, whatever its epsilon. So exact releases of the same readings add up,
    those without neighboring readings are apart, and others hide nothing; nor does one beside any
    other release that goes beyond it. What is not known to be the same readings counts as unlike.
    Guarantees for single rows do not add up in any case.

    >>> days = (0, 7, 99)
    >>> weeks = [
    ...     ScopedCost("series", None, "date", day, day + 6, ZERO_COST, 1, 1, 1) for day in days
    ... ]
    >>> order_leaks(weeks, units.Swap(3)).tolist(), order_leaks(weeks, units.BlockSwap(7)).tolist()
    ([True, True, False], [False, False, False])
    """
    by_start = np.array(sorted(range(len(shares)), key=lambda i: shares[i].start))
    ranges = _ranges([shares[i] for i in by_start])
    lost = (ranges.single > 1) | (~ranges.known & (ranges.charges > 1))
    # what can be near an exact share in time lies in one piece
    timed = bool((ranges.steps > 0).all() and (ranges.clocks == ranges.clocks[0]).all())
    far = min(((unit.reach or 0) + 1) * int(ranges.steps.max()), LATEST)
    latest = np.maximum.accumulate(ranges.ends)
    for i in np.flatnonzero((ranges.exact > 0) & ~lost).tolist():
        first, last = _widened(int(ranges.starts[i]), int(ranges.ends[i]), far)
        ends = np.searchsorted(latest, first), np.searchsorted(ranges.starts, last, side="right")
        piece = slice(*ends) if timed else slice(len(shares))
        broken = _breaks(ranges.at(piece), ranges.at(i), unit)
        lost[i] = (broken & (np.arange(len(shares))[piece] != i)).any()
    leaks = np.zeros(len(shares), dtype=bool)
    leaks[by_start] = lost & (ranges.exact > 0)
    return leaks


def _breaks(others: _Ranges, exact: _Ranges, unit: units.Unit) -> Flags:
    """Which others have a reading that neighbors one of an exact share and is not in it."""
    start, end, step = int(exact.starts), int(exact.ends), max(int(exact.steps), 1)
    on_clock = (others.clocks == exact.clocks) & (others.steps > 0) & (exact.steps > 0)
    offset = others.starts - start
    on_grid = on_clock & others.known & exact.known & (others.steps == step) & (offset % step == 0)
    reach = unit.reach or 1
    far = np.minimum(np.maximum(others.steps, step), LATEST // reach) * reach
    first, last = _widened(start, end, far)
    if unit.blocks is not None:
        # blocks are counted from the start of a series; where releases overlap, they must agree
        length, first_block = unit.blocks
        block = length * step
        begin = start - (length - first_block) % length * step
        first = np.maximum(first, max(begin, EARLIEST))
        last = np.minimum(last, min(end + block - 1 - (end - begin) % block, LATEST))
        on_grid &= (others.exact == 0) | (offset % min(block, LATEST) == 0)
    near = ~on_clock | ((others.starts <= last) & (others.ends >= first))
    before = (others.starts < start) & (start - first >= step)
    after = (others.ends > end) & (last - end >= step)
    again = (others.single > 0) & (exact.single > 0)
    return np.asarray(near & (~on_grid | before | after | again))


def _widened(start: Any, end: Any, far: Any) -> tuple[Any, Any]:
    """A range with so many more ticks on either side, as far as time goes."""
    return np.maximum(start, EARLIEST + far) - far, np.minimum(end, LATEST - far) + far
