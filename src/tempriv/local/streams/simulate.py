"""A stream over a population, simulated: people with equal values answer together.

For studies and planning. Devices with the same value draw from the same distribution, so what a
group of them says together is one draw; nothing is sent, and nothing may be released.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require
from tempriv.local.streams.protocol import StreamPlan, StreamProtocol
from tempriv.sampling.keys import Key, simulation

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
NO_CAMPAIGN = "0" * 32


@dataclass(frozen=True)
class Trial:
    """What a stream released at each step, and what it was like.

    ``answers`` is how many questions a person answered at a step, on average.
    """

    releases: Floats
    truth: Floats
    published: npt.NDArray[np.bool_]
    answers: float

    @property
    def squared_errors(self) -> Floats:
        """At each step, the mean over all values."""
        errors: Floats = np.mean((self.releases - self.truth) ** 2, axis=1)
        return errors


def simulate_grouped(
    plan: StreamPlan,
    values: Callable[[int], Integers],
    steps: int,
    key: Key,
    campaign: str = NO_CAMPAIGN,
) -> Trial:
    """A stream among people, those with equal values answering together.

    Parameters:
        plan: what the stream asks for.
        values: gives the value of each person at a step.
        steps: how many.
        key: of the noise.
        campaign: its name, on which the public draws depend.

    >>> plan = StreamPlan(method="LPU", epsilon=1.0, window=5, size=2, people=1000)
    >>> trial = simulate_grouped(plan, lambda step: np.arange(1000) % 2, 5, Key.from_seed(1))
    >>> trial.truth[0].tolist(), trial.answers
    ([0.5, 0.5], 0.2)
    """
    generator = simulation(key, "stream over a population")
    protocol = StreamProtocol.start(plan, campaign)
    releases, truth = np.empty((steps, plan.size)), np.empty((steps, plan.size))
    published = np.zeros(steps, dtype=bool)
    answers = 0
    for step in range(steps):
        present_values = np.asarray(values(step))
        require(
            present_values.shape == (plan.people,) and present_values.dtype.kind in "iu",
            f"values({step}): must be a whole number for each of {plan.people} people",
            DataError,
        )
        protocol = protocol if step == 0 else protocol.next_step()
        everyone = _counts(present_values, plan.size)
        while protocol.question is not None:
            group = everyone
            if plan.divides_people:
                group = _counts(present_values[protocol.asked], plan.size)
            support = protocol.question.frequency.simulate_support(group, generator)
            answers += int(group.sum())
            protocol = protocol.after(support, int(group.sum()))
        releases[step], published[step] = protocol.release, protocol.published
        truth[step] = everyone / plan.people
    return Trial(releases, truth, published, answers / (plan.people * max(1, steps)))


def _counts(values: Integers, size: int) -> Integers:
    counts = np.bincount(values, minlength=size).astype(np.int64)
    require(len(counts) == size, f"values: must be from 0 to {size - 1}", DataError)
    return counts
