"""Options of mechanisms: what the command line, the documentation and a form ask for.

A mechanism declares its options as metadata of its dataclass fields. Whatever lists options (help,
``tempriv mechanisms``, the documentation, a JSON schema) is generated from them, so an option is
described in one place.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from typing import Any, Literal

from tempriv.errors import UsageError, require

OPTION = "option"  # the key of an option in the metadata of a field

Settings = Mapping[str, Any]
"""Options by their names, parsed, or fields by theirs."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option of a mechanism.

    Parameters:
        flag: as typed on the command line, such as ``--theta``.
        help: one sentence that says what it is.
        type: of one typed value: ``float``, ``int``, ``str`` or ``bool``.
        parse: what a typed text stands for: two numbers, or names; None takes it as it is.
        unit: what a number is measured in, such as ``time steps``.
        metavar: what stands for the value in help, such as ``LOW HIGH``.
        repeated: whether it may be given once for each value column.
        required: whether the mechanism cannot do without it.
        shown_default: what happens when it is left out, if that is not the field's default.
        field: the field of the mechanism that it fills; None where the mechanism makes something
            else of it in ``settings_from``.
        column: whether its value names a column of the table, which goes through the mechanism
            after the value columns.
        goes_with: the option without which a column is not asked for.
        aliases: other spellings of the flag that are understood.
        rank: its place among the options of fields; equal ones are in the order of the fields.
    """

    flag: str
    help: str
    type: type = float
    parse: Literal["pair", "names"] | None = None
    unit: str | None = None
    metavar: str | None = None
    repeated: bool = False
    required: bool = False
    shown_default: str | None = None
    field: str | None = None
    column: bool = False
    goes_with: str | None = None
    aliases: tuple[str, ...] = ()
    rank: int = 0

    @property
    def name(self) -> str:
        """The name of the option in Python, such as ``grouping_share``."""
        return self.flag.removeprefix("--").replace("-", "_")


def option(flag: str, help: str, **more: Any) -> Any:
    """A dataclass field that is an option of its mechanism.

    Parameters:
        flag: as typed on the command line.
        help: one sentence that says what it is.
        more: what ``shared`` takes, and further parameters of ``Option``.

    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class Example:
    ...     theta: float = option("--theta", "How far readings may be apart.", default=1.0)
    >>> [given.flag for given in options_of(Example)]
    ['--theta']
    """
    of_field = ("default", "default_factory", "required", "spec_name")
    own = {name: more.pop(name) for name in of_field if name in more}
    return shared(Option(flag=flag, help=help, **more), **own)


def shared(
    given: Option,
    *,
    default: object = MISSING,
    default_factory: object = MISSING,
    required: bool | None = None,
    spec_name: str | None = None,
) -> Any:
    """A field filled by an option that several mechanisms have.

    Parameters:
        given: the option, such as one of those below.
        default: of the field; without one the option is required.
        default_factory: makes the default, as in ``dataclasses.field``.
        required: whether the option must be given, where the default is only for Python.
        spec_name: the name of the field in files and digests, where it is another one.
    """
    defaults = {
        name: value
        for name, value in (("default", default), ("default_factory", default_factory))
        if value is not MISSING
    }
    needed = not defaults if required is None else required
    metadata: dict[str, object] = {OPTION: dataclasses.replace(given, required=needed)}
    if spec_name is not None:
        metadata["spec_name"] = spec_name
    make: Callable[..., object] = dataclasses.field
    return make(metadata=metadata, **defaults)


def options_of(kind: type) -> tuple[Option, ...]:
    """The options of a mechanism: those of its fields, then ``extra_options``.

    Parameters:
        kind: the class of the mechanism.
    """
    own = [
        dataclasses.replace(field.metadata[OPTION], field=field.name)
        for field in dataclasses.fields(kind)
        if OPTION in field.metadata
    ]
    return (*sorted(own, key=lambda option: option.rank), *getattr(kind, "extra_options", ()))


def schema_of(kind: type) -> dict[str, object]:
    """The options of a mechanism as the properties of a JSON schema, for forms.

    Parameters:
        kind: the class of the mechanism.
    """
    types = {float: "number", int: "integer", str: "string", bool: "boolean"}
    properties: dict[str, object] = {}
    for option in options_of(kind):
        single = {"type": types[option.type]}
        properties[option.name] = {
            **({"type": "array", "items": single} if option.repeated else single),
            "title": option.flag,
            "description": option.help,
            **({} if option.unit is None else {"unit": option.unit}),
        }
    required = [option.name for option in options_of(kind) if option.required]
    return {"type": "object", "properties": properties, "required": required}


BOUNDS = Option(
    flag="--bounds",
    help="Smallest and largest possible value, from what you know of the device, not from the "
    "data. Once for all value columns, or once for each.",
    type=str,
    parse="pair",
    metavar="LOW HIGH",
    repeated=True,
)
CATEGORIES = Option(
    flag="--categories",
    help="All categories, or a JSON list of them. Once for all value columns, or once for each.",
    type=str,
    parse="names",
    metavar="A,B,C",
    repeated=True,
)
RESOLUTION = Option(
    flag="--resolution",
    help="Public grid of released values, a power of two; fine by default.",
    rank=2,
)
PER_COLUMN = Option(
    flag="--per-column",
    help="Give every value column the whole budget; the total adds up. By default the columns "
    "share it.",
    type=bool,
    rank=1,
)
ORIGIN = Option(
    flag="--origin",
    help="A public place in the area, in degrees.",
    type=str,
    parse="pair",
    metavar="LAT LON",
)
METERS = Option(
    flag="--meters",
    help="Places this close to each other are hard to tell apart (by a factor e^epsilon).",
    unit="meters",
    aliases=("--metres",),
)
HORIZON = Option(flag="--horizon", help="The most steps that a series has.", type=int)
WINDOW = Option(
    flag="--window",
    help="Within so many time steps is hidden when a reading was.",
    type=int,
    unit="time steps",
)


def pair(name: str, text: str) -> tuple[float, float]:
    """Two numbers written as ``0,5`` or ``0 5``.

    Parameters:
        name: of the option.
        text: what was typed.

    >>> pair("bounds", "0,5")
    (0.0, 5.0)
    """
    try:
        low, high = (float(part) for part in text.replace(",", " ").split())
    except ValueError:
        raise UsageError(
            f"[[{name}={text}]]: must be two numbers, such as [[{name}=0 5]]"
        ) from None
    return low, high


def names(name: str, text: str) -> tuple[str, ...]:
    """Names with commas between them, or a JSON list where a name has a comma itself.

    Parameters:
        name: of the option.
        text: what was typed.

    >>> names("categories", "up,down"), names("categories", '["up, up"]')
    (('up', 'down'), ('up, up',))
    """
    if not text.startswith("["):
        return tuple(text.split(","))
    try:
        listed = json.loads(text)
    except ValueError:
        listed = None
    require(
        isinstance(listed, list) and all(isinstance(each, str) for each in listed),
        f"[[{name}]] {text}: must be names with commas between them, or a JSON list of names",
    )
    return tuple(listed)


def parsed(option: Option, typed: object, columns: int) -> object:
    """What was typed for an option, as its mechanism takes it.

    Parameters:
        option: the option.
        typed: its value, or a list of them where it may be repeated.
        columns: how many value columns there are; an option given once serves all.
    """

    def parse(text: object) -> object:
        if option.parse is None:
            return text
        return (pair if option.parse == "pair" else names)(option.name, str(text))

    if not option.repeated:
        return parse(typed)
    assert isinstance(typed, (list, tuple)), "options that may be repeated are collected in a list"
    values = [parse(text) for text in typed]
    require(
        len(values) in (1, columns),
        f"[[{option.name}]]: {len(values)} given for {columns} value columns; give one, or one for "
        "each",
    )
    return tuple(values * columns if len(values) == 1 else values)
