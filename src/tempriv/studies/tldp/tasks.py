"""Figure 7 and Table II of the paper on release orders: counts, averages and groups of taxis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.audit.attacks.order import try_order
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.studies.common import ResultTable, Row, Section, Tables, mean_and_error
from tempriv.studies.tldp.data import Stock, TldpInputs, synthetic
from tempriv.studies.tldp.experiment import (
    THEIRS,
    TldpSize,
    as_it_comes,
    in_slots,
    latency_of,
    mechanisms,
    release,
    sources,
)
from tempriv.utility import reorder_costs
from tempriv.utility.tasks import (
    average_error,
    count_error,
    distances,
    k_medoids,
    mean_square,
    moving_average,
    mutual_information,
    running_count,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

WINDOW = 10
EPSILONS = tuple(float(epsilon) for epsilon in range(1, 9))
GROUPS = 6
LIVE, LATER = "as it comes out", "once it is out"
RESPONSE, CORRECTED = "RandomizedResponse", "RandomizedResponse, corrected"

# where delays should matter less: over more steps, and of values without a trend
OTHER_AVERAGES = {
    "averages-close-100": ("the close", 100),
    "averages-synthetic-10": ("SyntheticTS", 10),
    "averages-synthetic-100": ("SyntheticTS", 100),
}

# Table II, the columns epsilon = 1 .. 8
PUBLISHED = {
    "Laplace": (0.003, 0.003, 0.004, 0.005, 0.006, 0.005, 0.006, 0.007),
    "Threshold": (0.572, 0.590, 0.610, 0.616, 0.699, 0.705, 0.706, 0.768),
}


def value_budget(epsilon: float) -> float:
    """What each value may cost on its own, so that a swap of two costs epsilon (Theorem 2.3)."""
    return epsilon / 2


def _errors(
    epsilon: float, values: npt.NDArray[Any], runs: int, error: Callable[[Any], float]
) -> Iterator[tuple[str, str, Floats]]:
    """For every order mechanism, and both ways to look at those that hold rows back."""
    for name, mechanism in mechanisms(epsilon, WINDOW).items():
        arrived = sources(mechanism, runs, len(values), seed=2)
        latency = latency_of(mechanism)
        views = [(LIVE, as_it_comes(arrived, latency))] + ([(LATER, arrived)] if latency else [])
        for view, slots in views:
            yield name, view, np.array([error(run) for run in in_slots(values, slots)])


def _line(epsilon: float, name: str, view: str, errors: Floats) -> tuple[Any, ...]:
    return epsilon, name, view, *mean_and_error(errors)


COLUMNS = ("epsilon", "mechanism", "seen", "squared_error", "standard_error")


def figure_7a(stock: Stock, runs: int) -> ResultTable:
    """Running counts of the days that went up.

    Parameters:
        stock: with its days that went up.
        runs: how many runs.
    """
    up, lines = stock.up, []
    truth, days = running_count(up, 1), np.arange(1, len(up) + 1)
    for epsilon in EPSILONS:
        for name, view, errors in _errors(epsilon, up, runs, lambda run: count_error(up, run, 1)):
            lines.append(_line(epsilon, name, view, errors))
        response = RandomizedResponse(epsilon=value_budget(epsilon), categories=(("not up", "up"),))
        reported = release(response, np.repeat(up[None], runs, axis=0), seed=2)
        counts = [running_count(answers, 1) for answers in reported]
        # each day is turned round with this probability, whatever it was
        turned = response.errors[0]
        corrected = [(count - turned * days) / (1 - 2 * turned) for count in counts]
        for name, series in ((RESPONSE, counts), (CORRECTED, corrected)):
            errors = np.array([mean_square(count - truth) for count in series])
            lines.append(_line(epsilon, name, LIVE, errors))
    title = f"Squared error of the running count of up-days, k = {WINDOW}"
    return ResultTable("figure-7a", title, COLUMNS, tuple(lines))


def averages(name: str, of: str, values: Floats, runs: int, length: int) -> ResultTable:
    """Moving averages over so many steps; in Figure 7(c) as many as the window has.

    Parameters:
        name: of the table.
        of: what is averaged.
        values: one for each step.
        runs: how many runs.
        length: steps of an average.
    """
    lines = []
    for epsilon in EPSILONS:
        for mechanism, view, errors in _errors(
            epsilon, values, runs, lambda run: average_error(values, run, length)
        ):
            lines.append(_line(epsilon, mechanism, view, errors))
        noisy = Laplace(
            epsilon=value_budget(epsilon), bounds=((float(values.min()), float(values.max())),)
        )
        added = release(noisy, np.repeat(values[None], runs, axis=0), seed=2)
        errors = np.array([average_error(values, run, length) for run in added])
        lines.append(_line(epsilon, "Laplace", LIVE, errors))
    title = f"Squared error of the moving average of {of} over {length} steps, k = {WINDOW}"
    return ResultTable(name, title, COLUMNS, tuple(lines))


def figure_7_ratios(
    name: str, baseline: str, unit: reorder_costs.UnitCosts, measured: ResultTable
) -> ResultTable:
    """How many times as wrong the baseline is: as the unit costs of Section II-D say, and really.

    In powers of ten; 0 is where both are as good.

    Parameters:
        name: of the table.
        baseline: the mechanism that Threshold is compared with.
        unit: the paper's costs.
        measured: the table of errors.
    """
    lines = []
    for epsilon in EPSILONS:
        made = mechanisms(epsilon, WINDOW)
        predicted = [
            unit.cost(made[mechanism].expected_shares()) for mechanism in (baseline, "Threshold")
        ]
        errors = [
            measured.column("squared_error", epsilon=epsilon, mechanism=mechanism, seen=LIVE)[0]
            for mechanism in (baseline, "Threshold")
        ]
        lines.append(
            (
                epsilon,
                *(
                    float(np.log10(error / error_of_threshold))
                    for error, error_of_threshold in (predicted, errors)
                ),
            )
        )
    title = f"{baseline} against Threshold: logarithm of the ratio of squared errors"
    columns = ("epsilon", "predicted", "measured")
    return ResultTable(name, title, columns, tuple(lines))


def counting_costs(stock: Stock) -> reorder_costs.UnitCosts:
    """M, N, E and D of Section II-D, case 1, for this stock."""
    share = float(stock.up.mean())
    return reorder_costs.counting_costs(share, 1 - share, len(stock.up), WINDOW)


def average_costs(stock: Stock) -> reorder_costs.UnitCosts:
    """Case 2, for a ``stock``: the spread of the closes about the mean of their neighborhood."""
    near = moving_average(stock.close, WINDOW).data
    squares = moving_average(stock.close**2, WINDOW).data
    return reorder_costs.average_costs(0.0, float(np.mean(squares - near**2)), WINDOW, WINDOW)


def table_2(taxis: Floats, runs: int) -> ResultTable:
    """How much groups of released trajectories have in common with groups of the true ones.

    Parameters:
        taxis: of shape (segments, steps, 2).
        runs: how many runs.
    """
    truth = k_medoids(distances(taxis), GROUPS).labels
    ends = np.stack([taxis.min(axis=(0, 1)), taxis.max(axis=(0, 1))], axis=1)
    lines = []
    for epsilon in EPSILONS:
        noisy = Laplace(
            epsilon=value_budget(epsilon),
            bounds=tuple((float(low), float(high)) for low, high in ends),
            per_column=True,
        )
        for name, mechanism in {
            "Laplace": noisy,
            **mechanisms(epsilon, WINDOW, whole=True),
        }.items():
            agreements = []
            for seed in range(runs):
                moved = release(mechanism, taxis, seed)
                groups = k_medoids(distances(moved), GROUPS).labels
                agreements.append(mutual_information(truth, groups))
            printed = PUBLISHED[name][int(epsilon) - 1] if name in PUBLISHED else None
            scores = np.array(agreements)
            lines.append((epsilon, name, printed, float(scores.mean()), float(np.ptp(scores))))
    columns = ("epsilon", "mechanism", "published", "ours", "range")
    title = f"Mutual information of groups of {len(taxis):,} taxi segments, normalized"
    return ResultTable("table-2", title, columns, tuple(lines))


def restored(stock: Stock, steps: int) -> ResultTable:
    """What sorting restores: of a counter, and of a stock that goes up and down.

    Parameters:
        stock: with its closes.
        steps: how many are sorted.
    """
    kinds = {"counter": np.arange(float(steps)), "close": stock.close[:steps]}
    lines = []
    for epsilon in (0.5, 1.0, 3.0, 5.0, 10.0):
        for name, mechanism in mechanisms(epsilon, WINDOW).items():
            for kind, values in kinds.items():
                restored_shares = try_order(mechanism, values)
                lines.append(
                    (
                        epsilon,
                        name,
                        kind,
                        restored_shares.before,
                        restored_shares.sorted,
                        restored_shares.informed,
                    )
                )
    columns = ("epsilon", "mechanism", "values", "before", "sorted", "informed")
    title = f"Share of released steps restored by sorting, k = {WINDOW}"
    return ResultTable("restored-order", title, columns, tuple(lines))


def tables(inputs: TldpInputs, size: TldpSize) -> Iterator[ResultTable]:
    """Every table of the tasks, from ``inputs``, in a ``size``."""
    stock, runs = inputs.stock, size.runs
    counts = figure_7a(stock, runs)
    yield counts
    yield figure_7_ratios("figure-7b", "Backward", counting_costs(stock), counts)
    short = averages("figure-7c", "the close", stock.close, runs, WINDOW)
    yield short
    yield figure_7_ratios("figure-7d", "Forward", average_costs(stock), short)
    even = synthetic(len(stock.close)).astype(np.float64)
    for name, (of, length) in OTHER_AVERAGES.items():
        values = stock.close if of == "the close" else even
        yield averages(name, of, values, max(1, runs // 2), length)
    yield table_2(inputs.taxis[: size.segments], size.groupings)
    yield restored(stock, size.attacked)


# statements


def rows(tables: Tables) -> Iterator[Row]:
    """Verdicts on what the paper says of tasks, from ``tables``."""
    yield from _on_counts(tables)
    yield from _on_averages(tables)
    yield from _on_groups(tables["table-2"])
    yield from _on_restoring(tables["restored-order"])


def _wins(table: ResultTable, better: str, others: tuple[str, ...]) -> int:
    """At how many budgets one of them is less wrong than all others."""

    def error(epsilon: float, name: str) -> float:
        """The error of a mechanism's ``name`` at an ``epsilon``."""
        return float(table.column("squared_error", epsilon=epsilon, mechanism=name, seen=LIVE)[0])

    return sum(
        all(error(epsilon, better) < error(epsilon, other) for other in others)
        for epsilon in EPSILONS
    )


