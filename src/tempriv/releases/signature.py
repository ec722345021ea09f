"""Ed25519 signatures of releases: who described a file, and that nothing was changed since.

What is signed is the description without its signature, in one canonical form. The description
holds the checksum of the file, so the file is covered too. A signature says who holds the key; it
says nothing about whether the numbers are right.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tempriv.data.files import follow_umask, sync_directory, write_durably
from tempriv.errors import StateError, UsageError, require
from tempriv.mechanisms.checks import Check
from tempriv.releases.description import SIGNATURE
from tempriv.sampling.keys import new_secret

ALGORITHM = "Ed25519"
CONTEXT = b"tempriv release description\n"
"""Stands before what is signed, so that a signature is never one of something else."""
PREFIX = "ed25519:"
UNCHANGED = "the description is as it was signed"
SIGNER = "the signature is by the key at hand"


def signed_bytes(about: Mapping[str, Any]) -> bytes:
    """What is signed of a description: all of it but the signature, in its one form.

    Parameters:
        about: the description.

    >>> signed_bytes({"rows": 4, "format": 2, "signature": {}}).removeprefix(CONTEXT)
    b'{"format":2,"rows":4}'
    """
    plain = {name: value for name, value in about.items() if name != SIGNATURE}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return CONTEXT + text.encode()


class SigningKey:
    """The secret that releases are signed with; whoever has its file can sign in its name.

    Parameters:
        secret: 32 secret bytes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     key = SigningKey.create(f"{folder}/signing.key")
    ...     again = SigningKey.load(f"{folder}/signing.key")
    >>> again.public == key.public, key.public[:8]
    (True, 'ed25519:')
    """

    def __init__(self, secret: bytes):
        require(len(secret) == 32, "secret: must be 32 bytes; use SigningKey.create(path)")
        self._key = Ed25519PrivateKey.from_private_bytes(secret)

    @classmethod
    def create(cls, path: str | Path) -> SigningKey:
        """A new key in a new file, as PEM, that only its owner can read.

        Parameters:
            path: a file that does not exist yet; its folder is made if need be.

        Raises:
            UsageError: the file exists.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = cls(new_secret())
        data = key._key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
        partial = path.with_name(f".{path.name}.{os.getpid()}.new")
        write_durably(partial, data)
        try:
            os.link(partial, path)  # whole, and never in the place of another key
        except FileExistsError:
            raise UsageError(
                f"{path}: exists already, and what was signed with a lost key cannot be signed "
                "again; move it away first, or name another file"
            ) from None
        finally:
            partial.unlink()
        sync_directory(path.parent)
        return key

    @classmethod
    def load(cls, path: str | Path) -> SigningKey:
        """The key in a file that ``create`` wrote.

        Parameters:
            path: the file.

        Raises:
            StateError: there is no such file, it is no key, or others can read it.
        """
        path = Path(path)
        require(path.exists(), f"{path}: no such file; make a key first", StateError)
        require(
            os.name == "nt" or path.stat().st_mode & 0o077 == 0,
            f"{path}: others can read this key, and sign with it; let only its owner read it "
            "(chmod 600), or make another one if somebody may have it",
            StateError,
        )
        try:
            found = pem.load_pem_private_key(path.read_bytes(), None)
        except (ValueError, TypeError):
            found = None
        require(
            isinstance(found, Ed25519PrivateKey), f"{path}: not a key for signatures", StateError
        )
        assert isinstance(found, Ed25519PrivateKey)
        return cls(found.private_bytes_raw())

    @property
    def public(self) -> str:
        """The public key as text, for whoever verifies."""
        return _text_of(self._key.public_key())

    def export_public(self, path: str | Path) -> None:
        """Write the public key as PEM, which other programs read too.

        Parameters:
            path: the file; it is replaced.
        """
        data = self._key.public_key().public_bytes(
            pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo
        )
        write_durably(Path(path), data)
        follow_umask(Path(path))

    def sign(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """A description with its signature; one that it had is replaced.

        Parameters:
            about: the description, with all that it will ever hold.
        """
        signature = {
            "algorithm": ALGORITHM,
            "public_key": self.public,
            "value": base64.b64encode(self._key.sign(signed_bytes(about))).decode(),
        }
        return {**about, SIGNATURE: signature}

    def __reduce__(self) -> NoReturn:
        raise StateError("a signing key is not copied; load it from its file where it is used")

    def __repr__(self) -> str:
        return f"SigningKey({self.public})"


def _text_of(key: Ed25519PublicKey) -> str:
    return PREFIX + base64.b64encode(key.public_bytes_raw()).decode()


def _key_of(text: str) -> Ed25519PublicKey | None:
    """The public key that ``public`` gave as text."""
    try:
        raw = base64.b64decode(text.removeprefix(PREFIX).encode(), validate=True)
        return Ed25519PublicKey.from_public_bytes(raw) if text.startswith(PREFIX) else None
    except (ValueError, binascii.Error):
        return None


def read_public_key(given: str) -> str:
    """A public key as text, from the text itself or from a file that holds it.

    Parameters:
        given: ``ed25519:`` and the key, or the path of a file with that, or with the key as PEM.

    Raises:
        UsageError: it is neither.
    """
    text = given.strip()
    if not text.startswith(PREFIX):
        path = Path(given)
        require(
            path.is_file(),
            f"key={given}: must be a public key ({PREFIX}...), or a file that holds one",
            UsageError,
        )
        text = path.read_bytes().decode("ascii", "replace").strip()
        require(
            "PRIVATE KEY" not in text,
            f"{path}: is the secret key; give the public one, which `tempriv keys show` prints",
            UsageError,
        )
        if text.startswith("-----BEGIN"):
            try:
                found = pem.load_pem_public_key(text.encode())
            except ValueError:
                found = None
            text = _text_of(found) if isinstance(found, Ed25519PublicKey) else ""
    key = _key_of(text)
    require(key is not None, f"key={given}: not an Ed25519 public key", UsageError)
    return text


def signature_checks(about: Mapping[str, Any], key: str | None) -> list[Check]:
    """Whether a description is as it was signed, and by whom.

    Parameters:
        about: the description.
        key: the public key of whoever should have signed, as text; None if none is at hand.
    """
    signature = about.get(SIGNATURE)
    if signature is None:
        unsigned = (
            "there is no signature: whoever changes the file can compute its checksum again, and "
            "only arithmetic between its columns may show it"
        )
        missing = Check(SIGNER, None, "no public key was given")
        if key is not None:
            missing = Check(SIGNER, False, f"there is no signature; it should be by {key}")
        return [Check(UNCHANGED, None, unsigned), missing]
    signer, holds = _checked(about, signature)
    changed = "the description was changed since, or the signature is another one's"
    first = Check(UNCHANGED, holds, f"signed by {signer}" if holds else changed)
    if key is None:
        unknown = f"no public key was given: whose key {signer} is was not looked at"
        return [first, Check(SIGNER, None, unknown)]
    if signer != key:
        foreign = f"a foreign signature, by {signer}; it should be by {key}"
        return [first, Check(SIGNER, False, foreign)]
    if not holds:
        return [first, Check(SIGNER, None, "a signature that does not hold says nothing")]
    return [first, Check(SIGNER, True, key)]


def _checked(about: Mapping[str, Any], signature: Any) -> tuple[str, bool]:
    """Whose signature it says it is, and whether it holds."""
    sound = isinstance(signature, dict) and all(
        isinstance(signature.get(name), str) for name in ("algorithm", "public_key", "value")
    )
    if not sound or signature["algorithm"] != ALGORITHM:
        return "nobody known", False
    public = _key_of(signature["public_key"])
    if public is None:
        return "nobody known", False
    try:
        value = base64.b64decode(signature["value"].encode(), validate=True)
        public.verify(value, signed_bytes(about))
    except (InvalidSignature, ValueError, binascii.Error):
        return signature["public_key"], False
    return signature["public_key"], True
