"""Errors: one clear sentence that names the value and the remedy, never a private value.

A sentence refers to an argument as ``[[name]]`` or ``[[name=value]]``. Python shows it as an
argument, the command line as an option. Where the option has another name than the argument, that
follows: ``[[url|store]]``. A sentence that begins ``name=value:`` says which argument is wrong.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import ClassVar

_REFERENCE = re.compile(r"\[\[([a-z_]+)(?:=([^\]|]+))?(?:\|([a-z_]+)(?:=([^\]|]+))?)?\]\]")
_LEADING = re.compile(r"^([a-z_]+)=('[^']*'|[^\s'(\[{:]+(?: [-+.\de]+)*):(?= )", re.MULTILINE)
_LITERAL = re.compile(r"True|False|None|[-+]?[.\d][-+.\de]*")


class TemprivError(ValueError):
    """Something tempriv does not do; the message is meant for the person who asked.

    Parameters:
        message: the sentence, with references to arguments as described in this module.
        code: which error this is, for programs; that of the class by default.
        parameters: named values that the sentence speaks of, none of them private.

    >>> error = UsageError("epsilon=-1: must be > 0; or give [[target_error]]")
    >>> error.code, error.parameters, str(error)
    ('usage', {'epsilon': '-1'}, 'epsilon=-1: must be > 0; or give target_error')
    >>> error.for_command_line(lambda name, value: f"--{name} {value}")
    '--epsilon -1: must be > 0; or give --target-error'
    """

    default_code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str = "", *, code: str | None = None, **parameters: object):
        super().__init__(message)
        self.code = self.default_code if code is None else code
        named = {name: value.strip("'") for name, value in _LEADING.findall(str(self))}
        self.parameters: dict[str, object] = named | parameters

    @property
    def message(self) -> str:
        """The sentence with its references, to be quoted in another error."""
        return str(self.args[0])

    def __str__(self) -> str:
        return _REFERENCE.sub(_as_argument, self.message)

    def for_command_line(self, typed: Callable[[str, str], str | None] | None = None) -> str:
        """The message with options instead of arguments.

        Parameters:
            typed: gives the option that was typed for an argument and its value, None if there was
                none. A sentence that begins ``name=value:`` then begins with that option.
        """

        def leading(match: re.Match[str]) -> str:
            option = typed and typed(match[1], match[2].strip("'"))
            return f"{option}:" if option else match[0]

        return _REFERENCE.sub(_as_option, _LEADING.sub(leading, self.message))


class UsageError(TemprivError):
    """An option or argument that cannot be meant."""

    default_code = "usage"
    exit_status = 2


class DataError(TemprivError):
    """A table that does not have the declared form.

    >>> import tempriv as tp
    >>> tp.release([0.5, float("nan")], tp.Laplace(epsilon=1.0, bounds=(0, 5)))
    Traceback (most recent call last):
    tempriv.errors.DataError: 1 value is NaN; leave missing values empty (null) instead
    """

    default_code = "data"


class BudgetError(TemprivError):
    """The ledger does not agree: the limit would be passed.

    >>> import tempfile
    >>> import tempriv as tp
    >>> laplace = tp.Laplace(epsilon=2.0, bounds=(0, 5))
    >>> with tempfile.TemporaryDirectory() as folder, tp.Ledger.create(f"{folder}/x") as ledger:
    ...     _ = ledger.create_dataset("meters", epsilon=1.0)
    ...     try:
    ...         tp.release([0.5], laplace, ledger=ledger, dataset="meters")
    ...     except tp.BudgetError as refusal:
    ...         print(refusal.code, refusal.parameters)
    budget {'dataset': 'meters', 'limit': 1.0, 'remaining': 1.0}
    """

    default_code = "budget"
    exit_status = 3


class LedgerError(TemprivError):
    """The ledger cannot be used: locked, missing, damaged or of a newer version."""

    default_code = "ledger"


class KeyReuseError(TemprivError):
    """The same noise on different data would publish their difference."""

    default_code = "key-reuse"


class StateError(TemprivError):
    """A stream state that is damaged or belongs to another mechanism, key or series."""

    default_code = "state"


WEAK = "weak"
"""The code of a refusal of what would protect practically nothing."""


class TemprivWarning(UserWarning):
    """Something that is done as asked for, and is hardly meant.

    Parameters:
        message: the sentence.

    >>> import tempriv as tp
    >>> issubclass(tp.WeakGuaranteeWarning, tp.TemprivWarning)
    True
    """

    def __init__(self, message: str = ""):
        super().__init__(message)


class WeakGuaranteeWarning(TemprivWarning):
    """A release of which practically nothing is protected: its epsilon is above 10.

    Parameters:
        message: the sentence.

    >>> import warnings
    >>> import tempriv as tp
    >>> weak = tp.Laplace(epsilon=20.0, bounds=(0, 5))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = tp.release([0.5], weak)
    ...     _ = tp.release([0.5], weak, accept_weak=True)
    >>> [each.category.__name__ for each in caught]
    ['WeakGuaranteeWarning']
    """


class RepeatedReleaseWarning(TemprivWarning):
    """A further release of the same readings, where the dataset has no limit.

    Parameters:
        message: the sentence.

    >>> import tempfile, warnings
    >>> import tempriv as tp
    >>> hourly = tp.Laplace(epsilon=1.0, bounds=(0, 5))
    >>> with tempfile.TemporaryDirectory() as folder, tp.Ledger.create(f"{folder}/x") as ledger:
    ...     ledger.ensure_dataset("meters")
    ...     with warnings.catch_warnings(record=True) as caught:
    ...         warnings.simplefilter("always")
    ...         for copy in range(2):
    ...             _ = tp.release([0.5], hourly, ledger=ledger, dataset="meters")
    >>> [each.category.__name__ for each in caught]
    ['RepeatedReleaseWarning']
    """


def require(
    condition: bool,
    message: str,
    kind: type[TemprivError] = UsageError,
    *,
    code: str | None = None,
    **parameters: object,
) -> None:
    """Raise an error unless a condition holds.

    Parameters:
        condition: what has to hold.
        message: the sentence of the error.
        kind: the class of the error.
        code: the error's code, where it is more specific than that of the class.
        parameters: named values that the sentence speaks of, none of them private.

    >>> require(False, "window=0: must be >= 1")
    Traceback (most recent call last):
    tempriv.errors.UsageError: window=0: must be >= 1
    """
    if not condition:
        raise kind(message, code=code, **parameters)


@contextlib.contextmanager
def extra_packages(extra: str, purpose: str) -> Iterator[None]:
    """Around imports that only some uses need: without the packages, name the extra to install.

    Parameters:
        extra: the extra of this project that installs them.
        purpose: what needs them, in the plural.

    Raises:
        UsageError: one of the packages is missing.

    >>> with extra_packages("plots", "plots"):
    ...     import a_package_that_is_missing
    Traceback (most recent call last):
    tempriv.errors.UsageError: plots need more packages: pip install 'tempriv[plots]'
    """
    try:
        yield
    except ImportError:
        remedy = f"pip install 'tempriv[{extra}]'"
        raise UsageError(f"{purpose} need more packages: {remedy}") from None


def _as_argument(match: re.Match[str]) -> str:
    name, value = match[1], match[2]
    if value is None or value.isupper():  # upper case stands for a value to be given
        return name
    return f"{name}={value}" if _LITERAL.fullmatch(value) else f"{name}={value!r}"


def _as_option(match: re.Match[str]) -> str:
    name, value = (match[3], match[4]) if match[3] else (match[1], match[2])
    option = "--" + name.replace("_", "-")
    return option if value in (None, "True") else f"{option} {value}"
