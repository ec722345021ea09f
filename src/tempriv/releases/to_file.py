"""A release to a file: computed aside, charged, and put in place, however the run ends."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tempriv.data.files import checksum
from tempriv.errors import TemprivError, require
from tempriv.ledger.ledger import Ledger, OutputRecord
from tempriv.mechanisms.base import Mechanism
from tempriv.privacy import serialization
from tempriv.releases.description import owner_path, sidecar_path, with_receipt
from tempriv.releases.run import ReleaseRun, check_early
from tempriv.releases.writer import (
    ReleaseWriter,
    publish,
    remove_stale_partials,
    require_new_output,
)


def request_of(source: Path, mechanism: Mechanism, settings: dict[str, Any]) -> str:
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
    run: ReleaseRun,
    output: Path,
    *,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    request: str = "",
    note: str | None = None,
    force: bool = False,
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
        progress: called with the number of rows in each batch.
        other_data: datasets of the ledger that hold other data, whatever the rows look like.

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
    check_early(ledger, dataset, run.guarantee, run.mechanism)
    run.keep_spelling(output)
    require_new_owner_file(output, force)
    if ledger is not None:
        run.sketch_for(ledger)
    with ExitStack() as stack:
        writing = stack.enter_context(ReleaseWriter(output, run.key.release_id))
        owner = None
        if run.marked:
            from tempriv.releases.owner_file import OwnerFile

            owner = stack.enter_context(OwnerFile(writing.partial))
            run.owner = owner.add
        for batch in run.batches():
            writing.add(batch)
            progress(batch.num_rows)
        if owner is not None:
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
        writing.kept = True
        if owner is not None:
            owner.kept = True
        about = with_receipt(about, receipt)
        if run.marked or owner_path(output).exists():
            from tempriv.releases.owner_file import put_in_place

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
            publish(output, partial, about)
            ledger.finish(receipt.release_id)
            remove_stale_partials(output, keep=ledger.partials(output.resolve()))
            return {**about, "finished_interrupted": True}
    return None
