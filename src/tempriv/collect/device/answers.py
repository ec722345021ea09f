"""What a device holds, and how an answer is drawn from it.

Each answer is paid from a ledger on disk before it exists anywhere else. Noise follows from the
device's key, the question and what is held: an answer drawn again from the same is the same, and
one drawn from something else has noise that has nothing to do with it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.collect.device.limits import DeviceLimits
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds.base import AnswerRequest, VerifiedQuestion
from tempriv.errors import BudgetError, DataError, StateError, require
from tempriv.local.device_ledger import DeviceLedger, WindowLedger
from tempriv.local.shapes.sax import numbers_of
from tempriv.local.wire import members, refuse_damage, strict_json, whole_number
from tempriv.sampling.keys import SeriesKey

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class OwnedData:
    """What a device has of its owner; it is in no repr, and never written.

    Parameters:
        series: readings, the oldest first.
        label: the label of the series.
        category: the category that the device has.
        categories: all that ``category`` could have been, if the owner says so: then only campaigns
            about all of these are answered, whichever of them it is.
        has_category: whether the owner gave a category, or None for one.
        observed: the category at this moment, for streams.
        has_observed: whether the owner gave one, or None for one.
    """

    series: Floats | None = field(default=None, repr=False)
    label: str | None = field(default=None, repr=False)
    category: str | None = field(default=None, repr=False)
    categories: tuple[str, ...] | None = None
    has_category: bool = False
    observed: str | None = field(default=None, repr=False)
    has_observed: bool = False

    def readings(self, most: int) -> Floats:
        """Return the first ``most`` readings, as far as a campaign goes: the rest takes no time."""
        assert self.series is not None
        return self.series[:most]

    def digest(self, campaign: Campaign) -> str:
        """Return a digest of whatever an answer to ``campaign`` depends on."""
        readings, text = campaign.definition.relevant_data(campaign.plan, self)
        state = hashlib.blake2b(b"" if readings is None else readings.tobytes(), digest_size=32)
        state.update(json.dumps(text).encode())
        return state.hexdigest()


def copied_series(values: Any) -> Floats:
    """Return a copy of a series; what is wrong is refused now, for a refusal later would tell.

    Parameters:
        values: finite numbers in a row.

    Raises:
        DataError: they are not.
    """
    numbers = numbers_of(values, "the series")
    require(
        numbers.ndim == 1 and numbers.size > 0,
        "the series: must be numbers in a row, at least one",
        DataError,
    )
    series: Floats = numbers.astype(np.float64)
    require(
        bool(np.isfinite(series).all()),
        "the series: holds a missing or infinite value; fill it in, or leave it out",
        DataError,
    )
    return series


def text_or_none(name: str, value: Any) -> str | None:
    """Return ``value``, which must be a text or None; ``name`` is for the refusal."""
    require(value is None or isinstance(value, str), f"the {name}: must be a text, or None")
    return None if value is None else str(value)


class CampaignWindow(WindowLedger):
    """The window of one stream, and within it the limit of the owner for all streams."""

    def __init__(
        self, window: int, limit: float, path: Path, all_streams: WindowLedger, second: int
    ):
        super().__init__(window, limit, path)
        self.all_streams, self.second = all_streams, second

    def spend(self, campaign: str, step: int, part: str, epsilon: float) -> None:
        """Note an answer about a ``step`` and ``part`` of a ``campaign`` that costs ``epsilon``."""
        require(
            epsilon <= self.all_streams.left(self.second),
            f"epsilon={epsilon:g}: with the answers about other streams, more than this device's "
            f"limit of {self.all_streams.limit:g}",
            BudgetError,
        )
        super().spend(campaign, step, part, epsilon)
        self.all_streams.spend(campaign, self.second, f"{step} {part}", epsilon)


class DeviceAnswers:
    """Draws the answers of one device, each against its ledgers.

    Guarantees:
        - a campaign that is answered once has one answer, charged before it is drawn;
        - answers about a stream stay within its window and within the owner's limit for all;
        - whether anything is refused does not depend on what the device holds: a category that
          nobody asks for becomes any of those asked for, each equally likely; of a series that is
          too long the beginning counts, and one that is too short goes on in the middle of the
          bounds.
    """

    def __init__(self, folder: Path, limits: DeviceLimits, second: int):
        self.limits = limits
        self.once = DeviceLedger(folder / "answered", limits.limit)
        self._streams = folder / "streams"
        self._streams.mkdir(mode=0o700, exist_ok=True)
        self.all_streams = _window_of(limits, folder / "streams.json", second)

    def has_answered(self, campaign: Campaign) -> bool:
        """Whether the one answer of a campaign is given."""
        if not campaign.answers_once:
            return False
        assert self.once.folder is not None
        return (self.once.folder / campaign.id).exists()

    def draw(
        self,
        campaign: Campaign,
        question: VerifiedQuestion,
        data: OwnedData,
        link: SeriesKey,
        second: int,
    ) -> bytes:
        """Return the answer as it goes over the wire; it is paid for when this returns.

        Parameters:
            campaign: the campaign that asks.
            question: the open question, verified.
            data: what the device has of its owner.
            link: the present link of the device's key chain.
            second: now, by the device's clock.
        """
        mark = f"answer {question.text} {data.digest(campaign)}"
        key = SeriesKey(link.cipher_key(mark), 0)
        return campaign.definition.answer(
            AnswerRequest(campaign, question, data, key, self, second)
        )

    def window(self, campaign: str, steps: int, epsilon: float, second: int) -> CampaignWindow:
        """Return the ledger of one stream, which is within that of all streams.

        Parameters:
            campaign: id of the campaign.
            steps: length of its window.
            epsilon: limit within a window.
            second: now, by the device's clock.
        """
        path = self._streams / f"{campaign}.json"
        return CampaignWindow(steps, epsilon, path, self.all_streams, second)


def _window_of(limits: DeviceLimits, path: Path, second: int) -> WindowLedger:
    """Of all streams together; other limits than before begin when no answer is within either."""
    window = limits.stream_window
    try:
        return WindowLedger(window, limits.stream_limit, path)
    except StateError:
        with refuse_damage():
            document = members(strict_json(path.read_bytes()), ("window", "limit", "charges"))
            latest = max((whole_number(charge[0]) for charge in document["charges"]), default=0)
            wait = latest + max(window, whole_number(document["window"])) - second
    require(
        wait <= 0,
        f"stream_limit and stream_seconds: are other ones than before; they may change {wait} "
        "seconds from now, when no answer counts any more",
        StateError,
    )
    path.unlink()
    return WindowLedger(window, limits.stream_limit, path)
