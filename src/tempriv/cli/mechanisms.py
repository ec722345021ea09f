"""``tempriv mechanisms``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from tempriv.cli._options import Json
from tempriv.cli._parsing import join_pairs
from tempriv.cli.app import app
from tempriv.cli.mechanism_options import with_mechanism_options
from tempriv.errors import require

PERSON = "--max-per-step 1 --max-per-person 10"
WINDOW = "--max-per-step 1 --unit window --window 24"
STREAM = "--epsilon 1 --bounds 0 500 --value people --unit window --window 24"

# what each is for, and options that work for values and for counts of people; the guarantee comes
# from the mechanism
GUIDE: dict[str, tuple[str, str, str | None]] = {
    "laplace": (
        "numbers, pure guarantee",
        "--epsilon 1 --bounds 0 5 --value kwh",
        f"--epsilon 1 {PERSON}",
    ),
    "gaussian": (
        "numbers, less noise when many readings or columns are protected together",
        "--epsilon 1 --delta 1e-6 --bounds 0 5 --value kwh --unit window --window 24",
        f"--epsilon 1 --delta 1e-6 {PERSON}",
    ),
    "randomized-response": (
        "categories, such as yes and no, or a room",
        "--epsilon 1 --categories home,away --value presence",
        None,
    ),
    "memoized-response": (
        "categories that are asked for again and again, from answers that stay",
        "--epsilon 2 --epsilon-instant 1 --categories home,away --value presence",
        None,
    ),
    "planar-laplace": (
        "locations, each hidden among those nearby",
        "--epsilon 1 --meters 200 --origin 39.9 116.4 --value latitude --value longitude",
        None,
    ),
    "sparse-vector": (
        "alerts when numbers reach a threshold; alerts cost, waiting does not",
        "--epsilon 1 --bounds 0 500 --threshold 100 --alerts 5 --value people --unit series "
        "--length 1440",
        f"--epsilon 1 --threshold 100 --alerts 5 {PERSON}",
    ),
    "running-count": (
        "the sum of all numbers so far, at every step",
        "--epsilon 1 --delta 1e-6 --bounds 0 5 --horizon 8760 --value kwh",
        f"--epsilon 1 --delta 1e-6 {PERSON}",
    ),
    "uniform-budget": (
        "a stream without an end, any window of it protected; every step is published",
        STREAM,
        f"--epsilon 1 {WINDOW}",
    ),
    "sample-once": (
        "the same, one step of each window published well, and repeated until the next",
        STREAM,
        f"--epsilon 1 {WINDOW}",
    ),
    "budget-distribution": (
        "the same, published when it has moved, with half of what the window has left",
        STREAM,
        f"--epsilon 1 {WINDOW}",
    ),
    "budget-absorption": (
        "the same, published when it has moved, with what quiet steps have saved",
        STREAM,
        f"--epsilon 1 {WINDOW}",
    ),
    "fast": (
        "whole series from a few samples, taken where it moves and filtered",
        "--epsilon 1 --bounds 0 500 --samples 60 --wander 2 --value people --unit series "
        "--length 720",
        f"--epsilon 1 --samples 20 --wander 2 {PERSON}",
    ),
    "pegasus": (
        "every reading with noise, smoothed while little changes",
        "--epsilon 1 --bounds 0 5 --value kwh",
        "--epsilon 1 --theta 150 --max-per-step 1 --unit event",
    ),
    "pattern-sampling": (
        "a stream that follows trends by noisy samples, more of them where it leaves its trend",
        STREAM,
        f"--epsilon 1 {WINDOW}",
    ),
    "pattern-ldp": (
        "a stream by the points that break its trend; guarantees nothing (a baseline)",
        "--epsilon 1 --bounds 0 500 --window 24 --value people",
        None,
    ),
    "fourier": (
        "whole series by their slow waves, smooth and with little noise",
        "--epsilon 1 --bounds 0 5 --coefficients 15 --value kwh --unit series --length 168",
        f"--epsilon 1 --coefficients 15 {PERSON}",
    ),
    "threshold": (
        "exact rows of any kind, each once, in a later slot; hides when, of one row by itself",
        "--epsilon 5 --window 20 --value pulse",
        None,
    ),
    "dual-threshold": (
        "the same with other delays, less of them in long windows at small budgets",
        "--epsilon 5 --window 20 --value pulse",
        None,
    ),
    "block-shuffle": (
        "exact rows, shuffled within hours or days; hides any exchange inside a block",
        "--epsilon 1 --block 24 --value pulse",
        None,
    ),
    "noisy-order": (
        "exact rows in the order of noisy times; hides any exchange within a window",
        "--epsilon 4 --window 10 --value pulse",
        None,
    ),
    "sampling-period": (
        "numbers read again at a noisy pace; hides how fast readings followed, and no value",
        "--epsilon 1 --window 8 --tau 15 --period 15 --pace seconds --value speed",
        None,
    ),
    "noisy-curve": (
        "numbers, noise on each of them and then a smooth curve through a few at a time",
        "--epsilon 1 --bounds 0 5 --span 22 --value kwh",
        None,
    ),
    "noisy-times": (
        "a column of times, each hidden among those nearby",
        "--epsilon 1 --tau 60 --value seconds",
        None,
    ),
    "uniform-landmarks": (
        "moments that matter and any one other, with equal noise on all readings",
        "--epsilon 1 --bounds 0 5 --landmarks at_home --count 20 --value kwh",
        None,
    ),
    "split-landmarks": (
        "moments that matter and any one other, with more noise on those that matter",
        "--epsilon 1 --bounds 0 5 --landmarks at_home --count 20 --length 100 --value kwh",
        None,
    ),
    "count-bound-landmarks": (
        "any so many readings together, so that it does not matter how they were chosen",
        "--epsilon 1 --bounds 0 5 --landmarks at_home --count 20 --value kwh",
        None,
    ),
    "adaptive-landmarks": (
        "moments that matter and any one other, released only where things change",
        "--epsilon 1 --bounds 0 5 --landmarks at_home --count 20 --value kwh",
        None,
    ),
    "skip-landmarks": (
        "moments that matter are not released at all, and everyone sees which they are",
        "--epsilon 1 --bounds 0 5 --landmarks at_home --value kwh",
        None,
    ),
    "backward": (
        "exact rows, at each step one of the last few; some twice, some never (a baseline)",
        "--epsilon 5 --window 20 --value pulse",
        None,
    ),
    "forward": (
        "exact rows, each sent to one of the next steps; guarantees nothing (a baseline)",
        "--epsilon 5 --window 20 --value pulse",
        None,
    ),
}
OF_EVENTS = "--person WHO --time WHEN --every 1h --from TIME --to TIME"


@app.command()
def mechanisms(
    name: Annotated[str | None, typer.Argument(help="One mechanism, to see it in full.")] = None,
    as_json: Json = False,
) -> None:
    """What can be done to values, and what each guarantees."""
    from tempriv.privacy import serialization
    from tempriv.privacy.guarantees import NoGuarantee

    require(name is None or name in GUIDE, f"{name}: must be one of {', '.join(GUIDE)}")
    chosen = [one for one in GUIDE if name in (None, one)]
    if as_json:
        told = {}
        for one in chosen:
            purpose, usage, _ = GUIDE[one]
            example = _example(one, usage)
            told[one] = {
                "for": purpose,
                "usage": usage,
                "guarantee": serialization.encode(example.guarantee),
                "published": serialization.encode(example.published),
                **({"losses": _losses(example)} if example.unit.about_order else {}),
            }
        print(json.dumps(told))
        return
    for one in chosen:
        print(f"{one}: {GUIDE[one][0]}")
    if name is None:
        print("\ntempriv mechanisms NAME shows one in full, with an example.")
        return
    _, usage, counting = GUIDE[name]
    example = _example(name, usage)
    first = (type(example).__doc__ or "").strip().splitlines()[0]
    print(f"  {first.replace('``', '')}")
    print(f"  guarantee  {example.guarantee.sentence}")
    print(f"  published  {example.published.sentence}")
    print(f"  error      {example.errors[0]:.4g} ({example.error_name}) in the example")
    asked = " --not-private" if isinstance(example.guarantee, NoGuarantee) else ""
    # times are published as they are, so where they are a secret there is no column of them
    times = "" if example.unit.about_times else " --time time"
    command = f"tempriv release IN.csv OUT.csv --mechanism {name} {usage}{times}{asked}"
    print(f"  example    {command}")
    if counting is not None:
        command = f"tempriv count EVENTS.csv OUT.csv --mechanism {name} {counting} {OF_EVENTS}"
        print(f"  of people  {command}")
    if example.unit.about_order:
        _print_losses(example)


def _print_losses(mechanism: Any) -> None:
    print("\nWhat all rows together tell of two readings that trade places, in the example:")
    print(f"  {'steps apart':<24}  {'epsilon':>8}  {'delta':>8}")
    for row in _losses(mechanism):
        print(f"  {row['distance']:<24}  {row['epsilon']:>8.4g}  {row['delta']:>8.3g}")
    print("With probability delta an output shows for certain which it was.")
    if hasattr(mechanism, "anywhere"):
        print(
            f"Draw --offset at random from 0 to {mechanism.block - 1} and publish it: then delta "
            f"is the steps apart / {mechanism.block}, wherever the two stand."
        )


def _losses(mechanism: Any) -> list[dict[str, Any]]:
    """The true loss of a swap at a few distances, up to what is no longer covered."""
    from tempriv.privacy.guarantees import Approximate

    span = mechanism.unit.span
    found: dict[Any, Any] = {}
    if hasattr(mechanism, "anywhere"):
        found[f"1 to {span}, in one block"] = Approximate(mechanism.epsilon, 0.0)
        found["any, in two blocks"] = mechanism.loss_at(1)
    else:
        distances = sorted({1, 2, max(1, span // 2), span, span + 1})
        found = {distance: mechanism.loss_at(distance) for distance in distances}
    return [
        {"distance": distance, "epsilon": loss.epsilon, "delta": loss.delta}
        for distance, loss in found.items()
    ]


def _example(name: str, usage: str) -> Any:
    """The mechanism that a line of options makes, by way of the options themselves."""
    made: list[Any] = []
    command = typer.Typer()
    command.command()(with_mechanism_options(lambda choice: made.append(choice.make())))
    arguments = [f"--mechanism={name}", *join_pairs(usage.split())]
    command(arguments, standalone_mode=False)
    return made[0]
