"""Options of mechanisms: what the command line, the documentation and a form ask for.

A mechanism declares its options as metadata of its dataclass fields. Whatever lists options (help,
``tempriv mechanisms``, the documentation, a JSON schema) is generated from them, so an option is
described in one place.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import MISSING, dataclass
from typing import Any, Literal

from tempriv.errors import UsageError, require

OPTION = "option"  # the key of an option in the metadata of a field


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

    @property
    def name(self) -> str:
        """The name of the option in Python, such as ``grouping_share``."""
        return self.flag.removeprefix("--").replace("-", "_")


def option(
    flag: str,
    help: str,
    *,
    default: Any = MISSING,
    default_factory: Callable[[], Any] | Any = MISSING,
    spec_name: str | None = None,
    **more: Any,
) -> Any:
    """A dataclass field that is an option of its mechanism.

    Parameters:
        flag: as typed on the command line.
        help: one sentence that says what it is.
        default: of the field; without one the option is required.
        default_factory: makes the default, as in ``dataclasses.field``.
        spec_name: the name of the field in files and digests, where it is another one.
        more: further parameters of ``Option``.

    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class Example:
    ...     theta: float = option("--theta", "How far readings may be apart.", default=1.0)
    >>> [given.flag for given in options_of(Example)]
    ['--theta']
    """
    given = Option(
        flag=flag,
        help=help,
        required=more.pop("required", default is MISSING and default_factory is MISSING),
        **more,
    )
    metadata: dict[str, Any] = {OPTION: given}
    if spec_name is not None:
        metadata["spec_name"] = spec_name
    if default_factory is not MISSING:
        return dataclasses.field(default_factory=default_factory, metadata=metadata)
    if default is not MISSING:
        return dataclasses.field(default=default, metadata=metadata)
    return dataclasses.field(metadata=metadata)


def shared(given: Option, *, default: Any = MISSING, required: bool | None = None) -> Any:
    """A field filled by an option that several mechanisms have.

    Parameters:
        given: the option, one of those below.
        default: of the field; without one the option is required.
        required: whether the option must be given, where the default is only for Python.
    """
    needed = default is MISSING if required is None else required
    metadata = {OPTION: dataclasses.replace(given, required=needed)}
    if default is MISSING:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def options_of(kind: Any) -> tuple[Option, ...]:
    """The options of a mechanism: those of its fields in their order, then ``extra_options``.

    Parameters:
        kind: the class of the mechanism.
    """
    own = [
        dataclasses.replace(field.metadata[OPTION], field=field.name)
        for field in dataclasses.fields(kind)
        if OPTION in field.metadata
    ]
    return (*own, *getattr(kind, "extra_options", ()))


def schema_of(kind: Any) -> dict[str, Any]:
    """The options of a mechanism as the properties of a JSON schema, for forms.

    Parameters:
        kind: the class of the mechanism.
    """
    types = {float: "number", int: "integer", str: "string", bool: "boolean"}
    properties: dict[str, Any] = {}
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
)
PER_COLUMN = Option(
    flag="--per-column",
    help="Give every value column the whole budget; the total adds up. By default the columns "
    "share it.",
    type=bool,
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


def parsed(option: Option, typed: Any, columns: int) -> Any:
    """What was typed for an option, as its mechanism takes it.

    Parameters:
        option: the option.
        typed: its value, or a list of them where it may be repeated.
        columns: how many value columns there are; an option given once serves all.
    """

    def parse(text: Any) -> Any:
        if option.parse is None:
            return text
        return pair(option.name, text) if option.parse == "pair" else names(option.name, text)

    if not option.repeated:
        return parse(typed)
    values = [parse(text) for text in typed]
    require(
        len(values) in (1, columns),
        f"[[{option.name}]]: {len(values)} given for {columns} value columns; give one, or one for "
        "each",
    )
    return tuple(values * columns if len(values) == 1 else values)
