"""A release to a file: computed aside, charged, and put in place, however the run ends."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempriv.data.files import checksum
from tempriv.errors import TemprivError, require
from tempriv.ledger.ledger import Ledger, OutputRecord
from tempriv.mechanisms.base import Mechanism
from tempriv.privacy import serialization
from tempriv.releases.description import (
    owner_evidence_path,
    owner_path,
    sidecar_path,
    signed,
    with_receipt,
)
from tempriv.releases.owner_file import OwnerFile, put_in_place, write_owner_evidence
from tempriv.releases.run import ReleaseRun, check_early, stated_for
from tempriv.releases.writer import (
    ReleaseWriter,
    publish,
    remove_stale_partials,
    require_new_output,
)

if TYPE_CHECKING:
    from tempriv.releases.signature import SigningKey


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
