"""What the owner of a device agrees to, and whether a campaign stays within it.

Nothing here sees what the device holds: whether it takes part follows from the campaign, from the
owner's limits and from what was answered before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tempriv.collect.protocol.campaign import KINDS, Campaign, Kind
from tempriv.collect.protocol.kinds.plans import StreamCampaignPlan, UploadCampaignPlan
from tempriv.errors import BudgetError, require
from tempriv.privacy.guarantees import Guarantee
from tempriv.privacy.units import Unit, WholeSeries

USUAL: tuple[Kind, ...] = ("shapes", "frequency", "stream")


@dataclass(frozen=True, kw_only=True)
class DeviceLimits:
    """The most that a device gives away, whoever asks.

    One campaign may have ``most_epsilon``; all campaigns that are answered once have ``limit``
    together. Answers about streams have ``stream_limit`` together within any ``stream_seconds``.
    Of an upload the whole series is counted, unless the owner takes a smaller ``upload_unit``; a
    guarantee with a delta needs ``most_delta``. Whole series leave only where ``kinds`` says so.

    >>> limits = DeviceLimits(most_epsilon=1.0)
    >>> limits.kinds
    ('shapes', 'frequency', 'stream')
    """

    most_epsilon: float = 2.0
    limit: float = 8.0
    stream_limit: float = 4.0
    stream_seconds: float = 3600.0
    kinds: tuple[Kind, ...] = USUAL
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
        unknown = [one for one in self.kinds if one not in KINDS]
        require(not unknown, f"kinds: {unknown} are none of {', '.join(KINDS)}")

    @property
    def stream_window(self) -> int:
        """Seconds by the device's clock that any ``stream_seconds`` can touch."""
        return math.ceil(self.stream_seconds) + 1

    def cost(self, campaign: Campaign) -> float:
        """The epsilon that a campaign is counted with, by the owner's own measure.

        Of a stream it is what all of its answers within ``stream_seconds`` come to at most.
        """
        plan = campaign.plan
        if isinstance(plan, StreamCampaignPlan):
            steps = min(math.ceil(self.stream_seconds / plan.every) + 1, plan.steps)
            return math.ceil(steps / plan.window) * campaign.epsilon
        if isinstance(plan, UploadCampaignPlan):
            return self._of_upload(plan)
        return campaign.epsilon

    def _of_upload(self, plan: UploadCampaignPlan) -> float:
        wanted = self.upload_unit or WholeSeries(plan.readings)
        restated = plan.guarantee.for_unit(wanted)
        if not isinstance(restated, Guarantee):
            return math.inf
        return restated.loss.epsilon_at(self.most_delta)

    def refuse(self, campaign: Campaign, spent: float = 0.0) -> None:
        """Refuse a campaign that asks for more than the owner agreed to."""
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
        if campaign.kind == "stream":
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
