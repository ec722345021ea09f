"""The options that commands with a mechanism share, and those of the mechanism that was named.

The options of a mechanism are its own (``tempriv.mechanisms.options``). Help and parsing know the
common ones and, once ``--mechanism NAME`` stands on the command line, exactly those of that one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from tempriv.cli._options import (
    SeriesColumn,
    TimeColumn,
    budget_option,
    join_pairs,
    protection_option,
    table_option,
)
from tempriv.errors import UsageError, require
from tempriv.mechanisms import registry
from tempriv.mechanisms.options import Option, options_of, parsed

if TYPE_CHECKING:
    from tempriv.data.aggregate import CountTable
    from tempriv.mechanisms.base import Mechanism
    from tempriv.privacy.units.base import Unit

UNITS = {
    "event": "--unit event",
    "window": "--unit window --window W",
    "series": "--unit series --length N",
}
COUNTED = {"series": "person"}  # what whole series are called where people are counted


@dataclass(kw_only=True)
class MechanismOptions:
    """How values are protected, and which columns they are in.

    ``own`` has the options of the mechanism by name, those that were given.
    """

    value: Annotated[
        list[str],
        table_option(metavar="COLUMN", help="Value column; may be repeated."),
    ]
    time: TimeColumn = None
    series: SeriesColumn = None
    mechanism: Annotated[
        str,
        protection_option(metavar="NAME", help="--mechanism NAME --help lists its options."),
    ]
    unit: Annotated[
        str | None,
        protection_option(
            metavar="KIND", help="What is protected: event (usually the default), window, series."
        ),
    ] = None
    window: Annotated[
        int | None,
        protection_option(metavar="N", help="Time steps of --unit window, or of the mechanism."),
    ] = None
    length: Annotated[
        int | None,
        protection_option(metavar="N", help="Readings of a series at most, for --unit series."),
    ] = None
    epsilon: Annotated[
        float | None,
        budget_option(
            metavar="X", help="Privacy budget: smaller protects more. 1 is a good start."
        ),
    ] = None
    delta: Annotated[
        float | None,
        budget_option(
            metavar="X", help="A tiny chance such as 1e-6, for Gaussian noise with --epsilon."
        ),
    ] = None
    rho: Annotated[
        float | None,
        budget_option(metavar="X", help="The budget of Gaussian noise as rho (zCDP)."),
    ] = None
    own: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> type[Mechanism]:
        """The class of the mechanism."""
        known = registry.names()
        require(
            self.mechanism in known,
            f"--mechanism {self.mechanism}: must be one of {', '.join(known)}",
        )
        return registry.find(self.mechanism)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that go through the mechanism: values, then those its options name."""
        named = [self.own.get(option.name) for option in options_of(self.kind) if option.column]
        return (*self.value, *(name for name in named if name is not None))

    @classmethod
    def of_text(cls, mechanism: str, text: str) -> MechanismOptions:
        """The options that a line of them says, such as the example of a mechanism.

        Parameters:
            mechanism: its name.
            text: options as typed, such as ``--epsilon 1 --bounds 0 5 --value kwh``.
        """
        own = {option.flag: option for option in options_of(registry.find(mechanism))}
        made = cls(mechanism=mechanism, value=[])
        hints = get_type_hints(cls)
        words = join_pairs(text.split())
        known = {*own, *("--" + name for name in hints)}
        _refuse_other_options(words, mechanism, known)
        while words:
            flag, _, typed = words.pop(0).partition("=")
            name = flag.removeprefix("--").replace("-", "_")
            if flag in own and own[flag].type is bool:
                made.own[name] = True
                continue
            typed = typed or words.pop(0)
            if name == "value":
                made.value.append(typed)
            elif name in hints:
                setattr(
                    made,
                    name,
                    typed
                    if name in ("unit", "time", "series")
                    else int(typed)
                    if name in ("window", "length")
                    else float(typed),
                )
            elif own[flag].repeated:
                made.own.setdefault(name, []).append(typed)
            else:
                made.own[name] = own[flag].type(typed)
        return made

    def name_columns(self, values: bool = True) -> None:
        """Name columns where there is no table: as many values as the options are for.

        Parameters:
            values: whether to name value columns too, besides those that options name.
        """
        options = self.given()
        if values:
            columns = max(len(options.get("bounds", ())), len(options.get("categories", ())), 1)
            self.value = ["value"] * (2 if "origin" in options else columns)
        for option in options_of(self.kind):
            if option.column and (option.goes_with is None or option.goes_with in options):
                self.own[option.name] = option.name

    def given(self) -> dict[str, Any]:
        """The options of the mechanism that were given, also those it shares with others."""
        common = {"window": self.window, "length": self.length}
        names = {option.name for option in options_of(self.kind)}
        shared = {name: value for name, value in common.items() if name in names}
        return {name: value for name, value in {**shared, **self.own}.items() if _is_given(value)}

    def make(
        self,
        max_series: int | None = None,
        target_error: float | None = None,
        counted: CountTable | None = None,
    ) -> Mechanism:
        """The mechanism at the budget that was given, or that the target error takes.

        Parameters:
            max_series: the most series of one person, if a person is to be protected.
            target_error: the expected error to find a budget for.
            counted: counts of people; their unit, bounds and grid are those they were counted
                with.
        """
        kind, columns = self.kind, len(self.value)
        typed = self.given()
        if counted is None:
            _require_unit(kind, self.unit)
        for option in options_of(kind):
            known = option.name in typed or (counted is not None and option.name == "bounds")
            require(
                known or not option.required, f"--mechanism {self.mechanism} needs {option.flag}"
            )
        require(
            max_series is None or bool(kind.command.units),
            f"--max-series-per-person: not for --mechanism {self.mechanism}, which works on each "
            "series by itself",
        )
        options = {option.name: option for option in options_of(kind)}
        require(
            self.window is None or "window" in options or not kind.command.on_times,
            f"--window: not for --mechanism {self.mechanism}",
        )
        settings = kind.settings_from(
            {name: parsed(options[name], value, columns) for name, value in typed.items()}, columns
        )
        if counted is None:
            unit = self._unit(kind, max_series, typed)
        else:
            unit = counted.unit
            settings |= {"bounds": counted.bounds, "grid": counted.grid}
            if "horizon" in options:
                settings.setdefault("horizon", counted.steps)
        make = self._maker(kind, settings, unit)
        require(
            target_error is None or "count" not in options or "count" in typed,
            "--target-error: needs --count, the most landmarks of a series: errors grow with them",
        )
        budget = self._budget(kind, target_error)
        if budget is not None:
            return make(budget)
        from tempriv.mechanisms.calibrate import budget_for_error

        assert target_error is not None
        return make(budget_for_error(make, target_error))

    def _unit(
        self, kind: type[Mechanism], max_series: int | None, typed: dict[str, Any]
    ) -> Unit | None:
        """What is protected; None leaves it to the mechanism."""
        own = kind.unit_from(typed)
        if own is not None:
            require(max_series is None, "a person's places are protected one by one")
            return own
        if self.unit is None and max_series is None:
            # refuses what goes with another unit
            window = None if "window" in typed else self.window
            make_unit("event", window, None if "length" in typed else self.length)
            return None if _has_own_unit(kind) else make_unit("event", None, None)
        return make_unit(self.unit or "event", self.window, self.length, max_series)

    def _maker(
        self, kind: type[Mechanism], settings: dict[str, Any], unit: Unit | None
    ) -> Callable[[float], Mechanism]:
        """A function from a budget (epsilon, or rho) to the mechanism."""
        from tempriv.privacy.guarantees import rho_for

        command, delta = kind.command, self.delta
        if command.takes_delta and delta is not None:
            require(
                "latency" in settings, f"--delta {delta:g}: goes with --latency, which needs one"
            )
            settings = {**settings, "delta": delta}
        by_rho = command.noise == "gaussian" or (
            command.noise == "either" and (self.rho is not None or delta is not None)
        )

        def make(budget: float) -> Mechanism:
            if not by_rho:
                return kind.build({command.budget: budget}, settings, unit)
            if command.calibrated and delta is not None:
                return kind.build({"epsilon": budget, "delta": delta}, settings, unit)
            rho = budget if delta is None else rho_for(budget, delta)
            return kind.build({"rho": rho}, settings, unit)

        return make

    def _budget(self, kind: type[Mechanism], target_error: float | None) -> float | None:
        """The budget that was given; None if it is to be found for an error."""
        name, command = self.mechanism, kind.command
        gaussian = command.noise != "laplace"
        budgets = [x for x in (self.epsilon, self.rho, target_error) if x is not None]
        require(
            len(budgets) == 1,
            "give one of --epsilon, --target-error" + (" or --rho" if gaussian else ""),
        )
        if self.rho is not None and not gaussian:
            takers = _names(lambda each: each.noise != "laplace")
            raise UsageError(f"--rho: for --mechanism {takers} only")
        # delta also pays for what a stream of noisy times cannot wait for
        if self.delta is not None and not (gaussian or command.takes_delta):
            takers = _names(lambda each: each.noise != "laplace" or each.takes_delta)
            raise UsageError(f"--delta: for --mechanism {takers} only")
        require(
            target_error is None or not command.on_times,
            f"--target-error: not for --mechanism {name}, which {command.on_times}; give --epsilon",
        )
        require(
            self.rho is None or self.delta is None, "--delta goes with --epsilon, not with --rho"
        )
        require(
            command.noise != "gaussian" or self.epsilon is None or self.delta is not None,
            f"--mechanism {name} with --epsilon needs --delta, such as 1e-6; or give the budget as "
            "--rho",
        )
        return None if target_error is not None else budgets[0]


