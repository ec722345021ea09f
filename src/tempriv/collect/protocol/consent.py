"""What a campaign means for whoever is asked, in plain words, before anyone is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tempriv.accounting.shuffling import Shuffled
from tempriv.collect.protocol.kinds.plans import (
    FrequencyCampaignPlan,
    StreamCampaignPlan,
    UploadCampaignPlan,
)
from tempriv.local.frequency.oracles import ORACLES
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.protocol import STAGES, ShapesProtocol, least_people
from tempriv.privacy.guarantees import Guarantee, Pure

if TYPE_CHECKING:
    from tempriv.collect.protocol.campaign import Campaign

DELTA = 1e-6
MARGIN = 5.0  # standard deviations that a group drawn by lot may fall short of its size
WEAK = 4.0


def sentences_of(campaign: Campaign) -> list[str]:
    """What a device will reveal, one thing a sentence."""
    plan = campaign.plan
    if isinstance(plan, ShapesPlan):
        found = _of_shapes(plan)
    elif isinstance(plan, FrequencyCampaignPlan):
        found = _of_categories(plan)
    else:
        found = _of_watching(plan) if isinstance(plan, StreamCampaignPlan) else _of_uploads(plan)
    found.append(_bet(campaign))
    found.append(
        "The organization learns that a device took part, when it answered, and its network "
        "address; none of that is protected."
    )
    return found


def _bet(campaign: Campaign) -> str:
    """The guarantee as odds, about what this kind of campaign protects."""
    if isinstance(campaign.plan, UploadCampaignPlan):
        return campaign.guarantee.plain
    what = "what the device holds"
    if isinstance(campaign.plan, StreamCampaignPlan):
        what = f"what the device had within any {campaign.plan.window} steps in a row"
    return (
        f"Whatever someone suspects about {what}, all that the device sends about it changes the "
        f"odds at most {_odds(campaign.epsilon)}-fold (epsilon = {campaign.epsilon:g}), towards "
        "anyone, the organization included."
    )


def _odds(epsilon: float) -> str:
    """Rounded up, to three digits."""
    exact = math.exp(min(epsilon, 700.0))
    unit = 10.0 ** (math.floor(math.log10(exact)) - 2)
    return f"{math.ceil(exact / unit - 1e-9) * unit:.3g}"


def _of_shapes(plan: ShapesPlan) -> list[str]:
    sax = plan.sax
    asked = "which of some shapes its own is most like, how long it is, or two letters of it"
    if plan.method in ("automatic", "one-shot"):
        asked += ", or the whole word"
    label = f" and one of {len(plan.labels)} labels" if plan.labels else ""
    return [
        f"The device turns its series of at most {plan.readings:,} readings into a word: every "
        f"{sax.segment} readings become one of {sax.symbols} letters, from low to high"
        + (", and letters that repeat are written once." if sax.compressed else "."),
        f"It answers one question of the campaign and no other: {asked}{label}.",
        "It answers through noise of its own: it may name something else than it holds, and nobody "
        "can tell whether it did.",
        "The series never leaves the device. Which question a device gets is drawn by lot; the "
        "guarantee is the same for each of them.",
    ]


def _of_categories(plan: FrequencyCampaignPlan) -> list[str]:
    law = ORACLES[plan.asked](epsilon=plan.epsilon, size=len(plan.categories))
    many = len(plan.categories)
    others = "the other one" if many == 2 else f"any of the {many - 1} others"
    how = {
        "grr": f"It names its own category with probability {law.keep:.0%}, and else {others}.",
        "oue": f"It sends a yes or no for each of the {many} categories: yes for its own one with "
        f"probability {law.keep:.0%}, and for each other with {law.other:.1%}.",
        "olh": "It sends a number that stands for many categories together, often not its own.",
        "hadamard": f"It sends a number that fits its own category with probability {law.keep:.0%} "
        f"and each other with {law.other:.0%}.",
    }
    return [f"The device has one of {many} categories and reports it once.", how[plan.asked]]


def _of_watching(plan: StreamCampaignPlan) -> list[str]:
    every = f"{plan.every:g} seconds"
    who = (
        "At each step some devices are drawn by lot; who answered rests for the rest of a window."
        if plan.stream.divides_people
        else "Every device is asked at each step, with a small part of the budget."
        if plan.method != "LSP"
        else "Every device is asked once in a window."
    )
    return [
        f"Every {every}, for {plan.steps:,} steps, a device may be asked which of "
        f"{len(plan.categories)} categories it has at that moment.",
        who,
        "It answers through noise of its own, and keeps account by its own clock: within any "
        f"{plan.window} steps it tells no more than the guarantee says, whatever it is asked.",
    ]


def _of_uploads(plan: UploadCampaignPlan) -> list[str]:
    name = type(plan.mechanism).__name__
    return [
        f"The device sends a series of {plan.readings:,} readings, once, after {name} has changed "
        "every one of them on the device.",
        "The organization keeps the changed series. It never sees the true one.",
    ]


def amplified(campaign: Campaign, people: int | None = None) -> Shuffled | None:
    """What holds towards those who see results only; where every device answers one question.

    ``people`` is how many answered the question that fewest did; as announced if not given.
    """
    promise = campaign.guarantee
    if not (campaign.kind in ("shapes", "frequency") and isinstance(promise, Guarantee)):
        return None
    if not isinstance(promise.loss, Pure):
        return None
    if people is None:
        people = campaign.people
        if isinstance(campaign.plan, ShapesPlan):
            wanted = fewest_asked(campaign.plan)
            people = math.floor(wanted - MARGIN * math.sqrt(wanted))
    if people < 2:
        return None
    return Shuffled(epsilon0=promise.loss.epsilon, people=people, delta=delta_for(people))


def delta_for(people: int) -> float:
    """Well below one in so many: a larger one would allow to give somebody away whole."""
    return min(DELTA, 0.1 / people)


def fewest_asked(plan: ShapesPlan) -> int:
    """The smallest group that any course of the plan asks."""
    first = ShapesProtocol(plan, "0" * 32)
    methods = ("one-shot", "nearest") if plan.method == "automatic" else (plan.method,)
    found = [first.wanted]
    for method in methods:
        for length in range(1, plan.sax.longest + 1):
            for stage in STAGES[method]:
                if stage != "done":
                    at = replace(first, method=method, stage=stage, length=length)
                    found.append(at.wanted)
    return min(found)


def amplified_facts(found: Shuffled | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "epsilon": found.epsilon,
        "delta": found.delta,
        "people": found.people,
        "sentence": found.sentence,
        "source": found.source,
        "conditions": list(found.conditions),
    }


def warnings_of(campaign: Campaign, enrolled: int) -> list[str]:
    """What an analyst may want to change before devices are asked."""
    plan, found = campaign.plan, []
    if campaign.epsilon > WEAK:
        found.append(
            f"epsilon = {campaign.epsilon:g} is weak: odds about a person may change "
            f"{_odds(campaign.epsilon)}-fold. Up to {WEAK:g} is usual, 1 is strong."
        )
    if campaign.people > enrolled:
        found.append(
            f"{enrolled:,} devices are enrolled and {campaign.people:,} announced: questions wait "
            f"for the others, each at most {campaign.patience:g} seconds."
        )
    if isinstance(plan, ShapesPlan):
        least = least_people(plan)
        if campaign.people < least:
            found.append(
                f"{campaign.people:,} devices are too few for method {plan.method}: each answers "
                f"one question, and {least:,} would be needed."
            )
    if isinstance(plan, FrequencyCampaignPlan):
        law = ORACLES[plan.asked](epsilon=plan.epsilon, size=len(plan.categories))
        error = math.sqrt(law.variance(campaign.people)) / campaign.people
        if error > 0.05:
            found.append(
                f"Shares will be off by about {error:.0%} of all devices; more devices or a larger "
                "epsilon help."
            )
    return found
