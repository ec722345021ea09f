"""The one door for randomness: noise is a pure function of a secret key and a place.

Every random word is AES-256 in counter mode at (series, epoch, purpose, lane, step). So any cutting
of the input into blocks, any order of series and any replay gives the same bits, and nothing is
ever released twice with different noise. The reverse is refused: one key serves one input.

Keys form a chain: the key of a series at epoch e + 1 is a hash of the one at epoch e, so erasing
past keys makes past noise unrecoverable from what is left.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tempriv.errors import KeyReuse, StateRefusal, require
from tempriv.files import write_durably

EPOCH = 1 << 16
"""Steps that share one link of the key chain; fixed, so that bits never depend on commits."""

# a counter block is a 96-bit lane and a 32-bit block number, two words to a block
LANE_BYTES, BLOCK_BYTES = 12, 4
CIPHER_BYTES = LANE_BYTES + BLOCK_BYTES
BRANCH_BITS = 12
PAIRS = 1 << 14  # fingerprinted at a time, so that they stay in the cache

_ZEROS = memoryview(bytes(8 * (EPOCH + 2)))


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

    Guarantees:
        - the secret appears in no repr, release or state;
        - noise for a (mechanism, series) is handed out once: a second input is refused.

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
        self._lock: IO[bytes] | None = None

    @classmethod
    def generate(cls) -> Key:
        """A fresh key from the operating system's randomness."""
        return cls(os.urandom(32), new_id())

    @classmethod
    def from_seed(cls, seed: int) -> Key:
        """A key anyone can make again: for experiments, and it protects nothing."""
        require(
            isinstance(seed, int) and seed >= 0,
            f"seed={seed}: must be a whole number >= 0",
        )
        return cls(_hash(b"tempriv seed", str(seed)), f"seed-{seed}", seed)

    def save(self, path: str | Path) -> None:
        """Keep the key for going on with streams in another process; only its owner can read it.

        From then on every step that a stream takes is noted in the file before its output is
        handed out, so that a state left behind is refused there too.
        """
        path = Path(path)
        require(not path.exists(), f"{path}: exists already; keep each key in a file of its own")
        self._hold(path)
        self._keep()

    @classmethod
    def load(cls, path: str | Path) -> Key:
        """A saved key. It resumes streams but starts none: others may have begun under it."""
        path = Path(path)
        require(path.exists(), f"{path}: no such file", StateRefusal)
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
        require(sound and len(key._secret) == 32, f"{path}: not a key, or damaged", StateRefusal)
        return key

    def _hold(self, path: Path) -> None:
        """One key object at a time uses a file."""
        lock = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise KeyReuse(f"{path}: another process, or another Key, is using this key") from None
        self._path, self._lock = path, os.fdopen(lock, "rb")

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
        raise KeyReuse("a key is not copied: two copies would put the same noise on different data")

    def __repr__(self) -> str:
        return "Key(secret)" if self.seed is None else f"Key(seed {self.seed}: not private)"

    def series(self, spec_digest: str, series: str) -> SeriesKey:
        """The start of a series' key chain; handed out once for each (mechanism, series)."""
        place = (spec_digest, series)
        require(
            not self.only_resumes,
            "a key read back from a file goes on with streams (tempriv.resume) but starts none; "
            "take a new key with Key.generate()",
            KeyReuse,
        )
        if place in self._used:
            raise KeyReuse(
                f"this key has already made the noise of series {series!r}: the same noise on "
                "other data would publish their difference. Take a new key with Key.generate(), "
                "or go on from a saved state with tempriv.resume"
            )
        self._used.add(place)
        return self.again(spec_digest, series)

    def again(self, spec_digest: str, series: str, step: int = 0) -> SeriesKey:
        """The same chain, for going on at a step that noise has not been handed out beyond."""
        reached = self._reached.get((spec_digest, series), 0)
        require(bool(self._secret), "this key was closed", KeyReuse)
        require(
            step >= reached,
            f"this key has already made the noise of series {series!r} up to step {reached}: other "
            f"readings from step {step} on would get the same noise. Go on from the latest state",
            KeyReuse,
        )
        secret = _hash(self._secret, "series", spec_digest, self.release_id, series)
        return SeriesKey(secret, 0)

    def note(self, spec_digest: str, series: str, step: int) -> None:
        """Remember how far a stream has come; durably, where the key is kept in a file."""
        require(bool(self._secret), "this key was closed", KeyReuse)
        self._reached[spec_digest, series] = step
        self._keep()

    def pseudonym(self, name: str) -> str:
        """A name that cannot be linked to the original, nor to another release, without the key."""
        return _hash(self._secret, "pseudonym", self.release_id, name).hex()[:16]


