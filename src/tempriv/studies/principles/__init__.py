"""The principles of differential privacy for time series: every number of the paper again.

The source is the chapter "Principles and Mechanisms" on differentially private time series, whose
running example is a smart building observed for a day of 1,440 minutes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tempriv.accounting import composition
from tempriv.accounting.loss_distribution import GaussianRelease, LaplaceRelease, Plan
from tempriv.audit import exact
from tempriv.audit.attacks import value as attacks
from tempriv.mechanisms.counting.running_count import RunningCount
from tempriv.mechanisms.sparse_vector import SparseVector
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy.sensitivity import occupancy, running_count, sensitivity
from tempriv.privacy.units.contribution import Contribution
from tempriv.privacy.units.replacement import Event, WholeSeries
from tempriv.studies import common
from tempriv.studies.common import Row, Section, Verdict
from tempriv.studies.principles.sparse_vector import sparse_vector_loss

MINUTES = 1440
EACH, EACH_DELTA, SLACK = 0.05, 1e-8, 1e-7
TITLE = "Principles of differential privacy for time series, checked"

REMARKS = (
    "One sentence of the paper is wrong: that the loss of an (epsilon, delta) private release "
    "lies within epsilon with probability 1 - delta. What holds is Pr[loss > epsilon + t] <= "
    "delta / (1 - e^-t) for every t > 0, and nothing follows for t = 0.",
    "The example of advanced composition is right, and no longer the best: optimal composition "
    "gives 11.16 for the same releases, and 1.63 if it is known that the noise is Gaussian.",
    "The factor two in the noise of the sparse vector technique is critical, as the paper says: "
    "sensitivity / epsilon_1 is enough only where all values change the same way (counts). In "
    "general c alerts then cost epsilon_0 + 2 c epsilon_1, here half as much again.",
    "The sensitivities, the total-variation bound and randomized response hold as printed, to the "
    "last digit. Renyi composition and the immunity of post-processing hold; for the first a "
    "sharper conversion is known.",
)


def sensitivities() -> Iterator[Row]:
    section = Section("Sensitivity, a day of 1,440 minutes")
    event, user = Contribution(Event()), Contribution(WholeSeries(MINUTES))
    day = MINUTES
    for name, query, unit, first, second in (
        ("occupancy, one event", occupancy, event, 1, None),
        ("occupancy, one user", occupancy, user, day, None),
        ("running count, one event", running_count, event, None, None),
        (
            "running count, one user",
            running_count,
            user,
            day * (day + 1) / 2,
            math.sqrt(day * (day + 1) * (2 * day + 1) / 6),
        ),
    ):
        bounds = sensitivity(query, unit, MINUTES)
        how = f"sensitivity({query.__name__}, {type(unit.each).__name__})"
        for norm, published, ours in (("L1", first, bounds.l1), ("L2", second, bounds.l2)):
            verdict: Verdict = "ours" if published is None else "holds"
            yield section.row(f"{name}, {norm}", published, ours, verdict, how)


def compositions() -> Iterator[Row]:
    section = Section("1,440 releases of epsilon 0.05, delta 1e-8")
    summed = composition.basic(EACH, EACH_DELTA, MINUTES)
    yield section.holds("epsilon by sum", 72, summed.epsilon, "basic")
    yield section.holds("delta by sum", 1.44e-5, summed.delta, "basic")
    advanced = composition.advanced(EACH, EACH_DELTA, MINUTES, SLACK)
    sharper: Verdict = "holds, sharper is known"
    yield section.row("epsilon, advanced", 14.46, advanced.epsilon, sharper, "advanced", 5e-4)
    yield section.holds("its delta", 1.45e-5, advanced.delta, "advanced")
    delta = advanced.delta
    best = composition.optimal(EACH, EACH_DELTA, MINUTES, delta)
    yield section.ours("epsilon, optimal", best.epsilon, "optimal")
    pure = composition.optimal(EACH, 0.0, MINUTES, delta)
    yield section.ours("epsilon, optimal, pure releases", pure.epsilon, "optimal")
    laplace = composition.exact({LaplaceRelease(1 / EACH): MINUTES}, delta)
    yield section.ours("epsilon, Laplace noise", laplace.epsilon, "exact")
    noise = composition.gaussian_noise(EACH, EACH_DELTA)
    plan: Plan = {GaussianRelease(noise): MINUTES}
    how = f"Gaussian, sigma = {noise:.2f} sensitivities"
    classic = composition.renyi(plan, delta, "classic")
    yield section.ours("epsilon, Gaussian noise, by Renyi as printed", classic.epsilon, how)
    yield section.ours("its best order", classic.order or 0.0, how)
    sharp = composition.renyi(plan, delta)
    yield section.ours("epsilon, Gaussian noise, by Renyi, sharper", sharp.epsilon, how)
    yield section.ours(
        "epsilon, Gaussian noise, exact", composition.exact(plan, delta).epsilon, how
    )
    yield Section("Sums of pure releases").holds(
        "most releases of epsilon 0.05 within epsilon 1",
        20,
        max(n for n in range(1, 100) if composition.basic(EACH, 0.0, n).epsilon <= 1 + 1e-12),
        "basic",
    )


def meanings() -> Iterator[Row]:
    section = Section("What an epsilon means")
    epsilon, delta, margin = 1.0, 1e-5, 0.5
    noise = composition.gaussian_noise(epsilon, delta)
    above = composition.gaussian_loss_above(noise, epsilon)
    how = "a Gaussian of exactly (1, 1e-5)"
    yield section.fails("Pr[loss > 1]: at most delta?", delta, above, how)
    what = "Pr[loss > 1.5], the corrected bound"
    yield section.ours(what, composition.tail_bound(delta, margin), "tail_bound(1e-5, margin=0.5)")
    beyond = composition.gaussian_loss_above(noise, epsilon + margin)
    yield section.ours("Pr[loss > 1.5], of that Gaussian", beyond, how)
    printed = (math.e - 1) / (math.e + 1) * (1 - delta) + delta
    what = "total variation at (1, 1e-5)"
    yield section.holds(what, printed, composition.advantage(epsilon, delta), "advantage(1, 1e-5)")
    _, high = composition.odds_after(1.0, epsilon)
    yield section.holds("even odds after epsilon 1", math.e, high, "odds_after(1, 1)")


def local_answers() -> Iterator[Row]:
    section = Section("Randomized response")
    for epsilon in (0.5, 1.0, 2.0):
        mechanism = RandomizedResponse(epsilon=epsilon, categories=(("no", "yes"),))
        keep = math.exp(epsilon) / (1 + math.exp(epsilon))
        what = f"chance of the truth at epsilon {epsilon:g}"
        yield section.holds(what, keep, 1 - mechanism.errors[0], "RandomizedResponse.errors")
        loss = exact.audit(mechanism, (0, 1), 3).found
        how = "all outcomes enumerated"
        yield section.holds(f"loss at epsilon {epsilon:g}", epsilon, loss, how)


def alerts() -> Iterator[Row]:
    section = Section("Sparse vector, epsilon_0 = 0.5, epsilon_1 = 0.25, 2 alerts")
    right = sparse_vector_loss(0.5, 0.25, 2, factor=2.0)
    yield section.holds("loss, noise 2 / epsilon_1", 1.0, right, "quadrature", 1e-4)
    wrong = sparse_vector_loss(0.5, 0.25, 2, factor=1.0)
    how = "quadrature, values that change both ways"
    yield section.ours("loss, noise 1 / epsilon_1", wrong, how)
    small = SparseVector(
        epsilon=1.0,
        bounds=((0, 1),),
        threshold=1,
        most=2,
        grid=1,
        threshold_share=0.5,
        unit=WholeSeries(4),
    )
    loss = exact.audit(small, (0, 1), 4, 1e-9).found
    yield section.ours("loss on 4 steps, enumerated", loss, "audit.exact")


def counts() -> Iterator[Row]:
    section = Section("Running counts over 1,440 steps, one event, mean squared error")
    tree: dict[str, Any] = {"method": "tree", "branching": 2}
    for name, settings in (
        ("Gaussian, noisy increments", {"rho": 0.5, "method": "increments"}),
        ("Gaussian, binary tree", {"rho": 0.5, **tree}),
        ("Gaussian, square root", {"rho": 0.5, "method": "square-root"}),
        ("Laplace, noisy increments", {"epsilon": 1.0, "method": "increments"}),
        ("Laplace, binary tree", {"epsilon": 1.0, **tree}),
        ("Laplace, 12-ary tree", {"epsilon": 1.0, **tree, "branching": 12}),
    ):
        arguments = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        # on a fine grid, as if counts were real numbers
        mechanism = RunningCount(
            bounds=((0, 1),), unit=Contribution(), horizon=MINUTES, grid=2.0**-6, **settings
        )
        ours = mechanism.errors[0] ** 2
        yield section.ours(name, ours, f"RunningCount({arguments})")
    whole = RunningCount(
        bounds=((0, 1),), unit=Contribution(), horizon=MINUTES, epsilon=1.0, method="increments"
    )
    what = "Laplace, noisy increments, noise in whole numbers"
    yield section.ours(what, whole.errors[0] ** 2, "RunningCount(epsilon=1.0, method='increments')")


def afterwards() -> Iterator[Row]:
    section = Section("Post-processing: an observer who knows the model of the data")
    length, epsilon = 24, 1.0
    mechanism = Laplace(epsilon=epsilon, bounds=((0, 1),), unit=WholeSeries(length))
    model = attacks.Autoregression(mean=0.5, persistence=0.95, spread=0.05)
    denoised = attacks.denoise(mechanism, model, (0.0, 1.0))
    how = f"denoise, {denoised.observers[0].trials:,} trials"
    cap = denoised.cap_series
    for observer in denoised.observers:
        yield section.ours(f"success of {observer.name}", observer.rate, how, at_most=cap)
    yield section.ours("most that the guarantee allows", cap, how)
    yield section.ours("error of released values", denoised.error_released, how)
    yield section.ours("error after de-noising", denoised.error_denoised, how)


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "sensitivity": sensitivities,
    "composition": compositions,
    "meaning": meanings,
    "randomized response": local_answers,
    "sparse vector": alerts,
    "running counts": counts,
    "post-processing": afterwards,
}


def study(progress: Callable[[str], None] = lambda part: None) -> list[Row]:
    """All rows, part by part.

    Parameters:
        progress: called with the name of the part that begins.
    """
    rows: list[Row] = []
    for name, part in PARTS.items():
        progress(name)
        rows += part()
    return rows


def write(folder: Path, rows: Sequence[Row]) -> list[Path]:
    """The table, a page to read, and the picture of it.

    Parameters:
        folder: where to.
        rows: the verdicts.
    """
    return [
        *common.write_rows(folder, "principles", TITLE, REMARKS, rows),
        common.write_picture(folder / "principles.png", picture(rows)),
    ]


def picture(rows: Sequence[Row]) -> Any:
    """What a day of releases costs, and how wrong running counts are, drawn from ``rows``."""
    from tempriv.report.plots.series import figure_class

    left = [r for r in rows if r.what.startswith("epsilon") and r.section.startswith("1,440")]
    right = [r for r in rows if r.section.startswith("Running counts") and "whole" not in r.what]
    figure = figure_class()(figsize=(8, 6.4), layout="constrained")
    axes = figure.subplots(2, 1)
    for axis, part, title, unit in (
        (axes[0], left, "1,440 releases of epsilon 0.05, delta 1e-8 together", "epsilon"),
        (axes[1], right, "Running count over 1,440 steps, rho 0.5 or epsilon 1", "squared error"),
    ):
        names = [row.what.removeprefix("epsilon").strip(" ,") for row in part][::-1]
        values = [row.ours for row in part][::-1]
        # points, since lengths say nothing on a logarithmic axis
        axis.hlines(names, min(values) / 1.3, values, color="#c8c8c8", linewidth=1)
        axis.plot(values, names, "o", color="#1f5fa8")
        for value, name in zip(values, names, strict=True):
            text = common.format_number(round(value, 2))
            axis.annotate(text, (value, name), (7, 0), textcoords="offset points", va="center")
        axis.set_xscale("log")
        axis.set_xlim(min(values) / 1.3, max(values) * 1.6)
        axis.set_xlabel(f"{unit} (logarithmic; further left is better)")
        axis.set_title(title, loc="left")
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
    return figure
