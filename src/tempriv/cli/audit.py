"""``tempriv audit``: does a mechanism keep what it guarantees?"""

from __future__ import annotations

import itertools
import json
from typing import Annotated, Any

import typer

from tempriv.cli._options import Json, KeySeed
from tempriv.cli._output import counting
from tempriv.cli.app import app
from tempriv.cli.mechanism_options import MechanismOptions, with_mechanism_options
from tempriv.errors import require

HELP = (
    "Check a guarantee by running the mechanism itself.\n\n"
    "Every outcome is enumerated where that is possible, on a coarse grid if need be. Otherwise, "
    "and with --statistical, many runs give a lower bound on the loss. Ends with status 1 if the "
    "claim is broken."
)


def _audit(
    choice: MechanismOptions,
    statistical: Annotated[
        bool,
        typer.Option("--statistical", help="Run it many times, even where it can be enumerated."),
    ] = False,
    runs: Annotated[
        int | None, typer.Option(help="How many times to run it; a million by default.")
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(help="How sure to be before a claim is called broken; 0.999 by default."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Readings in a series; what the guarantee needs by default.")
    ] = None,
    max_series_per_person: Annotated[
        int | None, typer.Option(metavar="N", help="The most series that one person has.")
    ] = None,
    key_seed: KeySeed = None,
    as_json: Json = False,
) -> None:
    """Check a guarantee by running the mechanism itself."""
    from tempriv.audit import cases, exact
    from tempriv.audit import statistical as by_runs
    from tempriv.sampling.keys import Key

    by_rho = choice.kind.command.noise != "laplace"
    require(
        choice.epsilon is not None or choice.rho is not None,
        "give the budget to audit: --epsilon" + " or --rho" * by_rho,
    )
    require(steps is None or steps >= 1, f"--steps {steps}: must be >= 1")
    choice.name_columns()
    mechanism = choice.make(max_series_per_person)
    result: dict[str, Any] = {}
    small = None if statistical else cases.small_case(mechanism, steps)
    if small is not None:
        for flag, option in (("runs", runs), ("confidence", confidence), ("key-seed", key_seed)):
            require(option is None, f"--{flag}: goes with --statistical; this case is enumerated")
        with counting("enumerating"):
            verdict: Any = exact.audit(small.mechanism, small.alphabet, small.length, small.tail)
        result |= {"method": "exact", "grid": small.grid, "steps": small.length}
    else:
        pairs = cases.worst_pairs(mechanism, steps)
        total = by_runs.RUNS if runs is None else runs
        with counting(f"{total:,} runs", total) as progress:
            verdict = by_runs.audit(
                mechanism,
                pairs=pairs,
                runs=total,
                confidence=by_runs.CONFIDENCE if confidence is None else confidence,
                key=None if key_seed is None else Key.from_seed(key_seed),
                progress=progress,
            )
        result |= {"method": "statistical", "runs": total, "confidence": verdict.confidence}
        result |= {"p_value": verdict.p_value, "statistic": verdict.statistic}
    for name in ("measure", "claimed", "found", "delta", "pairs", "worst", "holds"):
        result[name] = getattr(verdict, name)
    _print(mechanism, result, as_json)
    if not verdict.holds:
        raise typer.Exit(1)


def _print(mechanism: Any, result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        from tempriv.privacy import serialization

        about = {
            "mechanism": serialization.encode(mechanism),
            "claim": serialization.encode(mechanism.guarantee),
        }
        print(json.dumps({**about, **result}))
        return
    print(f"{type(mechanism).__name__}: {_method(mechanism, result)}")
    print(f"  claim     {mechanism.guarantee.sentence}")
    exact = result["method"] == "exact"
    loss = (
        f"{result['measure']} = {result['found']:.6g}"
        if exact
        else (
            f"{result['measure']} at least {result['found']:.4g} with confidence "
            f"{100 * result['confidence']:.6g} %"
        )
    )
    print(
        f"  bound     {loss}, over {result['pairs']} neighboring pair{'s'[: result['pairs'] != 1]}"
    )
    if result["worst"] is not None:
        first, second = result["worst"]
        print(f"  worst     {_shown(first)} against {_shown(second)}")
    good = "holds on this case" if exact else "consistent with the claim"
    sure = "" if exact else f" (p-value {_below(result['p_value'])})"
    print(f"  verdict   {good if result['holds'] else 'CLAIM BROKEN' + sure}")


def _method(mechanism: Any, result: dict[str, Any]) -> str:
    if result["method"] == "statistical":
        return f"lower bound on the loss from {result['runs']:,} runs"
    steps = f"{result['steps']} reading{'s'[: result['steps'] != 1]}"
    if result["grid"] is None:
        return f"exact, every outcome of {steps} enumerated"
    return (
        f"exact, every outcome of {steps} enumerated on a grid of {_sizes(result['grid'])} instead "
        f"of {_sizes(getattr(mechanism, 'over', mechanism).grid)}"
    )


def _shown(example: Any) -> str:
    """An example in short: equal readings in a row are counted.

    >>> _shown((0.0, 0.0, 5.0)), _shown(((0.0, 2.5),))
    ('0, 0, 5', '(0, 2.5)')
    >>> _shown((0.0,) * 24)
    '24 times 0'
    """
    if not isinstance(example, tuple):
        return f"{example:g}"
    parts = []
    for reading, equal in itertools.groupby(example):
        shown = f"({_shown(reading)})" if isinstance(reading, tuple) else _shown(reading)
        count = len(list(equal))
        parts += [f"{count} times {shown}"] if count > 3 else [shown] * count
    return ", ".join(parts)


def _sizes(grid: Any) -> str:
    return ", ".join(f"{size:g}" for size in (grid if isinstance(grid, tuple) else (grid,)))


def _below(p_value: float) -> str:
    return "below 1e-15" if p_value <= 1e-15 else f"{p_value:.2g}"


# there is no table, so nothing is asked about one
NOT_ASKED = ("value", "time", "series", "pace", "late", "landmarks")
app.command(name="audit", help=HELP)(
    with_mechanism_options("audit", without=NOT_ASKED, argument=True)(_audit)
)
