"""Values kept exact and moved in time: each slot takes an earlier row, or each row a later slot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tempriv.data.series import Flags
from tempriv.mechanisms.base import CommandLine, NoiseSource, SeriesState
from tempriv.mechanisms.domains import Floats, Integers, positive
from tempriv.mechanisms.options import WINDOW, shared
from tempriv.mechanisms.reorder import analysis, loss, shares
from tempriv.mechanisms.reorder._kernels import Slots, backward, forward
from tempriv.mechanisms.reorder.base import ON_TIMES, ReorderMechanism
from tempriv.mechanisms.reorder.distributions import FreeSlotDistribution, LagDistribution
from tempriv.privacy.guarantees import Approximate, Guarantee, NoGuarantee, Published, Pure
from tempriv.privacy.units.order import SlotOrigin, Swap
from tempriv.sampling._kernels import parts, suited

TLDP = "Ye et al. 2021"
DELAY = "mean delay in time steps of a reading that comes out"
CLAIM = (
    "epsilon-TLDP: two readings less than a window apart that trade places change the probability "
    "of any output by at most e^epsilon"
)
NOT_YET = (
    "Read literally it fails for every mechanism that only releases what has arrived: an output "
    "that shows a reading before the other order would have it is impossible there."
)


# what the mechanisms of the paper have in common


def unmet_claim(where: str, remark: str) -> Published:
    """The claim of the paper, which none of its mechanisms meets.

    Parameters:
        where: the place in the paper.
        remark: what is to be said of it.
    """
    return Published(
        claim=CLAIM, source=f"{TLDP}, {where}", holds=False, remark=f"{NOT_YET} {remark}"
    )


def decided(
    kernel: Callable[..., int],
    distribution: LagDistribution | FreeSlotDistribution,
    purpose: str,
    noise: NoiseSource,
    state: SeriesState,
    *settings: object,
    later_slots: int = 0,
) -> Integers:
    """What a kernel decides by draws that it takes as it goes: the age of the row in each slot.

    Where 32 digits of one of them do not tell, which is as rare as can be, all are drawn first and
    the kernel goes over the block again.

    Parameters:
        kernel: one of ``_kernels``.
        distribution: what is drawn for each row.
        purpose: what the draws are for.
        noise: where randomness comes from.
        state: where the series of the block stand.
        settings: what else the kernel takes.
        later_slots: how many slots after the last row it looks at.
    """
    ages = np.empty(len(state.missing) + later_slots, dtype=np.int64)
    slots = Slots(state.counts, state.starts, state.memory, ages)
    before, draws = state.memory.copy(), noise.each(distribution, purpose)
    if suited(kernel, draws)(slots, *parts(draws), *settings, state.carriage):
        state.memory[:], state.status[:] = before, 0
        kernel(slots, noise(distribution, purpose), None, *settings, state.carriage)
    return ages[: len(state.missing), None]


@dataclass(frozen=True, kw_only=True)
class EvenLags:
    """What the two have in common that draw one lag for each row: none, or any other alike.

    Parameters:
        window: how many lags there are, in time steps.
    """

    if TYPE_CHECKING:
        epsilon: float

    window: int = shared(WINDOW)

    error_name: ClassVar[str] = DELAY

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        analysis.require_window(self.window, 2)

    @property
    def probabilities(self) -> Floats:
        """Equation 4: that a reading moves by so many steps; all but 0 are alike."""
        first, other = analysis.even_lags(self.epsilon, self.window)
        return np.array([first] + [other] * (self.window - 1))

    @property
    def errors(self) -> tuple[float, ...]:
        """The mean delay of a reading that comes out, by its first time (Table I, given that)."""
        first, other = analysis.even_lags(self.epsilon, self.window)
        later = np.arange(1, self.window)
        chances = (1 - first) * other * (1 - other) ** (later - 1)
        return (float((later * chances).sum() / (first + chances.sum())),)

    @property
    def lag_distribution(self) -> LagDistribution:
        """What is drawn for each row."""
        return LagDistribution(Fraction(self.epsilon) / 2, self.window)


@dataclass(frozen=True, kw_only=True)
class Backward(EvenLags, ReorderMechanism):
    """At every step releases one of the last ``window`` readings, mostly the newest.

    Parameters:
        epsilon: the budget; a released value tells two origins apart by half of it.
        window: how many readings a slot chooses from, in time steps.

    Guarantees:
        - a released row is an input row, unchanged, at most ``window`` - 1 steps late;
        - the values of one output row by themselves tell two origins apart by e^(epsilon/2) at
          most. Its status tells more (what is repeated is not new), and so do several rows
          together: see ``loss_at``.

    Some readings come out twice and some never.

    >>> mechanism = Backward(epsilon=2.0, window=5)
    >>> mechanism.probabilities.round(3).tolist()
    [0.405, 0.149, 0.149, 0.149, 0.149]
    >>> loss = mechanism.loss_at(1)
    >>> loss.epsilon, round(loss.delta, 3)
    (1.0, 0.493)
    """

    command = CommandLine(
        name="backward",
        hides="order",
        purpose="exact rows, at each step one of the last few; some twice, some never (a baseline)",
        example="--epsilon 5 --window 20 --value pulse",
        units=(),
        on_times=ON_TIMES,
        rank=28,
    )
    published = unmet_claim(
        "Section III-A",
        "What holds is that a single output row tells two possible origins apart by "
        "e^(epsilon/2) at most, its status aside.",
    )

    may_repeat: ClassVar[bool] = True
    move_title: ClassVar[str] = "How many rows before its own a row's reading was"
    fate: ClassVar[str] = "A reading that was drawn again says “repeated”. Others were never drawn."

    @property
    def memory_size(self) -> int:
        return self.window

    @property
    def unit(self) -> SlotOrigin:
        """What is protected."""
        return SlotOrigin(self.window)

    @property
    def done(self) -> str:
        return (
            f"each row shows one of the last {self.window} readings, drawn at random, so that some "
            "came out twice and some never"
        )

    @property
    def empty_rows(self) -> tuple[int | None, int | None]:
        return self.window - 1, None

    def known_origins(self) -> list[str]:
        return [
            *super().known_origins(),
            "that a row marked repeated was not read in its own time step, but before",
        ]

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(Pure(self.epsilon / 2), self.unit)

    def expected_shares(self) -> shares.Shares:
        return shares.backward(self.epsilon, self.window)

    def loss_at(self, distance: int) -> Approximate:
        """What the whole output tells of two readings ``distance`` apart that trade places."""
        return loss.backward(self.epsilon, self.window, distance)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The age of the row in each slot, by ``noise`` and ``state`` and not ``readings``."""
        lags, settings = self.lag_distribution, (self.window, state.status)
        return decided(backward, lags, "lag", noise, state, *settings)

    def could_remember(self, memory: Integers, step: int) -> bool:
        """Whether each number of ``memory`` is a flag, whatever the ``step``."""
        return bool(np.isin(memory, (0, 1)).all())


