"""Figures 4 to 6 of the paper on release orders: budgets and costs, in theory and measured."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from tempriv.mechanisms.reorder import analysis, shares
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.shares import Shares
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.studies.common import ResultTable, Row, Section, Tables
from tempriv.studies.tldp.data import synthetic
from tempriv.studies.tldp.experiment import (
    OURS,
    THEIRS,
    TldpSize,
    latency_of,
    mechanisms,
    release,
    sources,
)
from tempriv.utility import reorder_costs
from tempriv.utility.reorder_costs import UnitCosts

RATIOS = tuple(round(0.2 * i, 1) for i in range(1, 11))  # Figures 5(a) to (c)
WINDOW, EPSILON = 20, 5.0
EPSILON_STEP = 0.05  # of budgets searched for Figure 6(c)
MAX_EPSILON = 40.0
WINDOWS_OF_RANGES = (5, 10, 20, 50, 100, 150, 200)


def unit_costs(
    window: int, missing: float = 1.0, repeated: float = 1.0, empty: float = 1.0
) -> UnitCosts:
    """As multiples of the window, a step of delay being 1 (Section V-A2).

    Parameters:
        window: in time steps.
        missing: cost of a missing reading, in windows.
        repeated: cost of a repeated one.
        empty: cost of an empty slot.
    """
    return UnitCosts(
        missing=missing * window, repeated=repeated * window, empty=empty * window, delay=1.0
    )


@functools.lru_cache(maxsize=1024)
def both(epsilon: float, window: int, steps: int) -> dict[str, tuple[Shares, Shares]]:
    """For each mechanism, what theory says and what one run of so many steps shows.

    Parameters:
        epsilon: the budget.
        window: in time steps.
        steps: of the run.
    """
    shares_of = {}
    for name, mechanism in mechanisms(epsilon, window).items():
        latency = latency_of(mechanism)
        run = sources(mechanism, 1, steps, seed=0)[0]
        margin = window + 2 * latency
        shares_of[name] = (
            mechanism.expected_shares(),
            reorder_costs.measured(run, latency, margin),
        )
    return shares_of


def threshold_cost(epsilon: float, window: int, unit: UnitCosts) -> float:
    """What a reading costs by Threshold at ``epsilon`` and ``window``, by ``unit`` costs."""
    choice = analysis.choose_threshold(epsilon, window)
    keep = analysis.keep_probability(epsilon, window, choice.threshold)
    return unit.cost(shares.threshold(window, choice.threshold, keep))


def dual_cost(epsilon: float, window: int, unit: UnitCosts) -> float:
    """What a reading costs by DualThreshold at ``epsilon``, ``window`` and ``unit`` costs."""
    choice = analysis.choose_dual(epsilon, window)
    keep = analysis.keep_probability(epsilon, window, choice.threshold)
    return unit.cost(shares.dual(window, choice.threshold, keep))


# figures


def figure_4() -> ResultTable:
    """The budget that each threshold costs; DualThreshold has the same."""
    lines = []
    for window in (10, 20, 50):
        known = analysis.budgets(window)
        for threshold, first, last, derived in zip(
            known.thresholds.tolist(), known.first, known.last, known.derived, strict=True
        ):
            delays = window - threshold, threshold - 1
            lines.append((window, threshold, float(first), float(last), float(derived), *delays))
    columns = (
        *("window", "threshold", "from_p0", "from_last", "derived_epsilon"),
        *("delay_threshold", "delay_dual"),
    )
    return ResultTable("figure-4", "Derived budget against the threshold", columns, tuple(lines))


def figure_5_ratios(steps: int) -> Iterator[ResultTable]:
    """Total cost as one of the unit costs grows, at k = 20 and epsilon 5, by runs of ``steps``."""
    shares_of = both(EPSILON, WINDOW, steps)
    for letter, varied in (("a", "missing"), ("b", "repeated"), ("c", "empty")):
        lines = []
        for ratio in RATIOS:
            unit = unit_costs(WINDOW, **{varied: ratio})
            for name, (theory, measured) in shares_of.items():
                lines.append((ratio, name, unit.cost(theory), unit.cost(measured)))
        yield ResultTable(
            f"figure-5{letter}",
            f"Total cost against the cost of a {_thing(varied)}, k = {WINDOW}, epsilon 5",
            ("ratio", "mechanism", "theory", "measured"),
            tuple(lines),
        )


def _thing(varied: str) -> str:
    return "empty slot" if varied == "empty" else f"{varied} reading"


def figure_5_windows(steps: int, windows: tuple[int, ...]) -> ResultTable:
    """Total cost for each of ``windows`` at epsilon 5, by runs of ``steps``."""
    lines = []
    for window in windows:
        unit = unit_costs(window)
        for name, (theory, measured) in both(EPSILON, window, steps).items():
            parts = (
                unit.missing * theory.missing,
                unit.repeated * theory.repeated,
                unit.empty * theory.empty,
                unit.delay * theory.delay,
            )
            lines.append((window, name, *parts, unit.cost(theory), unit.cost(measured)))
    columns = ("window", "mechanism", "missing", "repeated", "empty", "delay", "theory", "measured")
    title = "Costs against the window, epsilon 5, all relative costs 1"
    return ResultTable("figure-5d", title, columns, tuple(lines))


def figure_6_budgets(
    letter: str, window: int, steps: int, epsilons: tuple[float, ...]
) -> ResultTable:
    """Total cost against epsilon.

    Parameters:
        letter: of the figure.
        window: in time steps.
        steps: of a run.
        epsilons: the budgets.
    """
    unit, lines = unit_costs(window), []
    for epsilon in epsilons:
        extended = {
            "Threshold": Threshold(epsilon=epsilon, window=window).extended,
            "DualThreshold": DualThreshold(epsilon=epsilon, window=window).extended,
        }
        for name, (theory, measured) in both(epsilon, window, steps).items():
            drops = "yes" if extended.get(name) else "no"
            lines.append((epsilon, name, drops, unit.cost(theory), unit.cost(measured)))
    return ResultTable(
        f"figure-6{letter}",
        f"Total cost against epsilon, k = {window}, all relative costs 1",
        ("epsilon", "mechanism", "extended", "theory", "measured"),
        tuple(lines),
    )


def figure_6_ranges(windows: tuple[int, ...]) -> ResultTable:
    """Which budgets Threshold can derive, and where it, or its dual, beats the two baselines.

    Parameters:
        windows: in time steps.
    """
    epsilons = [EPSILON_STEP * i for i in range(1, int(MAX_EPSILON / EPSILON_STEP) + 1)]
    lines = []
    for window in windows:
        unit, known = unit_costs(window), analysis.budgets(window)
        least, threshold = analysis.least_epsilon(window)
        better, dual_better = [], []
        for epsilon in epsilons:
            # Backward and Forward cost the same where all relative costs are 1
            baseline = unit.cost(shares.backward(epsilon, window))
            if threshold_cost(epsilon, window, unit) < baseline:
                better.append(epsilon)
            if dual_cost(epsilon, window, unit) < min(
                baseline, threshold_cost(epsilon, window, unit)
            ):
                dual_better.append(epsilon)
        lines.append(
            (
                *(window, least, float(known.derived.max()), float(known.first[-1]), threshold),
                *(round(end, 6) for end in (better[0], better[-1])),
                *(round(end, 6) for end in (dual_better[0], dual_better[-1])),
            )
        )
    columns = (
        *("window", "least_derivable", "most_derivable", "derived_at_last_threshold"),
        *("threshold_of_least", "better_from", "better_to", "dual_best_from", "dual_best_to"),
    )
    title = "Budgets that Threshold derives, and where it costs less than the baselines"
    return ResultTable("figure-6c", title, columns, tuple(lines))


def tables(size: TldpSize) -> Iterator[ResultTable]:
    """Every table of the figures, one at a time, in a ``size``."""
    yield figure_4()
    yield from figure_5_ratios(size.steps)
    yield figure_5_windows(size.steps, size.windows)
    yield figure_6_budgets("a", 10, size.steps, size.budgets)
    yield figure_6_budgets("b", 50, size.steps, size.budgets)
    yield figure_6_ranges(WINDOWS_OF_RANGES)


# statements


def rows(tables: Tables) -> Iterator[Row]:
    """Verdicts on what the paper says of budgets and costs, from ``tables``."""
    yield from _on_budgets(tables)
    yield from _on_costs(tables)
    yield from _on_the_choice()
    yield from _on_swaps()
    yield _exact_values()


def _on_budgets(tables: Tables) -> Iterator[Row]:
    section = Section("Budgets that Threshold derives (Section IV-D, Fig. 4; Section V-B, Fig. 6)")
    windows = range(3, 201)
    turns = sum(_falls_then_rises(analysis.budgets(k).derived.tolist()) for k in windows)
    how = "order_theory.budgets, k = 3 to 200"
    what = "share of windows where it falls, then rises"
    yield section.holds(what, 1, turns / len(windows), how)
    ranges = tables["figure-6c"]
    for window, printed in ((10, 10.0), (50, 16.0)):
        line = ranges.where(window=window)[0]
        what = f"the most that any threshold derives, k = {window}"
        yield section.fails(what, printed, line["most_derivable"], "2 ln(2^(k-2) - 1), at c0 = 2")
        what = f"what the last threshold derives, k = {window}"
        yield section.ours(
            what, line["derived_at_last_threshold"], "2 ln((k-1)(k-2)/2), at c0 = k - 1"
        )
        what = f"Threshold costs less than the baselines up to, k = {window}"
        yield section.ours(what, line["better_to"], "M = N = E = k, D = 1")
    line = ranges.where(window=200)[0]
    how = "M = N = E = k, D = 1, steps of 0.05"
    what = "Threshold costs less than the baselines from, k = 200"
    yield section.holds(what, 2.5, line["better_from"], how, 0.011)
    what = "the least that any threshold derives, k = 200"
    yield section.ours(what, line["least_derivable"], "least_epsilon(200)")
    printed_sum = printed_first(50, 2)
    how = "Theorem 4.2 as printed, in double precision"
    yield section.ours("p0 at k = 50, c0 = 2, alternating sum", printed_sum, how)
    stable = float(analysis.dispatch(50, 2)[0])
    yield section.ours("p0 at k = 50, c0 = 2", stable, "order_theory.dispatch(50, 2)")


def _falls_then_rises(values: list[float]) -> bool:
    """Weakly: at k = 4 both thresholds cost the same."""
    low = values.index(min(values))
    steps = np.diff(values)
    return bool((steps[:low] <= 0).all() and (steps[low:] >= 0).all())


def printed_first(window: int, threshold: int) -> float:
    """p_0 by the alternating sum of Lemma 4.1, which cancels in floating point.

    Parameters:
        window: in time steps.
        threshold: how many slots are free at least.

    >>> round(printed_first(10, 5), 9) == round(float(analysis.dispatch(10, 5)[0]), 9)
    True
    """

    @functools.cache
    def taken(k: int, m: int) -> float:
        """The chance that the first slot is taken, by Lemma 4.1 for ``k`` and ``m``."""
        if m == 1:
            return 2 / k
        total = 0.0
        for count in range(1, m + 1):
            term = (-1 / threshold) ** count
            for i in range(1, count + 2):
                term *= (k - i) / i
            for i in range(1, count):
                term *= taken(k - i, m - i)
            total += term
        return m / (1 - total)

    return 1 - taken(window, window - threshold)


def _on_costs(tables: Tables) -> Iterator[Row]:
    section = Section("Costs (Section V-B, Figs. 5 and 6)")
    for letter in "abc":
        table = tables[f"figure-5{letter}"]
        wins = sum(_cheapest(table, THEIRS, ratio=ratio) == "Threshold" for ratio in RATIOS)
        what = f"Fig. 5({letter}): share of ratios at which Threshold is the cheapest of three"
        yield section.holds(what, 1, wins / len(RATIOS), "k = 20, epsilon 5")
    same = max(
        abs(b - f)
        for b, f in zip(
            tables["figure-5a"].column("theory", mechanism="Backward"),
            tables["figure-5a"].column("theory", mechanism="Forward"),
            strict=True,
        )
    )
    what = "Fig. 5(a): largest difference between Backward and Forward"
    yield section.holds(what, 0, same, "costs.backward, costs.forward")
    table = tables["figure-5d"]
    windows = sorted(set(table.column("window")))
    wins = sum(_cheapest(table, THEIRS, window=window) == "Threshold" for window in windows)
    what = "Fig. 5(d): share of windows at which Threshold is the cheapest of three"
    yield section.holds(what, 1, wins / len(windows), "epsilon 5, k = 10 to 160")
    ours = sum(_cheapest(table, (*THEIRS, *OURS), window=window) in OURS for window in windows)
    what = "Fig. 5(d): share of windows at which one of ours costs less than all of them"
    yield section.ours(what, ours / len(windows), "DualThreshold; at k = 10 as much")
    table = tables["figure-6a"]
    wins = int(_cheapest(table, THEIRS, epsilon=1.0) == "Threshold")
    what = "Fig. 6(a): Threshold is cheaper than the baselines at k = 10, epsilon 1"
    yield section.holds(what, 0, wins, "0 is no")
    far = max(
        abs(line["measured"] - line["theory"]) / line.get("window", window)
        for name, window in (
            *(("figure-5a", WINDOW), ("figure-5b", WINDOW), ("figure-5c", WINDOW)),
            *(("figure-5d", 0), ("figure-6a", 10), ("figure-6b", 50)),
        )
        for line in tables[name].where()
    )
    what = "measured costs differ from theory by at most, in parts of the window"
    yield section.ours(what, far, "one run each", at_most=0.02)


def _cheapest(table: ResultTable, among: tuple[str, ...], **where: float) -> str:
    lines = [line for line in table.where(**where) if line["mechanism"] in among]
    return str(min(lines, key=lambda line: float(line["theory"]))["mechanism"])


def _on_the_choice() -> Iterator[Row]:
    section = Section("Algorithm 2: share of settings in which it finds the threshold it looks for")
    feasible = right = extended = right_extended = 0
    for window in range(4, 101):
        for half in range(1, 41):
            epsilon = half / 2
            best = analysis.choose_threshold(epsilon, window)
            agrees = analysis.algorithm_2(epsilon, window) == best
            if best.extended:
                extended, right_extended = extended + 1, right_extended + agrees
            else:
                feasible, right = feasible + 1, right + agrees
    how = "k = 4 to 100, epsilon 0.5 to 20, against all thresholds"
    what = f"where one keeps the budget ({feasible:,} settings)"
    yield section.fails(what, 1, right / feasible, how)
    what = f"where readings must be dropped ({extended:,} settings)"
    yield section.fails(what, 1, right_extended / extended, how)


def _on_swaps() -> Iterator[Row]:
    section = Section("Definition 2.2, two neighboring readings trade places, k = 10, epsilon 5")
    for mechanism in (
        Backward(epsilon=EPSILON, window=10),
        Forward(epsilon=EPSILON, window=10),
        Threshold(epsilon=EPSILON, window=10),
    ):
        name = type(mechanism).__name__
        what = f"{name}: chance of an output that the other order cannot give"
        yield section.fails(what, 0, mechanism.loss_at(1).delta, f"{name}.loss_at(1)")


def _exact_values() -> Row:
    """What comes out is what went in."""
    values = synthetic(20_000)
    changed = 0
    for mechanism in mechanisms(EPSILON, WINDOW).values():
        pairs = np.stack([values, np.arange(len(values))], axis=1)[None]
        moved = release(mechanism, pairs, seed=1)[0].compressed().reshape(-1, 2)
        changed += int((values[moved[:, 1]] != moved[:, 0]).sum())
    what = "released values that differ from the reading they came from"
    how = "SyntheticTS, six mechanisms"
    return Section("Values are kept exact").ours(what, changed, how, at_most=0)
