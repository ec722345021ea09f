"""The kinds of campaigns, one file each, and the registry that finds them."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tempriv.collect.protocol.kinds.base import CampaignKind


@functools.cache
def campaign_kinds() -> dict[str, CampaignKind[Any]]:
    """Return every kind by its name, from the classes in the files of this package.

    >>> list(campaign_kinds())[:4]
    ['shapes', 'frequency', 'stream', 'upload']
    """
    from tempriv.collect.protocol.kinds.base import CampaignKind

    kinds: list[CampaignKind[Any]] = []
    for entry in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{entry.name}")
        kinds += [
            member()
            for member in vars(module).values()
            if isinstance(member, type)
            and issubclass(member, CampaignKind)
            and member.__module__ == module.__name__
            and member is not CampaignKind
        ]
    return {kind.name: kind for kind in sorted(kinds, key=lambda kind: (kind.position, kind.name))}
