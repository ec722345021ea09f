"""What lies beside a table with marks: how its landmarks were chosen, and by which columns.

It is bound to the table by a checksum. Where values decided, no guarantee that takes the landmarks
as given holds for them, so whoever releases the table has to know.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tempriv.data.files import checksum, write_durably
from tempriv.data.parent import COPY_SUFFIX, parent_of
from tempriv.errors import DataError

PROVENANCE_SUFFIX = COPY_SUFFIX


@dataclass(frozen=True)
class LandmarkProvenance:
    """Of one column of marks.

    Parameters:
        how: the landmarks were chosen, as a phrase.
        looked_at: the columns of values that decided.
        recall: the chance that a landmark has a mark, where marks were drawn.
        hidden: what marks tell of which moments are landmarks, where they were.
        epsilon: of whether any one moment is a landmark, where they were; None: nothing is hidden.
        draw: names the draw; None: marks were not drawn.
    """

    how: str
    looked_at: tuple[str, ...] = ()
    recall: float | None = None
    hidden: str = ""
    epsilon: float | None = None
    draw: str | None = None


def provenance_path(path: Path) -> Path:
    """Where the provenance of landmarks in the table at ``path`` is."""
    return path.with_name(path.name + PROVENANCE_SUFFIX)


def provenance_of(path: Path) -> dict[str, LandmarkProvenance]:
    """The provenance of landmarks in the table at ``path``, by column; empty if there is none."""
    place = provenance_path(path)
    try:
        content = json.loads(place.read_bytes())
        notes = {
            str(name): LandmarkProvenance(**{**note, "looked_at": tuple(note["looked_at"])})
            for name, note in content["marks"].items()
        }
        bound = content["checksum"] == checksum(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        notes, bound = {}, False
    if not bound:
        raise DataError(
            f"{place}: does not belong to {path.name} as it is now; it says how the landmarks were "
            "chosen. Make the marks again with tempriv landmarks"
        )
    return notes


def write_provenance(
    path: Path, notes: dict[str, LandmarkProvenance], content: Path, source: Path
) -> None:
    """Write the note of a copy.

    Parameters:
        path: where the copy will be.
        notes: about its columns of marks.
        content: where it is so far.
        source: the table that it is a copy of.
    """
    columns = {name: asdict(note) for name, note in notes.items()}
    parent = parent_of(source) or source.name
    body = {"marks": columns, "checksum": checksum(content), "parent": parent}
    write_durably(provenance_path(path), (json.dumps(body, indent=2) + "\n").encode())
