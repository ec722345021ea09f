"""Streams over a population from their definitions (Ren et al. 2022), with every outcome.

Nothing here uses the package. Values are 0 or 1 and reports go through randomized response. Budgets
are exact fractions, releases are found for every way in which the reports can come out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

Draw = Callable[[int, str, list[int], int], list[int]]
Supports = tuple[int, ...]


def keep(epsilon: float) -> float:
    return math.exp(epsilon) / (1 + math.exp(epsilon))


def ones(values: Sequence[int], epsilon: float) -> list[float]:
    """The law of how many report 1."""
    law = [1.0]
    for value in values:
        p = keep(epsilon) if value else 1 - keep(epsilon)
        law = [
            (law[i] * (1 - p) if i < len(law) else 0) + (law[i - 1] * p if i else 0)
            for i in range(len(law) + 1)
        ]
    return law


def share(count: int, people: int, epsilon: float) -> float:
    """Of value 1, unbiased."""
    p = keep(epsilon)
    return (count / people - (1 - p)) / (2 * p - 1)


def variance(people: int, epsilon: float) -> float:
    p = keep(epsilon)
    return p * (1 - p) / (people * (2 * p - 1) ** 2)


def law(
    method: str, rows: Sequence[Sequence[int]], epsilon: float, window: int, noise: Draw
) -> dict[Supports, float]:
    """How likely each list of supports of value 1 is, one for each question that is asked.

    ``rows[t][i]`` is the value of person i at step t.
    """
    found: dict[Supports, float] = {}
    for supports, chance in _goes_on(method, rows, epsilon, window, noise, (), [], [], None):
        found[supports] = found.get(supports, 0.0) + chance
    return found


def _goes_on(
    method: str,
    rows: Sequence[Sequence[int]],
    epsilon: float,
    window: int,
    noise: Draw,
    supports: Supports,
    taken: list[Fraction],
    groups: list[list[int]],
    release: float | None,
) -> Iterator[tuple[Supports, float]]:
    """``taken`` has what the publication of each step before took, ``groups`` who was asked."""
    step = len(taken)
    if step == len(rows):
        yield supports, 1.0
        return
    everyone = list(range(len(rows[0])))
    by_people = method[1] == "P"
    whole = Fraction(len(everyone)) if by_people else Fraction(epsilon)
    unit = whole / (2 * window)
    if by_people:
        unit = Fraction(math.floor(unit))

    def ask(amount: Fraction, part: str, before: list[int]) -> tuple[list[int], float]:
        if not by_people:
            return everyone, float(amount)
        resting = {i for group in groups[max(0, step - window + 1) :] for i in group}
        free = [i for i in everyone if i not in resting and i not in before]
        return noise(step, part, free, int(amount)), epsilon

    def publish(
        amount: Fraction, before: list[int], supports: Supports
    ) -> Iterator[tuple[Supports, float]]:
        group, each = ask(amount, "publish", before)
        for count, chance in enumerate(ones([rows[step][i] for i in group], each)):
            for rest, further in _goes_on(
                method,
                rows,
                epsilon,
                window,
                noise,
                (*supports, count),
                [*taken, amount],
                [*groups, before + group],
                share(count, len(group), each),
            ):
                yield rest, chance * further

    def repeat(before: list[int], supports: Supports) -> Iterator[tuple[Supports, float]]:
        return _goes_on(
            method,
            rows,
            epsilon,
            window,
            noise,
            supports,
            [*taken, Fraction(0)],
            [*groups, before],
            release,
        )

    if method in ("LBU", "LPU"):
        each = whole / window
        yield from publish(Fraction(math.floor(each)) if by_people else each, [], supports)
        return
    if method == "LSP":
        yield from publish(whole, [], supports) if step % window == 0 else repeat([], supports)
        return
    first, each = ask(unit, "compare", [])
    amount = at_hand(method, step, window, whole, unit, taken)
    for count, chance in enumerate(ones([rows[step][i] for i in first], each)):
        one = share(count, len(first), each)
        last = (0.0, 0.0) if release is None else (1 - release, release)
        away = ((1 - one - last[0]) ** 2 + (one - last[1]) ** 2) / 2 - variance(len(first), each)
        goes = False
        if amount > 0:
            people, budget = (int(amount), epsilon) if by_people else (len(everyone), float(amount))
            goes = away > variance(people, budget)
        path = (*supports, count)
        following = publish(amount, first, path) if goes else repeat(first, path)
        for rest, further in following:
            yield rest, chance * further


def at_hand(
    method: str, step: int, window: int, whole: Fraction, unit: Fraction, taken: list[Fraction]
) -> Fraction:
    if method.endswith("D"):
        half = whole / 2
        if method == "LPD":
            half = Fraction(math.floor(half))
        left = (half - sum(taken[max(0, step - window + 1) :], Fraction(0))) / 2
        return Fraction(math.floor(left)) if method == "LPD" else left
    # l is the last publication, which leaves nothing to the steps up to l + t_N
    published = [t for t, amount in enumerate(taken) if amount > 0]
    if not published:
        return unit * min(step + 1, window)
    last = published[-1]
    spoken_for = last + taken[last] / unit - 1
    if step <= spoken_for:
        return Fraction(0)
    return unit * min(step - spoken_for, window)
