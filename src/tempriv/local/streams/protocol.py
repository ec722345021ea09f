"""How a stream over a population goes on: whom to ask what at each step, and what to release.

Seven ways of Ren, Shi, Yu, Yang, Zhao and Xu, "LDP-IDS: Local Differential Privacy for Infinite
Data Streams" (SIGMOD 2022). Three ask everybody and divide epsilon over a window of w steps (LBU,
LBD, LBA), LSP asks everybody once in a window; three divide the people instead (LPU, LPD, LPA):
who has answered rests until the window has passed, and answers with all of epsilon.

LBD, LBA, LPD and LPA use half of what there is to see whether the stream has moved away from the
last release by more than a new one would err. If it has not, they repeat it and save the other
half. D stands for distribution: half of what is left of the window. A stands for absorption: what
was saved before, and then nothing for as many steps.

Nothing here sees an answer, only how many reports support each value: whom to ask and with which
epsilon depends on reports and on a public draw, never on a value.
"""

from __future__ import annotations

import base64
import functools
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tempriv.errors import UsageError, require
from tempriv.local.device_ledger import round_down
from tempriv.local.frequency.oracles import ORACLES, choose, name_of
from tempriv.local.streams.messages import (
    MOST_EPSILON,
    MOST_STEPS,
    MOST_VALUES,
    Part,
    StreamQuestion,
    is_epsilon,
    oracle_of,
)
from tempriv.local.wire import (
    boolean,
    decode_campaign,
    finite,
    members,
    refuse_damage,
    require_state,
    whole_number,
)
from tempriv.privacy.guarantees import Guarantee, Published, Pure
from tempriv.privacy.units import Window
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import Keystream, StepRange

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Method = Literal["LBU", "LSP", "LBD", "LBA", "LPU", "LPD", "LPA"]
METHODS: tuple[Method, ...] = ("LBU", "LSP", "LBD", "LBA", "LPU", "LPD", "LPA")
ADAPTIVE = ("LBD", "LBA", "LPD", "LPA")
AUTOMATIC = "automatic"

SHARE_UNITS = 1 << 30
"""Parts of epsilon that a step owns for comparing, and again for publishing. Budgets are whole
numbers of them, so that sums over a window are exact."""

MOST_WINDOW = 1 << 20
MOST_PEOPLE = 1 << 40


