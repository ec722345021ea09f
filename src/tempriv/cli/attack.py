"""``tempriv attack``: what an observer finds out who tries."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempriv.cli._options import Force, Json, KeySeed, Plot, refuse_plot, table_option
from tempriv.cli._output import counting, save_picture
from tempriv.cli.app import app
from tempriv.cli.mechanism_options import MechanismOptions, with_mechanism_options
from tempriv.errors import DataError, require
from tempriv.mechanisms.options import options_of

if TYPE_CHECKING:
    from tempriv.audit.attacks.distinguish import TwoCandidates
    from tempriv.audit.attacks.pairs import Pair
    from tempriv.audit.attacks.reconstruction import Reconstruction
    from tempriv.sampling.keys import Key

attack = typer.Typer(
    no_args_is_help=True, help="Attack a mechanism: what can an observer find out?"
)
app.add_typer(attack, name="attack")

CANDIDATES = (
    "Can an observer who knows two inputs tell from the output which one it was?\n\n"
    "The two are neighbors as far apart as the guarantee covers; or two files (--one, --other); or "
    "the first readings of INPUT, of a made-up table if it is left out, with one thing changed "
    "(--change). Ends with status 1 if a guarantee is broken."
)
CANDIDATES_EXAMPLE = """
[bold]Examples[/bold]: does a noisy sampling period hide a changed value? And the pace?

  tempriv attack candidates --mechanism sampling-period --epsilon 1 --window 8 --tau 1
  --change value

  tempriv attack candidates --mechanism sampling-period --epsilon 1 --window 8 --tau 1
  --change pace

Does Laplace noise keep its guarantee?

  tempriv attack candidates --mechanism laplace --epsilon 1 --bounds 0 5
"""
WINDOW = (
    "How many windows of a noisy sampling period can be restored by who knows a few readings?\n\n"
    "INPUT is released and its windows are attacked; a made-up table if it is left out."
)
WINDOW_EXAMPLE = """
[bold]Example[/bold]: as published, of a made-up table of meter readings

  tempriv attack window --mechanism sampling-period --epsilon 1 --window 8 --tau 1 --clamp none
  --interpolation hermitian --plot window.png