@dataclass(frozen=True, kw_only=True)
class Forward(EvenLags, ReorderMechanism):
    """Sends every reading to one of the next ``window`` slots, mostly its own; the last one stays.

    Parameters:
        epsilon: the budget, by which slots are drawn.
        window: how many slots a reading chooses from, in time steps.

    Guarantees:
        - a released row is an input row, unchanged, at most ``window`` - 1 steps late;
        - nothing about its origin, not even from one output row by itself: ``loss_at`` says how
          much two readings that trade places can be told apart.

    Some slots stay empty and some readings never come out.

    >>> forward, backward = (kind(epsilon=1.0, window=10) for kind in (Forward, Backward))
    >>> forward.guarantee.implies(backward.guarantee)
    False
    """

    command = CommandLine(
        name="forward",
        hides="order",
        purpose="exact rows, each sent to one of the next steps; guarantees nothing (a baseline)",
        example="--epsilon 5 --window 20 --value pulse",
        units=(),
        on_times=ON_TIMES,
        rank=29,
    )
    guarantee = NoGuarantee(
        "a reading in a slot has not been overwritten by a later one, which makes a recent "
        "origin likelier than the mechanism's own probabilities say"
    )
    published = unmet_claim(
        "Section III-B",
        "Even the odds between two origins of one output row exceed e^(epsilon/2): of several "
        "readings sent to a slot the latest is the one that stays.",
    )

    fate: ClassVar[str] = "A reading that another one met is lost."

    @property
    def memory_size(self) -> int:
        return self.window - 1

    @property
    def unit(self) -> Swap:
        """What is protected."""
        return Swap(self.window)

    @property
    def done(self) -> str:
        return (
            f"each reading was sent to one of {self.window} rows, its own and those after it, at "
            "random; where several met, the last one stayed, and where none came, a row is empty"
        )

    def expected_shares(self) -> shares.Shares:
        return shares.forward(self.epsilon, self.window)

    def loss_at(self, distance: int) -> Approximate:
        """What the whole output tells of two readings ``distance`` apart that trade places."""
        return loss.forward(self.epsilon, self.window, distance)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The age of the row in each slot, by ``noise`` and ``state`` and not ``readings``."""
        lags, ahead = self.lag_distribution, self.window - 1
        return decided(forward, lags, "lag", noise, state, self.window, later_slots=ahead)

    def could_remember(self, memory: Integers, step: int) -> bool:
        """Whether each row that ``memory`` sends ahead of a ``step`` can have come in before."""
        return bool(((memory == 0) | is_pending(memory - 1, self.window, step)).all())


def is_pending(lags: Integers, window: int, step: int) -> Flags:
    """Whether the row that goes to each slot from a step on can have come in before that step.

    Parameters:
        lags: of the row that goes to each slot.
        window: one more than the greatest lag.
        step: the step that comes next.
    """
    ahead = np.arange(len(lags))
    return (lags > ahead) & (lags < window) & (lags <= step + ahead)