@dataclass(frozen=True, kw_only=True)
class StreamPlan:
    """A stream before it begins; all of it is public.

    Parameters:
        method: one of LBU, LSP, LBD, LBA, LPU, LPD and LPA.
        epsilon: what the answers of a device within any window may cost together.
        window: in time steps.
        size: how many values there are; every device has one of them at each step.
        people: how many devices there are.
        oracle: how devices report; the one with the least variance by default.
        least: a group of fewer publishes nothing.
        counts_sampling: ours: a group is a sample of the people, and LPD and LPA decide better if
            they know what that adds to their error; the published rule knows the noise of reports
            only.

    Guarantees:
        - what a device reports within any ``window`` consecutive steps loses at most epsilon about
          all its values of these steps, against anyone.

    >>> plan = StreamPlan(method="LPA", epsilon=1.0, window=20, size=5, people=100_000)
    >>> plan.guarantee.sentence
    'Protects everything within any 20 consecutive time steps of a series: epsilon = 1. It holds \
against anyone who sees the output, whatever else they know.'
    """

    method: Method
    epsilon: float
    window: int
    size: int
    people: int
    oracle: str = AUTOMATIC
    least: int = 1
    counts_sampling: bool = False

    def __post_init__(self) -> None:
        require(self.method in METHODS, f"method={self.method}: must be one of {METHODS}")
        require(
            is_epsilon(self.epsilon),
            f"epsilon={self.epsilon}: must be > 0 and at most {MOST_EPSILON}",
        )
        for name, least, most in (
            ("window", 1, MOST_WINDOW),
            ("size", 2, MOST_VALUES),
            ("people", 1, MOST_PEOPLE),
            ("least", 1, MOST_PEOPLE),
        ):
            value = getattr(self, name)
            require(
                isinstance(value, int) and not isinstance(value, bool) and least <= value <= most,
                f"{name}={value}: must be a whole number from {least} to {most}",
            )
        require(
            isinstance(self.counts_sampling, bool),
            f"counts_sampling={self.counts_sampling}: must be True or False",
        )
        require(
            not self.counts_sampling or (self.adapts and self.divides_people),
            f"counts_sampling: {self.method} decides nothing about groups; it is for LPD and LPA",
        )
        names = (AUTOMATIC, *ORACLES)
        require(self.oracle in names, f"oracle={self.oracle}: must be one of {names}")
        needed = self.window * (2 if self.adapts else 1) if self.divides_people else 1
        require(
            self.people >= needed,
            f"people={self.people}: too few for {self.method} with a window of {self.window}; "
            f"it needs at least {needed}",
        )

    @property
    def guarantee(self) -> Guarantee:
        """Of every device, towards anyone who sees its answers."""
        return Guarantee(Pure(float(self.epsilon)), Window(self.window))

    @property
    def published(self) -> Published:
        return Published(
            claim="w-event epsilon-LDP for each user",
            source="Ren, Shi, Yu, Yang, Zhao and Xu 2022 (LDP-IDS)",
            holds=True,
            remark="As long as nobody is asked for more. Here a device does not take the server's "
            "word for it: it keeps account of its own answers by its own clock, and refuses. The "
            "methods were rebuilt without the paper's full text; the guarantee is enumerated for "
            "them as they are here.",
        )

    @classmethod
    def from_dict(cls, state: Any) -> StreamPlan:
        """The plan whose fields are the members of ``state``; anything else is refused."""
        with refuse_damage():
            return cls(**members(state, (field.name for field in fields(cls))))

    # what is divided: parts of epsilon, or people

    @property
    def divides_people(self) -> bool:
        return self.method in ("LPU", "LPD", "LPA")

    @property
    def adapts(self) -> bool:
        return self.method in ADAPTIVE

    @property
    def step_share(self) -> int:
        """What a step owns for comparing, and again for publishing: 1 / (2 w) of all."""
        return self.people // (2 * self.window) if self.divides_people else SHARE_UNITS

    @property
    def publication_limit(self) -> int:
        """What publications of a window may take together."""
        return self.people // 2 if self.divides_people else self.window * SHARE_UNITS

    @property
    def uniform_share(self) -> int:
        """What a step takes of LBU and LPU: 1 / w of all."""
        return self.people // self.window if self.divides_people else 2 * SHARE_UNITS

    def epsilon_and_people(self, amount: int) -> tuple[float, int]:
        """Epsilon and the number of people that an ``amount`` of shares comes to."""
        if self.divides_people:
            return float(self.epsilon), amount
        # rounded down, so that a window never sums to more than epsilon
        return round_down(
            Fraction(self.epsilon) * amount / (2 * self.window * SHARE_UNITS)
        ), self.people

    def oracle_for(self, epsilon: float) -> str:
        """The name of the oracle with the least variance at this ``epsilon``."""
        if self.oracle != AUTOMATIC:
            return self.oracle
        return name_of(choose(epsilon, self.size))

    def noise_variance(self, epsilon: float, people: float) -> float:
        """The mean squared error of shares by the noise of the reports of so many ``people``.

        Each has cost ``epsilon``.

        An oracle's variance is linear in the share of a value, and shares sum to 1: their mean is
        the variance at 1 / size.
        """
        oracle = oracle_of(self.oracle_for(epsilon), epsilon, self.size)
        return oracle.variance(people, 1 / self.size) / people**2

    def sampling_variance(self, people: float) -> float:
        """What drawing ``people`` of all adds to the variance of a share f, per f (1 - f)."""
        if not self.counts_sampling or self.people == 1:
            return 0.0
        return max(0.0, (self.people - people) / (people * (self.people - 1)))


