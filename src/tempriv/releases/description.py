"""What stands beside a released file: its description as JSON, and the checks of its form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from tempriv._version import VERSION
from tempriv.data.arrow import kind_named
from tempriv.errors import TemprivError, require
from tempriv.ledger.database import default_path
from tempriv.privacy import serialization

if TYPE_CHECKING:
    from tempriv.releases.signature import SigningKey

FORMAT = 2
READABLE_FORMATS = (1, FORMAT)
"""Descriptions of format 1 have no evidence and no signature."""
EVIDENCE, SIGNATURE = "evidence", "signature"
OF_THE_FILE = ("output", SIGNATURE)
"""What a description says of one file and not of its values: left out when these go elsewhere."""
METADATA_KEY = b"tempriv"
SIDECAR_SUFFIX = ".release.json"
OWNER_SUFFIX, EVIDENCE_SUFFIX = ".owner.csv", ".owner.json"


def ledger_sentence(about: dict[str, Any]) -> str:
    """Whether and where the release that ``about`` describes was charged."""
    receipt = about["ledger"]
    if receipt is None:
        return "not charged to a ledger: whoever adds up what was spent must count it by hand"
    return f"charge {receipt['charge']} on dataset {receipt['dataset']!r}"


def as_json(about: dict[str, Any]) -> bytes:
    """The bytes of the file that holds ``about``."""
    return (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode()


def sidecar_path(path: Path) -> Path:
    """Where the description of the release at ``path`` is."""
    return path.with_name(path.name + SIDECAR_SUFFIX)


def owner_path(output: Path) -> Path:
    """Where the owner's file of a release at ``output`` is."""
    return output.with_name(output.name + OWNER_SUFFIX)


def owner_evidence_path(output: Path) -> Path:
    """Where what was measured for the owner of a release at ``output`` is."""
    return output.with_name(output.name + EVIDENCE_SUFFIX)


def default_key_path() -> Path:
    """Where the user's key for signatures is, if there is one: beside the user's ledger."""
    return default_path().with_name("signing.key")


def value_spec(about: dict[str, Any]) -> dict[str, Any]:
    """The part of the spec in ``about`` that says what is done to a single value."""
    return cast(dict[str, Any], about["mechanism"].get("over", about["mechanism"]))


def value_types(about: dict[str, Any]) -> dict[str, pa.DataType]:
    """The types of value columns that ``about`` names, where they are simple ones."""
    columns = about["columns"]
    if "types" not in columns or "after" in about:
        return {}
    names, types = columns["values"], columns["types"]
    sound = isinstance(types, list) and len(types) == len(names)
    require(sound, "types: not one for each value column", TemprivError)
    kinds = {name: kind_named(str(kind)) for name, kind in zip(names, types, strict=True)}
    return {name: kind for name, kind in kinds.items() if kind is not None}


# what every description has; the rest is for people
REQUIRED_FIELDS: dict[str, type] = {
    "release": str,
    "mechanism": dict,
    "guarantee": dict,
    "published": dict,
    "sentence": str,
    "columns": dict,
    "expected_error": list,
    "not_protected": list,
    "times": dict,
    "treatment": list,
    "rows": int,
    "series": int,
    "output": dict,
}


def read_about(path: Path) -> dict[str, Any]:
    """The description of a released file, checked for form.

    Parameters:
        path: the released file.

    Raises:
        TemprivError: a file or description that is missing, damaged or of another version.
    """
    beside = sidecar_path(path)
    require(path.exists(), f"{path}: no such file", TemprivError)
    require(
        beside.exists(),
        f"{beside}: missing; a release is a file with this one beside it",
        TemprivError,
    )
    try:
        about = json.loads(beside.read_bytes(), object_pairs_hook=_once_each)
    except (ValueError, RecursionError):
        about = None
    version = isinstance(about, dict) and about.get("format")
    require(
        version in (*READABLE_FORMATS, False, None),
        f"{beside}: written in format {version} by another version of tempriv; this is {VERSION}",
        TemprivError,
    )
    sound = (
        version in READABLE_FORMATS
        and (version == 1 or isinstance(about.get(EVIDENCE), dict))
        and all(isinstance(about.get(key), kind) for key, kind in REQUIRED_FIELDS.items())
        and {"series", "ids", "time", "values"} <= about["columns"].keys()
        and isinstance(about["columns"]["values"], list)
        and len(about["columns"]["values"]) > 0
        and "ledger" in about
    )
    require(sound, f"{beside}: not the description of a release", TemprivError)
    return cast(dict[str, Any], about)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a name that stands twice could be read in two ways."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def without_file(about: dict[str, Any]) -> dict[str, Any]:
    """The description ``about`` without what it says of the file that it was written for."""
    return {name: value for name, value in about.items() if name not in OF_THE_FILE}


def signed(about: dict[str, Any], key: SigningKey | None) -> dict[str, Any]:
    """The description ``about`` as it is handed out: signed, if there is a ``key``."""
    return about if key is None else key.sign(about)


def with_receipt(about: dict[str, Any], receipt: Any) -> dict[str, Any]:
    """The description ``about`` with the ``receipt`` of the ledger, None if nothing was charged."""
    return {**about, "ledger": None if receipt is None else serialization.encode(receipt)}
