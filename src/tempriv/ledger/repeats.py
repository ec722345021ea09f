"""What a further release of the same readings adds up to, where a dataset has no limit.

A limit refuses what would pass it. Without one every release is recorded, so that whoever releases
the same readings again has to be told what that comes to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from tempriv.accounting.filters import (
    ZERO_COST,
    Cost,
    Total,
    explain_no_bound,
    unlimited_total,
)
from tempriv.ledger import scope as scopes
from tempriv.ledger.resolution import Resolution, cost_over, steps_covered
from tempriv.ledger.running_totals import RunningTotals
from tempriv.ledger.scope import Scope, ScopedCost
from tempriv.privacy import units
from tempriv.privacy.guarantees import Guarantee

if TYPE_CHECKING:
    from tempriv.ledger.spending import ChargeParts
    from tempriv.privacy.units import Landmarks


class _Totals:
    """Totals for the unit of a release, of the readings that it covers."""

    def __init__(self, sums: RunningTotals, dataset: int, unit: units.Unit, scope: Scope):
        self._sums, self._scope, self._unit = sums, scope, unit
        self._widths = sums.widths(dataset, unit, scope)

    def of(self, shares: Sequence[ScopedCost], release: ScopedCost) -> Total:
        """The total of some ``shares`` and a ``release``, within what the release covers."""
        costs = scopes.total_costs(
            [*shares, release],
            lambda digest: self._sums.ids(digest, self._scope),
            self._unit,
            self._widths,
            within=release,
            moments_of=self._sums.readings_of,
        )
        return unlimited_total(costs, self._unit)


def repetition(
    sums: RunningTotals,
    dataset: int,
    guarantee: Guarantee,
    scope: Scope,
    parts: ChargeParts | None = None,
) -> str | None:
    """What a release comes to, with those before it of the same readings; None: there are none.

    Parameters:
        sums: the charges so far.
        dataset: the number of the dataset, which has no limit.
        guarantee: of the release.
        scope: whose data the release touches, and when.
        parts: of a landmark release, what its readings spend.

    Returns:
        The end of a sentence that names the dataset.
    """
    unit = guarantee.unit.unaligned()
    scope = scopes.as_charged(scope, guarantee)
    if unit.names_landmarks:
        return _repeated_landmarks(sums, dataset, guarantee, scope, parts)
    earlier = list(sums.shares(dataset, unit).values())
    totals = _Totals(sums, dataset, unit, scope)
    steps = steps_covered(unit, sums.base(dataset) or Resolution.of(scope), Resolution.of(scope))
    share = scope.share(cost_over(guarantee, unit, 1.0, steps), guarantee, unit)
    unmarked = share._replace(cost=ZERO_COST, exact=0, single=0)
    marked = [one._replace(cost=Cost(1.0, 0.0, 1.0), exact=0, single=0) for one in earlier]
    if totals.of(marked, unmarked).spent == 0:
        return None
    total = totals.of(earlier, share)
    if total.spent is None:
        return _why_unbounded(totals, earlier, share, unit)
    return _sentence(total, totals.of([*earlier, share], share), unit)


def _repeated_landmarks(
    sums: RunningTotals,
    dataset: int,
    guarantee: Guarantee,
    scope: Scope,
    parts: ChargeParts | None,
) -> str | None:
    """The same for landmarks, whose total depends on which of them the releases share."""
    from tempriv.ledger.landmark_totals import cost_alone, joining

    unit = cast("Landmarks", guarantee.unit.unaligned())
    base = sums.base(dataset) or Resolution.of(scope)
    spender = joining(guarantee, scope, base, parts)
    sets = {} if parts is None else {moments.digest: moments for moments in parts.sets}

    def total_with(releases: int) -> Total:
        joined = [spender] * releases
        costs = sums.landmark_costs(dataset, unit, 1.0, base, joined, sets, scope)
        return unlimited_total(costs, unit)

    alone = unlimited_total(np.array([cost_alone(spender, unit, 1.0)]), unit)
    before, total = total_with(0), total_with(1)
    if total.spent is None:
        return _nothing_guaranteed(unit)
    if total.spent <= max(before.spent or 0.0, alone.spent or 0.0):
        return None
    return _sentence(total, total_with(2), unit)


def _sentence(total: Total, another: Total, unit: units.Unit) -> str:
    at = f" at delta {total.delta:g}" if total.delta else ""
    spent, then = (
        "more than can be said" if one.spent is None else f"{one.spent:.6g}"
        for one in (total, another)
    )
    return (
        f"has no limit, and some of these readings were released before: with this release epsilon "
        f"= {spent}{at} is spent on {unit.sentence}, and another like it would make {then}; "
        "tempriv budget create sets a limit"
    )


def _why_unbounded(
    totals: _Totals, earlier: list[ScopedCost], share: ScopedCost, unit: units.Unit
) -> str:
    if unit.about_order:
        for single_rows in (True, False):
            rows = [one._replace(single=0) for one in (*earlier, share)]
            if not single_rows:
                rows = [one._replace(exact=0) for one in rows]
            if totals.of(rows[:-1], rows[-1]).spent is not None:
                return f"has no limit, and {explain_no_bound(unit, single_rows)}"
    return _nothing_guaranteed(unit)


def _nothing_guaranteed(unit: units.Unit) -> str:
    return (
        f"has no limit, and with this release nothing is guaranteed about {unit.sentence}: some of "
        "these readings were released before without a guarantee that says anything about that"
    )
