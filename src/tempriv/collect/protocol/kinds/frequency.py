"""Campaigns of kind ``frequency``: how common each of some categories is, asked once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tempriv.collect.protocol.forms import FormGroup, ResultColumn, ResultView
from tempriv.collect.protocol.kinds.base import (
    ORACLE_GROUP,
    AnswerRequest,
    CampaignKind,
    Floats,
    OneQuestionState,
    ProtocolQuestion,
    ProtocolState,
    answer_category,
    categories_field,
    category_index,
    category_question,
    epsilon_field,
    estimated_shares,
    estimates_check,
    read_category_message,
    refuse_categories,
    simulate_category,
)
from tempriv.collect.protocol.simulated import Reports, SimulatedDevices, falling_weights
from tempriv.errors import require
from tempriv.local.frequency.oracles import ORACLES, choose, name_of
from tempriv.local.streams.messages import StreamQuestion, is_epsilon
from tempriv.local.wire import members, refuse_damage, unique_texts
from tempriv.mechanisms.checks import Check, Rows
from tempriv.privacy.guarantees import Guarantee, Published, Pure
from tempriv.privacy.units import Event

if TYPE_CHECKING:
    from tempriv.collect.device.answers import OwnedData
    from tempriv.collect.protocol.campaign import Campaign

AUTOMATIC = "automatic"
LARGE_ERROR = 0.05
"""Standard error of a share, as a part of all devices, that is worth a warning."""


@dataclass(frozen=True, kw_only=True)
class FrequencyCampaignPlan:
    """Each device reports which one of some categories it has, once.

    Parameters:
        epsilon: loss of the one report.
        people: devices that the campaign announces.
        categories: names of the categories.
        oracle: the frequency oracle that reports go through, or ``automatic``.

    >>> plan = FrequencyCampaignPlan(epsilon=1.0, people=100, categories=("gas", "oil"))
    >>> plan.chosen_oracle, plan.guarantee.loss
    ('grr', Pure(epsilon=1.0))
    """

    epsilon: float
    people: int
    categories: tuple[str, ...]
    oracle: str = AUTOMATIC

    def __post_init__(self) -> None:
        require(is_epsilon(self.epsilon), f"epsilon={self.epsilon}: must be > 0 and at most 100")
        refuse_categories(self.categories)
        names = (AUTOMATIC, *ORACLES)
        require(self.oracle in names, f"oracle={self.oracle}: must be one of {', '.join(names)}")

    @property
    def chosen_oracle(self) -> str:
        """The oracle that reports go through."""
        if self.oracle != AUTOMATIC:
            return self.oracle
        return name_of(choose(self.epsilon, len(self.categories)))

    @property
    def guarantee(self) -> Guarantee:
        """What every device is guaranteed, towards anyone who sees its answer."""
        return Guarantee(Pure(float(self.epsilon)), Event())

    @property
    def published(self) -> Published:
        """The claim of the paper that the oracle comes from."""
        source = {
            "grr": "Kairouz, Bonawitz and Ramage 2016",
            "oue": "Wang, Blocki, Li and Jha 2017",
            "olh": "Wang, Blocki, Li and Jha 2017",
            "hadamard": "Acharya, Sun and Zhang 2019",
        }
        return Published(
            claim="A report satisfies epsilon-local differential privacy",
            source=source[self.chosen_oracle],
            holds=True,
            remark="For one report of each device; a device here gives no second one.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"categories": list(self.categories), "oracle": self.oracle}


class FrequencyKind(CampaignKind[FrequencyCampaignPlan]):
    """Which one of some categories a device has, reported once through a frequency oracle."""

    name = "frequency"
    title = "Frequency of a category"
    summary = "How common is each category? Each device sends one noisy answer, once."
    position = 2
    questions: ClassVar[Mapping[str, str]] = {"publish": "Which category is yours?"}
    asks = "Which of these categories is yours?"
    id_column = "category"
    result_view = ResultView(
        view="bars",
        caption="Share of each category",
        rows="categories",
        name="category",
        columns=(
            ResultColumn(head="Category", field="category"),
            ResultColumn(head="Share", field="share", format="share"),
            ResultColumn(head="95\u00a0% interval", field="low", format="interval"),
            ResultColumn(head="Devices, about", field="count", format="count"),
        ),
    )

    def read_plan(self, document: Any, epsilon: float, people: int) -> FrequencyCampaignPlan:
        """Read the ``document`` of a plan with the campaign's ``epsilon`` and ``people``."""
        with refuse_damage():
            values = members(document, ("categories", "oracle"))
            names = unique_texts(values["categories"])
        return FrequencyCampaignPlan(
            epsilon=epsilon, people=people, categories=names, oracle=values["oracle"]
        )

    def only_question(self, campaign: Campaign) -> ProtocolQuestion:
        """Return the question of a ``campaign``: which category a device has."""
        return category_question(self._message(campaign), f"{campaign.id}/0")

    def _message(self, campaign: Campaign) -> StreamQuestion:
        plan = campaign.plan
        assert isinstance(plan, FrequencyCampaignPlan)
        return StreamQuestion(
            campaign=campaign.id,
            step=0,
            part="publish",
            epsilon=plan.epsilon,
            size=len(plan.categories),
            oracle=plan.chosen_oracle,
        )

    def consent(self, plan: FrequencyCampaignPlan) -> list[str]:
        """Return how a device reports its category under this ``plan``."""
        oracle = ORACLES[plan.chosen_oracle](epsilon=plan.epsilon, size=len(plan.categories))
        count = len(plan.categories)
        others = "the other one" if count == 2 else f"any of the {count - 1} others"
        how = {
            "grr": f"It names its own category with probability {oracle.keep:.0%}, and else "
            f"{others}.",
            "oue": f"It sends a yes or no for each of the {count} categories: yes for its own one "
            f"with probability {oracle.keep:.0%}, and for each other with {oracle.other:.1%}.",
            "olh": "It sends a number that stands for many categories together, often not its own.",
            "hadamard": "It sends a number that fits its own category with probability "
            f"{oracle.keep:.0%} and each other with {oracle.other:.0%}.",
        }
        return [
            f"The device has one of {count} categories and reports it once.",
            how[plan.chosen_oracle],
        ]

    def warnings(self, plan: FrequencyCampaignPlan) -> list[str]:
        """Warn if shares under this ``plan`` will be far off."""
        oracle = ORACLES[plan.chosen_oracle](epsilon=plan.epsilon, size=len(plan.categories))
        error = math.sqrt(oracle.variance(plan.people)) / plan.people
        if error <= LARGE_ERROR:
            return []
        return [
            f"Shares will be off by about {error:.0%} of all devices; more devices or a larger "
            "epsilon help."
        ]

    def smallest_group(self, plan: FrequencyCampaignPlan) -> int:
        """Return the number of devices in the ``plan``: all are asked the one question."""
        return plan.people

    def can_answer(self, plan: FrequencyCampaignPlan, data: OwnedData) -> bool:
        """Whether ``data`` has a category that the ``plan`` knows."""
        all_known = data.categories is None or set(data.categories) <= set(plan.categories)
        return data.has_category and all_known

    def relevant_data(
        self, plan: FrequencyCampaignPlan, data: OwnedData
    ) -> tuple[Floats | None, str | None]:
        """Return the category of ``data``; nothing else counts for a ``plan`` of this kind."""
        return None, data.category

    def read_message(self, body: dict[str, Any]) -> StreamQuestion:
        """Read the ``body`` of a question."""
        return read_category_message(body)

    def answer(self, request: AnswerRequest) -> bytes:
        """Return the answer that a ``request`` asks for."""
        plan = request.campaign.plan
        assert isinstance(plan, FrequencyCampaignPlan)
        index = category_index(plan.categories, request.data.category, request.key)
        return answer_category(request, index)

    def result(self, state: ProtocolState, steps: list[dict[str, Any]]) -> dict[str, Any]:
        """Return shares at the end, in ``state``; this kind has no ``steps``."""
        plan = state.campaign.plan
        assert isinstance(state, OneQuestionState) and state.support is not None
        assert isinstance(plan, FrequencyCampaignPlan)
        oracle = self._message(state.campaign).frequency
        rows = estimated_shares(plan.categories, oracle, state.support, state.people)
        return {"categories": rows, "people": state.people}

    def check_rows(self, campaign: Campaign, about: dict[str, Any], rows: Rows) -> list[Check]:
        """Return whether ``rows`` of the release ``about`` a ``campaign`` follow from reports."""
        plan, oracle = campaign.plan, self._message(campaign).frequency
        assert isinstance(plan, FrequencyCampaignPlan)
        return estimates_check(plan.categories, oracle, about["people"], rows)

    def simulate(
        self, campaign: Campaign, body: dict[str, Any], devices: SimulatedDevices
    ) -> tuple[bytes, Reports]:
        """Let ``devices`` answer the question ``body`` of a ``campaign``."""
        message = read_category_message(body)
        return simulate_category(message, falling_weights(message.size), devices)

    def form_groups(self) -> tuple[FormGroup, ...]:
        fields = (
            epsilon_field(1, "the one answer of a device"),
            categories_field(["none", "some", "a lot"]),
        )
        return (FormGroup(title="Question and privacy", fields=fields), ORACLE_GROUP)

    def plan_of_form(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plan that ``values`` of the form stand for."""
        return {"categories": values["categories"], "oracle": values["oracle"]}
