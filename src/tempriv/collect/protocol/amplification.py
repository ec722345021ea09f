"""What shuffling adds to a campaign's guarantee, for those who see results only."""

from __future__ import annotations

from typing import Any

from tempriv.accounting.shuffling import Shuffled
from tempriv.collect.protocol.campaign import Campaign
from tempriv.privacy.guarantees import Guarantee, Pure

MAX_DELTA = 1e-6


def amplified(campaign: Campaign, people: int | None = None) -> Shuffled | None:
    """Return what holds towards those who see results only; None if nothing is added.

    Parameters:
        campaign: a campaign in which every device answers one question.
        people: how many answered the question that fewest did; as announced if not given.
    """
    guarantee = campaign.guarantee
    smallest = campaign.definition.smallest_group(campaign.plan)
    if smallest is None or not isinstance(guarantee, Guarantee):
        return None
    people = smallest if people is None else people
    if not isinstance(guarantee.loss, Pure) or people < 2:
        return None
    return Shuffled(epsilon0=guarantee.loss.epsilon, people=people, delta=delta_for(people))


def delta_for(people: int) -> float:
    """Return a delta well below one in ``people``: a larger one would allow to reveal somebody."""
    return min(MAX_DELTA, 0.1 / people)


def amplified_facts(shuffled: Shuffled | None) -> dict[str, Any] | None:
    """Return what ``amplified`` gave as ``shuffled``, for JSON."""
    if shuffled is None:
        return None
    names = ("epsilon", "delta", "people", "sentence", "source")
    return {name: getattr(shuffled, name) for name in names} | {
        "conditions": list(shuffled.conditions)
    }
