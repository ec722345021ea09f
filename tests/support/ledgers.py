"""What the tests of the ledger share."""

from tempriv.ledger.scope import Scope
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.privacy.units import Event

HALF = Guarantee(loss=Pure(0.5), unit=Event())
EVERYONE = Scope(start=0, end=9, step=1)


def span(start: int, end: int, *members: str, step: int | None = 1, **others: str) -> Scope:
    return Scope(members=members or None, start=start, end=end, step=step, **others)