"""
PRIVATE = "computed from the readings themselves, so as private as they are"


@dataclass(frozen=True, kw_only=True)
class AttackOptions:
    """What attacks have in common: whose readings, how sure, and where results go."""

    source: Annotated[
        Path | None,
        typer.Argument(metavar="INPUT", help="Table, .csv or .parquet; a made-up one by default."),
    ] = None
    value: Annotated[
        list[str] | None, table_option(metavar="COLUMN", help="Value column; may be repeated.")
    ] = None
    confidence: Annotated[
        float, typer.Option(help="Of the interval, and before a guarantee is called broken.")
    ] = 0.999
    key_seed: KeySeed = None
    plot: Plot = None
    force: Force = False
    as_json: Json = False

    @property
    def key(self) -> Key | None:
        """Where noise comes from; None: a new key."""
        from tempriv.sampling.keys import Key

        return None if self.key_seed is None else Key.from_seed(self.key_seed)

    def show(self, result: Any, about: dict[str, Any], lines: list[str], private: bool) -> None:
        """Print what came out.

        Parameters:
            result: of the attack.
            about: everything for machines.
            lines: the same for people.
            private: whether it was computed from private readings.
        """
        if self.as_json:
            print(json.dumps({**about, "verdict": result.sentence, "private": private}))
            return
        for line in [*lines, f"  verdict   {result.sentence}"]:
            print(line)
        if private:
            print(f"  mind      {PRIVATE}")

    def draw(self, figure: Any, private: bool) -> None:
        """Write the picture that was asked for.

        Parameters:
            figure: of matplotlib.
            private: whether it shows private readings.
        """
        assert self.plot is not None
        save_picture(figure, self.plot, private)
        if not self.as_json:
            print(f"Picture: {self.plot}")


def _candidates(
    choice: MechanismOptions,
    options: AttackOptions,
    one: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A table with the first input.")
    ] = None,
    other: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A table with the second input.")
    ] = None,
    change: Annotated[
        str | None,
        typer.Option(
            metavar="value|time|shift|pace|swap",
            help="What is changed: a reading, when one was taken, when all were, the pace of a "
            "window, or the order of two.",
        ),
    ] = None,
    by: Annotated[
        float | None,
        typer.Option(
            help="How much is changed: of a value 1 % of the range by default, of a time 0.1 steps "
            "(noisy-times: tau), of a pace tau, of a swap 1 step."
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Readings taken of INPUT; as many as it takes by default.")
    ] = None,
    row: Annotated[
        int | None, typer.Option(help="Look at this one output row alone, the first is 0.")
    ] = None,
    claim: Annotated[
        float | None,
        typer.Option(
            metavar="EPSILON",
            help="Test this guarantee about the two, whatever the mechanism says.",
        ),
    ] = None,
    runs: Annotated[int, typer.Option(help="How many times to run it.")] = 20_000,
) -> None:
    """Can an observer tell two inputs apart?"""
    from tempriv.audit.attacks.distinguish import two_candidates
    from tempriv.privacy.guarantees import Pure

    source, value = options.source, options.value
    refuse_plot(options.plot, options.force)
    _require_budget(choice)
    require((one is None) == (other is None), "--one and --other go together: two inputs")
    ways = [name for name, option in (("--one", one), ("--change", change)) if option is not None]
    require(len(ways) < 2, "--change: makes two inputs, so leave out --one and --other")
    for name, option in (("INPUT", source), ("--by", by), ("--steps", steps)):
        require(option is None or change is not None, f"{name}: goes with --change")
    private = one is not None or source is not None
    if one is not None and other is not None:
        mechanism, pair = _from_files(choice, value, one, other)
    elif change is not None:
        mechanism, pair = _changed(choice, value, source, change, by, steps)
    else:
        mechanism, pair = _hardest(choice, value)
    with counting(f"{runs:,} runs", runs) as progress:
        result = two_candidates(
            mechanism,
            pair.one,
            pair.other,
            runs=runs,
            confidence=options.confidence,
            claim=None if claim is None else Pure(claim),
            row=row,
            secret=pair.secret,
            key=options.key,
            progress=progress,
        )
    _show_candidates(options, mechanism, pair, result, private)
    if options.plot is not None:
        from tempriv.report.plots.attacks import plot_candidates

        figure = plot_candidates(result, f"{type(mechanism).__name__}: {pair.words}")
        options.draw(figure, private)
    if result.broken:
        raise typer.Exit(1)


def _window(
    choice: MechanismOptions,
    options: AttackOptions,
    known: Annotated[
        int, typer.Option(help="Readings of each window that the attacker knows.")
    ] = 4,
    windows: Annotated[int, typer.Option(help="How many windows to attack.")] = 200,
    within: Annotated[
        float,
        typer.Option(
            help="A reading is restored if it is off by less than this part of the range."
        ),
    ] = 0.01,
) -> None:
    """How many windows can be restored?"""
    from tempriv.audit.attacks.reconstruction import try_windows
    from tempriv.mechanisms.retime.sampling_period import SamplingPeriod

    refuse_plot(options.plot, options.force)
    require(
        choice.mechanism == "sampling-period",
        f"--mechanism {choice.mechanism}: must be sampling-period, which draws curves through "
        "windows",
    )
    _require_budget(choice)
    private = options.source is not None
    mechanism, rows = _read(choice, options.value, options.source, None)
    assert isinstance(mechanism, SamplingPeriod)
    with counting(f"{windows:,} runs", windows) as progress:
        result = try_windows(
            mechanism,
            rows,
            known=known,
            windows=windows,
            within=within,
            confidence=options.confidence,
            key=options.key,
            progress=progress,
        )
    _show_windows(options, mechanism, result, within, private)
    if options.plot is not None:
        from tempriv.report.plots.attacks import plot_windows

        options.draw(plot_windows(result, type(mechanism).__name__), private)


# where inputs come from


def _require_budget(choice: MechanismOptions) -> None:
    by_rho = choice.kind.command.noise != "laplace"
    require(
        choice.epsilon is not None or choice.rho is not None,
        "give the budget: --epsilon" + " or --rho" * by_rho,
    )


def _hardest(choice: MechanismOptions, value: list[str] | None) -> tuple[Any, Pair]:
    from tempriv.audit.attacks.pairs import hardest_pair
    from tempriv.privacy.guarantees import NoGuarantee

    require(value is None, "--value: goes with INPUT, or with --one and --other")
    choice.name_columns()
    mechanism = choice.make()
    require(
        not isinstance(mechanism.guarantee, NoGuarantee),
        f"--mechanism {choice.mechanism} guarantees nothing, so there are no neighbors to try; "
        "give --one and --other, or --change",
    )
    return mechanism, hardest_pair(mechanism)


def _from_files(
    choice: MechanismOptions, value: list[str] | None, one: Path, other: Path
) -> tuple[Any, Pair]:
    from tempriv.audit.attacks.pairs import WHICH, Pair, first_series, pushed_block

    require(bool(value), "--one and --other need --value, their column")
    choice.value = value or []
    mechanism = choice.make()
    layout = {"time": choice.time, "series": choice.series}
    inputs = []
    for path in (one, other):
        require(path.exists(), f"{path}: no such file", DataError)
        block = first_series(path, choice.columns, mechanism, **layout)
        inputs.append(pushed_block(mechanism, block))
    return mechanism, Pair(inputs[0], inputs[1], f"two inputs, {one.name} and {other.name}", WHICH)


def _changed(
    choice: MechanismOptions,
    value: list[str] | None,
    source: Path | None,
    change: str,
    by: float | None,
    steps: int | None,
) -> tuple[Any, Pair]:
    from tempriv.audit.attacks.pairs import SECRETS, altered, readings_needed

    require(change in SECRETS, f"--change {change}: must be one of {', '.join(SECRETS)}")
    takes = {option.name for option in options_of(choice.kind)}
    require(change != "pace" or "pace" in takes, "--change pace: for --mechanism sampling-period")
    require(
        "categories" not in choice.given(),
        "--change: for numbers; of categories give two inputs, by --one and --other",
    )
    mechanism, rows = _read(choice, value, source, change)
    wanted = readings_needed(mechanism) if steps is None else steps
    require(wanted >= 3, f"--steps {wanted}: must be 3 or more")
    require(
        len(rows) >= wanted or steps is None,
        f"--steps {steps}: there are only {len(rows)} readings",
        DataError,
    )
    return mechanism, altered(mechanism, rows[:wanted], change, by)


def _read(
    choice: MechanismOptions, value: list[str] | None, source: Path | None, change: str | None
) -> tuple[Any, Any]:
    """The mechanism, and the readings of the first series of a table, times that it needs added."""
    import numpy as np

    from tempriv.audit.attacks.pairs import first_series
    from tempriv.datasets import METERS

    if source is None:
        for name, option in (
            ("--value", value),
            ("--time", choice.time),
            ("--pace", choice.own.get("pace")),
            ("--series", choice.series),
            ("--late", choice.own.get("late")),
        ):
            require(option is None, f"{name}: goes with INPUT")
        value, choice.time, choice.series = ["energy_kWh"], "time", "home"
    require(bool(value), "INPUT needs --value, the column to attack")
    choice.value = value or []
    columns = choice.columns
    made = change == "pace" and choice.own.get("pace") is None
    if made:
        choice.name_columns(values=False)
    mechanism: Any = choice.make()
    path = METERS if source is None else source
    require(path.exists(), f"{path}: no such file", DataError)
    block = first_series(path, columns, mechanism, time=choice.time, series=choice.series)
    require(
        not block.missing.any(),
        f"{path}: readings are missing in the first series; attack one that has them all",
        DataError,
    )
    rows = block.values
    if made and change == "pace":
        usual = [0.0, mechanism.period][2 - mechanism.times :]
        rows = np.concatenate([rows, np.tile(usual, (len(rows), 1))], axis=1)
    return mechanism, rows


# what is said


def _show_candidates(
    options: AttackOptions, mechanism: Any, pair: Pair, result: TwoCandidates, private: bool
) -> None:
    from tempriv.audit.attacks.distinguish import outward, percent
    from tempriv.audit.attacks.value import most_success
    from tempriv.privacy import serialization

    success, (low, high) = result.success, outward(result.interval)
    about = {
        "mechanism": serialization.encode(mechanism),
        "guarantee": serialization.encode(mechanism.guarantee),
        "inputs": pair.words,
        "observer": result.observer,
        "right": success.right,
        "trials": success.trials,
        "rate": result.rate,
        "interval": result.interval,
        "confidence": success.confidence,
        "advantage": result.advantage,
        "cap": result.cap,
        "most_advantage": result.most_advantage,
        "why_no_cap": result.why_not or None,
        "budget_would_cap": None if result.yardstick is None else most_success(result.yardstick),
        "holds": result.holds,
    }
    cap = f"none: {result.why_not}" if result.cap is None else f"{percent(result.cap)} %"
    lines = [
        f"{type(mechanism).__name__}: {pair.words}",
        f"  guarantee {mechanism.guarantee.sentence}",
        f"  observer  {result.observer}",
        f"  right     {percent(result.rate)} % of {success.trials:,} runs ({low} to {high} with "
        f"confidence {100 * success.confidence:.6g} %); a coin is right in 50 %",
        f"  cap       {cap}",
    ]
    options.show(result, about, lines, private)


def _show_windows(
    options: AttackOptions, mechanism: Any, result: Reconstruction, within: float, private: bool
) -> None:
    from tempriv.audit.attacks.distinguish import percent
    from tempriv.privacy import serialization

    success = result.success
    about = {
        "mechanism": serialization.encode(mechanism),
        "guarantee": serialization.encode(mechanism.guarantee),
        "known": result.known,
        "readings": result.readings,
        "restored": success.right,
        "windows": success.trials,
        "rate": success.rate,
        "interval": success.interval,
        "confidence": success.confidence,
        "restored_share": result.share,
        "within": within,
    }
    many = f"{success.trials:,} window{'s'[: success.trials != 1]}"
    lines = [
        f"{type(mechanism).__name__}: {many} of {result.readings} readings, {result.known} known",
        f"  guarantee {mechanism.guarantee.sentence}",
        f"  readings  {percent(result.share)} % of those not known came out, within "
        f"{100 * within:g} % of the window's range",
    ]
    options.show(result, about, lines, private)


attack.command("candidates", help=CANDIDATES, epilog=CANDIDATES_EXAMPLE)(
    with_mechanism_options("attack", "candidates", without=("value",))(_candidates)
)
attack.command("window", help=WINDOW, epilog=WINDOW_EXAMPLE)(
    with_mechanism_options("attack", "window", without=("value",))(_window)
)
