"""A release to a file: computed aside, charged, and put in place, however the run ends."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from tempriv.data.csv import csv_line, csv_rows
from tempriv.data.files import (
    checksum,
    follow_umask,
    is_dead,
    private_file,
    sync_directory,
    write_durably,
)
from tempriv.errors import DataError, TemprivError, UsageError, require
from tempriv.ledger.ledger import Ledger, OutputRecord
from tempriv.ledger.scope import Scope
from tempriv.privacy import serialization
from tempriv.privacy.guarantees import Guarantee, NoGuarantee
from tempriv.releases.description import (
    METADATA_KEY,
    as_json,
    owner_evidence_path,
    owner_path,
    sidecar_path,
    signed,
    with_receipt,
    without_file,
)
from tempriv.releases.owner_file import OwnerFile, put_in_place, write_owner_evidence
from tempriv.releases.run import check_early, stated_for

if TYPE_CHECKING:
    from tempriv.ledger.sketches import FreshSketch
    from tempriv.ledger.spending import LandmarkSpending
    from tempriv.mechanisms.base import Mechanism
    from tempriv.releases.owner_file import LinkageTrial
    from tempriv.releases.signature import SigningKey
    from tempriv.sampling.keys import Key


class FileRun(Protocol):
    """One table on its way through a mechanism: what is written, and what is charged for it."""

    owner: Callable[[pa.RecordBatch], None] | None

    @property
    def key(self) -> Key:
        """Where the noise comes from."""

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        """What is guaranteed under this key."""

    @property
    def scope(self) -> Scope:
        """Whose data it touches, once all batches have passed."""

    def keep_spelling(self, output: Path) -> None:
        """Values that are only moved keep their spelling in an ``output`` that has one."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The released rows."""

    def about(self, statements: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The description, once all batches have passed.

        Parameters:
            statements: what the curator says of the release.
        """

    @property
    def mechanism(self) -> Mechanism | None:
        """What readings pass through one by one; None if there is no such thing."""

    @property
    def spending(self) -> LandmarkSpending | None:
        """What each reading of a landmark release spends."""

    @property
    def sketch(self) -> FreshSketch | None:
        """The sketch of the rows, if one was asked for."""

    def sketch_for(self, ledger: Ledger) -> None:
        """Have the pass over the table make a sketch of its rows for a ``ledger``."""

    def try_linkage(self) -> LinkageTrial | None:
        """Watch how well known series are found among the released ones, for the owner alone."""


def request_of(source: Path, mechanism: Any, settings: dict[str, Any]) -> str:
    """A name for releasing a ``source`` by a ``mechanism`` with ``settings``."""
    status = source.stat()
    parts = [
        str(source.resolve()),
        status.st_size,
        status.st_mtime_ns,
        serialization.digest(mechanism),
    ]
    text = json.dumps([*parts, settings], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def release_file(
    run: FileRun,
    output: Path,
    *,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    request: str = "",
    note: str | None = None,
    force: bool = False,
    statements: Mapping[str, str] | None = None,
    signing_key: SigningKey | None = None,
    progress: Callable[[int], None] = lambda rows: None,
    other_data: Sequence[str] = (),
) -> dict[str, Any]:
    """Release a table to a file, whatever its size; returns the description written beside it.

    Parameters:
        run: the table, mechanism and key.
        output: the new file, ending in .csv or .parquet.
        ledger: where the release is charged.
        dataset: the name of the data in the ledger.
        request: what ``request_of`` gave, to know an interrupted run by.
        note: a remark for the ledger.
        force: replace a file that exists.
        statements: what the curator says of the release, as ``read_statements`` gave it; the rest
            is what the ledger has of the dataset.
        signing_key: signs the description; there is no signature without one.
        progress: called with the number of rows in each batch.
        other_data: datasets of the ledger that hold other data, whatever the rows look like.

    Guarantees:
        - the output appears whole or not at all, and only after the charge is durable;
        - a run that was killed after its charge is finished by the next one with the same request:
          same bits, no second charge.
    """
    interrupted = finish_interrupted(output, ledger, request, force, signing_key)
    if interrupted is not None:
        return interrupted
    require_new_output(output, force)
    remove_stale_partials(output, keep=[] if ledger is None else ledger.partials(output.resolve()))
    check_early(ledger, dataset, run.guarantee, run.mechanism)
    stated = stated_for(ledger, dataset, statements)
    run.keep_spelling(output)
    trial = run.try_linkage()
    require_new_owner_file(output, force)
    if ledger is not None:
        run.sketch_for(ledger)
    with (
        ReleaseWriter(output, run.key.release_id) as writing,
        OwnerFile(writing.partial) as owner,
    ):
        run.owner = owner.add
        for batch in run.batches():
            writing.add(batch)
            progress(batch.num_rows)
        owner.close()
        linkage = None if trial is None else trial.found()
        about = writing.close(run.about(stated))
        require_new_output(output, force)
        receipt = None
        if ledger is not None and dataset is not None:
            place = OutputRecord(
                path=str(output.resolve()),
                partial=str(writing.partial.resolve()),
                checksum=about["output"]["blake2b"],
                request=request,
            )
            spending = run.spending
            ledger.warn_of_repetition(
                dataset, run.guarantee, run.scope, run.key.release_id, spending=spending
            )
            receipt = ledger.charge(
                dataset,
                run.guarantee,
                run.scope,
                run.key.release_id,
                note=note,
                output=place,
                spending=spending,
                rows=run.sketch,
                other_data=other_data,
            )
        writing.kept = owner.kept = True
        about = signed(with_receipt(about, receipt), signing_key)
        put_in_place(output, writing.partial)
        writing.publish(about)
        if ledger is not None and receipt is not None:
            ledger.finish(run.key.release_id)
    if linkage is not None:
        try:
            write_owner_evidence(output, run.key.release_id, linkage)
        except OSError as problem:
            raise TemprivError(
                f"{owner_evidence_path(output)}: {problem.strerror}; the release itself is "
                f"complete in {output}"
            ) from None
    return about


def require_new_owner_file(output: Path, force: bool) -> None:
    """Refuse to replace an owner's file of another release at ``output``, unless ``force``."""
    kept = [path for path in (owner_path(output), owner_evidence_path(output)) if path.exists()]
    require(
        force or not kept,
        f"{kept[0] if kept else output}: exists already, from another release; choose "
        "another name for the output, or replace both with [[force=True]]",
        TemprivError,
    )


def finish_interrupted(
    output: Path,
    ledger: Ledger | None,
    request: str,
    force: bool,
    signing_key: SigningKey | None = None,
) -> dict[str, Any] | None:
    """Put in place at ``output`` what a killed run had been charged for.

    ``ledger``, ``request``, ``force`` and ``signing_key`` are as in ``release_file``.
    """
    prepared = None if ledger is None else ledger.prepared(output.resolve(), request)
    if ledger is None or prepared is None:
        return None
    from tempriv.releases.owner_file import put_in_place

    receipt, record = prepared.receipt, prepared.output
    partial = Path(record.partial)
    for candidate in (output, partial):
        beside = sidecar_path(candidate)
        if candidate.exists() and beside.exists() and checksum(candidate) == record.checksum:
            if candidate == partial:
                require_new_output(output, force)
                put_in_place(output, partial)
            about = with_receipt(json.loads(beside.read_bytes()), receipt)
            about = signed(about, signing_key)
            publish(output, partial, about)
            ledger.finish(receipt.release_id)
            remove_stale_partials(output, keep=ledger.partials(output.resolve()))
            return {**about, "finished_interrupted": True}
    return None


def require_new_output(path: Path, force: bool) -> None:
    """Refuse a ``path`` that exists, unless ``force``, or is no CSV or Parquet file."""
    require(
        force or not path.exists(),
        f"{path}: exists already; choose another name, or replace it with [[force=True]]",
        TemprivError,
    )
    require(
        path.suffix.lower() in (".csv", ".parquet"),
        f"{path}: the output must end in .csv or .parquet",
        UsageError,
    )
    require(path.parent.is_dir(), f"{path.parent}: no such directory", UsageError)


class _HashedFile:
    """A file that is hashed while it is written."""

    def __init__(self, file: IO[bytes]):
        self.file = file
        self.digest = hashlib.blake2b(digest_size=32)
        self.size = 0
        self.closed = False

    def write(self, data: Any) -> int:
        """Write the bytes of ``data``, and hash them."""
        self.file.write(data)
        self.digest.update(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self.file.flush()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


class ReleaseWriter:
    """An output under way: written aside, then put in place in one step.

    Used as a context: on any failure before ``publish`` the partial file is removed.
    """

    def __init__(self, path: Path, release_id: str):
        self.path = path
        self.partial = partial_path(path, release_id)
        self.rows = 0
        self._parquet: Any = None
        self._file: Any = None
        self._hashed: _HashedFile | None = None
        self.kept = False

    def __enter__(self) -> ReleaseWriter:
        self._file = private_file(self.partial)
        self._hashed = _HashedFile(self._file)
        return self

    def __exit__(self, *problem: Any) -> None:
        self._file.close()
        if not self.kept:
            self.partial.unlink(missing_ok=True)
            sidecar_path(self.partial).unlink(missing_ok=True)

    def add(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a ``batch``."""
        assert self._hashed is not None
        first = self.rows == 0
        self.rows += batch.num_rows
        if self.path.suffix.lower() == ".csv":
            if first:
                self._hashed.write(csv_line(batch.schema.names))
            self._hashed.write(csv_rows(batch))
            return
        if self._parquet is None:
            named = [f.name for f in batch.schema if pa.types.is_string(f.type)]
            # no Arrow schema inside: ids are plain text to whoever reads the file
            self._parquet = pa.parquet.ParquetWriter(
                self._hashed, batch.schema, use_dictionary=named, store_schema=False
            )
        self._parquet.write(batch)

    def close(self, about: dict[str, Any]) -> dict[str, Any]:
        """Finish the partial file; returns ``about`` with the file's checksum in it."""
        assert self._hashed is not None
        require(self.rows > 0, "there are no rows to write", DataError)
        # a release that was read back still describes the file it came from
        about = without_file(about)
        if self._parquet is not None:
            self._parquet.add_key_value_metadata({METADATA_KEY: json.dumps(about).encode()})
            self._parquet.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        output = {
            "file": self.path.name,
            "bytes": self._hashed.size,
            "blake2b": self._hashed.digest.hexdigest(),
        }
        about = {**about, "output": output}
        write_durably(sidecar_path(self.partial), as_json(about))
        return about

    def publish(self, about: dict[str, Any]) -> None:
        """Put the finished file in place, its description ``about`` first."""
        self.kept = True
        publish(self.path, self.partial, about)


def publish(path: Path, partial: Path, about: dict[str, Any]) -> None:
    """Move ``partial`` to ``path`` beside ``about``, also for a run that was interrupted before."""
    final = sidecar_path(path)
    if partial.exists():
        # an older file must never stand beside the new description
        path.unlink(missing_ok=True)
    write_durably(final, as_json(about))
    follow_umask(final)
    if partial.exists():
        partial.replace(path)
        follow_umask(path)
    sidecar_path(partial).unlink(missing_ok=True)
    sync_directory(path.parent)


def partial_path(path: Path, release_id: str) -> Path:
    """Where the output of a ``release_id`` for ``path`` is while it is written."""
    return path.with_name(f".{path.name}.{os.getpid()}.{release_id}.partial")


def remove_stale_partials(path: Path, keep: Sequence[Path] = ()) -> None:
    """Remove what killed runs left of outputs at ``path``, but for those to ``keep``."""
    for file in path.parent.iterdir():
        beginning, _, rest = file.name.partition(f".{path.name}.")
        if beginning not in ("", ".") or ".partial" not in rest:
            continue
        owner = next((part for part in rest.split(".") if part.isdigit() and len(part) < 12), "")
        if is_dead(owner) and not any(file.name.startswith(partial.name) for partial in keep):
            file.unlink(missing_ok=True)
