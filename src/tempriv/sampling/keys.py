"""The one door for randomness: noise is a pure function of a secret key and a place.

Every random word is AES-256 in counter mode at (series, epoch, purpose, stream, step). So any
cutting of the input into blocks, any order of series and any replay gives the same bits, and
nothing is ever released twice with different noise. The reverse is refused: one key serves one
input.

Keys form a chain: the key of a series at epoch e + 1 is a hash of the one at epoch e, so erasing
past keys makes past noise unrecoverable from what is left.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tempriv.data.files import write_durably
from tempriv.errors import KeyReuseError, StateError, require

if TYPE_CHECKING:
    from tempriv.data.locks import FileLock

EPOCH = 1 << 16
"""Steps that share one link of the key chain; fixed, so that bits never depend on commits."""

BATCH_PAIRS = 1 << 14  # fingerprinted at a time, so that they stay in the cache


def _hash(key: bytes, *parts: str | bytes) -> bytes:
    """A keyed hash of a list of parts, each with its length so that lists cannot be confused."""
    state = hashlib.blake2b(key=key, digest_size=32)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return state.digest()


def _block_cipher(key: bytes) -> Any:
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()


class Key:
    """The secret of one release: ``Key.generate()``, or ``Key.from_seed(n)`` for experiments.

    A key serves one release: give each its own.

    Parameters:
        secret: 32 bytes.
        release_id: names the release, and tells nothing of the secret.
        seed: what the secret was made from, if it is none.
        only_resumes: whether it goes on with streams and starts none.

    Guarantees:
        - the secret appears in no repr, release or state;
        - noise for a (mechanism, series) is handed out once: a second input is refused.

    >>> Key.generate()
    Key(secret)
    >>> Key.from_seed(7)
    Key(seed 7: not private)
    """

    def __init__(
        self, secret: bytes, release_id: str, seed: int | None = None, only_resumes: bool = False
    ):
        require(len(secret) == 32, "a key is 32 secret bytes: use Key.generate()")
        self._secret = secret
        self.release_id = release_id
        self.seed = seed
        self.only_resumes = only_resumes
        self._used: set[tuple[str, str]] = set()
        self._reached: dict[tuple[str, str], int] = {}
        self._path: Path | None = None
        self._lock: FileLock | None = None

    @classmethod
    def generate(cls) -> Key:
        """A fresh key from the operating system's randomness."""
        return cls(os.urandom(32), new_id())

    @classmethod
    def from_seed(cls, seed: int) -> Key:
        """A key anyone can make again: for experiments, and it protects nothing.

        Parameters:
            seed: a whole number >= 0; equal seeds make equal noise.
        """
        require(
            isinstance(seed, int) and seed >= 0,
            f"seed={seed}: must be a whole number >= 0",
        )
        return cls(_hash(b"tempriv seed", str(seed)), f"seed-{seed}", seed)

    def save(self, path: str | Path) -> None:
        """Keep the key for going on with streams in another process; only its owner can read it.

        From then on every step that a stream takes is noted in the file before its output is
        handed out, so that a state left behind is refused there too.

        Parameters:
            path: a file that does not exist yet.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     key = Key.generate()
        ...     key.save(f"{folder}/key")
        ...     key.close()
        ...     again = Key.load(f"{folder}/key")
        ...     again.release_id == key.release_id
        True
        """
        path = Path(path)
        require(not path.exists(), f"{path}: exists already; keep each key in a file of its own")
        self._hold(path)
        self._keep()

    @classmethod
    def load(cls, path: str | Path) -> Key:
        """A saved key. It resumes streams but starts none: others may have begun under it.

        Parameters:
            path: the file that ``save`` wrote.

        Raises:
            StateError: if there is no such file, or it is damaged.
            KeyReuseError: if another process, or another key, is using the file.
        """
        path = Path(path)
        require(path.exists(), f"{path}: no such file", StateError)
        key = cls(bytes(32), "", only_resumes=True)
        key._hold(path)
        try:
            kept = json.loads(path.read_bytes())
            key._secret, key.release_id = bytes.fromhex(kept["secret"]), kept["release"]
            key.seed = kept["seed"]
            key._reached = {(digest, name): step for digest, name, step in kept["reached"]}
            sound = (
                isinstance(key.release_id, str)
                and isinstance(key.seed, (int, type(None)))
                and all(isinstance(step, int) for step in key._reached.values())
            )
        except (ValueError, KeyError, TypeError):
            sound = False
        require(sound and len(key._secret) == 32, f"{path}: not a key, or damaged", StateError)
        return key

    def _hold(self, path: Path) -> None:
        """One key object at a time uses a file."""
        from tempriv.data.locks import FileLock

        try:
            self._lock = FileLock(path.with_name(path.name + ".lock"))
        except BlockingIOError:
            raise KeyReuseError(
                f"{path}: another process, or another Key, is using this key"
            ) from None
        self._path = path

    def _keep(self) -> None:
        if self._path is not None:
            reached = [[digest, name, step] for (digest, name), step in self._reached.items()]
            kept = {
                "secret": self._secret.hex(),
                "release": self.release_id,
                "seed": self.seed,
                "reached": reached,
            }
            write_durably(self._path, json.dumps(kept).encode())

    def close(self) -> None:
        """Give the file free for another process; this key is of no more use here."""
        if self._lock is not None:
            self._lock.close()
        self._secret, self._path, self._lock = b"", None, None

    def __reduce__(self) -> NoReturn:
        raise KeyReuseError(
            "a key is not copied: two copies would put the same noise on different data"
        )

    def __repr__(self) -> str:
        return "Key(secret)" if self.seed is None else f"Key(seed {self.seed}: not private)"

    def series(self, spec_digest: str, series: str) -> SeriesKey:
        """The start of a series' key chain; handed out once for each (mechanism, series).

        Parameters:
            spec_digest: of the mechanism.
            series: the id of the series, as text.

        Raises:
            KeyReuseError: if it was handed out before.
        """
        place = (spec_digest, series)
        require(
            not self.only_resumes,
            "a key read back from a file goes on with streams (tempriv.resume) but starts none; "
            "take a new key with Key.generate()",
            KeyReuseError,
        )
        if place in self._used:
            raise KeyReuseError(
                f"this key has already made the noise of series {series!r}: the same noise on "
                "other data would publish their difference. Take a new key with Key.generate(), "
                "or go on from a saved state with tempriv.resume"
            )
        self._used.add(place)
        return self.again(spec_digest, series)

    def again(self, spec_digest: str, series: str, step: int = 0) -> SeriesKey:
        """The same chain, for going on at a step that noise has not been handed out beyond.

        Parameters:
            spec_digest: of the mechanism.
            series: the id of the series, as text.
            step: the next step of the series.

        Raises:
            KeyReuseError: if noise was handed out beyond that step.
        """
        reached = self._reached.get((spec_digest, series), 0)
        require(bool(self._secret), "this key was closed", KeyReuseError)
        require(
            step >= reached,
            f"this key has already made the noise of series {series!r} up to step {reached}: other "
            f"readings from step {step} on would get the same noise. Go on from the latest state",
            KeyReuseError,
        )
        secret = _hash(self._secret, "series", spec_digest, self.release_id, series)
        return SeriesKey(secret, 0)

    def note(self, spec_digest: str, series: str, step: int) -> None:
        """Remember how far a stream has come; durably, where the key is kept in a file.

        Parameters:
            spec_digest: of the mechanism.
            series: the id of the series, as text.
            step: the next step of the series.
        """
        require(bool(self._secret), "this key was closed", KeyReuseError)
        self._reached[spec_digest, series] = step
        self._keep()

    def pseudonym(self, name: str) -> str:
        """Another ``name``, which without the key is linked neither to it nor to other releases."""
        return _hash(self._secret, "pseudonym", self.release_id, name).hex()[:16]


