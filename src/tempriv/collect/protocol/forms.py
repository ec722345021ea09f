"""The form of a campaign as data: fields, limits and drawing rules that a page follows.

A kind of campaign describes its form here, and a page builds it without knowing the kind. Values
that come back are checked against the same fields.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

FieldType = Literal[
    "text", "integer", "number", "duration", "choice", "check", "lines", "numbers", "json", "moment"
]
ColumnFormat = Literal["text", "code", "share", "interval", "count", "yes_no"]


@dataclass(frozen=True, kw_only=True)
class FormField:
    """One field of a form.

    Parameters:
        name: key of its value.
        label: what a person reads beside it.
        type: which control it is; a duration is in seconds, a moment is a text with its zone.
        hint: one or two sentences about what to choose.
        value: what it holds at first.
        unit: unit of a number.
        min: least number allowed.
        max: largest number allowed.
        above: number that the value must exceed.
        options: pairs of value and label of a choice.
        required: whether it may not be empty.
        most: most characters of a text, or most lines.
        rows: height of a field of lines.
        many: how many numbers there must be.
        wide: whether it takes a row of its own.
        missing: what is said if it is empty.
        note: name of a sentence that follows the value: ``odds`` explains an epsilon.
    """

    name: str
    label: str
    type: FieldType
    hint: str = ""
    value: Any = None
    unit: str | None = None
    min: int | float | None = None
    max: int | float | None = None
    above: int | float | None = None
    options: tuple[tuple[str, str], ...] | None = None
    required: bool = False
    most: int | None = None
    rows: int | None = None
    many: int | None = None
    wide: bool = False
    missing: str | None = None
    note: Literal["odds"] | None = None

    def problem(self, value: Any) -> str:
        """Return why a value is refused, or an empty text.

        Parameters:
            value: what came back for this field.

        >>> FormField(name="n", label="N", type="integer", hint="", min=1).problem(0)
        'Must be at least 1.'
        """
        sentence = _TYPE_PROBLEMS[self.type](self, value)
        if sentence or self.type not in ("integer", "number", "duration"):
            return sentence
        if self.above is not None and value <= self.above:
            return f"Must be above {self.above:,}."
        if self.min is not None and value < self.min:
            return f"Must be at least {self.min:,}."
        if self.max is not None and value > self.max:
            return f"Must be at most {self.max:,}."
        return ""


def number(
    name: str, label: str, value: float, unit: str, low: float | None = None, **more: Any
) -> FormField:
    """Return a field for a number of at least ``low``.

    Parameters:
        name: key of its value.
        label: what a person reads beside it.
        value: what it holds at first.
        unit: unit of the number.
        low: least number allowed.
        more: other attributes of the field, such as ``above``.
    """
    return FormField(name=name, label=label, type="number", value=value, unit=unit, min=low, **more)


def integer(name: str, label: str, value: int, unit: str, low: int, high: int) -> FormField:
    """Return a field for a whole number from ``low`` to ``high``.

    Parameters:
        name: key of its value.
        label: what a person reads beside it.
        value: what it holds at first.
        unit: unit of the number.
        low: least number allowed.
        high: largest number allowed.
    """
    return FormField(
        name=name, label=label, type="integer", value=value, unit=unit, min=low, max=high
    )


def duration(name: str, label: str, value: float, low: float, high: float) -> FormField:
    """Return a field for a time in seconds from ``low`` to ``high``.

    Parameters:
        name: key of its value.
        label: what a person reads beside it.
        value: what it holds at first.
        low: least time allowed.
        high: longest time allowed.
    """
    return FormField(name=name, label=label, type="duration", value=value, min=low, max=high)


def choice(name: str, label: str, options: Mapping[str, str]) -> FormField:
    """Return a field for one of some options, which holds the first one at first.

    Parameters:
        name: key of its value.
        label: what a person reads beside it.
        options: labels by value.
    """
    first = next(iter(options))
    return FormField(
        name=name, label=label, type="choice", value=first, options=tuple(options.items())
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 2**1000 and math.isfinite(value)


def _number_problem(field: FormField, value: Any) -> str:
    return "" if _is_number(value) else "Give a number."


def _integer_problem(field: FormField, value: Any) -> str:
    return "" if type(value) is int else "Give a whole number."


def _text_problem(field: FormField, value: Any) -> str:
    if not isinstance(value, str) or (field.required and not value.strip()):
        return field.missing or "Give a text."
    too_long = field.most is not None and len(value) > field.most
    return f"Must be at most {field.most} characters." if too_long else ""


def _choice_problem(field: FormField, value: Any) -> str:
    values = [name for name, _ in field.options or ()]
    return "" if value in values else f"Must be one of {', '.join(values)}."


def _check_problem(field: FormField, value: Any) -> str:
    return "" if isinstance(value, bool) else "Must be on or off."


def _lines_problem(field: FormField, value: Any) -> str:
    if not isinstance(value, list) or not all(isinstance(line, str) and line for line in value):
        return "Give a text on each line."
    if len(set(value)) < len(value):
        return "Each line may be there once."
    if len(value) == 1 or (field.required and not value):
        return "Give at least two, one on each line."
    return f"Must be at most {field.most}." if len(value) > (field.most or math.inf) else ""


def _numbers_problem(field: FormField, value: Any) -> str:
    if not isinstance(value, list) or not all(map(_is_number, value)):
        return "Give numbers, with spaces between them."
    wrong = field.many is not None and len(value) != field.many
    return f"Give {field.many} numbers, with spaces between them." if wrong else ""


def _json_problem(field: FormField, value: Any) -> str:
    named = isinstance(value, dict) and isinstance(value.get("is"), str)
    return "" if named else "Must be an object with “is”: the name of a mechanism."


def _moment_problem(field: FormField, value: Any) -> str:
    try:
        zoned = value is None or datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        zoned = False
    return "" if zoned else "Give a date and a time with its zone, or nothing."


_TYPE_PROBLEMS = {
    "text": _text_problem,
    "integer": _integer_problem,
    "number": _number_problem,
    "duration": _number_problem,
    "choice": _choice_problem,
    "check": _check_problem,
    "lines": _lines_problem,
    "numbers": _numbers_problem,
    "json": _json_problem,
    "moment": _moment_problem,
}


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Holds where a field, or a value of a campaign's JSON, has this value."""

    field: str
    equals: Any


