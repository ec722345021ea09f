"""What charges add up to, by methods that hold although each charge is chosen after the others.

A limit (epsilon, delta) speaks of one neighboring pair, that is of one member (a series or a
person) and one moment (a reading or a window); its charges are those whose scope covers both. A
further charge is accepted iff every such total has deltas of at most delta/2 and passes by one of
two rules:

- sum: the epsilons add up to at most epsilon; a zCDP charge has none of its own and counts as
  infinite;
- zCDP, only when delta > 0: the rhos add up to at most the rho that keeps (epsilon, delta/2).

That rho decides at one order, which the limit fixes (``renyi.rho_budget``). So the rho of a pure or
approximate charge is its Renyi divergence at that order (``renyi.rho_of_pure``), below the
epsilon^2/2 that would hold at all orders, and the rule is a Renyi filter.

Why either rule will do, even when the choice depends on earlier outputs: let P and Q be the
outputs on the two neighbors and S an event. At every step, P is split into a part that keeps the
charge's loss without delta and a rest of mass at most its delta (Kairouz, Oh and Viswanath 2015);
the rests weigh at most delta/2 in all. Totals only grow, so a path of outputs keeps one of the
rules all along.

- Where it keeps the sum, what is left of P is at most e^epsilon Q.
- Where it keeps zCDP, it is a path of the process that is stopped before its rho would pass. With
  L the loss so far, alpha the order and r the divergences spent, e^((alpha - 1)(L - r)) is a
  supermartingale, so the whole has a divergence within the budget (Feldman and Zrnic 2021). The
  conversion to (epsilon, delta/2) holds for events, so also for those among these paths.

Together P(S) <= e^epsilon Q(S) + delta/2 + delta/2.

A charge of a pair that nothing was charged for before may instead take all of the limit by its own
loss (``alone_total``), if it passes by neither rule. Nothing fits beside it then, since totals only
grow. What came before is the same on both neighbors, so whether the first charge is of this sort
is, too: on those paths P(S) <= e^epsilon Q(S) + delta by the charge itself, and on the others by
the rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tempriv.accounting.renyi import epsilon_of_rho, pure_of_rho, rho_budget, rho_of_pure
from tempriv.privacy import units
from tempriv.privacy.guarantees import (
    Approximate,
    Calibrated,
    Concentrated,
    Guarantee,
    NoGuarantee,
    Pure,
)

Costs = npt.NDArray[np.float64]  # columns epsilon, delta, rho

# ten charges of 0.1 fit a limit of 1 in spite of floating point
TOLERANCE = 1e-9
# optimal composition of more charges takes seconds
MAX_IN_ADVANCE_CHARGES = 1_000_000
# totals without a limit are shown at this delta, unless all is pure
SHOWN_DELTA = 1e-6


class Cost(NamedTuple):
    """What one charge adds to a total, by each measure; infinite where it has none."""

    epsilon: float
    delta: float
    rho: float


ZERO_COST = Cost(0.0, 0.0, 0.0)
UNBOUNDED_COST = Cost(math.inf, math.inf, math.inf)


def order_of(limit: float | None, delta: float) -> float:
    """The order at which rhos are counted for a limit; 1 stands for all orders.

    Parameters:
        limit: the epsilon that may be spent; None: no limit.
        delta: of the limit.
    """
    return 1.0 if limit is None or delta == 0 else rho_budget(limit, delta / 2)[1]


def cost_of(guarantee: Guarantee | NoGuarantee, unit: units.Unit, order: float = 1.0) -> Cost:
    """The cost of a charge, restated for the unit of a limit; its rho at the order and above.

    Parameters:
        guarantee: of the release that is charged.
        unit: of the limit.
        order: at which rhos are counted for the limit.

    >>> cost_of(Guarantee(loss=Concentrated(0.5), unit=units.Event()), units.Window(2))
    Cost(epsilon=inf, delta=0.0, rho=2.0)
    """
    restated = guarantee.for_unit(unit)
    if isinstance(restated, NoGuarantee):
        return UNBOUNDED_COST
    loss = restated.loss
    if isinstance(loss, Concentrated):
        return Cost(math.inf if loss.rho else 0.0, 0.0, loss.rho)
    delta = 0.0 if isinstance(loss, Pure) else loss.delta
    return Cost(loss.epsilon, delta, rho_of_pure(loss.epsilon, order))


def _outermost(costs: Costs) -> Costs:
    """Without rows that lie below the largest of some column in every measure."""
    kept = np.ones(len(costs), dtype=bool)
    for column in range(costs.shape[1]):
        most = int(np.lexsort((costs.sum(axis=1), costs[:, column]))[-1])
        kept &= (costs > costs[most]).any(axis=1)
        kept[most] = True
    return costs[kept]


def _within(costs: Costs, delta: float) -> npt.NDArray[np.bool_]:
    return costs[:, 1] <= delta / 2 * (1 + TOLERANCE)


def by_sum(costs: Costs, delta: float) -> Costs:
    """The epsilon of each of the total ``costs`` at ``delta``, by the rule of sums."""
    return np.where(_within(costs, delta), costs[:, 0], np.inf)


def by_zcdp(costs: Costs, delta: float, order: float = 1.0) -> Costs:
    """The epsilon of each of the total ``costs`` at ``delta``, by the rule of zCDP at an ``order``.

    >>> by_zcdp(np.array([[np.inf, 0.0, 0.5]]), 2e-6).round(2).tolist()
    [5.22]
    """
    if delta == 0:
        return np.where(costs[:, 2] == 0, 0.0, np.inf)
    epsilons = [epsilon_of_rho(rho, delta / 2, order) for rho in costs[:, 2].tolist()]
    return np.where(_within(costs, delta), np.array(epsilons), np.inf)


def remaining(costs: Costs, epsilon: float, delta: float) -> Costs:
    """The largest pure epsilon that total ``costs`` still admit, of ``epsilon`` at ``delta``."""
    left = np.maximum(epsilon - by_sum(costs, delta), 0.0)
    if delta > 0:
        most, order = rho_budget(epsilon, delta / 2)
        rho = np.where(_within(costs, delta), np.maximum(most - costs[:, 2], 0.0), 0.0)
        left = np.maximum(left, [pure_of_rho(value, order) for value in rho.tolist()])
    return left


def _known(value: float) -> float | None:
    return None if math.isinf(value) else float(value)


def _larger(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else max(a, b)


@dataclass(frozen=True)
class Total:
    """The most that any member has lost at any moment; None stands for no finite epsilon.

    ``limit`` is the epsilon that may be spent at ``delta`` (None where nothing was set);
    ``remaining`` is the largest pure epsilon still accepted for everyone and all times.
    """

    unit: units.Unit
    limit: float | None
    delta: float
    by_sum: float | None
    by_zcdp: float | None
    spent: float | None
    remaining: float | None

    @property
    def exceeded(self) -> bool:
        return self.limit is not None and (
            self.spent is None or self.spent > self.limit * (1 + TOLERANCE)
        )

    def or_worse(self, other: Total) -> Total:
        """The worse of this and an ``other`` total of one limit, measure by measure."""
        assert self.remaining is not None and other.remaining is not None
        return replace(
            self,
            by_sum=_larger(self.by_sum, other.by_sum),
            by_zcdp=_larger(self.by_zcdp, other.by_zcdp),
            spent=_larger(self.spent, other.spent),
            remaining=min(self.remaining, other.remaining),
        )


def worst_total(costs: Costs, unit: units.Unit, limit: float | None, delta: float) -> Total:
    """The total of a limit, from the totals of single members at single moments.

    Parameters:
        costs: these totals, a row each.
        unit: of the limit.
        limit: the epsilon that may be spent; None: no limit.
        delta: of the limit.
    """
    costs = _outermost(costs)
    sums, tails = by_sum(costs, delta), by_zcdp(costs, delta, order_of(limit, delta))
    return Total(
        unit=unit,
        limit=limit,
        delta=delta,
        by_sum=_known(sums.max()),
        by_zcdp=_known(tails.max()),
        spent=_known(np.minimum(sums, tails).max()),
        remaining=None if limit is None else float(remaining(costs, limit, delta).min()),
    )


def alone_total(guarantee: Guarantee | NoGuarantee, total: Total) -> Total | None:
    """What the only charge of its kind of pair comes to, if its own loss is within the limit.

    Parameters:
        guarantee: of the charge, restated for the unit of the limit.
        total: what the rules for several charges make of it, which is above the limit.

    >>> total = worst_total(np.array([[np.inf, 0.0, 0.028]]), units.Event(), 1.0, 1e-6)
    >>> loss = Calibrated(0.028, 1.0, 1e-6)
    >>> total.exceeded, alone_total(Guarantee(loss, units.Event()), total).spent
    (True, 1.0)
    """
    stated = (Approximate, Calibrated)
    if isinstance(guarantee, NoGuarantee) or not isinstance(guarantee.loss, stated):
        return None
    epsilon = guarantee.loss.epsilon_at(total.delta)
    if total.limit is None or epsilon > total.limit:
        return None
    return replace(total, spent=epsilon, remaining=0.0)


def unlimited_total(costs: Costs, unit: units.Unit) -> Total:
    """The total of ``costs`` for a ``unit`` without a limit, at a delta that suits the charges."""
    deltas = costs[:, 1][np.isfinite(costs[:, 1])]
    pure = bool(np.isfinite(costs[:, 0]).all()) and not costs[:, 1].any()
    delta = 0.0 if pure else min(max(SHOWN_DELTA, 2 * deltas.max(initial=0.0)), 0.5)
    return worst_total(costs, unit, None, delta)


def epsilon_in_advance(total: Total, costs: Iterable[Cost]) -> float | None:
    """What the same charges would come to, had number and costs been fixed in advance.

    By optimal composition, at all of delta. None where that cannot be said: without delta, where
    charges differ, where one has no (epsilon, delta) of its own, or past a million of them.

    Parameters:
        total: what the charges come to as they were made.
        costs: of single charges, each amount once.

    >>> costs = [Cost(0.05, 0.0, 0.00125)]
    >>> total = worst_total(np.array([[5.0, 0.0, 0.125]]), units.Event(), 9.0, 1e-6)
    >>> round(epsilon_in_advance(total, costs), 3), round(total.spent, 3)
    (2.208, 2.49)
    """
    known = {(cost.epsilon, cost.delta) for cost in costs}
    if total.delta == 0 or total.by_sum is None or len(known) != 1:
        return None
    ((epsilon, delta),) = known
    if not 0 < epsilon < math.inf:
        return None
    count = math.ceil(total.by_sum / epsilon * (1 - TOLERANCE))
    if count > MAX_IN_ADVANCE_CHARGES:
        return None
    from tempriv.accounting.composition import optimal

    return optimal(epsilon, delta, count, total.delta).epsilon


def explain_refusal(before: Total, cost: Cost, after: Total) -> str:
    """Why a charge is refused, in one sentence.

    Parameters:
        before: the total without the charge.
        cost: of the charge.
        after: the total with it.
    """
    alone = worst_total(np.array([cost]), after.unit, after.limit, after.delta)
    at_delta = f" at delta = {after.delta:g}" if after.delta else ""
    return (
        f"this release costs {_epsilon(alone.spent)} and would bring what is spent on "
        f"{after.unit.sentence} from {_epsilon(before.spent)} to {_epsilon(after.spent)}, above "
        f"the limit of {_epsilon(after.limit)}{at_delta}; {_epsilon(before.remaining)} remains, "
        "so release with less or raise the limit"
    )


def explain_other_unit(limit: units.Unit, guaranteed: units.Unit) -> str:
    """Why a release cannot be charged to a limit for another unit, after a dataset's name.

    Parameters:
        limit: the unit of the limit.
        guaranteed: the unit of the release.
    """
    if guaranteed.about_order and not limit.about_order:
        return (
            f"limits the loss of {limit.sentence}, and this release publishes the readings "
            "themselves and hides only when they were taken, so nothing is guaranteed about them; "
            "use a mechanism that changes values, or limit the order of readings instead"
        )
    return (
        f"limits the loss of {limit.sentence}, of which a release that protects "
        f"{guaranteed.sentence} says nothing; use another mechanism, or charge it to another "
        "dataset"
    )


def explain_no_bound(unit: units.Unit, single_rows: bool) -> str:
    """Why exact releases that are each within a limit have no bound together.

    Parameters:
        unit: of the limit.
        single_rows: whether it is because guarantees are about single output rows.
    """
    why = (
        "some of these readings were released before with a guarantee about single output rows "
        "only, and two such outputs side by side can show for certain where a reading came from; "
        "release a series that way once"
        if single_rows
        else "values are kept exact, and this release and those before it are not known to be of "
        "the same readings, so what traded places with a reading outside one of them shows; "
        "release the series in one piece, or as one stream, with times at a regular step"
    )
    return f"with this release nothing could be guaranteed about {unit.sentence}: {why}"


def _epsilon(value: float | None) -> str:
    return "an unbounded epsilon" if value is None else f"epsilon = {value:.6g}"
