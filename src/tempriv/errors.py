"""Refusals: one clear sentence that names the value and the remedy, never a private value."""


class TemprivError(ValueError):
    """Something tempriv will not do; the message is meant for the person who asked."""

    exit_status = 1


class UsageError(TemprivError):
    """An option or argument that cannot be meant."""

    exit_status = 2


class DataError(TemprivError):
    """A table that does not have the declared form."""


class BudgetError(TemprivError):
    """The ledger does not agree: the limit would be passed."""

    exit_status = 3


class LedgerError(TemprivError):
    """The ledger cannot be used: locked, missing, damaged or of a newer version."""


class KeyReuseError(TemprivError):
    """The same noise on different data would publish their difference."""


class StateError(TemprivError):
    """A stream state that is damaged or belongs to another mechanism, key or series."""


def require(condition: bool, sentence: str, kind: type[TemprivError] = UsageError) -> None:
    """Raise the refusal unless the condition holds."""
    if not condition:
        raise kind(sentence)
