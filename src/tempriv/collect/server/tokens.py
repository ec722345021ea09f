"""Tokens and who they belong to; the server keeps digests of secrets, never the secrets."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Literal, get_args

from tempriv.sampling.keys import tokens

Role = Literal["admin", "analyst", "device", "enrol"]
ROLES: tuple[Role, ...] = get_args(Role)
STAFF: tuple[Role, ...] = ("admin", "analyst")
SECRET_BYTES = 32
MAX_TOKEN_CHARACTERS = 100
MAX_NUMBER = (1 << 63) - 1


@dataclass(frozen=True)
class Token:
    """``ROLE-NUMBER.SECRET``; one for enrolling names the device that is to be."""

    role: Role
    number: int
    secret: bytes = field(repr=False)

    @property
    def text(self) -> str:
        secret = base64.urlsafe_b64encode(self.secret).decode().rstrip("=")
        return f"{self.role}-{self.number}.{secret}"

    @property
    def digest(self) -> bytes:
        return digest_of(self.secret)


def digest_of(secret: bytes) -> bytes:
    """What is kept of a secret: 32 random bytes need no salt and no slow hash."""
    return hashlib.sha256(secret).digest()


def new_secret() -> bytes:
    return tokens(2)


def parse(text: str) -> Token | None:
    """None for whatever is no token.

    >>> made = Token("device", 7, bytes(32))
    >>> parse(made.text) == made, parse("device-7.short"), made
    (True, None, Token(role='device', number=7))
    """
    if len(text) > MAX_TOKEN_CHARACTERS or not text.isascii():
        return None
    name, _, secret = text.partition(".")
    role, _, number = name.partition("-")
    if role not in ROLES or not number.isdigit() or len(number) > 19:
        return None
    try:
        secret_bytes = base64.urlsafe_b64decode(secret + "=" * (-len(secret) % 4))
    except (ValueError, binascii.Error):
        return None
    if len(secret_bytes) != SECRET_BYTES or int(number) > MAX_NUMBER:
        return None
    parsed = Token(role, int(number), secret_bytes)
    return parsed if parsed.text == text else None  # a token has one spelling


def matches(secret: bytes, digest: bytes | None) -> bool:
    """Whether a ``secret`` has this ``digest``, in a time that does not depend on how much is
    right.
    """
    return hmac.compare_digest(digest_of(secret), bytes(SECRET_BYTES) if digest is None else digest)


@dataclass(frozen=True)
class Caller:
    """Who a request comes from."""

    role: Role
    number: int
    name: str = ""

    @property
    def is_staff(self) -> bool:
        return self.role in STAFF

    @property
    def is_admin(self) -> bool:
        return self.role == "admin"