@dataclass(frozen=True, kw_only=True)
class FormGroup:
    """Fields under one heading; ``when`` says for which choice they are shown."""

    title: str
    fields: tuple[FormField, ...]
    folded: bool = False
    when: Condition | None = None


def form_group(
    title: str,
    fields: Iterable[FormField],
    hints: Mapping[str, str],
    folded: bool = False,
    when: Condition | None = None,
) -> FormGroup:
    """Return fields under one heading, each with its hint.

    Parameters:
        title: the heading.
        fields: the fields, in their order.
        hints: what to choose, by the name of a field.
        folded: whether they are hidden until a person asks for them.
        when: for which choice they are shown.
    """
    with_hints = (replace(field, hint=hints.get(field.name, field.hint)) for field in fields)
    return FormGroup(title=title, fields=tuple(with_hints), folded=folded, when=when)


def fields_in_use(groups: Iterable[FormGroup], values: Mapping[str, Any]) -> list[FormField]:
    """Return the fields that are shown for these values.

    Parameters:
        groups: the whole form.
        values: what was filled in, by the name of a field.
    """
    return [
        field
        for group in groups
        if group.when is None or values.get(group.when.field) == group.when.equals
        for field in group.fields
    ]


@dataclass(frozen=True, kw_only=True)
class ResultColumn:
    """A column of the table of a result; ``optional`` ones go where no row has a value."""

    head: str
    field: str
    format: ColumnFormat = "text"
    optional: bool = False


@dataclass(frozen=True, kw_only=True)
class ResultNote:
    """A sentence below a result, with ``{path}`` for values of the campaign or the result."""

    text: str
    when: Condition | None = None


@dataclass(frozen=True, kw_only=True)
class ResultView:
    """How a result is drawn.

    Parameters:
        view: ``bars`` of shares, ``lines`` of shares over steps, ``sequences`` of letters as small
            pictures, or ``text`` alone.
        caption: what the picture or the table shows.
        rows: key of the result that holds the rows.
        name: column that names a row; of ``lines``, path of the names in the campaign.
        columns: the table beside the picture.
        symbols: path of the number of letters in the campaign, for ``sequences``.
        text: the sentence of a ``text``.
        notes: sentences below.
        people_label: what the number of people counts.
    """

    view: Literal["bars", "lines", "sequences", "text"]
    caption: str = ""
    rows: str = ""
    name: str = ""
    columns: tuple[ResultColumn, ...] = ()
    symbols: str | None = None
    text: str = ""
    notes: tuple[ResultNote, ...] = ()
    people_label: str = "Devices that answered"


@dataclass(frozen=True, kw_only=True)
class KindDescription:
    """Everything that a page needs to know of a kind of campaign.

    Parameters:
        name: the kind in a campaign's JSON.
        title: its name for people.
        summary: what it finds out.
        has_steps: whether devices are asked step by step, and results come while it runs.
        questions: what each kind of question asks, in plain words.
        facts: labels with texts about a campaign, with ``{path}`` for values of its JSON.
        form: the fields of a new campaign.
        result: how its result is drawn.
    """

    name: str
    title: str
    summary: str
    has_steps: bool
    questions: dict[str, str]
    facts: tuple[tuple[str, str], ...]
    form: tuple[FormGroup, ...]
    result: ResultView


@dataclass(frozen=True, kw_only=True)
class CampaignDraft:
    """A campaign as a form makes it: its JSON, or what is wrong with which field."""

    campaign: dict[str, Any] | None
    problems: dict[str, str]
