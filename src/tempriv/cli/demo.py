"""``tempriv demo``."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempriv.cli._options import join_pairs
from tempriv.cli.app import app
from tempriv.cli.mechanism_options import offer_options

if TYPE_CHECKING:
    import pyarrow as pa

    from tempriv.report.average_day import AverageDay

EPSILON = 1.0
LEAD = (
    "The true average day of 600 made-up homes, and what is left of it at epsilon 1: first as "
    "statistics of all homes, then where every single reading gets Laplace noise before anything "
    "is averaged. A reading can be as large as {high:g} kWh and most are below 1, so the noise of "
    "a reading is far larger than the reading. An average over thousands of readings cancels most "
    "of it, but then only one reading of a home is protected, not the home. True averages of real "
    "homes would be private, hence the warning."
)


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Where to put it.")] = Path("tempriv-demo"),
) -> None:
    """Release statistics of made-up homes and counts of made-up visits, with reports."""
    from tempriv.datasets.files import write_examples

    write_examples(folder)
    _summarize(folder)
    _count(folder)
    print(
        f"\nOpen {folder / 'report.html'} in a browser: it may be handed out with the statistics,"
    )
    print(f"as {folder / 'visits.html'} may with the counts.")
    print(f"{folder / 'private_report.html'} shows before and after, and stays with you.")
    _compare(folder)


def _run(arguments: list[str]) -> None:
    # only the command that was typed is loaded, and its mechanism's options offered
    import_module(f"tempriv.cli.{arguments[0]}")
    print("$ tempriv " + " ".join(arguments) + "\n")
    sys.stdout.flush()
    offer_options(arguments)
    app(join_pairs(arguments), standalone_mode=False)


def _summarize(folder: Path) -> None:
    arguments = [
        *("summarize", str(folder / "homes.csv"), str(folder / "homes_summary.csv")),
        *("--person", "home", "--time", "time", "--value", "kWh", "--bounds", "0", "10"),
        *("--epsilon", f"{EPSILON:g}", "--report", str(folder / "report.html")),
        *("--private-report", str(folder / "private_report.html"), "--no-ledger", "--force"),
    ]
    _run(arguments)


def _count(folder: Path) -> None:
    arguments = [
        *("count", str(folder / "visits.csv"), str(folder / "visits_private.csv")),
        *("--person", "card", "--time", "entered", "--every", "1h"),
        *("--from", "2026-03-02", "--to", "2026-03-09"),
        *("--max-per-step", "1", "--max-per-person", "3"),
        *("--mechanism", "laplace", "--epsilon", f"{EPSILON:g}"),
        *("--report", str(folder / "visits.html"), "--no-ledger", "--force"),
    ]
    print()
    _run(arguments)


def _compare(folder: Path) -> None:
    from tempriv.datasets.homes import BOUNDS, homes
    from tempriv.report.average_day import write_comparison

    path, table = folder / "reading_noise.html", homes()
    days = [_as_statistics(folder / "homes_summary.csv", table), *_average_days(table)]
    title = "What is left of an average day"
    write_comparison(path, title, LEAD.format(high=BOUNDS[1]), "kWh", days, force=True)
    print(f"\n{path} compares that with noise on every single reading:")
    for day in days:
        print(f"  {day.name}\n    {day.verdict}")


def _as_statistics(path: Path, table: pa.Table) -> AverageDay:
    """The average day as the statistics have it."""
    import numpy as np

    from tempriv.datasets.homes import DAYS, HOMES, HOURS
    from tempriv.releases.release import read
    from tempriv.report.average_day import AverageDay

    released = read(path)
    means = {
        row["cell"]: row["value"]
        for row in released.table.to_pylist()
        if row["statistic"] == "mean"
    }
    after = np.array([means[str(hour)] for hour in range(HOURS)])
    before = table["kWh"].to_numpy().reshape(HOMES, DAYS, HOURS).mean((0, 1))
    name = f"Statistics of {HOMES} homes"
    return AverageDay(name, released.guarantee.sentence, before, after)


def _average_days(table: pa.Table) -> list[AverageDay]:
    """All homes and one of them, each reading protected; and all homes, each protected whole."""
    import numpy as np

    from tempriv.datasets.homes import BOUNDS, DAYS, HOMES, HOURS
    from tempriv.mechanisms.value.laplace import Laplace
    from tempriv.privacy.units import Event, Unit, WholeSeries
    from tempriv.releases.run import release
    from tempriv.report.average_day import AverageDay

    shape = HOMES, DAYS, HOURS
    before = table["kWh"].to_numpy().reshape(shape)

    def released(unit: Unit) -> tuple[str, np.ndarray]:
        mechanism = Laplace(epsilon=EPSILON, bounds=(BOUNDS,), unit=unit)
        out = release(table, mechanism, values="kWh", time="time", series="home")
        return out.guarantee.sentence, out.values.reshape(shape)

    reading, noisy = released(Event())
    whole, hopeless = released(WholeSeries(DAYS * HOURS))
    all_homes, one = (0, 1), before.mean((1, 2)).argsort()[HOMES // 2]
    every = f"{HOMES} homes"
    return [
        AverageDay(
            f"{every}, each reading protected",
            reading,
            before.mean(all_homes),
            noisy.mean(all_homes),
        ),
        AverageDay(
            "One home, each reading protected", reading, before[one].mean(0), noisy[one].mean(0)
        ),
        AverageDay(
            f"{every}, each home protected whole",
            whole,
            before.mean(all_homes),
            hopeless.mean(all_homes),
        ),
    ]
