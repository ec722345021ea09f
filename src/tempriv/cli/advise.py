"""``tempriv advise``."""

from __future__ import annotations

import json
import shlex
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tempriv.cli._options import (
    Duplicates,
    Force,
    Gaps,
    Json,
    Plot,
    SeriesColumn,
    Step,
    TimeColumn,
    refuse_plot,
)
from tempriv.cli._output import progress, save_picture, table
from tempriv.cli.app import app
from tempriv.errors import require
from tempriv.mechanisms.options import options_of, pair
from tempriv.privacy.units.order import BlockSwap, Swap

if TYPE_CHECKING:
    from tempriv.utility.advisor import Advice, AdviceRequest, Recommendation

EXAMPLE = """
[bold]Example[/bold]: which mechanism keeps moving averages of a pulse best? The answer is private

  tempriv advise pulse.csv --hide when --epsilon 5 --window 10 --task average --value bpm
  --time at --plot advice.png

[bold]Example[/bold]: from unit costs alone, so that the advice may be published

  tempriv advise --hide when --epsilon 5 --window 10 --missing-cost 10 --repeated-cost 10
  --empty-cost 10
"""
SAME_EPSILON = (
    "The same epsilon is not the same protection: what holds for one row seen alone may fall when "
    "all rows are seen together. * The chance that they show for certain which of two neighbors "
    "was first."
)

PUBLISHES = (
    "a release by this choice publishes the choice, which was made by looking at the data; where "
    "that must not be, choose by --public-sample or by unit costs"
)

PAPERS_COSTS = (
    "The paper's unit costs price every step of a delay like a whole one (counts) or like half a "
    "window (averages), and the errors of a count as if they neither added up nor canceled; "
    "leave --unit-costs out to try it on the data instead"
)


