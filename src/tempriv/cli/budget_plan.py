"""``tempriv budget plan``."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tempriv.cli._options import Force, Json, Plot, refuse_plot
from tempriv.cli._output import save_picture, table
from tempriv.cli.app import budget
from tempriv.errors import require

if TYPE_CHECKING:
    from tempriv.accounting.planning import MethodResult

EXAMPLE = """
[bold]Example[/bold]: a release every minute; what may each cost, for epsilon 1 in any week?

  tempriv budget plan --releases 1440 --per day --within week --epsilon 1 --delta 1e-6

[bold]Example[/bold]: what do a thousand releases of epsilon 0.05 come to? With a picture

  tempriv budget plan --releases 1000 --each 0.05 --delta 1e-6 --plot plan.png
"""


@budget.command(epilog=EXAMPLE)
def plan(
    releases: Annotated[
        int, typer.Option(metavar="N", help="How many releases of the same data: in all, or --per.")
    ],
    per: Annotated[
        str | None, typer.Option(metavar="TIME", help="minute, hour, day, ..., or so many.")
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="For how long what is spent adds up, such as week."),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="What all of them may cost together.")
    ] = None,
    each: Annotated[
        float | None,
        typer.Option(metavar="EPSILON", help="What each costs, to see what they add up to."),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Tiny chance; without it only the sum is known.")
    ] = 0.0,
    plot: Plot = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """What each of many releases may cost, or what they add up to, by every method."""
    from tempriv.accounting import planning
    from tempriv.privacy import serialization

    require(
        (epsilon is None) != (each is None),
        "give one of --epsilon (what all may cost together) and --each (what each costs)",
    )
    count = planning.count_within(releases, per, within)
    refuse_plot(plot, force)

    def answer(number: int, quick: bool = True) -> tuple[MethodResult, ...]:
        if epsilon is not None:
            return planning.budget_per_release(number, epsilon, delta, quick)
        assert each is not None
        return planning.totals_by_method(number, each, delta, quick)

    results = answer(count, quick=False)
    asked = {"releases": count, "epsilon": epsilon, "each": each, "delta": delta}
    if as_json:
        print(json.dumps(asked | {"ways": [serialization.encode(result) for result in results]}))
    else:
        title = _title(count, epsilon, each, delta)
        print(f"{title[0].upper()}{title[1:]}:")
        _print(results, inverse=each is not None)
        for remark in _remarks(results, count, delta):
            print(remark)
    if plot is not None:
        from tempriv.report.plots.budget import plot_plan

        figure = plot_plan(
            results, count, answer, _title(count, epsilon, each, delta), each is not None
        )
        save_picture(figure, plot)
        if not as_json:
            print(f"Picture: {plot}")


def _title(count: int, epsilon: float | None, each: float | None, delta: float) -> str:
    at = f" at delta = {delta:g}" if delta else ""
    some = f"{count:,} release{'s' if count > 1 else ''}"
    if epsilon is not None:
        return f"{some} that together keep epsilon = {epsilon:g}{at}"
    return f"{some} of epsilon = {each:g} each{at}"


def _print(results: Sequence[MethodResult], inverse: bool) -> None:
    names = ["method", "noise", "each costs" if inverse else "each may cost"]
    names += ["noise of each*", "all together" if inverse else "against the sum"]
    rows = []
    for result in results:
        rho = f"rho {_digits(result.rho, up=inverse)}" if result.rho else ""
        cost = f"epsilon {_digits(result.epsilon, up=inverse)}" if result.epsilon else rho
        share = f"{_digits(100 * result.against_sum)} %"
        total = f"epsilon {_digits(result.total)}" if inverse else share
        noise = _digits(result.deviation, up=not inverse)
        adaptive = "yes" if result.adaptive else "no"
        rows.append([result.method, result.noise, cost, noise, total, adaptive])
    table([*names, "costs may change"], rows)


def _digits(value: float, up: bool = True) -> str:
    """Four digits, on the safe side of the value.

    >>> _digits(0.00235888, up=False), _digits(8.20441), _digits(14255.27)
    ('0.002358', '8.205', '14,260')
    """
    if value < 1e-9 and up:
        return "0" if value == 0 else "below 1e-09"
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    # what is off by a rounding error is not taken for a further digit
    scaled = value / unit
    near = round(scaled)
    if abs(scaled - near) > 1e-9 * near:
        near = math.ceil(scaled) if up else math.floor(scaled)
    number = near * unit
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def _remarks(results: Sequence[MethodResult], count: int, delta: float) -> list[str]:
    from tempriv.accounting.planning import MAX_EXACT_RELEASES

    remarks = [
        "* standard deviation for one number, in units of its sensitivity; any pure guarantee is "
        "taken to be kept by Laplace noise",
        "What is asked may depend on earlier answers in every line. Where costs may not change as "
        "you go, they and the number of releases are fixed in advance.",
    ]
    if delta == 0:
        remarks.append("Without --delta only the sum is known; --delta 1e-6 shows the others.")
    elif count > MAX_EXACT_RELEASES:
        remarks.append(
            f"Exact Laplace noise is left out above {MAX_EXACT_RELEASES:,} releases; optimal "
            "composition is nearly the same there."
        )
    return remarks
