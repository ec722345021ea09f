"""``tempriv mechanisms``."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempriv.cli._options import Json
from tempriv.cli.app import app
from tempriv.cli.mechanism_options import MechanismOptions
from tempriv.mechanisms import registry
from tempriv.mechanisms.options import options_of, schema_of

if TYPE_CHECKING:
    from tempriv.mechanisms.base import Mechanism

OF_EVENTS = "--person WHO --time WHEN --every 1h --from TIME --to TIME"


TITLES = {
    "values": "Hide values: numbers and places with noise",
    "answers": "Hide answers: categories kept or exchanged at random",
    "counts": "Counts and alerts over time",
    "moments": "Hide moments: a person's landmarks",
    "order": "Hide when: exact rows moved in time",
    "pace": "Hide the pace and the times of readings",
}


@app.command()
def mechanisms(
    name: Annotated[str | None, typer.Argument(help="One mechanism, to see it in full.")] = None,
    as_json: Json = False,
) -> None:
    """List the mechanisms, or show one: what it does, guarantees and takes."""
    kinds = registry.classes() if name is None else (registry.find(name),)
    if as_json:
        print(json.dumps({kind.command.name: _facts(kind) for kind in kinds}))
    elif name is None:
        for hides, group in itertools.groupby(kinds, key=lambda kind: kind.command.hides):
            print(TITLES[hides])
            for kind in group:
                print(f"  {kind.command.name:<22} {kind.command.purpose}")
        print("\ntempriv mechanisms NAME shows one in full, with its options and an example.")
    else:
        _print_one(kinds[0])


def example_of(kind: type[Mechanism]) -> Any:
    """The mechanism that the example on the command line of a ``kind`` makes."""
    return MechanismOptions.of_text(kind.command.name, kind.command.example).make()


def _facts(kind: type[Mechanism]) -> dict[str, Any]:
    """Everything about a mechanism for machines; its options as a JSON schema has them."""
    from tempriv.privacy import serialization

    example = example_of(kind)
    return {
        "for": kind.command.purpose,
        "usage": kind.command.example,
        "guarantee": serialization.encode(example.guarantee),
        "published": serialization.encode(example.published),
        **({"losses": _losses(example)} if example.unit.about_order else {}),
        "hides": kind.command.hides,
        "options": schema_of(kind),
    }


def _print_one(kind: type[Mechanism]) -> None:
    from tempriv.privacy.guarantees import NoGuarantee
    from tempriv.releases.meaning import headline_of

    command, example = kind.command, example_of(kind)
    print(f"{command.name}: {command.purpose}")
    first = (kind.__doc__ or "").strip().splitlines()[0]
    print(f"  {first.replace('``', '')}")
    print(f"  guarantee  {headline_of(example)}")
    print(f"  published  {example.published.sentence}")
    print(f"  error      {example.errors[0]:.4g} ({example.error_name}) in the example")
    for i, option in enumerate(options_of(kind)):
        needed = " (needed)" if option.required else ""
        unit = f" In {option.unit}." if option.unit else ""
        print(f"  {'options' if i == 0 else '':<9}  {option.flag}{needed}: {option.help}{unit}")
    asked = " --not-private" if isinstance(example.guarantee, NoGuarantee) else ""
    # times are published as they are, so where they are a secret there is no column of them
    times = "" if example.unit.about_times else " --time time"
    usage = f"--mechanism {command.name} {command.example}{times}{asked}"
    print(f"  example    tempriv release IN.csv OUT.csv {usage}")
    if command.count_example is not None:
        usage = f"--mechanism {command.name} {command.count_example} {OF_EVENTS}"
        print(f"  of people  tempriv count EVENTS.csv OUT.csv {usage}")
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
    losses: dict[Any, Any] = {}
    if hasattr(mechanism, "anywhere"):
        losses[f"1 to {span}, in one block"] = Approximate(mechanism.epsilon, 0.0)
        losses["any, in two blocks"] = mechanism.loss_at(1)
    else:
        distances = sorted({1, 2, max(1, span // 2), span, span + 1})
        losses = {distance: mechanism.loss_at(distance) for distance in distances}
    return [
        {"distance": distance, "epsilon": loss.epsilon, "delta": loss.delta}
        for distance, loss in losses.items()
    ]
