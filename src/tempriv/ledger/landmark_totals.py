"""Limits on all landmarks of a series and any one other reading, over several releases.

The landmarks of such a limit are all that releases have named. Let C be these of one series and any
one other reading. A release r spends fixed parts on its readings, whatever the values, so on C

    own(r) + n(r) q(r) + (what is left of epsilon, if the one other reading is among its own)

at most: own(r) is what its own landmarks spend together, n(r) how many readings of its time are
landmarks of other releases and not of it, and q(r) the most that one of these spends. With the same
landmarks everywhere n(r) is 0 and the epsilons add up. With unlike ones each release pays for the
landmarks of the others. A release without landmarks spends what its guarantee says of n(r) + 1
readings. All of this is true of every path of outputs, also where a scheme decides by its outputs
what to spend, so it does not matter that releases, and landmarks, are chosen one after the other:
where C is covered at the end, what was spent on C by then is within the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tempriv.accounting.filters import (
    UNBOUNDED_COST,
    ZERO_COST,
    Cost,
    cost_of,
    explain_other_unit,
)
from tempriv.errors import BudgetError, require
from tempriv.ledger.resolution import Resolution, Statements
from tempriv.ledger.scope import EARLIEST, LANDMARKS, LATEST, Ids, Scope, ScopedCost, scoped_cost
from tempriv.ledger.spending import ChargeParts, Moments, SeriesSpending
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.privacy.units import Landmarks, Readings, Unit


class Spender(NamedTuple):
    """Charges of one scope that are alike.

    Parameters:
        place: whose data they touch, and when; at no cost.
        charges: how many there are.
        statements: what is guaranteed; of a landmark release first the guarantee for landmarks.
        spent: what its readings spend; None: not known, or the same for all.
        marks: the digest of its landmarks; None: unknown, or none.
        aligned: whether its steps are those of the dataset.
    """

    place: ScopedCost
    charges: int
    statements: Statements
    spent: SeriesSpending | None
    marks: bytes | None
    aligned: bool

    @property
    def naming(self) -> tuple[str, str, bool]:
        """How ids and times are named; digests of unlike ones cannot be compared."""
        return self.place.kind, self.place.clock, self.place.members is None

    @property
    def has_landmarks(self) -> bool:
        """Whether the guarantee is for landmarks."""
        first = self.statements[0]
        return isinstance(first, Guarantee) and first.unit.names_landmarks

    def meets_in_time(self, other: Spender) -> bool:
        """Whether a reading may be in this and in the ``other``."""
        mine, its = self.place, other.place
        return mine.clock != its.clock or (mine.start <= its.end and its.start <= mine.end)


class LandmarkTotals:
    """What spenders cost for a limit on landmarks.

    Parameters:
        spenders: all that was charged.
        moments_of: the landmarks of a set, from its digest.
        ids_of: the members of a set, from its digest.
    """

    def __init__(
        self,
        spenders: Sequence[Spender],
        moments_of: Callable[[bytes], Moments],
        ids_of: Callable[[bytes], Ids],
    ):
        self._spenders = spenders
        self._named = [spender for spender in spenders if spender.has_landmarks]
        self._moments_of, self._ids_of = moments_of, ids_of
        self._known: dict[bytes, Moments] = {}
        self._further: dict[tuple[object, ...], float] = {}

    def shares(self, unit: Landmarks, order: float) -> list[ScopedCost]:
        """The costs of all spenders: at any time, and at the time of the one other reading.

        Parameters:
            unit: of the limit.
            order: at which rhos are counted for the limit.
        """
        shares = []
        for spender in self._spenders:
            at_all, at_its_time = self._costs(spender, unit, order)
            anytime = spender.place._replace(start=EARLIEST, end=LATEST)
            shares.append(anytime._replace(cost=_times(spender.charges, at_all)))
            shares.append(spender.place._replace(cost=_times(spender.charges, at_its_time)))
        return shares

    def _costs(self, spender: Spender, unit: Landmarks, order: float) -> tuple[Cost, Cost]:
        further = self._further_landmarks(spender) if spender.aligned else math.inf
        if math.isinf(further):
            return UNBOUNDED_COST, ZERO_COST
        cost = _cost_of_landmarks if spender.has_landmarks else _cost_of_readings
        without, whole = (cost(spender, unit, order, int(further), one) for one in (False, True))
        rest = (0.0 if math.isinf(a) else b - a for a, b in zip(without, whole, strict=True))
        return without, Cost(*rest)

    def _further_landmarks(self, spender: Spender) -> float:
        """How many of its readings are landmarks of others and not of it, at most."""
        met = [other for other in self._named if other.meets_in_time(spender)]
        known = {other.naming: set[bytes]() for other in met if other.marks is not None}
        further = 0.0
        for other in met:
            if other.marks is not None:
                known[other.naming].add(other.marks)
                continue
            again = other.charges - (other is spender)
            if again and self._same_series(spender, other):
                most = None if other.spent is None else other.spent.landmarks
                further += math.inf if most is None else again * most
        for naming, sets in known.items():
            own = spender.marks if naming == spender.naming else None
            whose = None
            if naming == spender.naming and spender.place.kind.startswith("series"):
                whose = spender.place.members
            key = (frozenset(sets), own, whose)
            if key not in self._further:
                self._further[key] = self._most_outside(sets, own, whose)
            further += self._further[key]
        return further

    def _same_series(self, one: Spender, other: Spender) -> bool:
        a, b = one.place, other.place
        if a.kind != b.kind or a.members is None or b.members is None or a.members == b.members:
            return True
        return bool(np.isin(self._ids_of(a.members), self._ids_of(b.members)).any())

    def _moments(self, digest: bytes) -> Moments:
        if digest not in self._known:
            self._known[digest] = self._moments_of(digest)
        return self._known[digest]

    def _most_outside(self, sets: set[bytes], own: bytes | None, whose: bytes | None) -> int:
        """The most landmarks in these sets that a series has, not counting those in its own set."""
        each = [self._moments(digest) for digest in sorted(sets)]
        moments, first = np.unique(np.concatenate([one.moments for one in each]), return_index=True)
        owners = np.concatenate([one.owners for one in each])[first]
        outside = np.ones(len(moments), dtype=np.bool_)
        if own is not None:
            outside &= ~np.isin(moments, self._moments(own).moments)
        if whose is not None:
            outside &= np.isin(owners, self._ids_of(whose))
        return int(np.unique(owners[outside], return_counts=True)[1].max(initial=0))


def joining(
    guarantee: Guarantee, scope: Scope, base: Resolution, parts: ChargeParts | None
) -> Spender:
    """A charge that is not made yet.

    Parameters:
        guarantee: of the release.
        scope: of the release.
        base: the steps of the dataset.
        parts: of the charge, if it has any.
    """
    row = (scope.kind, scope.set_digest, scope.clock, scope.start, scope.until)
    spender = Spender(
        place=scoped_cost(row, ZERO_COST),
        charges=1,
        statements=(guarantee,),
        spent=None,
        marks=None,
        # asked early, it is nobody's data, at no time
        aligned=scope.members == () or base.same_steps(Resolution.of(scope), base.grid_of(scope)),
    )
    for part in () if parts is None else parts.parts:
        if part.role == LANDMARKS:
            spender = spender._replace(
                statements=part.statements, spent=part.spent, marks=part.marks
            )
    return spender


def require_fitting(dataset: str, unit: Unit, spender: Spender) -> None:
    """Refuse what cannot be restated for landmarks.

    Parameters:
        dataset: its name, for the message.
        unit: of the limit.
        spender: what is to be charged.
    """
    assert isinstance(unit, Landmarks)
    restated = [
        said.for_unit(unit if spender.has_landmarks else Readings(1, unit.meters))
        for said in spender.statements[:1]
    ]
    require(
        isinstance(restated[0], Guarantee),
        f"dataset {dataset!r} {explain_other_unit(unit, _unit_of(spender))}",
        BudgetError,
    )
    require(
        spender.aligned,
        f"dataset {dataset!r} limits the loss of {unit.sentence}, and this release has other time "
        "steps than the first one; which of its readings hold a landmark is not known, so release "
        "at the same steps, or charge this release to a dataset of its own",
        BudgetError,
    )


def _unit_of(spender: Spender) -> Unit:
    first = spender.statements[0]
    assert isinstance(first, Guarantee)
    return first.unit


def cost_alone(spender: Spender, unit: Unit, order: float) -> Cost:
    """What a charge costs where no other was made.

    Parameters:
        spender: what is charged.
        unit: of the limit.
        order: at which rhos are counted.
    """
    cost = _cost_of_landmarks if spender.has_landmarks else _cost_of_readings
    return cost(spender, unit, order, 0, True)


def _times(count: int, cost: Cost) -> Cost:
    return Cost(*(count * measure if measure else 0.0 for measure in cost))


def _cost_of_landmarks(
    spender: Spender, unit: Unit, order: float, further: int, one_more: bool
) -> Cost:
    """What a landmark release spends on its landmarks and so many others (and ``one_more``)."""
    guarantee = spender.statements[0]
    assert isinstance(guarantee, Guarantee)
    if not isinstance(guarantee.loss, Pure):
        return UNBOUNDED_COST
    together = other = guarantee.loss.epsilon
    if spender.spent is not None:
        together, other = spender.spent.together, spender.spent.other
    spends = Pure((guarantee.loss.epsilon if one_more else together) + further * other)
    return cost_of(Guarantee(spends, guarantee.unit, guarantee.model), unit, order)


def _cost_of_readings(
    spender: Spender, unit: Unit, order: float, further: int, one_more: bool
) -> Cost:
    """What any other release spends on so many readings (and ``one_more``)."""
    assert isinstance(unit, Landmarks)
    if further + one_more == 0:
        return ZERO_COST
    covered = Readings(further + one_more, unit.meters)
    return min(cost_of(statement, covered, order) for statement in spender.statements)
