"""What a guarantee means for a single reading, a whole series and a whole person, for people.

A guarantee is about its unit. Whoever reads "epsilon = 1" may take it for a statement about a
person, so the same loss is restated here for whole series, and for persons where it is declared how
many series they have. All of it follows from the mechanism and the length of the longest series,
which is published: no value is looked at.
"""

from __future__ import annotations

import math
from typing import Any

from tempriv.errors import TemprivError
from tempriv.mechanisms.base import Description, Mechanism
from tempriv.privacy import guarantees
from tempriv.privacy.guarantees import (
    PROTECTS_NOTHING,
    WEAK_EPSILON,
    Concentrated,
    Guarantee,
    Loss,
    NoGuarantee,
    epsilon_and_delta,
    shown,
)
from tempriv.privacy.units import Unit

NOT_DECLARED = (
    "how many series one person has was not declared; the losses of all their series add up"
)
MANY = 1000
"""From here on an epsilon is told as a whole number, rounded up."""
GROWS = "epsilon grows with the number of readings"


def meaning_of(
    mechanism: Mechanism | None, guarantee: Guarantee | NoGuarantee, length: int | None
) -> dict[str, Any]:
    """What a guarantee means, as JSON: for its unit, for a whole series and for a whole person.

    Parameters:
        mechanism: that was used, or will be; None: what a campaign asked devices for.
        guarantee: that holds: that of the mechanism, or none under a seeded key.
        length: readings of the longest series; None: not known yet.

    Returns:
        ``headline``: all of it in words; ``relation``: how two neighboring inputs differ;
        ``statements``: an epsilon and a delta for the unit, a series and a person, or the reason
        why there is none; ``rows_together``: what all rows tell of two readings that trade places,
        where the guarantee is about single rows; ``delta_reason``; ``longest``;
        ``protects_little``: whether the epsilon of the unit is above 10.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> hourly = Laplace(epsilon=1.0, bounds=(0, 5))
    >>> meaning = meaning_of(hourly, hourly.guarantee, 672)
    >>> [(each["about"], each["epsilon"]) for each in meaning["statements"]]
    [('unit', 1.0), ('series', 672.0), ('person', None)]
    """
    if isinstance(guarantee, NoGuarantee):
        return {
            "headline": guarantee.sentence,
            "relation": None,
            "statements": [],
            "delta_reason": None,
            "longest": length,
            "protects_little": True,
        }
    together = {} if mechanism is None else mechanism.rows_together()
    rows = [
        {"distance": distance, "epsilon": loss.epsilon, "delta": loss.delta}
        for distance, loss in together.items()
    ]
    statements = [
        _statement("unit", guarantee.unit.sentence, guarantee.loss),
        _about_series(guarantee, length),
        _about_person(guarantee, length),
    ]
    return {
        "headline": _by_all_rows(guarantee, rows) if rows else _headline(guarantee, statements),
        "relation": guarantee.unit.relation,
        "statements": statements,
        **({"rows_together": rows} if rows else {}),
        "delta_reason": None if mechanism is None else mechanism.delta_reason,
        "longest": length,
        "protects_little": guarantee.protects_little,
    }


def meaning_in(about: Description) -> dict[str, Any]:
    """The meaning that a description has; one that version 0.8.0 wrote has none, and gets one.

    Parameters:
        about: the description of a release.
    """
    if "meaning" in about:
        return dict(about["meaning"])
    from tempriv.mechanisms import registry

    try:
        mechanism = registry.decode(about["mechanism"])
    except TemprivError:
        mechanism = None  # of a campaign
    # it says how many rows there are, not how many of each series
    length = about["rows"] if about["columns"]["series"] is None and mechanism else None
    return meaning_of(mechanism, guarantees.decode(about["guarantee"]), length)


def plain_words(about: Description) -> str:
    """The guarantee of a release for people who are no experts.

    Parameters:
        about: the description of the release.
    """
    guarantee = guarantees.decode(about["guarantee"])
    if isinstance(guarantee, NoGuarantee):
        return guarantee.plain
    return str(guarantee.plain_for(meaning_in(about)["longest"]))


def headline_of(mechanism: Mechanism, length: int | None = None) -> str:
    """What the guarantee of a mechanism means, in words.

    Parameters:
        mechanism: of any kind.
        length: readings of the longest series; None: not known yet.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> headline_of(Laplace(epsilon=1.0, bounds=(0, 5)), 672)[:78]
    'Protects any single reading of a series: epsilon = 1; a whole series of up to '
    """
    return str(meaning_of(mechanism, mechanism.guarantee, length)["headline"])