def fingerprint(mark: bytes, places: npt.NDArray[np.uint64], bits: npt.NDArray[np.uint64]) -> int:
    """A keyed sum over (place, reading) pairs, in any order and cutting."""
    return int(fingerprints(mark, places.ravel(), bits.ravel()).sum(dtype=np.uint64))


def fingerprints(
    mark: bytes, places: npt.NDArray[np.uint64], bits: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """A keyed mark of each (place, reading) pair."""
    cipher = _block_cipher(mark)
    pairs = np.empty((min(len(bits), PAIRS), 2), dtype=np.uint64)
    mixed = np.empty((len(pairs) + 1, 2), dtype=np.uint64)  # a cipher asks for room to spare
    found = np.empty(len(bits), dtype=np.uint64)
    for low in range(0, len(bits), PAIRS):
        part = pairs[: len(bits) - low]
        part[:, 0], part[:, 1] = places[low : low + PAIRS], bits[low : low + PAIRS]
        cipher.update_into(part.data.cast("B"), mixed.data.cast("B"))
        found[low : low + PAIRS] = mixed[: len(part), 0]
    return found


def new_id() -> str:
    """A name for a release that no other release has."""
    return os.urandom(16).hex()


def tokens(count: int) -> bytes:
    """So many names of 16 bytes that nothing else has."""
    return os.urandom(16 * count)


Generator = np.random.Generator


def simulation(key: Key, purpose: str) -> Generator:
    """Ordinary random numbers, to try out what many devices would answer; never for a release.

    >>> one, other = (simulation(Key.from_seed(1), "a").integers(1000) for _ in range(2))
    >>> bool(one == other)
    True
    """
    words = key.again("simulation", purpose).cipher_key("numbers")
    return np.random.default_rng(int.from_bytes(words, "big"))


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
        """A later link; there is no way back."""
        if epoch == self.epoch:
            return self  # with its ciphers
        require(
            epoch >= self.epoch,
            f"epoch {epoch}: its key has been erased, the chain stands at {self.epoch}",
            KeyReuse,
        )
        secret = self.secret
        for _ in range(epoch - self.epoch):
            secret = _hash(secret, "next epoch")
        return SeriesKey(secret, epoch)

    def check(self) -> str:
        """Tells a wrong key from the right one and nothing else."""
        return _hash(self.secret, "check").hex()[:16]

    def cipher_key(self, purpose: str) -> bytes:
        return _hash(self.secret, "purpose", purpose)

    def block_cipher(self, purpose: str) -> Any:
        """The cipher of a purpose, made once: to make one costs more than twenty short uses."""
        ciphers = self.__dict__.setdefault("_ciphers", {})
        if purpose not in ciphers:
            ciphers[purpose] = _block_cipher(self.cipher_key(purpose))
        return ciphers[purpose]


class Run(NamedTuple):
    """Consecutive steps of one series within a block: the chain link is that of its first step."""

    key: SeriesKey
    start: int
    count: int  # type: ignore[assignment]


@dataclass(frozen=True)
class Runs(Sequence[Run]):
    """Runs of many series in columns, for who has thousands of them."""

    links: list[SeriesKey]
    starts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.links)

    def __getitem__(self, which: Any) -> Any:
        return Run(self.links[which], int(self.starts[which]), int(self.counts[which]))

    @property
    def within_epochs(self) -> bool:
        """Whether no run crosses an epoch, nor is empty."""
        epochs = np.array([link.epoch for link in self.links], dtype=np.int64)
        last = self.starts + self.counts - 1
        same = (self.starts // EPOCH == epochs) & (last // EPOCH == epochs)
        return bool((same & (self.counts > 0)).all())


def _within_epochs(runs: Sequence[Run]) -> list[tuple[SeriesKey, int, int]]:
    """The runs cut where an epoch ends: links, first steps within their epochs, and counts."""
    pieces = []
    for key, start, left in runs:
        epoch, first = divmod(start, EPOCH)
        if key.epoch == epoch and 0 < left <= EPOCH - first:
            pieces.append((key, first, left))
            continue
        while left > 0:
            key = key.at_epoch(start // EPOCH)
            count = min(left, EPOCH - start % EPOCH)
            pieces.append((key, start % EPOCH, count))
            start, left = start + count, left - count
    return pieces


def blocks_of_runs(runs: Sequence[Run], most: int) -> Iterator[Sequence[Run]]:
    """The runs in groups of at most so many steps, cutting a run where a group is full."""
    if isinstance(runs, Runs) and int(runs.counts.sum()) <= most:
        yield runs
        return
    group: list[Run] = []
    room = most
    for run in runs:
        while run.count > room:
            group.append(Run(run.key, run.start, room))
            run = Run(run.key, run.start + room, run.count - room)
            yield group
            group, room = [], most
        group.append(run)
        room -= run.count
    yield group


MOST_LANES = 8  # that are kept whole for a purpose, 8 bytes a row each
SHORT = 64
"""Runs of so many steps on average take their words from ciphers that are kept."""

MANY_ROWS = 1 << 15  # whose lanes are taken at a time

DENSE = 16
"""Words for so many rows in a row cost less than for one row by itself."""


class Words:
    """Random words for the rows of a block: ``take(lane)`` gives one word to every row.

    ``only`` narrows to some of the rows, ``branch`` opens lanes that nothing else shares; a row
    gets the same word in a lane whatever it is taken together with.
    """

    def __init__(self, runs: Sequence[Run], purpose: str):
        self._purpose = purpose
        if isinstance(runs, Runs) and runs.within_epochs:
            self._links, counts = runs.links, runs.counts.tolist()
            self._starts = (runs.starts % EPOCH).tolist()
        else:
            pieces = _within_epochs(runs)
            self._links = [link for link, _, _ in pieces]
            self._starts = [start for _, start, _ in pieces]
            counts = [count for _, _, count in pieces]
        self._offsets = [0, *itertools.accumulate(counts)]
        self._rows: npt.NDArray[np.intp] | None = None  # all of them
        self._lane = 0
        self._known: dict[tuple[bytes, type], npt.NDArray[Any]] | None = None
        self.count = self._offsets[-1]

    def _like(self, rows: npt.NDArray[np.intp] | None, lane: int) -> Words:
        other = object.__new__(Words)
        other.__dict__.update(self.__dict__)
        other._rows, other._lane = rows, lane
        other.count = self.count if rows is None else len(rows)
        return other

    def branch(self, number: int) -> Words:
        """Lanes of their own; branches of branches too, to a depth of seven."""
        lane = (self._lane << BRANCH_BITS) + number + 1
        require(0 <= number < (1 << BRANCH_BITS) - 1, f"branch {number}: too many", KeyReuse)
        require(lane >> (8 * LANE_BYTES - BRANCH_BITS) == 0, "branches too deep", KeyReuse)
        return self._like(self._rows, lane)

    def only(self, rows: npt.NDArray[np.intp]) -> Words:
        """The same words for some of the rows, given by rising position."""
        if len(rows) == self.count:
            return self
        return self._like(rows if self._rows is None else self._rows[rows], self._lane)

    def remembered(self) -> Words:
        """The same words, for who comes back often for some of the rows: lanes are kept whole."""
        if self._known is not None:
            return self
        other = self._like(self._rows, self._lane)
        other._known = {}
        return other

    def one(self, row: int, lane: int) -> int:
        """The word of a single row."""
        return int(self.only(np.array([row])).take(lane)[0])

    def take(self, lane: int = 0) -> npt.NDArray[np.uint64]:
        """One word for every row."""
        return self._words(lane, np.uint64)

    def take_half(self, lane: int) -> npt.NDArray[np.uint32]:
        """Half a word for every row, from a lane that gives no whole ones: twice as fast."""
        return self._words(lane, np.uint32)

    def _words(self, lane: int, kind: type) -> npt.NDArray[Any]:
        prefix = self._prefix(self._lane, lane)
        if self._rows is None:
            return self._take_all(prefix, kind)
        if self._known is not None and len(self._rows) > 1:
            if (prefix, kind) not in self._known and len(self._known) < MOST_LANES:
                self._known[prefix, kind] = self._take_all(prefix, kind)
            if (prefix, kind) in self._known:
                return np.asarray(self._known[prefix, kind][self._rows])
        if DENSE * len(self._rows) >= self._offsets[-1]:
            return np.asarray(self._take_all(prefix, kind)[self._rows])
        return self._take(self._rows, np.frombuffer(prefix, dtype=">u4"), kind)

    def take_lanes(self, count: int) -> npt.NDArray[np.uint64]:
        """Words of the first lanes, a row of them for each: a cipher is asked once for all."""
        rows = np.arange(self._offsets[-1]) if self._rows is None else self._rows
        found = np.empty((len(rows), count), dtype=np.uint64)
        prefixes = b"".join(self._prefix(self._lane, lane) for lane in range(count))
        lanes = np.frombuffer(prefixes, dtype=">u4").reshape(count, 3)
        piece, step = self._places(rows)
        for low in range(0, len(rows), MANY_ROWS):
            part = slice(low, low + MANY_ROWS)
            where = np.repeat(piece[part], count)
            counters = np.empty((len(where), 4), dtype=">u4")
            counters[:, :3] = np.tile(lanes, (len(where) // count, 1))
            counters[:, 3] = np.repeat(step[part] // 2, count)
            both = self._ciphered(where, counters, np.uint64).reshape(-1, count, 2)
            found[part] = both[np.arange(len(both)), :, step[part] % 2]
        return found

    def take_branches(
        self, rows: npt.NDArray[np.intp], numbers: npt.NDArray[np.intp], count: int
    ) -> npt.NDArray[np.uint64]:
        """One word each for some rows (rising, maybe repeated), from the branch of that number."""
        prefixes = b"".join(self._prefix(self.branch(i)._lane, 0) for i in range(count))
        lanes = np.frombuffer(prefixes, dtype=">u4").reshape(count, 3)
        places = rows if self._rows is None else self._rows[rows]
        return self._take(places, lanes[numbers], np.uint64)

    def _prefix(self, branch: int, lane: int) -> bytes:
        require(0 <= lane < 1 << BRANCH_BITS, f"lane {lane}: too many", KeyReuse)
        return ((branch << BRANCH_BITS) + lane).to_bytes(LANE_BYTES, "big")

    def _take_all(self, prefix: bytes, kind: type) -> npt.NDArray[Any]:
        if 0 < self._offsets[-1] <= SHORT * len(self._links):
            return self._take_short(prefix, kind)
        # a run may start in the middle of a counter block: take the block whole, some words too
        # early, and let the run before it overwrite those
        width = np.dtype(kind).itemsize
        extra = CIPHER_BYTES // width - 1
        out: npt.NDArray[Any] = np.empty(self._offsets[-1] + extra, dtype=kind)
        view = memoryview(out.data).cast("B")
        for i in range(len(self._links) - 1, -1, -1):
            key = self._links[i].cipher_key(self._purpose)
            start, low, high = self._starts[i], self._offsets[i], self._offsets[i + 1]
            counter = prefix + (start // (extra + 1)).to_bytes(BLOCK_BYTES, "big")
            low += extra - start % (extra + 1)
            cipher = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()
            cipher.update_into(_ZEROS[: width * (high + extra - low)], view[width * low :])
        return out[extra:]

    def _take_short(self, prefix: bytes, kind: type) -> npt.NDArray[Any]:
        """The same where runs are many and short: counters of all of them, a cipher for each."""
        each = CIPHER_BYTES // np.dtype(kind).itemsize
        starts = np.array(self._starts, dtype=np.int64)
        ends = starts + np.diff(self._offsets)
        blocks = -(-ends // each) - starts // each
        edges = np.concatenate(([0], np.cumsum(blocks)))
        counters = np.empty((int(edges[-1]), 4), dtype=">u4")
        counters[:, :3] = np.frombuffer(prefix, dtype=">u4")
        counters[:, 3] = np.arange(len(counters)) + np.repeat(starts // each - edges[:-1], blocks)
        found = self._ciphered(np.repeat(np.arange(len(blocks)), blocks), counters, kind)
        first = each * edges[:-1] + starts % each - self._offsets[:-1]
        return np.asarray(found[np.arange(self._offsets[-1]) + np.repeat(first, ends - starts)])

    def _take(
        self, rows: npt.NDArray[np.intp], lanes: npt.NDArray[np.uint32], kind: type
    ) -> npt.NDArray[Any]:
        each = CIPHER_BYTES // np.dtype(kind).itemsize
        piece, step = self._places(rows)
        counters = np.empty((len(rows), 4), dtype=">u4")
        counters[:, :3] = lanes
        counters[:, 3] = step // each
        found = self._ciphered(piece, counters, kind).reshape(-1, each)
        return np.asarray(found[np.arange(len(rows)), step % each])

    def _places(
        self, rows: npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
        """The piece of each row, and its step within the epoch."""
        piece = np.searchsorted(self._offsets, rows, side="right") - 1
        first = np.array(self._starts, dtype=np.int64) - np.array(self._offsets[:-1])
        return piece, rows + first[piece]

    def _ciphered(
        self, piece: npt.NDArray[np.intp], counters: npt.NDArray[Any], kind: type
    ) -> npt.NDArray[Any]:
        """Counter mode at scattered counters is the block cipher on the counters themselves.

        ``piece`` says by which link's key, in runs of equal ones.
        """
        each = CIPHER_BYTES // np.dtype(kind).itemsize
        found: npt.NDArray[Any] = np.empty((len(counters) + 1) * each, dtype=kind)
        if not len(counters):
            return found[:0]
        read, write = memoryview(counters.data).cast("B"), memoryview(found.data).cast("B")
        edges = [*np.flatnonzero(np.diff(piece, prepend=-1)).tolist(), len(counters)]
        for low, high in itertools.pairwise(edges):
            cipher = self._links[piece[low]].block_cipher(self._purpose)
            part = read[CIPHER_BYTES * low : CIPHER_BYTES * high]
            cipher.update_into(part, write[CIPHER_BYTES * low :])
        return found[:-each]