def _on_counts(tables: Tables) -> Iterator[Row]:
    section = Section("Counting up-days, budgets 1 to 8 (Section V-C1, Fig. 7(a) and (b))")
    table, how = tables["figure-7a"], "figure-7a.csv"
    wins = _wins(table, "Threshold", ("Backward", "Forward", RESPONSE))
    what = "budgets of 8 at which Threshold is better than the other three (the paper: most)"
    yield section.ours(what, wins, how)
    wins = _wins(table, "Threshold", ("Backward", "Forward", CORRECTED))
    what = "the same if randomized response is corrected for what it turns round"
    yield section.ours(what, wins, how)
    wins = _wins(table, "Backward", ("Forward",))
    what = "share of budgets at which Backward is better than Forward"
    yield section.holds(what, 1, wins / len(EPSILONS), how)
    ratios = tables["figure-7b"].where()
    for column in ("predicted", "measured"):
        wins = sum(line[column] > 0 for line in ratios)
        what = f"budgets of 8 at which Threshold is better than Backward, {column}"
        yield section.ours(what, wins, "figure-7b.csv")


def _on_averages(tables: Tables) -> Iterator[Row]:
    section = Section(
        "Moving averages of the close, budgets 1 to 8 (Section V-C2, Fig. 7(c) and (d))"
    )
    table, how = tables["figure-7c"], "figure-7c.csv"
    wins = min(_wins(table, name, ("Laplace",)) for name in THEIRS)
    what = "share of budgets at which each of the three is better than Laplace"
    yield section.holds(what, 1, wins / len(EPSILONS), how)
    wins = _wins(table, "Forward", ("Backward",))
    what = "share of budgets at which Forward is better than Backward"
    yield section.holds(what, 1, wins / len(EPSILONS), how)
    wins = _wins(table, "Threshold", ("Backward", "Forward", "Laplace"))
    what = "budgets of 8 at which Threshold is the best (the paper: most)"
    yield section.ours(what, wins, how)
    for other, (of, length) in OTHER_AVERAGES.items():
        wins = _wins(tables[other], "Threshold", ("Backward", "Forward", "Laplace"))
        what = f"the same for {of} over {length} steps"
        yield section.ours(what, wins, f"{other}.csv")
    predicted = sum(line["predicted"] > 0 for line in tables["figure-7d"].where())
    what = "budgets at which the paper's unit costs say that Threshold is better than Forward"
    yield section.ours(what, predicted, "figure-7d.csv")
    ratios = tables["figure-7d"].where()
    far = max(abs(line["predicted"] - line["measured"]) for line in ratios)
    what = "largest gap between predicted and measured ratio, as a factor"
    yield section.ours(what, 10**far, "figure-7d.csv")


def _on_groups(table: ResultTable) -> Iterator[Row]:
    section = Section("Groups of taxis, budgets 1 to 8 (Section V-C3, Table II)")

    def of(name: str) -> list[float]:
        """The scores of a mechanism's ``name``, by budget."""
        return [float(score) for score in table.column("ours", mechanism=name)]

    wins = sum(a > b for a, b in zip(of("Threshold"), of("Laplace"), strict=True))
    what = "share of budgets at which Threshold keeps more of the groups than Laplace"
    yield section.holds(what, 1, wins / len(EPSILONS), "table-2.csv")
    for name in table.unique("mechanism"):
        scores = of(name)
        what = f"{name}, mean over the budgets"
        how = "other taxis than the paper's: compare rows, not numbers"
        yield section.ours(what, float(np.mean(scores)), how)


def _on_restoring(table: ResultTable) -> Iterator[Row]:
    section = Section("A counter is sorted back, k = 10, epsilon 0.5 to 10")
    for name in table.unique("mechanism"):
        lines = table.where(mechanism=name, values="counter")
        for column, kind in (("before", "in place before"), ("informed", "restored")):
            least = min(line[column] for line in lines)
            what = f"{name}: share of steps {kind}, least"
            yield section.ours(what, least, "try_order")
