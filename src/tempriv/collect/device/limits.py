"""What the owner of a device agrees to, and whether a campaign stays within it.

Nothing here sees what the device holds: whether it takes part follows from the campaign, from the
owner's limits and from what was answered before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds import campaign_kinds
from tempriv.errors import BudgetError, require
from tempriv.privacy.units import Unit


def default_kinds() -> tuple[str, ...]:
    """Return the kinds that a device answers though its owner has named none."""
    return tuple(name for name, kind in campaign_kinds().items() if kind.agreed_by_default)


@dataclass(frozen=True, kw_only=True)
class DeviceLimits:
    """The most that a device gives away, whoever asks.

    Parameters:
        most_epsilon: the most for one campaign.
        limit: the most for all campaigns together that are answered once.
        stream_limit: the most for all streams together, within any ``stream_seconds``.
        stream_seconds: the time that ``stream_limit`` is for.
        kinds: the kinds of campaigns that the owner agreed to; uploads only if they are named.
        upload_unit: what epsilon is counted for in an upload; the whole series if not given.
        most_delta: the largest delta of a guarantee.

    >>> limits = DeviceLimits(most_epsilon=1.0)
    >>> limits.kinds[:3]
    ('shapes', 'frequency', 'stream')
    """

    most_epsilon: float = 2.0
    limit: float = 8.0
    stream_limit: float = 4.0
    stream_seconds: float = 3600.0
    kinds: tuple[str, ...] = field(default_factory=default_kinds)
    upload_unit: Unit | None = None
    most_delta: float = 0.0

    def __post_init__(self) -> None:
        for name in ("most_epsilon", "limit", "stream_limit", "stream_seconds"):
            value = getattr(self, name)
            require(
                isinstance(value, (int, float))
                and not isinstance(value, bool)
                and 0 < value < math.inf,
                f"{name}={value}: must be a number > 0",
            )
        require(
            0 <= self.most_delta < 1,
            f"most_delta={self.most_delta}: must be from 0 to below 1, such as 1e-6",
        )
        known = campaign_kinds()
        unknown = [name for name in self.kinds if name not in known]
        require(not unknown, f"kinds: {unknown} are none of {', '.join(known)}")

    @property
    def stream_window(self) -> int:
        """Seconds by the device's clock that any ``stream_seconds`` can touch."""
        return math.ceil(self.stream_seconds) + 1

    def cost(self, campaign: Campaign) -> float:
        """Return the epsilon that ``campaign`` is counted with, by the owner's own measure.

        Of a stream it is what all of its answers within ``stream_seconds`` come to at most.
        """
        return campaign.definition.cost(campaign.plan, self)

    def refuse(self, campaign: Campaign, spent: float = 0.0) -> None:
        """Refuse a campaign that asks for more than the owner agreed to.

        Parameters:
            campaign: the campaign that asks.
            spent: epsilon of all campaigns that were answered once.

        Raises:
            BudgetError: it asks for more.
        """
        require(
            campaign.kind in self.kinds,
            f"kind {campaign.kind}: the owner of this device has not agreed to it",
            BudgetError,
        )
        require(
            campaign.epsilon <= self.most_epsilon,
            f"epsilon={campaign.epsilon:g}: this device answers nothing above "
            f"{self.most_epsilon:g}",
            BudgetError,
        )
        cost = self.cost(campaign)
        if not campaign.answers_once:
            require(
                cost <= self.stream_limit,
                f"answers within {self.stream_seconds:g} seconds may come to epsilon={cost:g}: "
                f"this device's limit is {self.stream_limit:g}",
                BudgetError,
            )
            return
        require(
            math.isfinite(cost),
            "the guarantee does not cover a whole series, or only with a delta: the owner of this "
            "device has not agreed to that",
            BudgetError,
        )
        require(
            cost <= self.most_epsilon,
            f"for a whole series epsilon comes to {cost:g}: this device answers nothing above "
            f"{self.most_epsilon:g}",
            BudgetError,
        )
        require(
            spent + cost <= self.limit * (1 + 1e-12),
            f"epsilon={cost:g}: with what this device has answered before, more than its limit "
            f"of {self.limit:g}",
            BudgetError,
        )
