"""What every mechanism refuses: one clear sentence that names the value and the remedy."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from typing import Any

import numpy as np

from tempriv.data.series import Block
from tempriv.errors import TemprivError
from tempriv.mechanisms.perturb import limit_of
from tempriv.mechanisms.value.gaussian import Gaussian
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.privacy.units import Contribution, Event, Window, WithinDistance
from tests.conformance.case_checks import Case, same, together
from tests.conformance.spec_checks import is_calibrated


def bad_readings_are_refused(case: Case) -> None:
    """One sentence that shows no reading, and nothing is consumed."""
    rows = case.rows(6, "refused")
    expected = case.release(rows, case.key(15))
    stream = case.mechanism.start(case.key(15), "a")
    case.push(stream, rows[:2])
    state = stream.state()
    wrong: list[tuple[Any, str]] = []
    for junk in (math.nan, math.inf, -math.inf):
        spoilt = rows[2:3].copy()
        spoilt[0, -1] = junk
        wrong.append((Block.of(spoilt, "a", 2), "mask missing readings"))
        if case.mechanism.domain.categories is None:
            wrong.append((spoilt, "mask missing readings"))
    wide = np.zeros((2, case.columns + 1))
    wrong.append((wide, f"{case.columns + 1} value columns"))
    if case.moves:
        wrong.append((Block(wide, wide > 0, ("a",), np.array([2]), np.array([2])), "value columns"))
    wrong.append((np.zeros((1, 1, case.columns)), "one row of values"))
    most = limit_of(case.mechanism)
    if most is not None:
        wrong.append((np.zeros((most - 1, case.columns)), f"more than {most} readings"))
    wrong.append((Block.of(rows[:1], "a", 0), "not start at step 2"))
    for values, sentence in wrong:
        try:
            (stream.push_block if isinstance(values, Block) else stream.push)(values)
        except TemprivError as refusal:
            assert sentence in str(refusal) and "\n" not in str(refusal), str(refusal)
        else:
            raise AssertionError(f"accepted: {sentence}")
        assert stream.state() == state, "a refused reading changes the state"
    rest = together([case.push(stream, rows[2:]), case.finish(stream)])
    before = 0 if case.mechanism.takes_whole else max(0, 2 - case.latency)
    assert same(rest, expected[before:])


BUDGETS = (0, -1, -0.5, math.nan, math.inf, -math.inf, True, "1", None, (1,))
BAD_PARAMETERS: dict[str, list[tuple[Any, str]]] = {
    "epsilon": [(bad, f"epsilon={bad}: ") for bad in BUDGETS] + [(10**400, "epsilon=1000")],
    "rho": [(bad, f"rho={bad}: ") for bad in BUDGETS] + [(10**400, "rho=1000")],
    "epsilon_forever": [(bad, f"epsilon_forever={bad}: ") for bad in BUDGETS],
    # None leaves the second response out
    "epsilon_instant": [(bad, f"epsilon_instant={bad}: ") for bad in BUDGETS if bad is not None],
    "bounds": [
        ((5, 0), "bounds=5 0: "),
        ((1, 1), "bounds=1 1: "),
        ((math.nan, 1), "bounds=nan 1: "),
        ((0, math.inf), "bounds=0 inf: "),
        (((0, 1), (2, 2)), "bounds=2 2: "),
        ((), "bounds=()"),
        (5, "bounds=5: "),
        (None, "bounds=None: "),
        ("ab", "'ab'"),
        ((0, 1, 2), "(0, 1, 2)"),
        (((0, 1), 5), "((0, 1), 5)"),
        ((0, 10**400), "1000"),
    ],
    "unit": [("day", "unit='day': "), (None, "unit=None: "), (24, "unit=24: ")],
    "grid": [
        (0, "grid=0: "),
        (-1.0, "grid=-1"),
        (0.3, "grid=0.3: "),
        (math.nan, "grid=nan: "),
        (math.inf, "grid=inf: "),
        (True, "grid=True: "),
        ("1", "grid=1: "),
        (2.0**30, "grid=1.07374e+09: "),
        (10**400, "grid=1000"),
    ],
    "categories": [
        ((), "categories=()"),
        (("a",), "categories=['a']"),
        (("a", "a"), "categories=['a', 'a']"),
        ((("a", "b"), ()), "categories=[]"),
        ("ab", "categories='ab'"),
        (3, "categories=3: "),
    ],
    "threshold": [(bad, f"threshold={bad}: ") for bad in (math.nan, math.inf, -1e9, "1", None)],
    "most": [(bad, f"most={bad}: ") for bad in (0, -1, 1.5, math.nan, True, "1", None)],
    "threshold_share": [(bad, f"threshold_share={bad}: ") for bad in (0, 1, -1, math.nan, "1")],
    "samples": [(bad, f"samples={bad}: ") for bad in (0, -1, 1.5, True, "1", None, 10**6)],
    "wander": [(bad, f"wander={bad}: ") for bad in BUDGETS],
    "set_point": [(bad, f"set_point={bad}: ") for bad in BUDGETS],
    "window": [(bad, f"window={bad}: ") for bad in (0, -1, 1.5, math.nan, True, "3", None)],
    "tolerance": [(bad, f"tolerance={bad}: ") for bad in BUDGETS],
    # None takes a part of the range
    "spread": [(bad, f"spread={bad}: ") for bad in BUDGETS if bad is not None],
    "reach": [
        (bad, f"reach={bad!r}: ") for bad in ((1,), (0, 1), (1, 0.5), (math.nan, 1), 1, None, "ab")
    ],
    "stretch": [(bad, f"stretch={bad}: ") for bad in BUDGETS],
    "tau": [(bad, f"tau={bad}: ") for bad in (*BUDGETS, 10**400)],
    "period": [(bad, f"period={bad}: ") for bad in BUDGETS],
    # None leaves it out
    "shift": [(bad, f"shift={bad}: ") for bad in BUDGETS if bad is not None],
    "interpolation": [(bad, f"interpolation={bad!r}: ") for bad in ("linear", "", None, 1)],
    "clamp": [
        (bad, f"clamp={bad!r}: ")
        for bad in (
            *((0, 1), (2, 1), (math.nan, 1), (1, math.inf), (-1, 1), (1,), (1, 2, 3)),
            *("tight", 5, True, ("a", "b")),
        )
    ],
    "columns": [(bad, f"columns={bad}: ") for bad in (0, -1, 1.5, True, "1", None, 1001)],
    "pace": [(bad, f"pace={bad!r}: ") for bad in ("secret", "", None, 1)],
    "waves": [(bad, f"waves={bad}: ") for bad in (0, -1, 1.5, True, "1", 10**6)],
    "smoothing": [(bad, f"smoothing={bad!r}: ") for bad in ("mode", "", None, 1)],
    "share": [(bad, f"share={bad!r}: ") for bad in (0, 1, -1.0, math.nan, math.inf, "1", None)],
    # None takes the published one
    "theta": [(bad, f"theta={bad}: ") for bad in BUDGETS if bad is not None],
    "longest": [(bad, f"longest={bad!r}: ") for bad in (0, 1, -1, 2.5, True, "9", None, 2**17)],
    "gains": [
        (bad, f"gains={bad!r}: ") for bad in ((1, 1), (1, 1, -1), (1, math.nan, 0), 1, None, "abc")
    ],
    "horizon": [(bad, f"horizon={bad!r}: ") for bad in (0, -1, 1.5, True, "2", 2**41)],
    "method": [(bad, f"method={bad!r}: ") for bad in ("fast", "", 1)],
    "branching": [(bad, f"branching={bad!r}: ") for bad in (0, 1, 2.5, True, "2")],
    "coefficients": [
        (bad, f"coefficients={bad!r}: ") for bad in (0, -1, 1.5, True, "2", None, 10**6)
    ],
    "bits": [(bad, f"bits={bad!r}: ") for bad in (0, -1, 25, 1.5, True, "2")],
    "over": [
        *((bad, f"over={type(bad).__name__}: ") for bad in (None, 1.0, "Laplace")),
        (Gaussian(rho=1.0, bounds=(0, 5)), "over=Gaussian: "),
        (Laplace(epsilon=1.0, bounds=(0, 5), unit=Window(2)), "unit is Window("),
        (Laplace(epsilon=1.0, bounds=(0, 5), unit=Contribution()), "unit is Contribution("),
    ],
    "count": [(bad, f"count={bad}: ") for bad in (-1, 1.5, math.nan, True, "3", 2**40)],
    "length": [(bad, f"length={bad}: ") for bad in (0, -1, 1.5, math.nan, True, "3", 2**40)],
    "count_epsilon": [(bad, f"count_epsilon={bad}: ") for bad in (*BUDGETS, 21)],
    "miss": [(bad, f"miss={bad}: ") for bad in (0, 1, -0.1, math.nan, 2, "1", None)],
    "chosen_from_values": [(bad, f"chosen_from_values={bad}: ") for bad in (2, "yes", None)],
    "kappa": [(bad, f"kappa={bad}: ") for bad in BUDGETS],
    **{
        rate: [(bad, f"{rate}={bad}: ") for bad in (0, -1, 1.5, math.nan, math.inf, "1", None)]
        for rate in ("increase", "decrease", "least")
    },
    "origin": [
        ((91, 0), "origin=(91, 0): "),
        ((0, 181), "origin=(0, 181): "),
        ((math.nan, 0), "origin=(nan, 0): "),
        ((0,), "origin=(0,): "),
        (("0", "0"), "origin=('0', '0'): "),
        (7, "origin=7: "),
        (None, "origin=None: "),
    ],
}
WHOLE = (-1, 0, 1, 1.5, math.nan, True, "3")
ORDER_PARAMETERS: dict[str, list[tuple[Any, str]]] = {
    "window": [(bad, f"window={bad}: ") for bad in (*WHOLE, None)],
    # left out, it is chosen
    "threshold": [
        (bad, f"threshold={bad}: ") for bad in (*WHOLE, 10**6) if not isinstance(bad, bool)
    ],
    "block": [(bad, f"block={bad}: ") for bad in (*WHOLE, None)],
    "offset": [(bad, f"offset={bad}: ") for bad in (-1, 0.5, math.nan, 10**6, "0", None)],
    "latency": [(bad, f"latency={bad}: ") for bad in (*WHOLE, 2)],
    "delta": [(bad, f"delta={bad}: ") for bad in (0, 1, -1e-6, math.nan, 2, "1e-6")],
    "noise": [(bad, f"noise={bad!r}: ") for bad in ("gaussian", "", None, 1)],
}
REMEDY = ("would do", "must", "need", "name each", "take", "choose", "give", "protected against")


def bad_parameters_are_refused(case: Case) -> None:
    """One clear sentence that names the value and the remedy."""
    for field in dataclasses.fields(case.mechanism):
        wrong = list(BAD_PARAMETERS.get(field.name, []))
        if field.name == "count_epsilon":
            # a bound is public or it is drawn
            left_out = case.mechanism.count_epsilon is None
            wrong = [(1.0, "give one of them")] if left_out else wrong[:-3] + wrong[-1:]
        if case.moves and field.name in ORDER_PARAMETERS:
            own = getattr(case.mechanism, field.name)
            wrong = [one for one in ORDER_PARAMETERS[field.name] if one[0] is True or one[0] != own]
        if field.name == "unit":
            near = isinstance(case.unit, WithinDistance)
            wrong.append(
                (Event(), "unit=Event()")
                if near
                else (WithinDistance(5), "unit=WithinDistance(meters=5)")
            )
        if field.name == "grid" and case.mechanism.domain.columns != 2:
            wrong.append(((1.0,) * 3, "grid=(1.0, 1.0, 1.0): "))
        if field.name == "grid" and isinstance(case.mechanism.grid, float):
            wrong.append(((1.0, 1.0), "grid=(1.0, 1.0): "))
        for value, shown in wrong:
            if value is None and getattr(case.mechanism, field.name) is None:
                continue  # left out already
            if value is None and field.name == "rho" and is_calibrated(case.mechanism):
                continue  # found
            try:
                replace(case.mechanism, **{field.name: value})
            except TemprivError as refusal:
                said = str(refusal)
                assert shown in said and "\n" not in said, f"{shown!r} is not in: {said}"
                assert any(word in said for word in REMEDY), f"no remedy in: {said}"
            else:
                raise AssertionError(f"{field.name}={value!r} is accepted")
