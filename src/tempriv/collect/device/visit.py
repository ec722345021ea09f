"""What a device tells its owner of a campaign, and of a visit to the server."""

from __future__ import annotations

from dataclasses import dataclass, field

from tempriv.collect.protocol.campaign import Campaign


@dataclass(frozen=True)
class CampaignOffer:
    """A campaign as this device sees it: what it means here, and why it is not answered, if so."""

    campaign: Campaign
    sentences: tuple[str, ...]
    refusal: str | None


@dataclass(frozen=True)
class Visit:
    """What came of looking in at the server: nothing here depends on what the device holds.

    ``waiting`` answers are still to be sent. ``refused`` is why the server took none for good,
    and ``declined`` why the device gave none, by campaign.
    """

    reached: bool = True
    taken: int = 0
    there_already: int = 0
    waiting: int = 0
    refused: tuple[str, ...] = ()
    declined: dict[str, str] = field(default_factory=dict)
    problem: str | None = None