@dataclass(frozen=True, eq=False)
class StreamProtocol:
    """Where a stream stands; a value, so that a refused answer changes nothing.

    A step has up to two questions, and then a ``release``: a share for each value.
    """

    plan: StreamPlan
    campaign: str
    step: int = 0
    stage: Part | Literal["done"] = "done"
    release: tuple[float, ...] = ()
    published: bool = False
    amount: int = 0
    """What the publication of this step takes."""
    taken: tuple[tuple[int, int], ...] = ()
    """What publications took, with their steps, as far back as a window reaches."""
    free: int = 0
    """Of absorption: the first step that owns its part still."""
    asked_at: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)
    """Of divided people: the last step at which each was asked."""
    first: int = 0

    @classmethod
    def start(cls, plan: StreamPlan, campaign: str, first: int = 0) -> StreamProtocol:
        """The protocol at its first step, with a release of 0 before it.

        Parameters:
            plan: what the stream asks for.
            campaign: its name.
            first: the first time step.
        """
        require(0 <= first < MOST_STEPS, f"first={first}: must be a time step >= 0")
        asked_at = np.full(plan.people if plan.divides_people else 0, first - plan.window)
        nothing = (0.0,) * plan.size
        return cls(
            plan, campaign, first, release=nothing, free=first, first=first, asked_at=asked_at
        )._open_step()

    def _open_step(self) -> StreamProtocol:
        plan = self.plan
        if plan.adapts:
            return replace(self, stage="compare")
        if plan.method != "LSP":
            return replace(self, stage="publish", amount=plan.uniform_share)
        if (self.step - self.first) % plan.window == 0:
            return replace(self, stage="publish", amount=2 * plan.window * SHARE_UNITS)
        return self

    # asking

    @functools.cached_property
    def question(self) -> StreamQuestion | None:
        """What to ask now; None when the step is done."""
        if self.stage == "done":
            return None
        epsilon, _ = self.plan.epsilon_and_people(self._amount_asked)
        return StreamQuestion(
            campaign=self.campaign,
            step=self.step,
            part=self.stage,
            epsilon=epsilon,
            size=self.plan.size,
            oracle=self.plan.oracle_for(epsilon),
        )

    @property
    def _amount_asked(self) -> int:
        return self.plan.step_share if self.stage == "compare" else self.amount

    @functools.cached_property
    def asked(self) -> Integers:
        """The numbers of the devices that the question is for; by a draw that anyone can repeat."""
        if self.stage == "done":
            return np.zeros(0, dtype=np.int64)
        if not self.plan.divides_people:
            return np.arange(self.plan.people)
        return draw_devices(
            self.campaign, self.step, self.stage, self._rested(), self._amount_asked
        )

    def _rested(self) -> Integers:
        """Who was not asked within the window that ends here."""
        return np.flatnonzero(self.step - self.asked_at >= self.plan.window)

    # going on

    def after(self, support: Integers, people: int) -> StreamProtocol:
        """The protocol after a question, none if it failed.

        What was asked for is spent in any case: nobody is asked again to make up for it.

        Parameters:
            support: how many answers support each value.
            people: how many devices answered.
        """
        question = self.question
        require(question is not None, "this step has no more questions", UsageError)
        assert question is not None
        shares = None
        if people > 0:
            shares = question.frequency.estimate(support, people).counts / people
        following = self._mark_asked()
        if self.stage == "compare":
            return following._compared(shares, people)
        following = replace(following, stage="done", **self._record_publication())
        if shares is None:
            return following
        return replace(following, release=tuple(shares.tolist()), published=True)

    def _mark_asked(self) -> StreamProtocol:
        if not self.plan.divides_people:
            return self
        asked_at = self.asked_at.copy()
        asked_at[self.asked] = self.step
        return replace(self, asked_at=asked_at)

    def _record_publication(self) -> dict[str, Any]:
        if not self.plan.adapts:
            return {}
        taken = (*self.taken, (self.step, self.amount))
        # a publication that took k parts leaves nothing to the k - 1 steps after it
        return {"taken": taken, "free": self.step + self.amount // self.plan.step_share}

    def _compared(self, shares: Floats | None, people: int) -> StreamProtocol:
        """Publish if the stream moved away by more than a publication errs, else repeat."""
        amount, plan = self._available(), self.plan
        repeating = replace(self, stage="done")
        if shares is None or amount < (plan.least if plan.divides_people else 1):
            return repeating
        distance, spread = self.distance(shares, people)
        epsilon, group = plan.epsilon_and_people(amount)
        # as many of them answer, about, as answered now
        people_then = group * people / plan.epsilon_and_people(plan.step_share)[1]
        error = (
            plan.noise_variance(epsilon, people_then) + plan.sampling_variance(people_then) * spread
        )
        if distance <= error:
            return repeating
        return replace(self, stage="publish", amount=amount)

    def distance(self, shares: Floats, people: int) -> tuple[float, float]:
        """The mean squared distance from the last release, and the mean of all f (1 - f).

        Unbiased: what estimated shares stray by themselves is taken off.

        Parameters:
            shares: estimated at this step.
            people: how many devices answered.
        """
        plan = self.plan
        noise = plan.noise_variance(plan.epsilon_and_people(plan.step_share)[0], people)
        sampling = plan.sampling_variance(people)
        squares = float(np.mean(shares**2)) - noise
        # E squares = mean f^2 + sampling * mean f (1 - f), and f sums to 1
        spread = (1 / plan.size - squares) / (1 - sampling) if sampling < 1 else 0.0
        moved = float(np.mean((shares - np.array(self.release)) ** 2))
        return moved - noise - sampling * spread, max(0.0, spread)

    def _available(self) -> int:
        """What a publication at this step may take."""
        plan = self.plan
        if plan.method in ("LBD", "LPD"):
            recent = [amount for step, amount in self.taken if self.step - step < plan.window]
            return (plan.publication_limit - sum(recent)) // 2
        return plan.step_share * max(0, min(self.step - self.free + 1, plan.window))

    def next_step(self) -> StreamProtocol:
        require(self.stage == "done", "this step has a question still: close it first")
        step = self.step + 1
        taken = tuple(
            publication for publication in self.taken if step - publication[0] < self.plan.window
        )
        return replace(self, step=step, taken=taken, published=False, amount=0)._open_step()

    # for a restart

    def to_dict(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in PLAIN_FIELDS},
            "release": list(self.release),
            "taken": [list(publication) for publication in self.taken],
            "asked_at": base64.b64encode(self.asked_at.astype("<i8").tobytes()).decode(),
        }

    @classmethod
    def from_dict(cls, plan: StreamPlan, state: Any) -> StreamProtocol:
        """The protocol of a ``plan``, of which ``to_dict`` gave ``state``; all else is refused."""
        with refuse_damage():
            return cls._from_dict(plan, members(state, STATE_FIELDS))

    @classmethod
    def _from_dict(cls, plan: StreamPlan, state: dict[str, Any]) -> StreamProtocol:
        limit = plan.people if plan.divides_people else 2 * plan.window * SHARE_UNITS
        step = whole_number(state["step"], 0, MOST_STEPS)
        first = whole_number(state["first"], 0, step)
        stages = ("compare", "publish", "done") if plan.adapts else ("publish", "done")
        stage = state["stage"]
        require_state(stage in stages)
        amount = whole_number(state["amount"], int(stage == "publish"), limit)
        require_state(isinstance(state["release"], list) and len(state["release"]) == plan.size)
        require_state(isinstance(state["taken"], list) and (plan.adapts or not state["taken"]))
        taken = tuple(
            (
                whole_number(when, max(first, step - plan.window + 1), step),
                whole_number(a, 1, limit),
            )
            for when, a in state["taken"]
        )
        steps = [when for when, _ in taken]
        require_state(steps == sorted(set(steps)))
        asked_at = np.frombuffer(base64.b64decode(state["asked_at"], validate=True), dtype="<i8")
        require_state(len(asked_at) == (plan.people if plan.divides_people else 0))
        require_state(bool(((asked_at >= first - plan.window) & (asked_at <= step)).all()))
        protocol = cls(
            plan,
            decode_campaign(state["campaign"]),
            step,
            stage,
            tuple(map(finite, state["release"])),
            boolean(state["published"]),
            amount,
            taken,
            whole_number(state["free"], first, step + plan.window),
            asked_at.astype(np.int64),
            first,
        )
        # there are people left to ask
        require_state(
            stage == "done"
            or not plan.divides_people
            or len(protocol._rested()) >= protocol._amount_asked
        )
        return protocol


PLAIN_FIELDS = ("campaign", "step", "stage", "published", "amount", "free", "first")
STATE_FIELDS = (*PLAIN_FIELDS, "release", "taken", "asked_at")


def draw_devices(campaign: str, step: int, part: str, places: Integers, count: int) -> Integers:
    """Devices drawn in public: the draw follows from the campaign's name.

    Parameters:
        campaign: its name.
        step: that is asked about.
        part: of the step.
        places: devices to draw from.
        count: how many are drawn.
    """
    require(count <= len(places), f"{count} of {len(places)} devices: there are not so many")
    if count == 0 or count == len(places):
        return places[:count]
    chain = Key.from_seed(int(campaign, 16)).again("public draw", f"{step} {part}")
    keystream = Keystream([StepRange(chain, 0, int(places[-1]) + 1)], "places").read()[places]
    return np.sort(places[np.argpartition(keystream, count)[:count]])