def _statement(about: str, what: str, loss: Loss) -> dict[str, Any]:
    epsilon, delta = epsilon_and_delta(loss)
    rho = {"rho": loss.rho} if isinstance(loss, Concentrated) else {}
    return {"about": about, "what": what, "epsilon": epsilon, "delta": delta, **rho}


def _none(about: str, what: str, reason: str) -> dict[str, Any]:
    return {"about": about, "what": what, "epsilon": None, "delta": None, "reason": reason}


def _restated(about: str, guarantee: Guarantee, whole: Unit, what: str) -> dict[str, Any]:
    restated = guarantee.for_unit(whole)
    if isinstance(restated, NoGuarantee):
        return _none(about, what, guarantee.unit.beyond)
    return _statement(about, whole.sentence, restated.loss)


def _about_series(guarantee: Guarantee, length: int | None) -> dict[str, Any]:
    unit, what = guarantee.unit, "a whole series"
    if length is None and unit.covers_series(None):
        return _statement("series", unit.sentence, guarantee.loss)
    whole = unit.of_series(1 if length is None else max(length, 1))
    if whole is None:
        return _none("series", what, unit.beyond)
    if length is None:
        return _none("series", what, GROWS)
    return _restated("series", guarantee, whole, what)


def _about_person(guarantee: Guarantee, length: int | None) -> dict[str, Any]:
    unit, what = guarantee.unit, "a whole person"
    whole = unit.of_person(1 if length is None else max(length, 1))
    if whole is None:
        return _none("person", what, NOT_DECLARED)
    if length is None:
        if unit.covers_series(None):
            return _statement("person", unit.sentence, guarantee.loss)
        return _none("person", what, GROWS)
    return _restated("person", guarantee, whole, what)


def _headline(guarantee: Guarantee, statements: list[dict[str, Any]]) -> str:
    """The loss of the unit, and of what is more than that: a person if known, else a series."""
    unit, series, person = statements
    more = series if person["epsilon"] is None else person
    parts = [f"{unit['what']}: {guarantee.loss}{_verdict(unit)}"]
    if more["epsilon"] is None:
        parts.append(f"{more['what']}: {more['reason']}")
    elif more["what"] != unit["what"] and not _is_covered(guarantee, unit, more):
        verdict = "" if guarantee.protects_little else _verdict(more)
        parts.append(f"{more['what']}: {_loss(more)}{verdict}")
    return f"Protects {'; '.join(parts)}.{_ending(guarantee)}"


def _is_covered(guarantee: Guarantee, unit: dict[str, Any], more: dict[str, Any]) -> bool:
    """Whether the statement says no more than that of the unit, which covers the series."""
    same = (unit["epsilon"], unit["delta"]) == (more["epsilon"], more["delta"])
    return same and guarantee.unit.covers_series(None)


def _by_all_rows(guarantee: Guarantee, rows: list[dict[str, Any]]) -> str:
    """What all rows tell, where the guarantee is about one row alone."""
    told = []
    for row in rows:
        apart = "next to each other" if row["distance"] == 1 else f"{row['distance']} steps apart"
        else_ = "" if row["delta"] == 1 else f" (else epsilon = {shown(row['epsilon'])})"
        told.append(f"{apart} {_certainty(row['delta'])}{else_}")
    verdict = f", which {PROTECTS_NOTHING}" if guarantee.protects_little else ""
    beyond = guarantee.unit.beyond.capitalize()
    return (
        "All rows together show for certain which of two readings was first: of two "
        f"{'; of two '.join(told)}. A guarantee holds for one row alone: it protects "
        f"{guarantee.unit.sentence}: {guarantee.loss}{verdict}. {beyond}."
    )


def _certainty(delta: float) -> str:
    return "always" if delta == 1 else f"with probability up to {shown(delta)}"


def _loss(statement: dict[str, Any]) -> str:
    delta = f", delta = {shown(statement['delta'])}" if statement["delta"] else ""
    return f"epsilon = {shown_epsilon(statement['epsilon'])}{delta}"


def shown_epsilon(epsilon: float) -> str:
    """An epsilon in four digits, or as a whole number, never less than it is.

    Parameters:
        epsilon: the loss.

    >>> shown_epsilon(0.123456), shown_epsilon(16800.0)
    ('0.1235', '16,800')
    """
    return shown(epsilon) if epsilon < MANY else f"{math.ceil(epsilon):,}"


def _verdict(statement: dict[str, Any]) -> str:
    return f", which {PROTECTS_NOTHING}" if statement["epsilon"] > WEAK_EPSILON else ""


def _ending(guarantee: Guarantee) -> str:
    """How the guarantee's own sentence ends: what it does not cover, and against whom it holds."""
    own = f"Protects {guarantee.unit.sentence}: {guarantee.loss}."
    return guarantee.sentence.removeprefix(own)