def _is_given(value: Any) -> bool:
    """Whether an option was given; zero is a value like others."""
    return value is not None and value is not False and value != []


def _names(wanted: Callable[[Any], bool]) -> str:
    """The mechanisms whose command line is such, for a message."""
    return " or ".join(kind.command.name for kind in registry.classes() if wanted(kind.command))


def _has_own_unit(kind: type[Mechanism]) -> bool:
    """Whether the mechanism knows what it protects without being told."""
    own = [each for each in fields(kind) if each.name == "unit"]
    return not own or own[0].default_factory is not MISSING


def _require_unit(kind: type[Mechanism], unit: str | None) -> None:
    """Refuse a unit that is not for this mechanism; if none is named, it has to have its own."""
    name, allowed = kind.command.name, kind.command.units
    require(
        unit is None or bool(allowed),
        f"--unit {unit}: not for --mechanism {name}, whose own options say what is protected",
    )
    unit = "event" if unit is None and not _has_own_unit(kind) else unit
    require(unit is None or unit in UNITS, f"--unit {unit}: must be event, window or series")
    require(
        unit is None or unit in allowed,
        f"--mechanism {name} needs {' or '.join(UNITS[each] for each in allowed)}",
    )


def make_unit(
    unit: str, window: int | None, length: int | None, max_series: int | None = None
) -> Unit:
    """What is protected, as options say it.

    Parameters:
        unit: event, window or series.
        window: time steps of a window.
        length: readings of a series at most.
        max_series: the most series of one person, if a person is to be protected.
    """
    from tempriv.privacy.units.replacement import Event, Person, WholeSeries, Window

    require(
        unit in ("event", "window", "series"), f"--unit {unit}: must be event, window or series"
    )
    for name, option, wanted in (("--window", window, "window"), ("--length", length, "series")):
        require(
            option is None or unit == wanted, f"{name} {option}: goes with --unit {wanted} only"
        )
        require(
            option is not None or unit != wanted,
            f"--unit {unit} needs {name}: how many readings in a row it covers",
        )
    each: Any = Event()
    if unit == "window":
        each = Window(window or 0)
    elif unit == "series":
        each = WholeSeries(length or 0)
    return each if max_series is None else Person(max_series, each)