def fingerprint(mark: bytes, places: npt.NDArray[np.uint64], bits: npt.NDArray[np.uint64]) -> int:
    """A keyed sum over (place, reading) pairs, in any order and cutting.

    Parameters:
        mark: the key of the fingerprint.
        places: of the readings.
        bits: the readings, as 64 bits each.
    """
    return int(fingerprints(mark, places.ravel(), bits.ravel()).sum(dtype=np.uint64))


def fingerprints(
    mark: bytes, places: npt.NDArray[np.uint64], bits: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """A keyed hash of each (place, reading) pair.

    Parameters:
        mark: the key of the fingerprints.
        places: of the readings.
        bits: the readings, as 64 bits each.
    """
    cipher = _block_cipher(mark)
    pairs = np.empty((min(len(bits), BATCH_PAIRS), 2), dtype=np.uint64)
    mixed = np.empty((len(pairs) + 1, 2), dtype=np.uint64)  # a cipher asks for room to spare
    hashes = np.empty(len(bits), dtype=np.uint64)
    for low in range(0, len(bits), BATCH_PAIRS):
        part = pairs[: len(bits) - low]
        part[:, 0], part[:, 1] = places[low : low + BATCH_PAIRS], bits[low : low + BATCH_PAIRS]
        cipher.update_into(part.data.cast("B"), mixed.data.cast("B"))
        hashes[low : low + BATCH_PAIRS] = mixed[: len(part), 0]
    return hashes


def new_id() -> str:
    """A name for a release that no other release has."""
    return os.urandom(16).hex()


def new_secret() -> bytes:
    """32 secret bytes from the operating system, for a key that makes no noise."""
    return os.urandom(32)


def tokens(count: int) -> bytes:
    """Random names, ``count`` of 16 bytes, that nothing else has."""
    return os.urandom(16 * count)


Generator = np.random.Generator


def simulation(key: Key, purpose: str) -> Generator:
    """Ordinary random numbers, to try out what many devices would answer; never for a release.

    Parameters:
        key: that the numbers follow from.
        purpose: what they are for.

    >>> first, again = (simulation(Key.from_seed(1), "a").integers(1000) for _ in range(2))
    >>> bool(first == again)
    True
    """
    seed = key.again("simulation", purpose).cipher_key("numbers")
    return np.random.default_rng(int.from_bytes(seed, "big"))


def fresh_series_key() -> SeriesKey:
    """A chain of its own for a series that a long stream meets."""
    return SeriesKey(os.urandom(32), 0)


@dataclass(frozen=True)
class SeriesKey:
    """One link of a series' key chain."""

    secret: bytes
    epoch: int

    def __repr__(self) -> str:
        return f"SeriesKey(epoch={self.epoch})"

    def at_epoch(self, epoch: int) -> SeriesKey:
        """A later link; there is no way back.

        Parameters:
            epoch: the number of the link.

        Raises:
            KeyReuseError: if the link is an earlier one.
        """
        if epoch == self.epoch:
            return self  # with its ciphers
        require(
            epoch >= self.epoch,
            f"epoch {epoch}: its key has been erased, the chain stands at {self.epoch}",
            KeyReuseError,
        )
        secret = self.secret
        for _ in range(epoch - self.epoch):
            secret = _hash(secret, "next epoch")
        return SeriesKey(secret, epoch)

    def check(self) -> str:
        """Tells a wrong key from the right one and nothing else."""
        return _hash(self.secret, "check").hex()[:16]

    def cipher_key(self, purpose: str) -> bytes:
        """The cipher's key for a ``purpose``."""
        return _hash(self.secret, "purpose", purpose)

    def stream_cipher(self, purpose: str, counter: bytes) -> Any:
        """The cipher of a ``purpose`` in counter mode, from a ``counter`` block on."""
        return Cipher(algorithms.AES(self.cipher_key(purpose)), modes.CTR(counter)).encryptor()

    def block_cipher(self, purpose: str) -> Any:
        """The cipher of a ``purpose``, as a call from bytes into room for them and one block more.

        It is made once: to make one costs more than twenty short uses.
        """
        try:
            return self.__dict__["_ciphers"][purpose]
        except KeyError:
            made = _block_cipher(self.cipher_key(purpose)).update_into
            self.__dict__.setdefault("_ciphers", {})[purpose] = made
            return made
