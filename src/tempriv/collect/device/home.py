"""What a device keeps between two starts: who it is, and the key that its noise comes from.

What it holds of its owner is never written here. The folder is for its owner alone, and one process
at a time uses it. It must never be copied, nor put back from a copy: both would answer, each with
the same key and the whole of the owner's limits. It may be moved within its file system.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tempriv.collect.server.tokens import SECRET_BYTES, Token, digest_of, new_secret, parse
from tempriv.data.files import file_identity, write_durably
from tempriv.data.locks import FileLock
from tempriv.errors import StateError, require
from tempriv.local.wire import (
    DAMAGE_ERRORS,
    boolean,
    members,
    require_state,
    strict_json,
    whole_number,
)
from tempriv.sampling.keys import SeriesKey, fresh_series_key

IDENTITY, NOISE, LOCK = "identity.json", "noise.json", "lock"
IDENTITY_FIELDS = ("server", "number", "secret", "enrolled", "enrolment", "over", "place")
COPIED_FOLDER = (
    "was copied, or put back from a copy: two devices with one key would give away twice what the "
    "owner agreed to. Go on with the folder that it was copied from; if that is gone, enroll a new "
    "device in a new folder, with limits that leave out what this one has given away"
)
CLOSED = "this device is closed, and another process may be it; open its folder again"
FIELD_DEFAULTS: dict[str, Any] = {"over": "", "place": None}  # what homes of before do not have
END_STATES = ("", "refused", "leaving", "left")


@dataclass(frozen=True)
class Identity:
    """Which device this is at which server; its secret was made here and is known to no server."""

    server: str
    number: int
    secret: bytes = field(repr=False)
    enrolled: bool = False
    enrollment: str = field(default="", repr=False)
    """The one-time token, until the server has taken it."""
    over: str = ""
    """Whether the server refused the device, or its owner takes part no more and the server is
    still to be told, or has been."""
    place: list[int] | None = None
    """Which file the lock of its folder is; a copy has another."""

    @property
    def has_withdrawn(self) -> bool:
        return self.over in ("leaving", "left")

    @property
    def token(self) -> str:
        return Token("device", self.number, self.secret).text

    @property
    def digest(self) -> str:
        """What the server is told of the secret."""
        return digest_of(self.secret).hex()

    def to_bytes(self) -> bytes:
        document = {
            "server": self.server,
            "number": self.number,
            "secret": self.secret.hex(),
            "enrolled": self.enrolled,
            "enrolment": self.enrollment,
            "over": self.over,
            "place": self.place,
        }
        return json.dumps(document, sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Identity:
        """Read the identity in ``data``."""
        document = members(FIELD_DEFAULTS | strict_json(data), IDENTITY_FIELDS)
        require_state(
            isinstance(document["server"], str) and isinstance(document["enrolment"], str)
        )
        require_state(document["over"] in END_STATES and isinstance(document["place"], list | None))
        secret = bytes.fromhex(document["secret"])
        require_state(len(secret) == SECRET_BYTES)
        return cls(
            document["server"],
            whole_number(document["number"]),
            secret,
            boolean(document["enrolled"]),
            document["enrolment"],
            document["over"],
            document["place"],
        )


class Home:
    """The folder of one device.

    Guarantees:
        - nobody but its owner can read it, and a second process is refused;
        - a copy of it is refused, where files have numbers that a copy does not share;
        - noise of a link of the key chain cannot be made again once ``advance`` has returned, so a
          stolen folder undoes nothing that was sent.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        _refuse_other(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)
        try:
            self._lock: FileLock | None = FileLock(self.folder / LOCK)
        except BlockingIOError:
            raise StateError(
                f"{self.folder}: another process, or another Client, is this device"
            ) from None
        try:
            for left in self.folder.glob(".*.partial"):
                left.unlink(missing_ok=True)
            self._identity: Identity | None = self._read(IDENTITY, Identity.from_bytes)
            self._place = file_identity(self.folder / LOCK)
            kept = self._identity and self._identity.place
            require(kept in (None, self._place), f"{self.folder}: {COPIED_FOLDER}", StateError)
            self._link = self._read(NOISE, _link_of) or self._keep_link(fresh_series_key())
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"Home({str(self.folder)!r})"

    def _read(self, name: str, reading: Any) -> Any:
        path = self.folder / name
        if not path.exists():
            return None
        try:
            return reading(path.read_bytes())
        except DAMAGE_ERRORS:
            raise StateError(f"{path}: is damaged, or none of a device") from None

    # who it is

    @property
    def identity(self) -> Identity:
        """Since ``begin``."""
        assert self._identity is not None
        return self._identity

    def begin(self, server: str, enrollment: str | None) -> Identity:
        """Return the identity at a server; a new one is on disk before anyone hears of it.

        Parameters:
            server: address of the server.
            enrollment: one-time token, for a device that is not enrolled.

        Once the server has refused or forgotten the device, a token for another number makes
        another identity. Ledgers and key chain stay: nobody needs a new folder, and so new limits.
        """
        token = None if enrollment is None else parse(enrollment)
        require(
            enrollment is None or (token is not None and token.role == "enrol"),
            "enrollment: must be a one-time token, such as enrol-17 with its secret",
        )
        known = self._identity
        require(
            known is not None or token is not None,
            "this device is not enrolled: give enrollment, a one-time token of the server",
        )
        require(
            known is None or known.server == server,
            f"{self.folder}: belongs to the server {known and known.server}; take another folder "
            "for another server",
            StateError,
        )
        if token is None or (known is not None and token.number == known.number):
            return self.identity
        require(
            known is None or known.over in ("refused", "left"),
            f"enrollment: is for device {token.number}, and this is device "
            f"{known and known.number}; it may be another one once the server has refused it, or "
            "has heard that it withdraws",
        )
        self._keep_identity(Identity(server, token.number, new_secret(), enrollment=token.text))
        return self.identity

    def is_enrolled(self) -> None:
        """The server has taken the one-time token, which is of no more use."""
        self._keep_identity(replace(self.identity, enrolled=True, enrollment=""))

    def is_over(self, over: str) -> None:
        """Note why the device takes part no more: ``over`` is one of ``END_STATES``."""
        self._keep_identity(replace(self.identity, over=over))

    def _keep_identity(self, identity: Identity) -> None:
        self._require_open()
        identity = replace(identity, place=self._place)
        write_durably(self.folder / IDENTITY, identity.to_bytes())
        self._identity = identity

    # where its noise comes from

    @property
    def link(self) -> SeriesKey:
        """Of the key chain, for the next answer."""
        return self._link

    def advance(self, used: int) -> None:
        """Leave the link ``used`` of the key chain behind, for good; nothing if that was done.

        What is on disk decides: a chain never goes back, whoever was this device meanwhile.
        """
        kept = self._read(NOISE, _link_of)
        if kept is not None and kept.epoch > self._link.epoch:
            self._link = kept
        if self._link.epoch <= used:
            self._keep_link(self._link.at_epoch(used + 1))

    def _keep_link(self, link: SeriesKey) -> SeriesKey:
        self._require_open()
        document = {"secret": link.secret.hex(), "link": link.epoch}
        write_durably(self.folder / NOISE, json.dumps(document).encode())
        self._link = link
        return link

    def _require_open(self) -> None:
        require(self._lock is not None, CLOSED, StateError)

    def close(self) -> None:
        """Let another process be this device."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _refuse_other(folder: Path) -> None:
    """A folder with other things in it is left as it is; what a kill leaves behind may be there."""
    require(folder.is_dir() or not folder.exists(), f"{folder}: must be a folder", StateError)
    if not folder.exists() or (folder / IDENTITY).exists():
        return
    own_files = re.compile(rf"{LOCK}(\.held)?|{NOISE}|\.({IDENTITY}|{NOISE})\.\d+\.partial")
    others = sorted(path.name for path in folder.iterdir() if not own_files.fullmatch(path.name))
    require(
        not others,
        f"{folder}: is no home of a device, and not empty ({(*others, '')[0]!r:.100}); name "
        "another folder",
        StateError,
    )


def _link_of(data: bytes) -> SeriesKey:
    document = members(strict_json(data), ("secret", "link"))
    secret = bytes.fromhex(document["secret"])
    require_state(len(secret) == SECRET_BYTES)
    return SeriesKey(secret, whole_number(document["link"]))
