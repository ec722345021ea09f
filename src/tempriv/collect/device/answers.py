"""What a device holds, and how an answer is drawn from it.

Each answer is paid from a ledger on disk before it exists anywhere else. Noise follows from the
device's key, the question and what is held: an answer drawn again from the same is the same, and
one drawn from something else has noise that has nothing to do with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.collect.device.checks import VerifiedQuestion
from tempriv.collect.device.limits import DeviceLimits
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds.plans import (
    FrequencyCampaignPlan,
    StreamCampaignPlan,
    UploadCampaignPlan,
)
from tempriv.collect.protocol.kinds.runs import upload_head
from tempriv.errors import BudgetError, DataError, StateError, TemprivError, require
from tempriv.local.device_ledger import DeviceLedger, WindowLedger
from tempriv.local.shapes import messages as shapes_messages
from tempriv.local.shapes import roles as shapes
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.sax import numbers_of
from tempriv.local.streams import messages as streams_messages
from tempriv.local.streams import roles as streams
from tempriv.local.wire import (
    MessageError,
    members,
    new_token,
    refuse_damage,
    strict_json,
    whole_number,
)
from tempriv.releases.run import release
from tempriv.sampling.distributions import UniformChoice
from tempriv.sampling.keys import Key, SeriesKey
from tempriv.sampling.keystream import Keystream, StepRange

Floats = npt.NDArray[np.float64]
REPORT, BLANK = "report", "blank"


@dataclass(frozen=True)
class OwnedData:
    """What a device has of its owner; it is in no repr, and never written.

    ``categories`` are all that ``category`` could have been, if the owner says so: then only
    campaigns about all of these are answered, whichever of them it is.
    """

    series: Floats | None = field(default=None, repr=False)
    label: str | None = field(default=None, repr=False)
    category: str | None = field(default=None, repr=False)
    categories: tuple[str, ...] | None = None
    has_category: bool = False
    observed: str | None = field(default=None, repr=False)
    has_observed: bool = False

    def has(self, kind: str) -> bool:
        """Whether there is anything to answer with; that there is, is not protected."""
        if kind == "frequency":
            return self.has_category
        if kind == "stream":
            return self.has_observed
        return self.series is not None

    def fits(self, campaign: Campaign) -> bool:
        """Whether a campaign is about what the device could have; which it has plays no part."""
        if not self.has(campaign.kind):
            return False
        plan = campaign.plan
        if isinstance(plan, FrequencyCampaignPlan) and self.categories is not None:
            return set(self.categories) <= set(plan.categories)
        return True

    def readings(self, most: int) -> Floats:
        """The beginning of the series, as far as a campaign goes: the rest takes no time."""
        assert self.series is not None
        return self.series[:most]

    def digest(self, campaign: Campaign) -> str:
        """Of whatever an answer to a campaign depends on."""
        kind, plan = campaign.kind, campaign.plan
        state = hashlib.blake2b(digest_size=32)
        if isinstance(plan, (ShapesPlan, UploadCampaignPlan)):
            state.update(self.readings(plan.readings).tobytes())
        own = {"shapes": self.label, "frequency": self.category, "stream": self.observed}
        state.update(json.dumps(own.get(kind)).encode())
        return state.hexdigest()


def own_series(given: Any) -> Floats:
    """A series as a device holds it; refused when it is given, for a refusal later would tell."""
    found = numbers_of(given, "the series")
    require(
        found.ndim == 1 and found.size > 0,
        "the series: must be numbers in a row, at least one",
        DataError,
    )
    own: Floats = found.astype(np.float64)  # a copy, whatever happens to the other
    require(
        bool(np.isfinite(own).all()),
        "the series: holds a missing or infinite value; fill it in, or leave it out",
        DataError,
    )
    return own


def own_text(name: str, given: Any) -> str | None:
    require(given is None or isinstance(given, str), f"the {name}: must be a text, or None")
    return None if given is None else str(given)


class CampaignWindow(WindowLedger):
    """The window of one stream, and within it the limit of the owner for all streams."""

    def __init__(self, window: int, limit: float, path: Path, all_streams: WindowLedger):
        super().__init__(window, limit, path)
        self.all_streams = all_streams
        self.second = 0
        """Now, by the device's clock."""

    def spend(self, campaign: str, step: int, part: str, epsilon: float) -> None:
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
        asked: VerifiedQuestion,
        held: OwnedData,
        link: SeriesKey,
        second: int,
    ) -> bytes:
        """The answer as it goes over the wire; it is paid for when this returns."""
        mark = f"answer {asked.text} {held.digest(campaign)}"
        chain = SeriesKey(link.cipher_key(mark), 0)
        drawing: dict[str, Callable[..., bytes]] = {
            "shapes": self._shape,
            "frequency": self._category,
            "upload": self._upload,
        }
        if campaign.kind == "stream":
            return self._step(campaign, asked, held, chain, second)
        return drawing[campaign.kind](campaign, asked, held, chain)

    def _shape(
        self, campaign: Campaign, asked: VerifiedQuestion, held: OwnedData, chain: SeriesKey
    ) -> bytes:
        assert isinstance(asked.question, shapes_messages.ShapesQuestion)
        series = held.readings(asked.question.readings)
        device = shapes.ShapesDevice(series, held.label, self.once, self.limits.most_epsilon)
        return device.answer(asked.question, chain).to_bytes()

    def _category(
        self, campaign: Campaign, asked: VerifiedQuestion, held: OwnedData, chain: SeriesKey
    ) -> bytes:
        plan, question = campaign.plan, asked.question
        assert isinstance(plan, FrequencyCampaignPlan)
        assert isinstance(question, streams_messages.StreamQuestion)
        value = _value(plan.categories, held.category, chain)
        report = question.frequency.report(value, Keystream([StepRange(chain, 0, 1)], REPORT))
        self.once.spend(campaign.id, question.epsilon)
        return streams_messages.StreamAnswer(
            campaign=campaign.id, step=0, part="publish", token=new_token(), report=report
        ).to_bytes()

    def _step(
        self,
        campaign: Campaign,
        asked: VerifiedQuestion,
        held: OwnedData,
        chain: SeriesKey,
        second: int,
    ) -> bytes:
        plan, question = campaign.plan, asked.question
        assert isinstance(plan, StreamCampaignPlan)
        assert isinstance(question, streams_messages.StreamQuestion)
        path = self._streams / f"{campaign.id}.json"
        ledger = CampaignWindow(plan.window, plan.epsilon, path, self.all_streams)
        ledger.second = second
        device = streams.StreamDevice(ledger, size=len(plan.categories))
        device.observe(question.step, _value(plan.categories, held.observed, chain))
        return device.answer(question, chain).to_bytes()

    def _upload(
        self, campaign: Campaign, asked: VerifiedQuestion, held: OwnedData, chain: SeriesKey
    ) -> bytes:
        plan = campaign.plan
        assert isinstance(plan, UploadCampaignPlan)
        low, high = plan.mechanism.domain.bounds[0]  # type: ignore[index]
        blank = np.full(plan.readings, (low + high) / 2)
        # with nothing of the owner in it: what a mechanism refuses, it refuses to everyone
        try:
            released = release(blank, plan.mechanism, key=Key.generate()).values
        except TemprivError as reason:
            raise MessageError(f"the mechanism of this campaign cannot run: {reason}") from None
        require(
            released.shape == (plan.readings,),
            "the mechanism of this campaign gives another number of readings",
            MessageError,
        )
        self.once.spend(campaign.id, self.limits.cost(campaign))
        own = held.readings(plan.readings)
        blank[: len(own)] = np.clip(own, low, high)
        key = Key(chain.cipher_key("upload"), campaign.id)
        sent = release(blank, plan.mechanism, key=key).values.astype("<f8")
        return upload_head(campaign.id) + new_token() + sent.tobytes()


def _window_of(limits: DeviceLimits, path: Path, second: int) -> WindowLedger:
    """Of all streams together; other limits than before begin when no answer is within either."""
    window = limits.stream_window
    try:
        return WindowLedger(window, limits.stream_limit, path)
    except StateError:
        with refuse_damage():
            kept = members(strict_json(path.read_bytes()), ("window", "limit", "charges"))
            latest = max((whole_number(charge[0]) for charge in kept["charges"]), default=0)
            wait = latest + max(window, whole_number(kept["window"])) - second
    require(
        wait <= 0,
        f"stream_limit and stream_seconds: are other ones than before; they may change {wait} "
        "seconds from now, when no answer counts any more",
        StateError,
    )
    path.unlink()
    return WindowLedger(window, limits.stream_limit, path)


def _value(categories: tuple[str, ...], own: str | None, chain: SeriesKey) -> int:
    if own is not None and own in categories:
        return categories.index(own)
    words = Keystream([StepRange(chain, 0, 1)], BLANK)
    return int(UniformChoice(len(categories)).sample(words)[0])
