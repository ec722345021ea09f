"""How values are protected: the options that several commands share, and what they make."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from tempriv.cli import recipes
from tempriv.cli._parsing import for_columns, names, pair
from tempriv.cli.recipes import RECIPES, Recipe
from tempriv.cli.units import make_unit
from tempriv.errors import require

if TYPE_CHECKING:
    from tempriv.data.aggregate import CountTable
    from tempriv.mechanisms.base import Mechanism
    from tempriv.privacy.units import Unit

MECHANISMS = tuple(RECIPES)
ASKED_APART = ("bounds", "categories", "origin", "meters", "clamp", "pace", "late", "landmarks")


@dataclass(kw_only=True)
class MechanismOptions:
    """How values are protected, and which columns they are in: the options of several commands."""

    mechanism: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How values are protected: laplace, gaussian, ... (tempriv mechanisms lists all).",
        ),
    ]
    value: Annotated[
        list[str], typer.Option(metavar="COLUMN", help="Value column; may be repeated.")
    ]
    time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Time column, or two as date+hour.")
    ] = None
    series: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column with the series id.")
    ] = None
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy budget: smaller protects more. 1 is a good start.")
    ] = None
    delta: Annotated[
        float | None,
        typer.Option(
            help="For Gaussian noise with --epsilon (gaussian, running-count, fourier), and for "
            "noisy-order with --latency: a tiny chance, such as 1e-6."
        ),
    ] = None
    rho: Annotated[
        float | None, typer.Option(help="For Gaussian noise: the budget as rho (zCDP).")
    ] = None
    epsilon_instant: Annotated[
        float | None,
        typer.Option(
            help="For memoized-response: what a single report may tell of a change; --epsilon is "
            "for all reports of an answer that stays."
        ),
    ] = None
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LOW HIGH",
            help="Smallest and largest possible value, from what you know of the device, not from "
            "the data. Once for all value columns, or once for each.",
        ),
    ] = None
    categories: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,C",
            help="For randomized-response and memoized-response: all categories, or a JSON list "
            "of them. Once for all value columns, or once for each.",
        ),
    ] = None
    origin: Annotated[
        str | None,
        typer.Option(metavar="LAT LON", help="For planar-laplace: a public place in the area."),
    ] = None
    meters: Annotated[
        float | None,
        typer.Option(
            "--meters",
            "--metres",
            help="For planar-laplace: places this close to each other are hard to tell apart (by "
            "a factor e^epsilon).",
        ),
    ] = None
    threshold: Annotated[
        float | None, typer.Option(help="For sparse-vector: alert at this value and above.")
    ] = None
    alerts: Annotated[
        int | None,
        typer.Option(help="For sparse-vector: so many alerts at most, then nothing more."),
    ] = None
    horizon: Annotated[
        int | None,
        typer.Option(help="For running-count and fourier: the most steps that a series has."),
    ] = None
    method: Annotated[
        str | None,
        typer.Option(
            metavar="square-root|tree|increments",
            help="For running-count: how sums are put together; the best one by default.",
        ),
    ] = None
    samples: Annotated[
        int | None, typer.Option(help="For fast: how many readings are looked at.")
    ] = None
    wander: Annotated[
        float | None,
        typer.Option(help="For fast: by how much the value moves in a step, a guess."),
    ] = None
    smoothing: Annotated[
        str | None,
        typer.Option(
            metavar="mean|median|james-stein",
            help="For pegasus: what is made of the noisy readings of a group; mean by default.",
        ),
    ] = None
    theta: Annotated[
        float | None,
        typer.Option(
            help="For pegasus: how far readings of a group may be from their mean, added up; more "
            "makes longer groups."
        ),
    ] = None
    grouping_share: Annotated[
        float | None,
        typer.Option(help="For pegasus: the part of epsilon for finding groups; 0.2 by default."),
    ] = None
    longest_group: Annotated[
        int | None, typer.Option(help="For pegasus: the most readings of a group; 256 by default.")
    ] = None
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="For pattern-ldp: how far off a line readings may be, in standard deviations."
        ),
    ] = None
    spread: Annotated[
        float | None,
        typer.Option(
            help="For pattern-ldp: a standard deviation; a sixth of the bounds if not given."
        ),
    ] = None
    coefficients: Annotated[
        int | None,
        typer.Option(help="For fourier: how many cosine waves are kept; fewer are smoother."),
    ] = None
    free_slots: Annotated[
        int | None,
        typer.Option(
            help="For threshold: how many free slots a reading has to choose from (dual-threshold: "
            "a slot, readings); the least delay within --epsilon by default."
        ),
    ] = None
    block: Annotated[
        int | None,
        typer.Option(help="For block-shuffle: time steps in a block, shuffled with each other."),
    ] = None
    offset: Annotated[
        int | None,
        typer.Option(help="For block-shuffle: the step, from 0, at which blocks begin."),
    ] = None
    latency: Annotated[
        int | None,
        typer.Option(
            help="For noisy-order as a stream: rows come out so many steps late; costs a --delta."
        ),
    ] = None
    tau: Annotated[
        float | None,
        typer.Option(
            help="For sampling-period and noisy-times: times this close to each other are hard to "
            "tell apart (by a factor e^epsilon); in the unit of the column of times."
        ),
    ] = None
    period: Annotated[
        float | None,
        typer.Option(
            help="For sampling-period: the public time from one reading to the next; 1 by default."
        ),
    ] = None
    pace: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="For sampling-period: the column with the secret time since the reading before.",
        ),
    ] = None
    late: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="For sampling-period with --shift: the column that says how late a reading was.",
        ),
    ] = None
    shift: Annotated[
        float | None,
        typer.Option(help="For sampling-period: hide also how late readings were, within this."),
    ] = None
    interpolation: Annotated[
        str | None,
        typer.Option(
            metavar="cosine|hermitian|printed",
            help="For sampling-period: the curve through a window; cosine (default) is nearest.",
        ),
    ] = None
    clamp: Annotated[
        str | None,
        typer.Option(
            metavar="LOW HIGH",
            help="For sampling-period: public bounds of the noisy period, or none; safe ones by "
            "default.",
        ),
    ] = None
    span: Annotated[
        int | None,
        typer.Option(help="For noisy-curve: how many readings come out of one curve."),
    ] = None
    waves: Annotated[
        int | None,
        typer.Option(help="For noisy-curve: how many waves a curve has; fewer are smoother."),
    ] = None
    landmarks: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="For landmark mechanisms: the column that is 1 at the moments that matter and 0 "
            "elsewhere; it is not released. tempriv landmarks makes one.",
        ),
    ] = None
    landmarks_from_values: Annotated[
        bool,
        typer.Option(
            "--landmarks-from-values",
            help="For landmark mechanisms: the moments were chosen by looking at the values. Only "
            "count-bound-landmarks guarantees anything then.",
        ),
    ] = False
    count: Annotated[
        int | None,
        typer.Option(
            help="For landmark mechanisms: the most landmarks of a series. A stream needs it; "
            "otherwise they are counted."
        ),
    ] = None
    count_epsilon: Annotated[
        float | None,
        typer.Option(
            help="For count-bound-landmarks, instead of --count: a budget for drawing a bound, "
            "which hides how many landmarks there are."
        ),
    ] = None
    miss: Annotated[
        float | None,
        typer.Option(
            help="With --count-epsilon: the chance that the bound shows the number itself; 1e-6 "
            "by default."
        ),
    ] = None
    kappa: Annotated[
        float | None,
        typer.Option(
            help="For adaptive-landmarks: a release further from the last than so many times its "
            "noise counts as a change; 1 by default."
        ),
    ] = None
    increase: Annotated[
        float | None,
        typer.Option(
            help="For adaptive-landmarks: after a change sampling becomes likelier by this part of "
            "what lacks to certainty; 0.5 by default."
        ),
    ] = None
    decrease: Annotated[
        float | None,
        typer.Option(
            help="For adaptive-landmarks: without a change sampling becomes less likely by this "
            "part; 0.2 by default."
        ),
    ] = None
    least: Annotated[
        float | None,
        typer.Option(
            help="For adaptive-landmarks: the least chance of sampling a reading; 0.1 by default."
        ),
    ] = None
    order_noise: Annotated[
        str | None,
        typer.Option(
            metavar="staircase|laplace",
            help="For noisy-order: the noise on times; staircase (default) moves readings least.",
        ),
    ] = None
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="event|window|series",
            help="What is protected: any one reading (as a rule the default), any --window "
            "readings in a row, or whole series of up to --length readings.",
        ),
    ] = None
    window: Annotated[
        int | None,
        typer.Option(
            help="Time steps: of --unit window; or within which backward, forward, threshold, "
            "dual-threshold and noisy-order hide when a reading was; or of which sampling-period "
            "hides the pace, and noisy-times the times; or that pattern-ldp gives a budget."
        ),
    ] = None
    length: Annotated[int | None, typer.Option(help="Readings at most, for --unit series.")] = None
    per_column: Annotated[
        bool,
        typer.Option(
            "--per-column",
            help="Give every value column the whole budget; the total adds up. By default the "
            "columns share it.",
        ),
    ] = False
    resolution: Annotated[
        float | None,
        typer.Option(help="Public grid of released values, a power of two; fine by default."),
    ] = None

    def make(
        self,
        max_series: int | None = None,
        target_error: float | None = None,
        counted: CountTable | None = None,
    ) -> Mechanism:
        """The mechanism at the budget that was given, or that the target error takes.

        For counts of people their unit, bounds and grid are what they were counted with.
        """
        given = {name: getattr(self, name) for name in recipes.OPTIONS}
        if counted is not None:
            given["bounds"] = counted.bounds  # which are there already
        recipe = recipes.require_fits(self.mechanism, given)
        if counted is None:
            recipes.require_unit(self.mechanism, self.unit)
        require(
            max_series is None or bool(recipe.units),
            f"--max-series-per-person: not for --mechanism {self.mechanism}, which works on each "
            "series by itself",
        )
        settings = self._settings(recipe, counted)
        unit = self._unit(recipe, max_series) if counted is None else counted.unit
        make = recipes.maker(recipe, settings, unit, self.rho is not None, self.delta)
        require(
            target_error is None or "count" not in recipe.takes or self.count is not None,
            "--target-error: needs --count, the most landmarks of a series: errors grow with them",
        )
        budget = recipes.require_budget(
            self.mechanism, recipe, self.epsilon, self.rho, self.delta, target_error
        )
        if budget is not None:
            return make(budget)
        from tempriv.mechanisms.calibrate import budget_for_error

        assert target_error is not None
        return make(budget_for_error(make, target_error))

    def _settings(self, recipe: Recipe, counted: CountTable | None) -> dict[str, Any]:
        """The options that were given, as the fields of the mechanism want them."""
        columns = len(self.value)
        known = {
            name: getattr(self, name)
            for name in (*recipe.needs, *recipe.takes)
            if name not in ASKED_APART and recipes.is_given(getattr(self, name))
        }
        if "pace" in recipe.takes:
            known |= self._paced()
        if counted is not None:
            known |= {"bounds": counted.bounds, "grid": counted.grid}
            if "horizon" in recipe.takes:
                known.setdefault("horizon", counted.steps)
            return known
        if self.bounds:
            pairs = [pair("--bounds", text) for text in self.bounds]
            known["bounds"] = tuple(for_columns("--bounds", pairs, columns))
        if self.categories:
            lists = [names(text) for text in self.categories]
            known["categories"] = tuple(for_columns("--categories", lists, columns))
        if self.origin is not None:
            require(
                columns == 2,
                f"--mechanism {self.mechanism} takes two value columns: --value LATITUDE --value "
                "LONGITUDE",
            )
            known["origin"] = pair("--origin", self.origin)
        return known

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that go through the mechanism: values, then secret times or landmarks."""
        others = (self.late, self.pace, self.landmarks)
        return (*self.value, *(name for name in others if name is not None))

    def _paced(self) -> dict[str, Any]:
        """What is said of the pace by columns, and of the clamp by two numbers."""
        require(
            self.pace is not None or self.late is None,
            "--late: goes with --pace, the column with the time since the reading before",
        )
        require(
            (self.late is None) == (self.shift is None),
            "--shift and --late go together: within what to hide how late readings were, and the "
            "column that says it",
        )
        known: dict[str, Any] = {"columns": max(len(self.value), 1)}
        if self.pace is None:
            known["pace"] = "public"
        if self.clamp is not None:
            given = self.clamp.strip()
            known["clamp"] = (
                {"none": None, "safe": "safe"}[given]
                if given in ("none", "safe")
                else pair("--clamp", given)
            )
        return known

    def _unit(self, recipe: Recipe, max_series: int | None) -> Unit | None:
        """What is protected; None leaves it to the mechanism."""
        if self.meters is not None:
            from tempriv.privacy.units import WithinDistance

            require(max_series is None, "a person's places are protected one by one")
            return WithinDistance(self.meters)
        if self.unit is None and max_series is None:
            # refuses what goes with another unit
            own = recipe.moves or "window" in recipe.needs
            length = None if "length" in recipe.takes else self.length
            make_unit("event", None if own else self.window, length)
            return None
        return make_unit(self.unit or "event", self.window, self.length, max_series)


def with_mechanism_options(
    function: Callable[..., None], without: tuple[str, ...] = ()
) -> Callable[..., None]:
    """Give a command the options of ``MechanismOptions``; its own first parameter receives them.

    A command that has no table of values leaves some out.
    """
    hints = get_type_hints(MechanismOptions, include_extras=True)
    own_hints = get_type_hints(function, include_extras=True)
    _, *own = inspect.signature(function).parameters.values()
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(MechanismOptions)
        if field.name not in without
    ]
    own = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=own_hints[one.name])
        for one in own
    ]

    @functools.wraps(function)
    def command(**given: Any) -> None:
        chosen = {one.name: given.pop(one.name) for one in shared}
        choice = MechanismOptions(**{"value": [], **chosen})
        function(choice, **given)

    del command.__wrapped__
    required = [p for p in own if p.default is inspect.Parameter.empty]
    optional = [p for p in own if p.default is not inspect.Parameter.empty]
    parameters = [*required, *shared, *optional]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command