def require_counts(name: str, unit: str) -> None:
    """Refuse mechanisms that counts of people cannot go through, or not for this unit.

    Parameters:
        name: of the mechanism.
        unit: what is protected: person, window or event.
    """
    counting = [each.command.name for each in registry.classes() if each.command.count_example]
    require(name in registry.names(), f"--mechanism {name}: must be one of {', '.join(counting)}")
    command = registry.find(name).command
    require(name in counting, f"--mechanism {name}: not for counts; take {', '.join(counting)}")
    allowed = [COUNTED.get(each, each) for each in command.units]
    require(unit in allowed, f"--mechanism {name} needs --unit {' or --unit '.join(allowed)}")


# commands that have these options

_COMMANDS: list[_Command] = []


@dataclass
class _Command:
    """A command with a mechanism, whose options depend on which one was named."""

    words: tuple[str, ...]
    function: Callable[..., None]
    own: list[inspect.Parameter]
    without: tuple[str, ...]
    argument: bool  # whether the mechanism is an argument and not an option

    def common(self) -> list[inspect.Parameter]:
        left_out = ("own", *self.without)
        common = [each for each in _options_in(MechanismOptions) if each.name not in left_out]
        if not self.argument:
            return common
        note = typer.Argument(metavar="NAME", help="The mechanism; see tempriv mechanisms.")
        as_argument = Annotated[str, note]
        return [
            each.replace(annotation=as_argument) if each.name == "mechanism" else each
            for each in common
        ]

    def offer(self, kind: type[Mechanism] | None) -> list[Option]:
        """Let the command take the options of a mechanism, or the common ones alone.

        Parameters:
            kind: the mechanism; None: the common ones alone.
        """
        common = self.common()
        known = {parameter.name for parameter in [*self.own, *common]} | set(self.without)
        options = [] if kind is None else [o for o in options_of(kind) if o.name not in known]
        extra = [_parameter(option, kind.command.name) for option in options if kind is not None]
        required = [p for p in self.own if p.default is inspect.Parameter.empty]
        optional = [p for p in self.own if p.default is not inspect.Parameter.empty]
        parameters = [*required, *common, *extra, *optional]
        self.function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        self.function.__annotations__ = {p.name: p.annotation for p in parameters}
        return options

    def flags(self) -> set[str]:
        """All options that it has now."""
        flags = {"--help"}
        for parameter in inspect.signature(self.function).parameters.values():
            flags.add("--" + parameter.name.replace("_", "-"))
            for note in getattr(parameter.annotation, "__metadata__", ()):
                flags.update(getattr(note, "param_decls", None) or ())
        return flags


