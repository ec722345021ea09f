"""What a further release of the same readings adds up to, where a dataset has no limit.

A limit refuses what would pass it. Without one every release is recorded, so that whoever releases
the same readings again has to be told what that comes to.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

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


class _Totals:
    """Totals for the unit of a release, of the readings that it covers."""

    def __init__(self, sums: RunningTotals, dataset: int, unit: units.Unit, scope: Scope):
        self._ids = functools.partial(sums.ids, scope=scope)
        self._unit, self._widths = unit, sums.widths(dataset, unit, scope)

    def of(self, shares: Sequence[ScopedCost], release: ScopedCost) -> Total:
        """The total of some ``shares`` and a ``release``, within what the release covers."""
        costs = scopes.total_costs(
            [*shares, release], self._ids, self._unit, self._widths, within=release
        )
        return unlimited_total(costs, self._unit)


def repetition(sums: RunningTotals, dataset: int, guarantee: Guarantee, scope: Scope) -> str | None:
    """What a release comes to, with those before it of the same readings; None: there are none.

    Parameters:
        sums: the charges so far.
        dataset: the number of the dataset, which has no limit.
        guarantee: of the release.
        scope: whose data the release touches, and when.

    Returns:
        The end of a sentence that names the dataset.
    """
    unit = guarantee.unit.unaligned()
    scope = scopes.as_charged(scope, guarantee)
    earlier = list(sums.shares(dataset, unit).values())
    totals = _Totals(sums, dataset, unit, scope)
    steps = steps_covered(unit, sums.base(dataset) or Resolution.of(scope), Resolution.of(scope))
    share = scope.share(cost_over(guarantee, unit, 1.0, steps), guarantee, unit)
    unmarked = share._replace(cost=ZERO_COST, exact=0, single=0)
    marked = [one._replace(cost=Cost(1.0, 0.0, 1.0), exact=0, single=0) for one in earlier]
    if totals.of(marked, unmarked).spent == 0:
        return None
    total = totals.of(earlier, share)
    spent, at = total.spent, f" at delta {total.delta:g}" if total.delta else ""
    if spent is None:
        return _why_unbounded(totals, earlier, share, unit)
    another = totals.of([*earlier, share], share).spent
    return (
        f"has no limit, and some of these readings were released before: with this release epsilon "
        f"= {spent:.6g}{at} is spent on {unit.sentence}, and another like it would make "
        f"{'more than can be said' if another is None else format(another, '.6g')}; tempriv budget "
        "create sets a limit"
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
    return (
        f"has no limit, and with this release nothing is guaranteed about {unit.sentence}: some of "
        "these readings were released before without a guarantee that says anything about that"
    )