@app.command(epilog=EXAMPLE)
def advise(
    epsilon: Annotated[float, typer.Option(help="Privacy budget: smaller protects more.")],
    window: Annotated[
        int, typer.Option(help="Within how many time steps it is hidden when a reading was taken.")
    ],
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="INPUT", help="Table, .csv or .parquet; not needed for unit costs alone."
        ),
    ] = None,
    hide: Annotated[
        str, typer.Option(metavar="when", help="What is to be hidden; values stay exact.")
    ] = "when",
    task: Annotated[
        str,
        typer.Option(
            metavar="count|average|none",
            help="What the output is for: running counts of a value, moving averages, or neither, "
            "with unit costs.",
        ),
    ] = "none",
    missing_cost: Annotated[
        float | None, typer.Option(help="Of a reading that never comes out, in steps of delay.")
    ] = None,
    repeated_cost: Annotated[
        float | None, typer.Option(help="Of a row that repeats a reading.")
    ] = None,
    empty_cost: Annotated[float | None, typer.Option(help="Of a row that stays empty.")] = None,
    delay_cost: Annotated[
        float | None, typer.Option(help="Of one time step of delay; 1 by default.")
    ] = None,
    value: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column to release; the first is that of the task."),
    ] = None,
    value_of_interest: Annotated[
        str | None,
        typer.Option(metavar="VALUE", help="What is counted; the most frequent value by default."),
    ] = None,
    average_over: Annotated[
        int | None, typer.Option(metavar="STEPS", help="Of a moving average; the window otherwise.")
    ] = None,
    seen_as: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="stream|file",
            help="Whether rows are read as they come out, or once all are there.",
        ),
    ] = "stream",
    latency: Annotated[
        int | None,
        typer.Option(help="Of noisy-order as a stream: by how many steps rows may be late."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Of noisy-order as a stream; 1e-6 by default.")
    ] = None,
    unit_costs: Annotated[
        str | None,
        typer.Option(
            metavar="paper",
            help="Price a task by the paper's unit costs instead of trying it on the data.",
        ),
    ] = None,
    public_sample: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A public table that looks alike, to read instead of INPUT."
        ),
    ] = None,
    bounds: Annotated[
        str | None,
        typer.Option(metavar="LOW HIGH", help="For the comparison with Laplace noise."),
    ] = None,
    time: TimeColumn = None,
    series: SeriesColumn = None,
    grid: Annotated[
        str, typer.Option(metavar="regular|index", help="Time grid, as for a release.")
    ] = "regular",
    step: Step = None,
    gaps: Gaps = "refuse",
    duplicates: Duplicates = "refuse",
    plot: Plot = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compare the mechanisms that hide when readings were taken: cost and guarantee of each."""
    from tempriv.utility import advisor
    from tempriv.utility.reorder_costs import UnitCosts

    require(
        hide == "when",
        f"--hide {hide}: must be when; to hide values see tempriv mechanisms",
    )
    require(grid in ("regular", "index"), f"--grid {grid}: must be regular or index")
    require(
        unit_costs in (None, "paper"),
        f"--unit-costs {unit_costs}: must be paper; leave it out to try the task on the data",
    )
    refuse_plot(plot, force)
    by_hand = {"missing": missing_cost, "repeated": repeated_cost, "empty": empty_cost}
    costs = None
    if any(cost is not None for cost in (*by_hand.values(), delay_cost)):
        for name, cost in by_hand.items():
            require(cost is not None, f"--{name}-cost is missing: unit costs go together")
        costs = UnitCosts(
            **cast(dict[str, float], by_hand), delay=1.0 if delay_cost is None else delay_cost
        )
    layout = {
        "time": time,
        "series": series,
        "grid": grid,
        "step": step,
        "gaps": gaps,
        "duplicates": duplicates,
    }
    request = advisor.AdviceRequest(
        epsilon=epsilon,
        window=window,
        task=task,
        costs=costs,
        source=source,
        public_sample=public_sample,
        columns=tuple(value or ()),
        value=value_of_interest,
        average_over=average_over,
        layout=layout,
        seen=cast(Any, seen_as),
        latency=latency,
        delta=delta,
        by_papers_costs=unit_costs is not None,
        bounds=None if bounds is None else pair("bounds", bounds),
    )
    with progress("reading", spinner=True) as update:
        answer = advisor.advise(request, lambda part: update(description=part))
    if as_json:
        print(json.dumps(json_value(answer)))
    else:
        _print(answer)
    if plot is not None:
        _draw(answer, plot)
        if not as_json:
            print(f"Picture: {plot}")


# what is said


def release_command(mechanism: Any, request: AdviceRequest) -> str:
    """The release that makes use of the advice, ready to be typed.

    Parameters:
        mechanism: the one that was advised.
        request: what it was advised for.
    """
    name, defaults = (
        mechanism.command.name,
        {option.name: option.default for option in fields(mechanism)},
    )
    source = str(request.source or "INPUT.csv")
    words = ["tempriv", "release", source, "OUTPUT.csv", "--mechanism", name]
    words += ["--epsilon", f"{mechanism.epsilon:.15g}"]
    named = [(o.field, o.flag) for o in options_of(type(mechanism)) if o.field is not None]
    for field, flag in [*named, ("delta", "--delta")]:
        setting = getattr(mechanism, field, None)
        if setting is not None and (setting != defaults[field] or defaults[field] is MISSING):
            words += [flag, f"{setting:.15g}" if isinstance(setting, float) else str(setting)]
    for column in request.columns or ("COLUMN",):
        words += ["--value", column]
    usual = {"grid": "regular", "gaps": "refuse", "duplicates": "refuse"}
    for option, setting in request.layout.items():
        if setting is not None and setting != usual.get(option):
            words += ["--" + option.replace("_", "-"), setting]
    if not hasattr(mechanism.guarantee, "loss"):
        words.append("--not-private")  # it guarantees nothing, and a release wants that said
    if mechanism.guarantee.protects_little:
        words.append("--accept-weak")
    return shlex.join(words)


def json_value(answer: Advice) -> dict[str, Any]:
    """The whole ``answer``, for machines."""
    from tempriv.privacy import serialization

    ranking, request = answer.ranking, answer.request

    def offer(choice: Recommendation) -> dict[str, Any]:
        return {
            "mechanism": serialization.encode(choice.mechanism),
            "cost": choice.cost,
            "standard_error": choice.standard_error,
            "shares": serialization.encode(choice.shares),
            "protects": choice.protects,
            "guarantee": serialization.encode(choice.mechanism.guarantee),
            "neighbors_swapped": serialization.encode(choice.neighbors),
            "command": release_command(choice.mechanism, request),
        }

    swaps, any_swap = ranking.cheapest(Swap, BlockSwap), ranking.cheapest(Swap)
    return {
        "private": answer.private,
        **({"mind": PUBLISHES} if answer.private else {}),
        "hide": "when",
        "epsilon": ranking.epsilon,
        "window": ranking.window,
        "task": request.task,
        "value_of_interest": request.value,
        "as": ranking.seen,
        "cost_in": ranking.unit,
        "cost_found": answer.how,
        "unit_costs": None if answer.costs is None else serialization.encode(answer.costs),
        "offers": [offer(leak) for leak in ranking.recommendations],
        "why": ranking.why,
        "as_good": [leak.name for leak in ranking.as_good],
        "cheapest_with_swap_promise": None if swaps is None else swaps.name,
        "cheapest_with_promise_for_any_swap": None if any_swap is None else any_swap.name,
        "once_complete": offer(ranking.once_complete),
        "papers_strategy": offer(ranking.papers),
        "left_out": [{"mechanism": name, "why": why} for name, why in ranking.left_out],
        "values_changed_instead": None
        if answer.alternative is None
        else {
            "mechanism": serialization.encode(answer.alternative.mechanism),
            "guarantee": serialization.encode(answer.alternative.mechanism.guarantee),
            "error": answer.alternative.error,
            "remark": answer.alternative.remark,
        },
        "warnings": [
            serialization.encode(leak) | {"sentence": leak.sentence} for leak in answer.order_leaks
        ],
    }


def _print(answer: Advice) -> None:
    from tempriv.releases.meaning import headline_of
    from tempriv.report.plots.series import shown

    ranking, request = answer.ranking, answer.request
    print(answer.heading)
    print(
        f"Hide when, epsilon {ranking.epsilon:g} within {ranking.window} time steps, "
        f"{_purpose(request)}; cost of a reading in {ranking.unit}, {answer.how}"
    )
    rows = []
    for choice in ranking.recommendations:
        error = f" ± {shown(choice.standard_error, 2)}" if choice.standard_error else ""
        parts = (choice.shares.missing, choice.shares.repeated, choice.shares.empty)
        shares = [f"{100 * part:.3g} %" if part else "-" for part in parts]
        certain = "-" if choice.protects.endswith("Swap") else f"{choice.neighbors.delta:.2g}"
        late = f"{choice.shares.delay:.3g}"
        rows.append(
            [choice.title, shown(choice.cost) + error, *shares, late, choice.guarantee, certain]
        )
    late = "steps late" if ranking.seen == "stream" else "steps off"
    table(["", "cost", "missing", "repeated", "empty", late, "hides", "but*"], rows)
    print(SAME_EPSILON)
    print(f"  why       {ranking.why}")
    if ranking.as_good:
        names = ", ".join(choice.name for choice in ranking.as_good)
        print(f"  as good   within the noise of the trial: {names}")
    print(f"  guarantee {headline_of(ranking.first.mechanism)}")
    _print_swaps(answer)
    _print_comparisons(answer)
    if request.by_papers_costs:
        print(f"  note      {PAPERS_COSTS}")
    for name, why in ranking.left_out:
        print(f"  left out  {name}: {why}")
    if request.source is not None and not answer.private and request.public_sample is None:
        print(
            "  not read  INPUT was not looked at; name columns by --value to see if they betray "
            "their order"
        )
    for leak in answer.order_leaks:
        print(f"  WARNING   {leak.sentence}")
    chosen = ranking.cheapest_guaranteed
    if chosen is not ranking.first:
        print(
            f"  so take   {chosen.title}, the cheapest that guarantees anything: "
            f"{chosen.guarantee} (cost {shown(chosen.cost)})"
        )
    if answer.private:
        print(f"  mind      {PUBLISHES}")
    print(f"  release   {release_command(chosen.mechanism, request)}")


def _purpose(request: AdviceRequest) -> str:
    if request.task == "count":
        return f"running counts of {request.value!r} in {request.columns[0]!r}"
    if request.task == "average":
        return f"averages of {request.columns[0]!r} over {request.steps} steps"
    return "by unit costs"


def _print_swaps(answer: Advice) -> None:
    from tempriv.report.plots.series import shown

    ranking = answer.ranking
    near, far = ranking.cheapest(Swap, BlockSwap), ranking.cheapest(Swap)
    for choice in dict.fromkeys((near, far)):
        if choice is not None and choice is not ranking.first:
            print(
                f"  swaps     {choice.title} is the cheapest for {choice.guarantee} (cost "
                f"{shown(choice.cost)})"
            )
            print(f"            {release_command(choice.mechanism, answer.request)}")


def _print_comparisons(answer: Advice) -> None:
    from tempriv.report.plots.series import shown

    ranking, changed = answer.ranking, answer.alternative
    papers, complete = ranking.papers, ranking.once_complete
    if ranking.seen == "stream":
        print(
            f"  file      read only once complete (--as file), {complete.title} is first: cost "
            f"{shown(complete.cost)}, {complete.guarantee}"
        )
    print(f"  paper     its own strategy takes {papers.title}: cost {shown(papers.cost)}")
    if changed is not None:
        print(
            f"  values    CHANGED instead of moved, {changed.remark}: error "
            f"{shown(changed.error)}, {changed.mechanism.guarantee.loss} for any single reading, "
            f"so epsilon = {ranking.epsilon:g} for any swap"
        )


def _draw(answer: Advice, plot: Path) -> None:
    import numpy as np

    from tempriv.report.plots.advice import plot_advice
    from tempriv.utility.cost_models import SimulatedCost

    ranking = answer.ranking
    points = 13 if isinstance(answer.cost_model, SimulatedCost) else 60
    low, high = min(0.5, ranking.epsilon / 2), max(16.0, 2 * ranking.epsilon)
    epsilons = [float(epsilon) for epsilon in np.geomspace(low, high, points)]
    with progress("drawing", spinner=True) as update:
        costs = answer.costs_at(epsilons, lambda part: update(description=part))
    title = f"Hiding when within {ranking.window} time steps: {_purpose(answer.request)}"
    if answer.private:
        title = f"PRIVATE: {title}"
    save_picture(plot_advice(ranking, epsilons, costs, title), plot, answer.private)
