"""``tempriv audit``: does a mechanism keep what it guarantees?"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from tempriv.cli._options import Json, KeySeed
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
    found: dict[str, Any] = {}
    small = None if statistical else cases.small_case(mechanism, steps)
    if small is not None:
        for one, given in (("runs", runs), ("confidence", confidence), ("key-seed", key_seed)):
            require(given is None, f"--{one}: goes with --statistical; this case is enumerated")
        with _progress(None):
            verdict: Any = exact.audit(small.mechanism, small.alphabet, small.length, small.tail)
        found |= {"method": "exact", "grid": small.grid, "steps": small.length}
    else:
        pairs = cases.worst_pairs(mechanism, steps)
        total = by_runs.RUNS if runs is None else runs
        with _progress(total) as progress:
            verdict = by_runs.audit(
                mechanism,
                pairs=pairs,
                runs=total,
                confidence=by_runs.CONFIDENCE if confidence is None else confidence,
                key=None if key_seed is None else Key.from_seed(key_seed),
                progress=progress,
            )
        found |= {"method": "statistical", "runs": total, "confidence": verdict.confidence}
        found |= {"p_value": verdict.p_value, "statistic": verdict.statistic}
    for name in ("measure", "claimed", "found", "delta", "pairs", "worst", "holds"):
        found[name] = getattr(verdict, name)
    _print(mechanism, found, as_json)
    if not verdict.holds:
        raise typer.Exit(1)


def _print(mechanism: Any, found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        from tempriv.privacy import serialization

        about = {
            "mechanism": serialization.encode(mechanism),
            "claim": serialization.encode(mechanism.guarantee),
        }
        print(json.dumps({**about, **found}))
        return
    print(f"{type(mechanism).__name__}: {_method(mechanism, found)}")
    print(f"  claim     {mechanism.guarantee.sentence}")
    exact = found["method"] == "exact"
    loss = (
        f"{found['measure']} = {found['found']:.6g}"
        if exact
        else (
            f"{found['measure']} at least {found['found']:.4g} with confidence "
            f"{100 * found['confidence']:.6g} %"
        )
    )
    print(f"  bound     {loss}, over {found['pairs']} neighboring pair{'s'[: found['pairs'] != 1]}")
    if found["worst"] is not None:
        one, other = found["worst"]
        print(f"  worst     {_shown(one)} against {_shown(other)}")
    good = "holds on this case" if exact else "consistent with the claim"
    sure = "" if exact else f" (p-value {_below(found['p_value'])})"
    print(f"  verdict   {good if found['holds'] else 'CLAIM BROKEN' + sure}")


def _method(mechanism: Any, found: dict[str, Any]) -> str:
    if found["method"] == "statistical":
        return f"lower bound on the loss from {found['runs']:,} runs"
    steps = f"{found['steps']} reading{'s'[: found['steps'] != 1]}"
    if found["grid"] is None:
        return f"exact, every outcome of {steps} enumerated"
    return (
        f"exact, every outcome of {steps} enumerated on a grid of {_sizes(found['grid'])} instead "
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
    for one, equal in itertools.groupby(example):
        shown = f"({_shown(one)})" if isinstance(one, tuple) else _shown(one)
        count = len(list(equal))
        parts += [f"{count} times {shown}"] if count > 3 else [shown] * count
    return ", ".join(parts)


def _sizes(grid: Any) -> str:
    return ", ".join(f"{one:g}" for one in (grid if isinstance(grid, tuple) else (grid,)))


def _below(p_value: float) -> str:
    return "below 1e-15" if p_value <= 1e-15 else f"{p_value:.2g}"


@contextmanager
def _progress(total: int | None) -> Iterator[Callable[[int], None]]:
    """Runs so far, on a terminal; quiet in a pipe."""
    if not sys.stderr.isatty():
        yield lambda runs: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        doing = "enumerating" if total is None else f"{total:,} runs"
        task = bar.add_task(doing, total=total)
        yield lambda runs: bar.advance(task, runs)


# there is no table, so nothing is asked about one
NOT_ASKED = ("value", "time", "series", "pace", "late", "landmarks")
app.command(name="audit", help=HELP)(
    with_mechanism_options("audit", without=NOT_ASKED, argument=True)(_audit)
)
