"""A release to a file: computed aside, charged, and put in place, however the run ends."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tempriv.data.files import checksum
from tempriv.errors import TemprivError, require
from tempriv.ledger.ledger import Ledger, OutputRecord
from tempriv.ledger.scope import Scope
from tempriv.privacy import serialization
from tempriv.privacy.guarantees import Guarantee, NoGuarantee
from tempriv.releases.description import sidecar_path, with_receipt
from tempriv.releases.owner_file import OwnerFile, owner_path, put_in_place
from tempriv.releases.run import check_early
from tempriv.releases.writer import (
    ReleaseWriter,
    publish,
    remove_stale_partials,
    require_new_output,
)

if TYPE_CHECKING:
    import pyarrow as pa

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

    def about(self) -> dict[str, Any]:
        """The description, once all batches have passed."""


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
    progress: Callable[[int], None] = lambda rows: None,
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
        progress: called with the number of rows in each batch.

    Guarantees:
        - the output appears whole or not at all, and only after the charge is durable;
        - a run that was killed after its charge is finished by the next one with the same request:
          same bits, no second charge.
    """
    interrupted = finish_interrupted(output, ledger, request, force)
    if interrupted is not None:
        return interrupted
    require_new_output(output, force)
    remove_stale_partials(output, keep=[] if ledger is None else ledger.partials(output.resolve()))
    check_early(ledger, dataset, run.guarantee)
    run.keep_spelling(output)
    require_new_owner_file(output, force)
    with (
        ReleaseWriter(output, run.key.release_id) as writing,
        OwnerFile(writing.partial) as owner,
    ):
        run.owner = owner.add
        for batch in run.batches():
            writing.add(batch)
            progress(batch.num_rows)
        owner.close()
        about = writing.close(run.about())
        require_new_output(output, force)
        receipt = None
        if ledger is not None and dataset is not None:
            place = OutputRecord(
                path=str(output.resolve()),
                partial=str(writing.partial.resolve()),
                checksum=about["output"]["blake2b"],
                request=request,
            )
            receipt = ledger.charge(
                dataset,
                run.guarantee,
                run.scope,
                run.key.release_id,
                note=note,
                output=place,
            )
        writing.kept = owner.kept = True
        about = with_receipt(about, receipt)
        put_in_place(output, writing.partial)
        writing.publish(about)
        if ledger is not None and receipt is not None:
            ledger.finish(run.key.release_id)
    return about


def require_new_owner_file(output: Path, force: bool) -> None:
    """Refuse to replace the owner's file of another release at ``output``, unless ``force``."""
    require(
        force or not owner_path(output).exists(),
        f"{owner_path(output)}: exists already, from another release; choose another name for the "
        "output, or replace both with [[force=True]]",
        TemprivError,
    )


def finish_interrupted(
    output: Path, ledger: Ledger | None, request: str, force: bool
) -> dict[str, Any] | None:
    """Put in place at ``output`` what a killed run had been charged for.

    ``ledger``, ``request`` and ``force`` are as in ``release_file``.
    """
    prepared = None if ledger is None else ledger.prepared(output.resolve(), request)
    if ledger is None or prepared is None:
        return None
    receipt, record = prepared.receipt, prepared.output
    partial = Path(record.partial)
    for candidate in (output, partial):
        beside = sidecar_path(candidate)
        if candidate.exists() and beside.exists() and checksum(candidate) == record.checksum:
            if candidate == partial:
                require_new_output(output, force)
                put_in_place(output, partial)
            about = with_receipt(json.loads(beside.read_bytes()), receipt)
            publish(output, partial, about)
            ledger.finish(receipt.release_id)
            remove_stale_partials(output, keep=ledger.partials(output.resolve()))
            return {**about, "finished_interrupted": True}
    return None
