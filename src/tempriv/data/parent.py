"""Which table a file was made from, as the note says that tempriv put beside it.

Copies with marks and releases (also those that were smoothed or rounded afterwards) are charged to
the dataset of the table at their beginning, whatever their own name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

COPY_SUFFIX, RELEASE_SUFFIX = ".landmarks.json", ".release.json"


def parent_of(path: Path) -> str | None:
    """The dataset that a file belongs to by its note; None if there is none.

    Parameters:
        path: of the file.
    """
    copied = _note(path, COPY_SUFFIX).get("parent")
    if isinstance(copied, str) and copied:
        return copied
    receipt = _note(path, RELEASE_SUFFIX).get("ledger")
    dataset = receipt.get("dataset") if isinstance(receipt, dict) else None
    return dataset if isinstance(dataset, str) and dataset else None


def _note(path: Path, suffix: str) -> dict[str, Any]:
    try:
        content = json.loads(path.with_name(path.name + suffix).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
