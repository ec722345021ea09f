"""What charges add up to, by methods that hold although each charge is chosen after the others.

A limit (epsilon, delta) speaks of one neighbouring pair, that is of one member (a series or a
person) and one moment (a reading or a window); its charges are those whose scope covers both. A
further charge is accepted iff every such total passes by one of two rules:

- sum: the epsilons add up to at most epsilon and the deltas to at most delta/2; a zCDP charge has
  no epsilon of its own and counts as infinite;
- zCDP: the rhos (epsilon^2/2 for a pure charge, infinite for an approximate one) add up to a rho
  whose tail bound at delta/2 is at most epsilon; only when delta > 0.

Why either rule will do, even when the choice depends on earlier outputs: let P and Q be the
outputs on the two neighbours and S an event. Totals only grow, so a path of outputs keeps one of
the rules all along.

- Where it keeps the sum: split P at every step into the part at most e^(its epsilon) Q and the
  rest, of mass at most its delta. The rests weigh at most delta/2 in all, what is left is at most
  e^epsilon Q.
- Where it keeps zCDP: such paths are paths of the process that is stopped before its rho would
  pass. That process is rho-zCDP (Feldman and Zrnic 2021; Whitehouse et al. 2023), so its loss
  exceeds epsilon with probability at most delta/2 (Bun and Steinke 2016, behind Proposition 1.3);
  elsewhere P <= e^epsilon Q.

Together P(S) <= e^epsilon Q(S) + delta/2 + delta/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tempriv import units
from tempriv.guarantees import Approximate, Guarantee, NoGuarantee, Pure, rho_for

Costs = npt.NDArray[np.float64]  # columns epsilon, delta, rho

# ten charges of 0.1 fit a limit of 1 in spite of floating point
TOLERANCE = 1e-9
# totals without a limit are shown at this delta, unless all is pure
SHOWN_DELTA = 1e-6


class Cost(NamedTuple):
    """What one charge adds to a total, by each measure; infinite where it has none."""

    epsilon: float
    delta: float
    rho: float


NOTHING = Cost(0.0, 0.0, 0.0)
NO_BOUND = Cost(math.inf, math.inf, math.inf)


def cost_of(guarantee: Guarantee | NoGuarantee, unit: units.Unit) -> Cost:
    """The cost of a charge, restated for the unit of a limit.

    >>> cost_of(Guarantee(loss=Pure(0.5), unit=units.Event()), units.Window(2))
    Cost(epsilon=1.0, delta=0.0, rho=0.5)
    """
    restated = guarantee.for_unit(unit)
    if isinstance(restated, NoGuarantee):
        return NO_BOUND
    loss = restated.loss
    if isinstance(loss, Pure):
        return Cost(loss.epsilon, 0.0, loss.epsilon**2 / 2)
    if isinstance(loss, Approximate):
        return Cost(loss.epsilon, loss.delta, math.inf if loss.delta else loss.epsilon**2 / 2)
    return Cost(math.inf if loss.rho else 0.0, 0.0, loss.rho)


def by_sum(costs: Costs, delta: float) -> Costs:
    """The epsilon of each total at delta, by the rule of sums."""
    within = costs[:, 1] <= delta / 2 * (1 + TOLERANCE)
    return np.where(within, costs[:, 0], np.inf)


def by_zcdp(costs: Costs, delta: float) -> Costs:
    """The epsilon of each total at delta, by the rule of zCDP.

    >>> by_zcdp(np.array([[np.inf, 0.0, 0.5]]), 2e-6).round(2).tolist()
    [5.76]
    """
    if delta == 0:
        return np.where(costs[:, 2] == 0, 0.0, np.inf)
    tails: Costs = costs[:, 2] + 2 * np.sqrt(costs[:, 2] * math.log(2 / delta))
    return tails


def remaining(costs: Costs, epsilon: float, delta: float) -> Costs:
    """The largest pure epsilon that each total still admits."""
    left = np.maximum(epsilon - by_sum(costs, delta), 0.0)
    if delta > 0:
        rho = np.maximum(rho_for(epsilon, delta / 2) - costs[:, 2], 0.0)
        left = np.maximum(left, np.sqrt(2 * rho))
    return left


def _known(value: float) -> float | None:
    return None if math.isinf(value) else float(value)


def _larger(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else max(one, other)


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
        """The worse of two totals of one limit, measure by measure."""
        assert self.remaining is not None and other.remaining is not None
        return replace(
            self,
            by_sum=_larger(self.by_sum, other.by_sum),
            by_zcdp=_larger(self.by_zcdp, other.by_zcdp),
            spent=_larger(self.spent, other.spent),
            remaining=min(self.remaining, other.remaining),
        )


def worst(costs: Costs, unit: units.Unit, limit: float | None, delta: float) -> Total:
    """The total of a limit, from the totals of single members at single moments."""
    sums, tails = by_sum(costs, delta), by_zcdp(costs, delta)
    return Total(
        unit=unit,
        limit=limit,
        delta=delta,
        by_sum=_known(sums.max()),
        by_zcdp=_known(tails.max()),
        spent=_known(np.minimum(sums, tails).max()),
        remaining=None if limit is None else float(remaining(costs, limit, delta).min()),
    )


def unlimited(costs: Costs, unit: units.Unit) -> Total:
    """The total where nothing is limited, at a delta that suits what was charged."""
    deltas = costs[:, 1][np.isfinite(costs[:, 1])]
    pure = bool(np.isfinite(costs[:, 0]).all()) and not costs[:, 1].any()
    delta = 0.0 if pure else min(max(SHOWN_DELTA, 2 * deltas.max(initial=0.0)), 0.5)
    return worst(costs, unit, None, delta)


def explain(before: Total, cost: Cost, after: Total) -> str:
    """Why a charge is refused, in one sentence."""
    alone = worst(np.array([cost]), after.unit, after.limit, after.delta)
    at_delta = f" at delta = {after.delta:g}" if after.delta else ""
    return (
        f"this release costs {_epsilon(alone.spent)} and would bring what is spent on "
        f"{after.unit.sentence} from {_epsilon(before.spent)} to {_epsilon(after.spent)}, above "
        f"the limit of {_epsilon(after.limit)}{at_delta}; {_epsilon(before.remaining)} remains, "
        "so release with less or raise the limit"
    )


def _epsilon(value: float | None) -> str:
    return "an unbounded epsilon" if value is None else f"epsilon = {value:.6g}"
