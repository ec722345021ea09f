"""What a release says to those who have to sign it off: by registry, guideline and law.

Three lists of questions are answered: the fields of the Differential Privacy Deployments Registry
(tiers 1 to 3), the parts of NIST SP 800-226, and the three tests of anonymity under the GDPR
(Article 29 Working Party, Opinion 05/2014). Each answer says where it comes from: ``release`` (it
follows from the description), ``theory`` (a cap that follows from the guarantee), ``curator`` (it
was stated) or ``not stated``. Nothing here is computed from the private table.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempriv.errors import UsageError, require
from tempriv.privacy import guarantees
from tempriv.privacy.guarantees import (
    Approximate,
    Calibrated,
    Concentrated,
    Guarantee,
    NoGuarantee,
    Pure,
)
from tempriv.privacy.units import Event, WholeSeries

if TYPE_CHECKING:
    from tempriv.mechanisms.base import Mechanism

STATEMENTS = {
    "curator": "who releases the data and answers for it",
    "contact": "where questions about the release go",
    "product": "what is released, in a sentence",
    "use": "what the release is meant for",
    "license": "under which terms it may be used",
    "rationale": "why this mechanism, this unit and this loss were chosen",
    "data": "what the private data are, and whose",
    "collection": "how the private data were collected, and who saw them on the way",
    "access": "who can read the private data, the ledger and the keys",
    "security": "how the machine that released them is protected",
    "side_channels": "what is done against others watching the run: its time, its refusals",
    "composition": "what else was released about the same people, outside this ledger",
    "utility": "what was found out about its use, on public or made-up data",
    "bias": "for which groups the released values are worse, and what follows",
}
"""What a curator can state, and what each statement says."""
MAX_CHARACTERS = 4000
THEORY, RELEASE, CURATOR, NOT_STATED = "theory", "release", "curator", "not stated"
STATED = "stated"

Answer = dict[str, Any]


# statements of the curator


def check_statements(given: Mapping[str, Any]) -> dict[str, str]:
    """Statements that may be published, as they were ``given``.

    Raises:
        UsageError: one is unknown, no text, or too long.

    >>> check_statements({"contact": "data@example.org"})
    {'contact': 'data@example.org'}
    """
    for name, text in given.items():
        require(
            name in STATEMENTS,
            f"{name}: not a statement about a release; must be one of {', '.join(STATEMENTS)}",
            UsageError,
        )
        sound = isinstance(text, str) and 0 < len(text.strip()) <= MAX_CHARACTERS
        require(
            sound and text.replace("\n", " ").isprintable(),
            f"{name}: must be a text of 1 to {MAX_CHARACTERS:,} characters",
            UsageError,
        )
    return {name: given[name].strip() for name in STATEMENTS if name in given}


def read_statements(path: Path) -> dict[str, str]:
    """The statements in a TOML file.

    Parameters:
        path: the file, with lines such as ``contact = "data@example.org"``.

    Raises:
        UsageError: there is no such file, it is no TOML, or a statement is unknown.
    """
    require(path.is_file(), f"{path}: no such file", UsageError)
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path}: not TOML: {problem}") from None
    try:
        return check_statements(given)
    except UsageError as problem:
        raise UsageError(f"{path}: {problem.message}") from None


def template() -> str:
    """A TOML file for all statements, each to be filled in or left out.

    >>> print(template().splitlines()[2])
    # who releases the data and answers for it
    """
    lines = [
        "# What a release says about itself. All of it is published; leave out what you like.",
        "",
    ]
    for name, text in STATEMENTS.items():
        lines += [f"# {text}", f'# {name} = ""', ""]
    return "\n".join(lines)


# what evidence is made from


@dataclass(frozen=True, kw_only=True)
class EvidenceFacts:
    """What the answers rest on, apart from the description and what is stated.

    Parameters:
        guarantee: of the release.
        domain: what the data can be, in a sentence.
        method: what the data pass through.
        choices: how many values a reading is guessed among.
        longest: readings of the longest series; None where there are no series of people.
        alike: how many series there are that a known one is looked for among; None where rows are
            not series of people.
        linked: what links rows to people besides their values.
        trusts: who is trusted with the data.
        exposed: where the data are before they are protected.
        on_grid: whether released values are numbers on a public grid.
    """

    guarantee: Guarantee | NoGuarantee
    domain: str
    method: str
    choices: int = 2
    longest: int | None = None
    alike: int | None = None
    linked: str = ""
    trusts: str
    exposed: str
    on_grid: bool = False


def evidence_of(
    about: Mapping[str, Any],
    mechanism: Mechanism,
    statements: Mapping[str, str],
    longest: int | None = None,
) -> dict[str, Any]:
    """The evidence of a release of a table; follows from what else the description says.

    Parameters:
        about: the description.
        mechanism: what the values passed through.
        statements: what the curator says.
        longest: how many rows the longest series has, where rows are readings of series.
    """
    found = guarantees.decode(about["guarantee"])
    columns, counted = about["columns"], "counted" in about
    categories = mechanism.domain.released.categories
    alike = None if counted or columns["series"] is None else about["series"]
    linked = (
        "The ids of series were replaced by names that nobody without the key links to them."
        if about["pseudonyms"]
        else "The ids of series are published as they are: whoever knows an id needs no attack."
    )
    return evidence_from(
        about,
        EvidenceFacts(
            guarantee=found,
            domain=_domain(mechanism, columns["values"]),
            method=f"{mechanism.command.name}: {mechanism.command.purpose}",
            choices=2 if categories is None else max(2, min(map(len, categories))),
            longest=None if counted else longest,
            alike=alike,
            linked="" if alike is None else linked,
            trusts="The curator held the private table and is trusted with it; whoever gets the "
            "release is not.",
            exposed="The private table was read as it is, on the curator's machine.",
            on_grid=mechanism.domain.released.kind in ("numbers", "places"),
        ),
        statements,
    )


def evidence_from(
    about: Mapping[str, Any], facts: EvidenceFacts, statements: Mapping[str, str]
) -> dict[str, Any]:
    """All questions with their answers.

    Parameters:
        about: the description.
        facts: what else the answers rest on.
        statements: what the curator says.
    """
    stated = check_statements(statements)
    return {
        STATED: stated,
        "longest_series": facts.longest,
        "registry": _registry(about, facts, stated),
        "nist_sp_800_226": _guideline(about, facts, stated),
        "gdpr": _tests(facts),
    }


# answers


def _says(stated: Mapping[str, str], name: str, otherwise: str | None = None) -> Answer:
    """What the curator states; else what the release can say itself, if it can."""
    if name in stated:
        return {"answer": stated[name], "source": CURATOR}
    return {"answer": otherwise, "source": NOT_STATED if otherwise is None else RELEASE}


def _follows(answer: Any) -> Answer:
    return {"answer": answer, "source": RELEASE}


def _both(answer: str, stated: Mapping[str, str], name: str) -> Answer:
    """What follows from the release, and what the curator adds."""
    return {**_follows(answer), "curator": stated.get(name)}


def _registry(
    about: Mapping[str, Any], facts: EvidenceFacts, stated: Mapping[str, str]
) -> dict[str, Any]:
    """The fields of the registry of deployments, by tier."""
    guarantee = facts.guarantee
    unit = loss = model = None
    if isinstance(guarantee, Guarantee):
        unit, loss, model = guarantee.unit.sentence, vars(guarantee.loss), guarantee.model
    return {
        "tier_1": {
            "curator": _says(stated, "curator"),
            "intended_use": _says(stated, "use"),
            "data_product": _says(stated, "product", _product(about)),
            "publication_date": _follows(about["created"][:10]),
        },
        "tier_2": {
            "flavor": _follows(_flavor(guarantee)),
            "privacy_unit": _follows(unit),
            "privacy_loss": _follows(loss),
            "deployment_model": _follows(model),
        },
        "tier_3": {
            "data_domain": _both(facts.domain, stated, "data"),
            "unprotected_quantities": _follows(list(about["not_protected"])),
            "privacy_unit_in_detail": _follows(guarantee.plain),
            "post_processing": _follows(
                "what was done with released values since is listed under `after`; it costs nothing"
            ),
            "composition": _both(
                "`ledger` names the charge, and totals of the dataset where these may be public; "
                "without a charge nothing was added up",
                stated,
                "composition",
            ),
            "implementation": _follows(
                f"tempriv {about['tempriv']}; {facts.method}; randomness: {about['randomness']}"
            ),
            "security": _says(stated, "security"),
            "rationale": _says(stated, "rationale"),
            "contact": _says(stated, "contact"),
            "license": _says(stated, "license"),
        },
    }


def _guideline(
    about: Mapping[str, Any], facts: EvidenceFacts, stated: Mapping[str, str]
) -> dict[str, Any]:
    """The parts that NIST SP 800-226 evaluates, from the loss down to the collection of data."""
    guarantee = facts.guarantee
    errors = ", ".join(
        f"{entry['column']} {entry['error']:.4g} ({entry['measure']})"
        for entry in about["expected_error"]
    )
    return {
        "privacy_loss": _follows(str(guarantee.loss) if isinstance(guarantee, Guarantee) else None),
        "what_is_protected": _follows(guarantee.sentence),
        "what_is_not_protected": _follows(list(about["not_protected"])),
        "algorithm": _follows(facts.method),
        "utility": _both(
            f"expected error: {errors}" if errors else "errors stand in the table",
            stated,
            "utility",
        ),
        "bias": _says(stated, "bias"),
        "trust_model": _follows(facts.trusts),
        "side_channels": _both(
            (
                "Released values lie on a public grid: their last digits tell nothing. "
                * facts.on_grid
            )
            + "How long the run took, and whether it refused the data, is seen where it ran and "
            "not in the files.",
            stated,
            "side_channels",
        ),
        "access_control": _says(stated, "access"),
        "security": _says(stated, "security"),
        "data_collection_exposure": _both(facts.exposed, stated, "collection"),
    }


def _product(about: Mapping[str, Any]) -> str:
    names = ", ".join(about["columns"]["values"])
    return f"{about['rows']:,} rows of {names}"


def _flavor(guarantee: Guarantee | NoGuarantee) -> str:
    if isinstance(guarantee, NoGuarantee):
        return f"none: {guarantee.reason}"
    names = {
        Pure: "pure differential privacy",
        Approximate: "approximate differential privacy",
        Concentrated: "zero-concentrated differential privacy",
        Calibrated: "approximate differential privacy, and zero-concentrated for several releases",
    }
    return names[type(guarantee.loss)]


def _domain(mechanism: Mechanism, names: list[str]) -> str:
    """What the readings of a mechanism can be, as was declared."""
    domain = mechanism.domain
    if domain.bounds is not None:
        ranges = (
            f"{name} from {low:g} to {high:g}"
            for name, (low, high) in zip(names, domain.bounds, strict=False)
        )
        return f"numbers: {', '.join(ranges)}"
    if domain.categories is not None:
        listed = (
            f"{name}: {len(known)}" for name, known in zip(names, domain.categories, strict=False)
        )
        return f"declared categories, so many of each column: {', '.join(listed)}"
    return f"{domain.kind} of {', '.join(names)}"


# the three tests


def _tests(facts: EvidenceFacts) -> dict[str, Any]:
    """Singling out, linkability and inference, each by what the guarantee caps."""
    return {
        "singling_out": _singling_out(facts),
        "linkability": _linkability(facts),
        "inference": _inference(facts),
    }


def _cap(
    question: str, guarantee: Guarantee | NoGuarantee, candidates: int, links: int = 1
) -> Answer:
    """The most that an attacker can be right about a question, whatever else they know."""
    if isinstance(guarantee, NoGuarantee):
        answer = f"no cap follows: {guarantee.reason}"
        return {"question": question, "cap": None, "answer": answer, "source": THEORY}
    loss = guarantee.loss if links == 1 else guarantee.loss.grouped(links)
    # rounded up: a cap must not be rounded into a better one
    cap = min(1.0, math.ceil(1e4 * guarantees.guess_cap(loss, candidates) - 1e-9) / 1e4)
    chance = math.ceil(1e4 / candidates - 1e-9) / 1e4
    answer = (
        f"right with probability at most {cap:g}, where guessing gives {chance:g}; follows from "
        f"{loss} for {guarantee.unit.sentence}"
    )
    if links > 1:
        answer += f", {links} of them changed"
    if cap > 0.99:
        answer += ". This rules nothing out"
    return {
        "question": question,
        "cap": cap,
        "chance": chance,
        "candidates": candidates,
        "answer": answer,
        "source": THEORY,
    }


def _of_series(facts: EvidenceFacts) -> Guarantee | NoGuarantee | None:
    """The guarantee restated for the longest series as a whole."""
    if facts.longest is None:
        return None
    return facts.guarantee.for_unit(WholeSeries(facts.longest))


def _singling_out(facts: EvidenceFacts) -> list[Answer]:
    guarantee, whole = facts.guarantee, _of_series(facts)
    covered = guarantee.unit.sentence if isinstance(guarantee, Guarantee) else "anything"
    question = f"Which of two equally likely suspicions about {covered} is true?"
    answers = [_cap(question, guarantee, 2)]
    if whole is not None:
        question = "Which of two equally likely series is behind the rows of one id?"
        answers.append(_cap(question, whole, 2))
    return answers


def _linkability(facts: EvidenceFacts) -> list[Answer]:
    """Whoever knows a series whole looks for its rows: two series trade places between guesses."""
    whole, question = _of_series(facts), "Which released series is one that somebody knows whole?"
    if facts.alike is None:
        answer = "The rows are not series of people: there are no rows to link to a person."
        if facts.longest is not None:
            answer = "There is one series: whose it is was not hidden."
        return [{"question": question, "cap": None, "answer": answer, "source": RELEASE}]
    answers = [{"question": "What else links rows?", "cap": None, **_follows(facts.linked)}]
    if facts.alike >= 2 and whole is not None:
        answers.insert(0, _cap(question, whole, facts.alike, links=2))
    return answers


def _inference(facts: EvidenceFacts) -> list[Answer]:
    single = facts.guarantee.for_unit(Event())
    question = f"Which of {facts.choices} equally likely values did a single reading have?"
    return [_cap(question, single, facts.choices)]
