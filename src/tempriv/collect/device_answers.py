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

from tempriv.collect.campaigns import Campaign
from tempriv.collect.courses import upload_head
from tempriv.collect.device_checks import Asked
from tempriv.collect.device_limits import Limits
from tempriv.collect.plans import CategoryPlan, UploadPlan, WatchPlan
from tempriv.errors import BudgetRefusal, DataRefusal, Refusal, StateRefusal, require
from tempriv.keyed_words import Run, Words
from tempriv.mechanisms.run import release
from tempriv.noise import UniformChoice
from tempriv.population import shapes, shapes_messages, streams, streams_messages
from tempriv.population.device_ledgers import DeviceLedger, WindowLedger
from tempriv.population.messages import MessageRefusal, new_token, strict_json
from tempriv.population.sax import numbers_of
from tempriv.population.shapes_plan import Plan as ShapesPlan
from tempriv.population.states import damage_is_refused, members, whole_number
from tempriv.randomness import Key, SeriesKey

Floats = npt.NDArray[np.float64]
REPORT, BLANK = "report", "blank"


@dataclass(frozen=True)
class Held:
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
        if isinstance(plan, CategoryPlan) and self.categories is not None:
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
        if isinstance(plan, (ShapesPlan, UploadPlan)):
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
        DataRefusal,
    )
    own: Floats = found.astype(np.float64)  # a copy, whatever happens to the other
    require(
        bool(np.isfinite(own).all()),
        "the series: holds a missing or infinite value; fill it in, or leave it out",
        DataRefusal,
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
            BudgetRefusal,
        )
        super().spend(campaign, step, part, epsilon)
        self.all_streams.spend(campaign, self.second, f"{step} {part}", epsilon)


class Answers:
    """Draws the answers of one device, each against its ledgers.

    Guarantees:
        - a campaign that is answered once has one answer, charged before it is drawn;
        - answers about a stream stay within its window and within the owner's limit for all;
        - whether anything is refused does not depend on what the device holds: a category that
          nobody asks for becomes any of those asked for, each equally likely; of a series that is
          too long the beginning counts, and one that is too short goes on in the middle of the
          bounds.
    """

    def __init__(self, folder: Path, limits: Limits, second: int):
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
        self, campaign: Campaign, asked: Asked, held: Held, link: SeriesKey, second: int
    ) -> bytes:
        """The answer as it goes over the wire; it is paid for when this returns."""
        mark = f"answer {asked.text} {held.digest(campaign)}"
        chain = SeriesKey(link.cipher_key(mark), 0)
        drawing: dict[str, Callable[..., bytes]] = {
            "shapes": self._shape, "frequency": self._category, "upload": self._upload,
        }  # fmt: skip
        if campaign.kind == "stream":
            return self._step(campaign, asked, held, chain, second)
        return drawing[campaign.kind](campaign, asked, held, chain)

    def _shape(self, campaign: Campaign, asked: Asked, held: Held, chain: SeriesKey) -> bytes:
        assert isinstance(asked.question, shapes_messages.Question)
        series = held.readings(asked.question.readings)
        device = shapes.Device(series, held.label, self.once, self.limits.most_epsilon)
        return device.answer(asked.question, chain).to_bytes()

    def _category(self, campaign: Campaign, asked: Asked, held: Held, chain: SeriesKey) -> bytes:
        plan, question = campaign.plan, asked.question
        assert isinstance(plan, CategoryPlan)
        assert isinstance(question, streams_messages.Question)
        value = _value(plan.categories, held.category, chain)
        report = question.frequency.report(value, Words([Run(chain, 0, 1)], REPORT))
        self.once.spend(campaign.id, question.epsilon)
        return streams_messages.Answer(
            campaign=campaign.id, step=0, part="publish", token=new_token(), report=report
        ).to_bytes()

    def _step(
        self, campaign: Campaign, asked: Asked, held: Held, chain: SeriesKey, second: int
    ) -> bytes:
        plan, question = campaign.plan, asked.question
        assert isinstance(plan, WatchPlan)
        assert isinstance(question, streams_messages.Question)
        path = self._streams / f"{campaign.id}.json"
        ledger = CampaignWindow(plan.window, plan.epsilon, path, self.all_streams)
        ledger.second = second
        device = streams.Device(ledger, size=len(plan.categories))
        device.observe(question.step, _value(plan.categories, held.observed, chain))
        return device.answer(question, chain).to_bytes()

    def _upload(self, campaign: Campaign, asked: Asked, held: Held, chain: SeriesKey) -> bytes:
        plan = campaign.plan
        assert isinstance(plan, UploadPlan)
        low, high = plan.mechanism.form.bounds[0]  # type: ignore[index]
        blank = np.full(plan.readings, (low + high) / 2)
        # with nothing of the owner in it: what a mechanism refuses, it refuses to everyone
        try:
            released = release(blank, plan.mechanism, key=Key.generate()).values
        except Refusal as reason:
            raise MessageRefusal(f"the mechanism of this campaign cannot run: {reason}") from None
        require(
            released.shape == (plan.readings,),
            "the mechanism of this campaign gives another number of readings",
            MessageRefusal,
        )
        self.once.spend(campaign.id, self.limits.cost(campaign))
        own = held.readings(plan.readings)
        blank[: len(own)] = np.clip(own, low, high)
        key = Key(chain.cipher_key("upload"), campaign.id)
        sent = release(blank, plan.mechanism, key=key).values.astype("<f8")
        return upload_head(campaign.id) + new_token() + sent.tobytes()


def _window_of(limits: Limits, path: Path, second: int) -> WindowLedger:
    """Of all streams together; other limits than before begin when no answer is within either."""
    window = limits.stream_window
    try:
        return WindowLedger(window, limits.stream_limit, path)
    except StateRefusal:
        with damage_is_refused():
            kept = members(strict_json(path.read_bytes()), ("window", "limit", "charges"))
            latest = max((whole_number(charge[0]) for charge in kept["charges"]), default=0)
            wait = latest + max(window, whole_number(kept["window"])) - second
    require(
        wait <= 0,
        f"stream_limit and stream_seconds: are other ones than before; they may change {wait} "
        "seconds from now, when no answer counts any more",
        StateRefusal,
    )
    path.unlink()
    return WindowLedger(window, limits.stream_limit, path)


def _value(categories: tuple[str, ...], own: str | None, chain: SeriesKey) -> int:
    if own is not None and own in categories:
        return categories.index(own)
    words = Words([Run(chain, 0, 1)], BLANK)
    return int(UniformChoice(len(categories)).sample(words)[0])