def _options_in(bundle: Any) -> list[inspect.Parameter]:
    """The options that are fields of a dataclass, as parameters of a command."""
    hints = get_type_hints(bundle, include_extras=True)
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(bundle)
    ]


def _parameter(option: Option, mechanism: str) -> inspect.Parameter:
    unit = f" In {option.unit}." if option.unit else ""
    note = typer.Option(
        *(option.flag, *option.aliases),
        metavar=option.metavar,
        help=option.help + unit,
        rich_help_panel=f"Options of {mechanism}",
    )
    kind: Any = option.type
    if option.repeated:
        kind = list[str] | None
    elif kind is not bool:
        kind = kind | None
    default = False if option.type is bool else None
    annotation: Any = Annotated[kind, note]
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def with_mechanism_options(
    *words: str, without: tuple[str, ...] = (), argument: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of mechanisms; its own first parameter receives them.

    A parameter whose type is a dataclass receives the options that are fields of that.

    Parameters:
        words: the command as typed, such as ``release``.
        without: options that the command does not have.
        argument: whether the mechanism is an argument and not an option.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        _, *parameters = inspect.signature(function).parameters.values()
        bundles = {each.name: hints[each.name] for each in parameters}
        bundles = {name: kind for name, kind in bundles.items() if is_dataclass(kind)}
        own: list[inspect.Parameter] = []
        for each in parameters:
            if each.name in bundles:
                own += _options_in(bundles[each.name])
            else:
                keyword = inspect.Parameter.KEYWORD_ONLY
                own.append(each.replace(kind=keyword, annotation=hints[each.name]))
        names = {each.name for each in own}
        shared = {each.name for each in fields(MechanismOptions)} - names

        @functools.wraps(function)
        def command(**typed: Any) -> None:
            common = {name: typed.pop(name) for name in list(typed) if name in shared}
            special = {name: typed.pop(name) for name in list(typed) if name not in names}
            for name, bundle in bundles.items():
                typed[name] = bundle(**{each.name: typed.pop(each.name) for each in fields(bundle)})
            function(MechanismOptions(**{"value": [], **common, "own": special}), **typed)

        del command.__wrapped__
        made = _Command(words, command, own, without, argument)
        made.offer(None)
        _COMMANDS.append(made)
        return command

    return decorate


def offer_options(arguments: Sequence[str]) -> None:
    """Prepare the command that is about to run for the mechanism that its arguments name.

    Parameters:
        arguments: the words after ``tempriv``.
    """
    for command in _COMMANDS:
        if tuple(arguments[: len(command.words)]) != command.words:
            continue
        name = _named(arguments[len(command.words) :], command)
        if name is None or name not in registry.names():
            command.offer(None)
            continue
        command.offer(registry.find(name))
        _refuse_other_options(arguments, name, command.flags())


def _named(arguments: Sequence[str], command: _Command) -> str | None:
    """The mechanism among the arguments: after --mechanism, or the first word by itself."""
    for i, word in enumerate(arguments):
        if word == "--mechanism" and i + 1 < len(arguments):
            return arguments[i + 1]
        if word.startswith("--mechanism="):
            return word.partition("=")[2]
    words = [word for word in arguments if word in registry.names()] if command.argument else []
    return words[0] if words else None


def _refuse_other_options(arguments: Sequence[str], name: str, known: set[str]) -> None:
    """Say which option is that of another mechanism, instead of that there is none."""
    typed = [word.partition("=")[0] for word in arguments if word.startswith("--")]
    strange = [flag for flag in typed if flag not in known]
    if not strange:
        return
    of_times: set[str] = set()
    of_values: set[str] = set()
    for kind in registry.classes():
        flags = {flag for option in options_of(kind) for flag in (option.flag, *option.aliases)}
        (of_times if kind.command.on_times else of_values).update(flags)
    command = registry.find(name).command
    for flag in strange:
        if flag not in of_times | of_values:
            continue
        why = ""
        if command.on_times and flag not in of_times:
            why = f", which {command.on_times}"
            if flag == "--threshold" and "--free-slots" in known:
                why = ": it is a value to alert at; how many slots to choose from is --free-slots"
        require(False, f"{flag}: not for --mechanism {name}{why}")
