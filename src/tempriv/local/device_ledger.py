"""What devices have answered so far, and the most that they may: their own small ledgers.

A device does not take a server's word for what it may be asked. In memory or on disk, an answer is
noted before it leaves, whatever else runs on the device.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

from tempriv.data.files import private_file, sync_directory, write_durably
from tempriv.data.locks import FileLock
from tempriv.errors import BudgetError, StateError, require
from tempriv.local.wire import (
    finite,
    members,
    require_campaign,
    require_state,
    strict_json,
    whole_number,
)
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.privacy.units import Window

ANSWERED_ONCE = "this device has answered a question of this campaign; it answers one"
NOT_COPIED = "is not copied: two copies would spend the same budget twice"


def _require_epsilon(epsilon: float) -> None:
    require(
        isinstance(epsilon, (int, float))
        and not isinstance(epsilon, bool)
        and 0 < epsilon < math.inf,
        f"epsilon={epsilon}: must be > 0 and finite",
    )


@contextlib.contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """A disk that fails keeps a device from answering, and says why."""
    try:
        yield
    except OSError as reason:
        raise StateError(f"{path}: the ledger cannot be used: {reason.strerror}") from None


class DeviceLedger:
    """What a device has answered: one question of a campaign, and no more than its limit in all.

    A file that is not just as it was written counts as everything there is.

    Parameters:
        folder: holds a file for each campaign, made before the answer leaves and never twice,
            whatever else runs on the device; without it, the ledger is in memory.
        limit: of epsilon, over all campaigns.

    >>> ledger = DeviceLedger(limit=1.0)
    >>> ledger.spend("a" * 32, 0.75)
    >>> ledger.spent()
    0.75
    """

    def __init__(self, folder: str | Path | None = None, limit: float = math.inf):
        require(limit > 0, f"limit={limit}: must be > 0")
        self.folder, self.limit = None if folder is None else Path(folder), limit
        self._answered: dict[str, float] = {}
        self._turn = threading.Lock()
        if self.folder is not None:
            with _disk_errors(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def __reduce__(self) -> NoReturn:
        raise StateError(f"a ledger {NOT_COPIED}")

    def spent(self) -> float:
        """Epsilon of all answers together."""
        with self._alone():
            return self._spent()

    def spend(self, campaign: str, epsilon: float) -> None:
        """Note an answer that costs ``epsilon``, for the one question of a ``campaign``.

        Raises:
            BudgetError: if the ``campaign`` has had its answer, or the limit is reached.
        """
        require_campaign(campaign)
        _require_epsilon(epsilon)
        with self._alone():
            self._spend(campaign, epsilon)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """No other thread or process adds up at the same time: two could pass the limit."""
        with self._turn:
            if self.folder is None:
                yield
                return
            with _disk_errors(self.folder), FileLock(self.folder, math.inf, create=False):
                yield

    def _spent(self) -> float:
        if self.folder is None:
            return sum(self._answered.values())
        # a charge that was begun and has no name yet has let no answer leave
        return sum(
            _read_epsilon(path) for path in self.folder.iterdir() if path.suffix != ".partial"
        )

    def _spend(self, campaign: str, epsilon: float) -> None:
        require(not self._has(campaign), ANSWERED_ONCE, BudgetError)
        require(
            self._spent() + epsilon <= self.limit * (1 + 1e-12),
            f"epsilon={epsilon:g}: with what this device has answered before, more than its limit "
            f"of {self.limit:g}",
            BudgetError,
        )
        if self.folder is None:
            self._answered[campaign] = epsilon
            return
        # whole before it has its name: a file that was only begun counts as all there is
        partial = self.folder / f".{campaign}.{os.getpid()}.partial"
        try:
            with private_file(partial) as file:
                file.write(f"{float(epsilon)!r}\n".encode())
                file.flush()
                os.fsync(file.fileno())
            os.link(partial, self.folder / campaign)
        except FileExistsError:
            raise BudgetError(ANSWERED_ONCE) from None
        finally:
            partial.unlink(missing_ok=True)
        sync_directory(self.folder)

    def _has(self, campaign: str) -> bool:
        if self.folder is None:
            return campaign in self._answered
        return os.path.lexists(self.folder / campaign)


def _read_epsilon(path: Path) -> float:
    """What cannot be read to its end was begun, or damaged, and counts as all there is."""
    try:
        text = path.read_text()
        epsilon = float(text)
    except (ValueError, OSError):
        return math.inf
    return epsilon if text.endswith("\n") and 0 < epsilon < math.inf else math.inf


class WindowLedger:
    """What a device has answered about its latest steps, and the most that it may.

    Parameters:
        window: how many consecutive steps the limit is for.
        limit: of epsilon, for any window.
        path: a file that keeps the ledger; in memory by default.

    Guarantees:
        - the epsilons of all answers about any ``window`` consecutive steps sum to at most
          ``limit``, exactly, whatever is asked by whomever;
        - with a ``path`` that holds after restarts and among processes: an answer is noted on
          disk before it leaves.

    >>> ledger = WindowLedger(window=2, limit=1.0)
    >>> ledger.spend("a" * 32, 10, "publish", 0.75)
    >>> ledger.left(11), ledger.left(12)
    (0.25, 1.0)
    """

    def __init__(self, window: int, limit: float, path: str | Path | None = None):
        self.unit = Window(window)
        require(0 < limit < math.inf, f"limit={limit}: must be > 0 and finite")
        self.window, self.limit = window, float(limit)
        self.path = None if path is None else Path(path)
        self._charges: list[tuple[int, str, str, float]] = []
        self._turn = threading.Lock()
        with self._held():
            pass  # a damaged file, or one for another window, is refused at once

    def __reduce__(self) -> NoReturn:
        raise StateError(f"a ledger {NOT_COPIED}")

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(Pure(self.limit), self.unit)

    def left(self, step: int) -> float:
        """How much epsilon an answer about this ``step`` could still have, rounded down."""
        with self._held():
            return round_down(Fraction(self.limit) - self._spent(step))

    def spend(self, campaign: str, step: int, part: str, epsilon: float) -> None:
        """Note an answer, or refuse it.

        Parameters:
            campaign: that asks.
            step: that the question is about.
            part: of the step.
            epsilon: what the answer costs.

        Raises:
            BudgetError: if the step is past, the question answered, or the limit reached.
        """
        _require_epsilon(epsilon)
        with self._held():
            latest = max((charge[0] for charge in self._charges), default=step)
            require(step >= latest, f"step {step} is past: step {latest} was told", BudgetError)
            require(
                (step, campaign, part) not in [charge[:3] for charge in self._charges],
                "this device has answered this question; it answers a question once",
                BudgetError,
            )
            require(
                self._spent(step) + Fraction(epsilon) <= Fraction(self.limit),
                f"epsilon={epsilon:g}: with the answers about the {self.window} steps up to "
                f"step {step}, more than this device's limit of {self.limit:g}",
                BudgetError,
            )
            kept = [charge for charge in self._charges if step - charge[0] < self.window]
            # on disk first: what could not be noted was not spent, and is not answered
            self._keep([*kept, (step, campaign, part, float(epsilon))])

    def _spent(self, step: int) -> Fraction:
        """By answers about the steps of the window that ends here."""
        recent = [charge[3] for charge in self._charges if step - charge[0] < self.window]
        return sum(map(Fraction, recent), Fraction(0))

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """With what the file says, and nobody else at it."""
        with self._turn:
            if self.path is None:
                yield
                return
            lock = self.path.with_name(self.path.name + ".lock")
            with _disk_errors(self.path), FileLock(lock, math.inf):
                self._read()
                yield

    def _keep(self, charges: list[tuple[int, str, str, float]]) -> None:
        if self.path is not None:
            ledger = {"window": self.window, "limit": self.limit, "charges": charges}
            write_durably(self.path, json.dumps(ledger).encode())
        self._charges = charges

    def _read(self) -> None:
        assert self.path is not None
        if not self.path.exists():
            self._charges = []
            return
        try:
            ledger = members(strict_json(self.path.read_bytes()), ("window", "limit", "charges"))
            charges = [_decode_charge(charge) for charge in ledger["charges"]]
        except (ValueError, TypeError, RecursionError):
            raise StateError(f"{self.path}: not a ledger, or damaged") from None
        require(
            ledger["window"] == self.window
            and ledger["limit"] == self.limit
            and all(0 < charge[3] <= self.limit for charge in charges),
            f"{self.path}: is damaged, or was kept with another window or limit",
            StateError,
        )
        self._charges = charges


def _decode_charge(charge: list[object]) -> tuple[int, str, str, float]:
    step, campaign, part, epsilon = charge
    require_state(isinstance(campaign, str) and isinstance(part, str))
    return whole_number(step), str(campaign), str(part), finite(epsilon)


def round_down(exact: Fraction) -> float:
    """The largest float that is not more than an ``exact`` number."""
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, -math.inf)
